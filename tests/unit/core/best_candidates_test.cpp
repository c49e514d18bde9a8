#include "sim/core/best_candidates.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>

namespace orrery::best_candidates_test {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

// Few values, so that many are equal; one in ten must not be listed.
std::vector<Scored> some_candidates(std::uint32_t seed, int count) {
  std::mt19937 random{seed};
  std::vector<Scored> all;
  for (int i = 0; i < count; ++i)
    all.push_back({random() % 10 == 0 ? never : static_cast<double>(random() % 6),
                   static_cast<double>(random() % 6), i, static_cast<std::int32_t>(random() % 5)});
  std::shuffle(all.begin(), all.end(), random);
  return all;
}

// The result of sorting all of them, by the definition of each kind.
std::vector<std::int64_t> expected(std::vector<Scored> all, BestList list) {
  std::erase_if(all, [](const Scored& one) { return one.score == never; });
  std::sort(all.begin(), all.end(), [](const Scored& a, const Scored& b) {
    return std::tie(a.score, a.second, a.number) < std::tie(b.score, b.second, b.number);
  });
  std::vector<std::int64_t> listed;
  std::map<std::int32_t, int> of_layout;
  double least = never;
  for (const Scored& one : all) {
    if (list.is_per_layout() && of_layout[one.layout]++ > 0) continue;
    if (list.is_front() && one.second >= least) continue;
    least = std::min(least, one.second);
    listed.push_back(one.number);
  }
  if (!list.is_front() && std::ssize(listed) > list.most)
    listed.resize(static_cast<std::size_t>(list.most));
  return listed;
}

TEST(BestCandidates, AreWhatSortingAllOfThemGives) {
  for (const auto kind : {BestList::Kind::top, BestList::Kind::per_layout, BestList::Kind::front})
    for (const int most : {1, 3, 100})
      for (std::uint32_t seed = 0; seed < 200; ++seed) {
        const BestList list{kind, most};
        const std::vector<Scored> all = some_candidates(seed, 30);
        BestCandidates<Scored> best{list};
        for (const Scored& one : all) {
          const bool may = best.may_take(one);
          const std::size_t before = best.ranked().size();
          best.offer(one);
          const bool listed =
              std::any_of(best.ranked().begin(), best.ranked().end(),
                          [&](const Scored& other) { return other.number == one.number; });
          // A candidate that a bound excludes is never listed.
          ASSERT_TRUE(may || (!listed && best.ranked().size() == before)) << seed;
          ASSERT_FALSE(may && one.score == never);
        }
        std::vector<std::int64_t> found;
        for (const Scored& one : best.ranked()) found.push_back(one.number);
        ASSERT_EQ(found, expected(all, list)) << seed << " " << most;
      }
}

// An equal candidate may still come first by its number; a worse one may not.
TEST(BestCandidates, EqualBoundsAreLookedAt) {
  for (const auto kind : {BestList::Kind::top, BestList::Kind::per_layout, BestList::Kind::front}) {
    BestCandidates<Scored> best{{kind, 1}};
    best.offer({2.0, 2.0, 7, 0});
    EXPECT_TRUE(best.may_take({2.0, 2.0, 8, 0}));
    EXPECT_FALSE(best.may_take({2.5, 2.0, 8, 0}));
    EXPECT_EQ(best.may_take({2.5, 1.5, 8, 0}), kind == BestList::Kind::front);
  }
}

}  // namespace
}  // namespace orrery::best_candidates_test
