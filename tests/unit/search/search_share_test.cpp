#include "sim/search/search_share.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/core/shard.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/write_file.hpp"
#include "sim/search/search.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/scenarios.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::search_share_test {
namespace {

SearchRequest small_request() {
  SearchRequest request;
  request.model = small_gpt(8, 256, 8, 2048);
  request.systems = {read_system("four-by-four", test_place)};
  request.gpus = {8, 16};
  request.gbs = {32};
  request.list.most = 5;
  request.fixed = {{"dp_overlap", {"true"}}};
  return request;
}

using Plans = std::vector<std::pair<PlanSpace::Choice, std::string>>;

Plans plans_of(const PlanSpace& space, int part, Shard shard) {
  Plans plans;
  PlanRefusal unused;
  space.visit(
      part,
      [&](const PlanSpace::Choice& choice, const Scenario&) {
        plans.emplace_back(choice, space.flags(choice));
        return true;
      },
      unused, shard);
  return plans;
}

// Each plan is one shard's, those of a shard come in the order of choices, and no shard has all.
TEST(SearchShare, ShardsShareOutThePlans) {
  const SearchRequest request = small_request();
  const PlanSpace space{request.model, request.systems[0], 16, 32, {}};
  for (const int of : {1, 2, 3, 8, 32}) {
    std::vector<std::size_t> sizes(static_cast<std::size_t>(of));
    for (int part = 0; part < space.parts(); ++part) {
      const Plans whole = plans_of(space, part, {});
      EXPECT_TRUE(std::is_sorted(whole.begin(), whole.end()));
      Plans together;
      for (int i = 0; i < of; ++i) {
        const Plans share = plans_of(space, part, {i, of});
        EXPECT_TRUE(std::is_sorted(share.begin(), share.end()));
        sizes[static_cast<std::size_t>(i)] += share.size();
        together.insert(together.end(), share.begin(), share.end());
      }
      std::sort(together.begin(), together.end());
      EXPECT_EQ(together, whole);
    }
    if (of <= 8) {
      EXPECT_GT(*std::min_element(sizes.begin(), sizes.end()), 0u) << of;
    }
  }
}

// All that a user sees of a search but for how many plans it simulated.
std::string listed(const SearchResult& result) {
  std::string text = std::to_string(result.legal) + " " + std::to_string(result.fits) + " " +
                     (result.optimal ? "proven" : "not proven") + "\n";
  for (const Found& found : result.plans)
    text += found.flags + " " + std::to_string(found.score) + " " +
            std::to_string(found.result.step_time.si()) + (found.tie ? " tie" : "") + "\n";
  return text;
}

std::vector<SearchShare> shares_of(const SearchRequest& request, int of, bool are_together) {
  const TemporaryFolder folder;
  std::vector<SearchShare> shares;
  for (int i = 0; i < of; ++i) {
    const Shard shard{i, of};
    ShardExchange exchange{folder.path(), shard, "search"};
    shares.push_back(search_share(request, shard, exchange));
    if (are_together)
      write_file(share_path(folder.path(), shard), share_text(shares.back(), "search", {}));
  }
  return shares;
}

std::vector<SearchRequest> requests() {
  std::vector<SearchRequest> all(5, small_request());
  all[1].list.kind = BestList::Kind::front;
  all[2].list.kind = BestList::Kind::top;
  all[3].systems.push_back(read_system("dgx-h100", test_place));
  all[3].goal = Goal::tokens_per_s_per_gpu;
  all[4].list.most = 1;
  all[4].gpus = {2, 4};
  all[4].fixed.clear();
  return all;
}

// Shards together find the result of one search, whether they listen to each other or not.
TEST(SearchShare, ShardsFindWhatOneSearchFinds) {
  for (const SearchRequest& request : requests()) {
    const SearchResult whole = search(request);
    for (const int of : {1, 3, 16})
      for (const bool are_together : {false, true}) {
        const std::vector<SearchShare> shares = shares_of(request, of, are_together);
        const SearchResult found = put_together(request, shares);
        EXPECT_EQ(listed(found), listed(whole)) << of;
        EXPECT_EQ(found.fits, found.simulated + found.bounded_out);
        std::int64_t legal = 0;
        for (const SearchShare& share : shares) legal += share.legal;
        EXPECT_EQ(legal, whole.legal);
      }
  }
}

// A shard that hears of others simulates no more plans than one that does not.
TEST(SearchShare, WhatOthersFoundIsNotBeatenTwice) {
  const auto simulated = [](const std::vector<SearchShare>& shares) {
    std::int64_t sum = 0;
    for (const SearchShare& share : shares) sum += share.simulated;
    return sum;
  };
  const SearchRequest request = small_request();
  const std::int64_t one = search(request).simulated;
  const std::int64_t apart = simulated(shares_of(request, 16, false));
  const std::int64_t together = simulated(shares_of(request, 16, true));
  EXPECT_LT(together, apart);
  EXPECT_GE(together, one);
}

SearchShare some_share() {
  const TemporaryFolder folder;
  ShardExchange exchange{folder.path(), {1, 3}, "search"};
  return search_share(small_request(), {1, 3}, exchange);
}

TEST(SearchShare, IsReadBackAsItWas) {
  SearchShare share = some_share();
  share.parts_cut_short = {0, 7};
  share.best_unexplored = 1.0 / 3.0;
  const std::string text = share_text(share, "of this search", {"--gpus=8", "--model=\"x\""});
  const ShareFile file = read_share(text, {"file", ""});
  EXPECT_EQ(file.search, "of this search");
  EXPECT_EQ(file.options, (std::vector<std::string>{"--gpus=8", "--model=\"x\""}));
  EXPECT_EQ(share_text(file.share, file.search, file.options), text);
  ASSERT_EQ(file.share.best.size(), share.best.size());
  for (std::size_t i = 0; i < share.best.size(); ++i) {
    EXPECT_EQ(file.share.best[i].choice, share.best[i].choice);
    EXPECT_EQ(file.share.best[i].score, share.best[i].score);
    EXPECT_EQ(file.share.best[i].step_s, share.best[i].step_s);
  }
}

// Any byte that is another, and any end that is missing.
TEST(SearchShare, DamageIsFound) {
  const std::string text = share_text(some_share(), "search", {"--gpus=8"});
  const std::string refusal =
      "file: is no shard of a search, or damaged; remove it, and compute this shard again";
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] ^= 1;
    EXPECT_EQ(error_text([&] { read_share(other, {"file", ""}); }), refusal) << i;
    EXPECT_EQ(error_text([&] { read_share(text.substr(0, i), {"file", ""}); }), refusal) << i;
  }
}

TEST(SearchShare, AFolderHoldsTheShardsOfOneSearch) {
  const TemporaryFolder folder;
  const std::string name = folder.path();
  const auto error = [&] { return error_text([&] { read_shares(name); }); };
  const auto write = [&](Shard shard, const std::string& search) {
    SearchShare share;
    share.shard = shard;
    write_file(share_path(name, shard), share_text(share, search, {}));
  };
  EXPECT_EQ(error(), name +
                         ": holds no shard of a search; compute them: orrery search ... "
                         "--shard 0/8 --output " +
                         name);
  write({0, 6}, "one");
  write({3, 6}, "one");
  EXPECT_EQ(error(), name +
                         ": shards are missing, of 6: 1-2,4-5; compute them: orrery search ... "
                         "--shard 1/6 --output " +
                         name);
  EXPECT_EQ(shards_in(name), 6);
  for (const int index : {1, 2, 4, 5}) write({index, 6}, "one");
  std::vector<int> order;
  for (const ShareFile& file : read_shares(name)) order.push_back(file.share.shard.index);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));

  write({2, 6}, "another");
  EXPECT_NE(error().find("is of another search than "), std::string::npos) << error();
  write({2, 6}, "one");
  write({2, 7}, "one");
  EXPECT_NE(error().find("keep those of one number in the folder"), std::string::npos) << error();
  EXPECT_NE(error_text([&] { read_shares(name + "/missing"); }).find("cannot be read"),
            std::string::npos);
  // Under another shard's name.
  const TemporaryFolder other;
  write_file(share_path(other.path(), {0, 2}), read_input_file(share_path(name, {1, 6})));
  EXPECT_NE(error_text([&] { read_shares(other.path()); }).find("is no shard of a search"),
            std::string::npos);
}

// Sealed, and yet of no plan that the search has.
TEST(SearchShare, PlansOfOtherSearchesAreRefused) {
  const SearchRequest request = small_request();
  const SearchShare sound = some_share();
  const auto refused = [&](const auto& change) {
    SearchShare share = sound;
    change(share.best.front());
    return error_text([&] { put_together(request, {share}); }) ==
           "shard 1: lists a plan that the search has not got; compute this shard again";
  };
  EXPECT_FALSE(refused([](Candidate&) {}));
  SearchShare empty = sound;
  empty.best.clear();
  EXPECT_NE(error_text([&] { put_together(request, {empty}); }).find("list none of "),
            std::string::npos);
  EXPECT_TRUE(refused([](Candidate& one) { one.space = 2; }));
  EXPECT_TRUE(refused([](Candidate& one) { one.choice[0] = 200; }));
  EXPECT_TRUE(refused([](Candidate& one) { one.choice[PlanSpace::most_dimensions - 1] = 0; }));
}

}  // namespace
}  // namespace orrery::search_share_test
