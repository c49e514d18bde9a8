#include "sim/core/nearest.hpp"

#include <gtest/gtest.h>

namespace orrery::nearest_test {
namespace {

TEST(Nearest, FindsAWordWithinAThirdOfItsLength) {
  // "hiden" -> "hidden": one letter inserted; 5 / 3 = 1 edit is allowed.
  EXPECT_EQ(nearest("hiden", {"layers", "hidden", "heads"}), "hidden");
  // "hidd" -> "hidden": two letters, but 4 / 3 = 1.
  EXPECT_EQ(nearest("hidd", {"hidden"}), "");
  // "layres" -> "layers": two substitutions; 6 / 3 = 2.
  EXPECT_EQ(nearest("layres", {"hidden", "layers"}), "layers");
}

TEST(Nearest, LetterCaseIsFree) { EXPECT_EQ(nearest("GPT2", {"gpt2", "gemma"}), "gpt2"); }

TEST(Nearest, TheFirstOfEquallyNearWordsWins) { EXPECT_EQ(nearest("tx", {"tp", "te"}), "tp"); }

TEST(Nearest, EveryOneLetterMistakeOfALongWordIsRepaired) {
  const std::string word = "kv_heads";
  for (std::size_t i = 0; i < word.size(); ++i) {
    std::string dropped = word, doubled = word, wrong = word;
    dropped.erase(i, 1);
    doubled.insert(i, 1, word[i]);
    wrong[i] = '#';
    for (const std::string& mistake : {dropped, doubled, wrong})
      EXPECT_EQ(nearest(mistake, {"layers", "kv_heads", "hidden"}), word) << mistake;
  }
}

TEST(Nearest, EmptyAndEndlessWordsHaveNone) {
  EXPECT_EQ(nearest("", {"layers"}), "");
  EXPECT_EQ(nearest("layers", {}), "");
  EXPECT_EQ(nearest(std::string(1'000'000, 'a'), {std::string(1'000'000, 'a')}), "");
}

TEST(Suggestion, NamesTheNearestOrAll) {
  EXPECT_EQ(suggestion("gipe", {"gpipe", "1f1b"}), "did you mean 'gpipe'?");
  EXPECT_EQ(suggestion("chimera", {"gpipe", "1f1b"}), "write one of: gpipe, 1f1b");
  EXPECT_EQ(suggestion("x", {}), "");
}

}  // namespace
}  // namespace orrery::nearest_test
