// Runs the corpus, which holds what fuzzing once found, through the same entry points without a
// fuzzer. A crash or another exception than Error fails the test.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/fuzz/entry_points.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// Its corpus, and of scripts those that the importer's tests read.
std::vector<fs::path> folders_of(const std::string& entry) {
  const fs::path tests = fs::path{ORRERY_TEST_SOURCE} / "tests";
  std::vector<fs::path> folders;
  if (fs::exists(tests / "fuzz/corpus" / entry)) folders.push_back(tests / "fuzz/corpus" / entry);
  if (entry == "shell") folders.push_back(tests / "unit/import/megatron/scripts");
  return folders;
}

class Replay : public testing::TestWithParam<EntryPoint> {};

TEST_P(Replay, EveryTextIsAcceptedOrRefused) {
  int texts = 0;
  for (const fs::path& folder : folders_of(GetParam().name))
    for (const auto& file : fs::directory_iterator{folder}) {
      if (!file.is_regular_file()) continue;
      SCOPED_TRACE(file.path().filename());
      std::ostringstream text;
      text << std::ifstream{file.path(), std::ios::binary}.rdbuf();
      EXPECT_NO_THROW(GetParam().run(text.str()));
      ++texts;
    }
  EXPECT_GE(texts, 2);
}

INSTANTIATE_TEST_SUITE_P(Corpus, Replay, testing::ValuesIn(entry_points()),
                         [](const auto& entry) { return entry.param.name; });

}  // namespace
}  // namespace orrery
