#include "sim/search/best_first.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace orrery::best_first_test {
namespace {

struct Item : Scored {
  double truth = 0.0;  // Its score once it is evaluated.

  std::string name() const { return "item " + std::to_string(number); }
  bool bound_before(const Item& other) const { return ranks_before(other); }
};

std::vector<Item> some_items(std::uint32_t seed) {
  std::mt19937 random{seed};
  std::vector<Item> items(60);
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].number = static_cast<std::int64_t>(i);
    items[i].layout = static_cast<std::int32_t>(random() % 7);
    items[i].truth = static_cast<double>(random() % 40);
    items[i].score = items[i].truth - static_cast<double>(random() % 10);
  }
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.bound_before(b); });
  return items;
}

std::optional<Item> evaluated(Item item) {
  item.score = item.truth;
  return item;
}

std::vector<std::int64_t> numbers(const std::vector<Item>& items) {
  std::vector<std::int64_t> numbers;
  for (const Item& item : items) numbers.push_back(item.number);
  return numbers;
}

std::vector<std::int64_t> best_of_all(const std::vector<Item>& items, BestList list) {
  BestCandidates<Item> best{list};
  for (const Item& item : items) best.offer(*evaluated(item));
  return numbers(best.ranked());
}

TEST(BestFirstSearch, FindsTheBestWithoutEvaluatingAll) {
  for (const auto kind : {BestList::Kind::top, BestList::Kind::per_layout})
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
      const std::vector<Item> items = some_items(seed);
      const BestList list{kind, 3};
      BestFirstSearch<Item> search{items, list};
      std::int64_t heard = 0;
      search.run(
          2, [](const Item& item, const auto&) { return evaluated(item); },
          [&](const Item& item, const Item& bounds) {
            ++heard;
            EXPECT_EQ(item.number, bounds.number);
            EXPECT_LE(bounds.score, item.score);
          });
      EXPECT_EQ(numbers(search.ranked()), best_of_all(items, list));
      EXPECT_EQ(heard, search.evaluated());
      EXPECT_LT(search.evaluated(), std::ssize(items));
      EXPECT_EQ(search.left().candidates, 0);
    }
}

// Three items a group, whose bound is the lowest of theirs; what a group's bound rules out is not
// opened.
TEST(BestFirstSearch, OpensOnlyGroupsThatMayHoldTheBest) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    const std::vector<Item> items = some_items(seed);
    std::vector<Item> groups;
    for (std::size_t i = 0; i < items.size(); i += 3) {
      groups.push_back(items[i]);
      groups.back().number = static_cast<std::int64_t>(i);
    }
    const BestList list{BestList::Kind::top, 1};
    BestFirstSearch<Item> search{groups, list};
    std::set<std::int64_t> opened;
    search.run_groups(
        [&](const Item& group, const auto&, const auto& add) {
          opened.insert(group.number);
          for (std::int64_t i = group.number; i < group.number + 3; ++i)
            add(items[static_cast<std::size_t>(i)]);
        },
        [](const Item& item, const auto&) { return evaluated(item); });
    EXPECT_EQ(numbers(search.ranked()), best_of_all(items, list));
    const double best = search.ranked().front().score;
    for (const Item& group : groups) EXPECT_EQ(opened.contains(group.number), group.score <= best);
    // All with a lower bound had to be looked at, and none with a higher one was.
    std::int64_t below = 0, up_to = 0;
    for (const Item& item : items) below += item.score < best, up_to += item.score <= best;
    EXPECT_GE(search.evaluated(), below);
    EXPECT_LE(search.evaluated(), up_to);
  }
}

TEST(BestFirstSearch, SaysWhatTheEndOfItsTimeLeaves) {
  const std::vector<Item> items = some_items(1);
  BestFirstSearch<Item> search{items, {BestList::Kind::top, 3}};
  search.run(
      1, [](const Item& item, const auto&) { return evaluated(item); },
      [](const Item&, const Item&) {}, [] { return true; });
  EXPECT_EQ(search.evaluated(), 1);  // The first, whatever the time.
  EXPECT_EQ(search.left().candidates, std::ssize(items) - 1);
  EXPECT_EQ(search.left().score, items[1].score);
}

// Sharper bounds that evaluate() finds on its way save the evaluation.
TEST(BestFirstSearch, WhatEvaluateRulesOutIsNotListed) {
  const std::vector<Item> items = some_items(2);
  const BestList list{BestList::Kind::top, 3};
  BestFirstSearch<Item> search{items, list};
  search.run(
      1,
      [](const Item& item, const auto& known) {
        const auto sharp = evaluated(item);
        return known.may_take(*sharp) ? sharp : std::nullopt;
      },
      [](const Item&, const Item&) {});
  EXPECT_EQ(numbers(search.ranked()), best_of_all(items, list));
}

TEST(BestFirstSearch, SaysWhereAWorkerFailed) {
  const std::vector<Item> items = some_items(3);
  BestFirstSearch<Item> search{items, {BestList::Kind::top, 3}};
  try {
    search.run(
        1,
        [](const Item&, const auto&) -> std::optional<Item> { throw std::runtime_error{"broken"}; },
        [](const Item&, const Item&) {});
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string{error.what()}, "a worker of the search at item " +
                                             std::to_string(items.front().number) +
                                             ": internal error: broken");
  }
}

}  // namespace
}  // namespace orrery::best_first_test
