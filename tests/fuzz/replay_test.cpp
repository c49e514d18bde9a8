// Runs the corpus, which holds what fuzzing once found, through the same entry points without a
// fuzzer. A crash or another exception than Error fails the test.
#include <gtest/gtest.h>

#include "tests/fuzz/corpus.hpp"

namespace orrery {
namespace {

class Replay : public testing::TestWithParam<EntryPoint> {};

TEST_P(Replay, EveryTextIsAcceptedOrRefused) {
  int accepted = 0;
  const std::map<std::string, std::string> texts = corpus_of(GetParam());
  for (const auto& [name, text] : texts) {
    SCOPED_TRACE(name);
    EXPECT_NO_THROW(accepted += GetParam().run(text));
  }
  EXPECT_GE(texts.size(), 2u);
  EXPECT_GE(accepted, 1);  // Or fuzzers would begin at the wrong end.
}

INSTANTIATE_TEST_SUITE_P(Corpus, Replay, testing::ValuesIn(entry_points()),
                         [](const auto& entry) { return entry.param.name; });

}  // namespace
}  // namespace orrery
