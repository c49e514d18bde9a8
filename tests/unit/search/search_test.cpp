#include "sim/search/search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "sim/core/write_file.hpp"
#include "sim/layers/memory.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/reliability/training_run.hpp"
#include "sim/search/candidate.hpp"
#include "sim/search/search_text.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/scenarios.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::search_test {
namespace {

// The test systems' GPU has no price of its own.
const std::string prices = ORRERY_TEST_SOURCE "/tests/unit/search/data/prices.json";

struct Simulated {
  std::string flags;
  Scenario scenario;
  Seconds time;
  double memory = 0.0;
};

SearchRequest small_request(const System& system, int gpus, std::int64_t gbs) {
  SearchRequest request;
  request.model = small_gpt(8, 256, 8, 2048);
  request.systems = {system};
  request.gpus = {gpus};
  request.gbs = {gbs};
  request.list.most = 5;
  request.economics = prices;
  request.fixed = {{"dp_overlap", {"true"}}, {"recompute", {"none", "full"}}};
  return request;
}

// Every plan that fits, simulated on its own, without bounds, order or workers.
std::vector<Simulated> simulate_all(const SearchRequest& request) {
  std::vector<Simulated> all;
  for (const System& system : request.systems) {
    EstimateContext context{system};
    for (int gpus : request.gpus)
      for (std::int64_t gbs : request.gbs) {
        const PlanSpace space{request.model, system, gpus, gbs, request.fixed};
        PlanRefusal unused;
        for (int part = 0; part < space.parts(); ++part)
          space.visit(
              part,
              [&](const PlanSpace::Choice& choice, const Scenario& scenario) {
                const MemoryReport memory = memory_of(scenario, *context.loads(scenario));
                if (memory.peak() > request.max_memory * memory.capacity) return true;
                all.push_back({space.flags(choice), scenario, step_time(scenario, context),
                               memory.peak() / memory.capacity});
                return true;
              },
              unused);
      }
  }
  return all;
}

std::string layout(const Simulated& one) {
  const Plan& plan = one.scenario.plan;
  std::string text = one.scenario.system.name;
  for (std::int64_t degree : {std::int64_t{plan.gpus()}, plan.gbs, std::int64_t{plan.tp},
                              std::int64_t{plan.cp}, std::int64_t{plan.pp}, std::int64_t{plan.ep}})
    text += " " + std::to_string(degree);
  return text;
}

void expect_same_top(const SearchRequest& request, const std::vector<Simulated>& all) {
  const Objective objective{request.goal, request.deadline, request.failures};
  const Economics economics = read_economics(request.systems.front().gpu.name, prices);
  std::vector<double> scores;
  for (const Simulated& one : all)
    scores.push_back(objective.score(one.scenario, one.time, &economics));
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!std::isinf(scores[i])) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto below = [](double x, double y) { return std::llround(x / y * 1e10 - 1e10); };
    const long long score = below(scores[a], scores[b]);
    if (score != 0) return score < 0;
    const long long time = below(all[a].time.si(), all[b].time.si());
    return time != 0 ? time < 0 : all[a].memory < all[b].memory;
  });
  if (request.list.is_per_layout()) {
    std::set<std::string> listed;
    std::erase_if(order, [&](std::size_t i) { return !listed.insert(layout(all[i])).second; });
  }
  order.resize(std::min(order.size(), static_cast<std::size_t>(request.list.most)));

  const SearchResult found = search(request);
  ASSERT_EQ(found.plans.size(), order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(found.plans[i].flags, all[order[i]].flags) << i;
    EXPECT_NEAR(found.plans[i].score, scores[order[i]], 1e-9 * scores[order[i]]);
  }
  EXPECT_TRUE(found.optimal);
  EXPECT_EQ(found.fits, static_cast<std::int64_t>(all.size()));
  EXPECT_EQ(found.fits, found.simulated + found.bounded_out);
}

void expect_same_for_every_goal(SearchRequest request) {
  const std::vector<Simulated> all = simulate_all(request);
  ASSERT_GT(all.size(), 20u);
  std::vector<double> times;
  for (const Simulated& one : all) times.push_back(one.time.si());
  std::nth_element(times.begin(), times.begin() + 5, times.end());
  for (Goal goal : {Goal::step_time, Goal::tokens_per_s_per_gpu, Goal::cost_per_token,
                    Goal::energy_per_token, Goal::gpus, Goal::goodput}) {
    request.goal = goal;
    request.failures.reset();
    if (goal == Goal::goodput) {
      // So many failures, and so slow a file system, that a plan's shards decide.
      request.failures =
          AssumedFailures{read_reliability("default", {}), BytesPerSecond{1e8}, {}, false};
      for (FailureCause& cause : request.failures->profile.causes) cause.per_gpu_day *= 1e3;
    }
    // A step, and half of all plans too slow.
    request.deadline.reset();
    if (goal == Goal::gpus)
      request.deadline = Deadline{Seconds{1000 * times[times.size() / 2]},
                                  1000.0 * static_cast<double>(request.gbs.front()) * 2048.0};
    SCOPED_TRACE(goal_names()[static_cast<std::size_t>(goal)]);
    for (const auto kind : {BestList::Kind::per_layout, BestList::Kind::top}) {
      request.list.kind = kind;
      expect_same_top(request, all);
    }
  }
}

System nodes_of_two() {
  System system = read_system("four-by-four", test_place);
  system.gpus_per_node = system.nvlink_domain = system.nics_per_node = 2;
  return system;
}

// 20 spaces: nodes of 4 and of 2, 2 to 8 GPUs, batches, fixed keys, little memory, several at once.
TEST(Search, FindsWhatSimulatingAllFinds) {
  int spaces = 0;
  for (const System& system : {read_system("four-by-four", test_place), nodes_of_two()})
    for (int gpus : {2, 4, 8})
      for (std::int64_t gbs : {8, 16}) {
        SearchRequest request = small_request(system, gpus, gbs);
        SCOPED_TRACE(std::to_string(gpus) + " GPUs, batch " + std::to_string(gbs));
        expect_same_for_every_goal(request);
        ++spaces;
      }
  const std::vector<std::vector<std::string>> fixes{
      {"tp=2", "tp_overlap=true"},
      {"pp=4", "tp_overlap=true"},
      {"zero=1", "tp_overlap=true"},
      {"recompute=selective", "tp_overlap=true"},
      {"software=megatron-2021", "tp_overlap=false"},
      {"schedule=gpipe", "software=torchtitan", "tp_overlap=true"}};
  for (const std::vector<std::string>& fix : fixes) {
    SearchRequest request = small_request(nodes_of_two(), 8, 16);
    request.fixed = {{"sp", {"false"}}};
    for (const std::string& one : fix) request.fixed.push_back(parse_fixed(one));
    SCOPED_TRACE(fix.front());
    expect_same_for_every_goal(request);
    ++spaces;
  }
  SearchRequest sizes = small_request(nodes_of_two(), 2, 16);
  sizes.gpus = {2, 4, 8};
  sizes.fixed = {{"sp", {"false"}}, {"tp_overlap", {"true"}}};
  expect_same_for_every_goal(sizes);
  SearchRequest purchases = small_request(nodes_of_two(), 4, 16);
  purchases.systems.push_back(read_system("four-by-four", test_place));
  purchases.systems.back().name = "another";
  purchases.fixed = {{"tp_overlap", {"true"}}};
  expect_same_for_every_goal(purchases);
  EXPECT_EQ(spaces + 2, 20);
}

// Where experts are filled unevenly, a second bound is looked at before a plan is simulated.
TEST(Search, FindsWhatSimulatingAllFindsOfUnevenExperts) {
  SearchRequest request = small_request(nodes_of_two(), 8, 16);
  request.model = small_mixture(8, 256, 8, 2048, 8, 2);
  request.fixed = {
      {"cp", {"1"}}, {"dp_overlap", {"true"}}, {"recompute", {"none", "full"}}, {"sp", {"true"}}};
  request.fixed.push_back({"routing", {"zipf:1"}});
  request.fixed.push_back({"zero", {"0", "1"}});
  const std::vector<Simulated> all = simulate_all(request);
  ASSERT_GT(all.size(), 20u);
  for (const auto kind : {BestList::Kind::per_layout, BestList::Kind::top}) {
    request.list.kind = kind;
    expect_same_top(request, all);
  }
}

// What the software has not is not met at all, rather than met and refused.
TEST(Search, OffersWhatTheSoftwareHas) {
  SearchRequest request = small_request(nodes_of_two(), 8, 16);
  request.fixed = {parse_fixed("software=megatron-2021")};
  request.list.most = 10;
  request.list.kind = BestList::Kind::top;
  for (const Found& found : search(request).plans) {
    const Plan& plan = found.result.scenario.plan;
    EXPECT_EQ(plan.zero, 0) << found.flags;
    EXPECT_FALSE(plan.sp || plan.dp_overlap || plan.overlap_tp_gradients) << found.flags;
    EXPECT_NE(plan.schedule, &gpipe()) << found.flags;
    EXPECT_NE(plan.recompute, Recompute::selective) << found.flags;
  }
  request.fixed = {parse_fixed("zero=1..3"), parse_fixed("software=megatron-2021")};
  EXPECT_EQ(error_text([&] { search(request); }),
            "no plan divides: --zero: the software 'megatron-2021' has no zero=1; use zero=0, or "
            "another software; there are plans without --fix zero=1,2,3 or software=megatron-2021");
}

TEST(Search, LittleMemoryLeavesPlansOut) {
  SearchRequest request = small_request(nodes_of_two(), 8, 16);
  const std::vector<Simulated> all = simulate_all(request);
  double least = 1.0;
  double most = 0.0;
  for (const Simulated& one : all)
    least = std::min(least, one.memory), most = std::max(most, one.memory);
  request.max_memory = 0.5 * (least + most);
  const std::vector<Simulated> small = simulate_all(request);
  EXPECT_LT(small.size(), all.size());
  expect_same_top(request, small);
}

// A front: no plan of it is dominated, and every other plan is.
TEST(Search, TheFrontIsTheFrontOfAllPlans) {
  SearchRequest request = small_request(nodes_of_two(), 8, 16);
  request.list.kind = BestList::Kind::front;
  const std::vector<Simulated> all = simulate_all(request);
  const SearchResult found = search(request);
  const auto on_front = [&](const std::string& flags) {
    return std::any_of(found.plans.begin(), found.plans.end(),
                       [&](const Found& plan) { return plan.flags == flags; });
  };
  ASSERT_GT(found.plans.size(), 1u);
  for (const Simulated& one : all) {
    const bool beaten = std::any_of(all.begin(), all.end(), [&](const Simulated& other) {
      return other.memory <= one.memory && other.time < (1.0 - 1e-9) * one.time;
    });
    if (on_front(one.flags)) {
      EXPECT_FALSE(beaten) << one.flags;
    } else {
      const bool no_better = std::any_of(all.begin(), all.end(), [&](const Simulated& other) {
        return &other != &one && on_front(other.flags) && other.memory <= one.memory &&
               other.time <= (1.0 + 1e-9) * one.time;
      });
      EXPECT_TRUE(no_better) << one.flags;
    }
  }
  for (std::size_t i = 1; i < found.plans.size(); ++i)
    EXPECT_GE(found.plans[i].score, found.plans[i - 1].score);
}

TEST(Search, WorkersDoNotChangeTheAnswer) {
  SearchRequest request = small_request(nodes_of_two(), 8, 16);
  const SearchResult one = search(request);
  for (int workers : {2, 5}) {
    request.workers = workers;
    const SearchResult several = search(request);
    EXPECT_EQ(several.simulated, one.simulated);
    EXPECT_EQ(several.legal, one.legal);
    ASSERT_EQ(several.plans.size(), one.plans.size());
    for (std::size_t i = 0; i < one.plans.size(); ++i) {
      EXPECT_EQ(several.plans[i].flags, one.plans[i].flags);
      EXPECT_EQ(several.plans[i].result.step_time, one.plans[i].result.step_time);
    }
  }
}

// Enumerating goes on until a plan fits, and the most promising one is simulated.
TEST(Search, ABudgetSaysWhatItLeft) {
  SearchRequest request = small_request(nodes_of_two(), 8, 16);
  request.budget = Seconds{1e-9};
  const SearchResult found = search(request);
  EXPECT_FALSE(found.optimal);
  EXPECT_EQ(found.simulated, 1);
  EXPECT_EQ(found.plans.size(), 1u);
  EXPECT_GT(found.parts_cut_short, 0);
  EXPECT_LT(found.parts_cut_short, found.parts + 1);
  EXPECT_GE(found.fits, 1);
  EXPECT_LE(found.fits, found.parts);
}

TEST(Search, ALargeBudgetChangesNothing) {
  SearchRequest request = small_request(nodes_of_two(), 8, 16);
  const SearchResult without = search(request);
  request.budget = Seconds{3600.0};
  const SearchResult with = search(request);
  EXPECT_TRUE(with.optimal);
  EXPECT_EQ(with.parts_cut_short, 0);
  EXPECT_EQ(with.legal, without.legal);
  EXPECT_EQ(with.fits, without.fits);
  ASSERT_EQ(with.plans.size(), without.plans.size());
  for (std::size_t i = 0; i < with.plans.size(); ++i) {
    EXPECT_EQ(with.plans[i].flags, without.plans[i].flags);
    EXPECT_EQ(with.plans[i].score, without.plans[i].score);
  }
}

// A part that is cut short has its first plans, in order.
TEST(Search, APartIsCutShortBehindItsFirstPlan) {
  const PlanSpace space{small_gpt(8, 256, 8, 2048), nodes_of_two(), 8, 16, {}};
  EstimateContext context{space.system()};
  KnownPassTimes passes{context};
  const Objective objective{Goal::step_time, {}};
  const PlanScorer scorer{objective, nullptr, context, passes};
  for (int p = 0; p < space.parts(); ++p) {
    const Part whole = explore(space, p, {}, 1.0, scorer);
    const Part cut = unpacked(packed(explore(space, p, {}, 1.0, scorer, Seconds{0.0})));
    EXPECT_TRUE(whole.whole);
    EXPECT_EQ(cut.whole, whole.fitting.size() < 2);
    ASSERT_EQ(cut.fitting.size(), std::min<std::size_t>(1, whole.fitting.size()));
    if (!cut.fitting.empty()) {
      EXPECT_EQ(cut.fitting[0].choice, whole.fitting[0].choice);
    }
  }
}

// A plan is met once: no two choices of a space are the same plan, also if the user fixes values
// that change nothing in some of them.
TEST(PlanSpace, NoPlanTwice) {
  struct Case {
    std::vector<std::string> fixed;
    std::size_t least;  // Plans.
  };
  for (const Case& one :
       {Case{{}, 300}, Case{{"zero=1,2", "schedule=1f1b,interleaved", "tp=2,4", "mbs=1"}, 100},
        Case{{"schedule=gpipe,1f1b,interleaved,zb-h1", "zero=2", "mbs=2"}, 100},
        Case{{"dp_overlap=true,false", "tp=8", "mbs=1"}, 10},
        Case{{"sp=true,false", "tp_overlap=true,false", "tp=1"}, 100}}) {
    std::vector<Fixed> fixed;
    for (const std::string& text : one.fixed) fixed.push_back(parse_fixed(text));
    SCOPED_TRACE(one.fixed.empty() ? "" : one.fixed.front());
    const PlanSpace space{small_gpt(8, 256, 8, 2048), nodes_of_two(), 8, 16, fixed};
    std::vector<PlanRequest> seen;  // What can change the plan.
    PlanRefusal unused;
    for (int part = 0; part < space.parts(); ++part)
      space.visit(
          part,
          [&](const PlanSpace::Choice& choice, const Scenario& scenario) {
            const PlanRequest plan = plan_again(scenario.plan);
            EXPECT_EQ(std::count(seen.begin(), seen.end(), plan), 0) << space.flags(choice);
            seen.push_back(plan);
            EXPECT_EQ(space.scenario(choice).plan, scenario.plan);
            return true;
          },
          unused);
    EXPECT_GT(seen.size(), one.least);
  }
}

// Ranks of one replica hold the same experts, and ZeRO shards those, if experts are spread over
// fewer ranks than the replica has: it does not take several replicas.
TEST(Search, ShardsExpertsOfOneReplica) {
  SearchRequest request;
  request.model = read_model("qwen3-30b-a3b", test_place);
  request.systems = {read_system("dgx-h100", test_place)};
  request.gpus = {8};
  request.gbs = {8};
  request.fixed = {parse_fixed("tp=8"), parse_fixed("ep=2")};
  const SearchResult result = search(request);
  ASSERT_FALSE(result.plans.empty());
  const Plan& plan = result.plans.front().result.scenario.plan;
  EXPECT_EQ(plan.zero, 3);
  EXPECT_TRUE(plan_key("zero").needs_listing(plan));
}

// Shapes as nested loops find them. A first value that is refused says nothing about the next one:
// two context-parallel ranks leave half the replicas, expert ranks are what an overlap needs.
TEST(PlanSpace, HasEveryShapeThatIsAPlan) {
  const Model dense = small_gpt(8, 256, 8, 2048), mixture = small_mixture(8, 256, 8, 2048, 8, 2);
  const System system = nodes_of_two();
  struct Case {
    Model model;
    std::int64_t gbs;
    std::vector<std::string> fixed;
    std::string setting;  // Without which the software's default is refused.
    std::vector<std::int64_t> mbs{1, 2, 3, 4, 6};
  };
  const std::vector<Case> cases{{dense, 2, {}, ""},
                                {dense, 16, {"dp=2"}, ""},
                                {dense, 16, {"layers=3+2+2+1"}, ""},
                                {dense, 24, {"mbs=2,3"}, "", {2, 3}},
                                {mixture, 16, {"ep_overlap=true"}, ""},
                                {mixture, 16, {"software=deepspeed"}, "zero=1"}};
  for (const Case& one : cases) {
    std::vector<Fixed> fixed;
    for (const std::string& text : one.fixed) fixed.push_back(parse_fixed(text));
    const PlanSpace space{one.model, system, 8, one.gbs, fixed};
    const auto shape = [](const Plan& plan) {
      return std::vector<std::int64_t>{plan.tp, plan.pp, plan.cp, plan.ep, plan.vpp, plan.mbs};
    };
    std::set<std::vector<std::int64_t>> found, plans;
    PlanRefusal unused;
    for (int part = 0; part < space.parts(); ++part)
      space.visit(
          part,
          [&](const PlanSpace::Choice&, const Scenario& scenario) {
            found.insert(shape(scenario.plan));
            return true;
          },
          unused);
    fixed.push_back(parse_fixed(one.setting.empty() ? "sp=true" : one.setting));
    for (const int tp : {1, 2, 4, 8})
      for (const int pp : {1, 2, 4, 8})
        for (const int cp : {1, 2, 4, 8})
          for (const int ep : {1, 2, 4, 8})
            for (const int vpp : {1, 2, 4, 8})
              for (const std::int64_t mbs : one.mbs) {
                if (8 % (tp * pp * cp) != 0) continue;
                PlanRequest request;
                for (const Fixed& key : fixed)
                  if (key.values.size() == 1) set_plan_flag(request, key.key, key.values.front());
                request.tp = tp, request.pp = pp, request.cp = cp, request.ep = ep;
                request.vpp = vpp, request.mbs = mbs, request.gbs = one.gbs;
                try {
                  plans.insert(shape(make_scenario(one.model, system, request, 8, {}).plan));
                } catch (const Error&) {
                }
              }
    SCOPED_TRACE(one.fixed.empty() ? "" : one.fixed.front());
    EXPECT_GT(plans.size(), 1u);
    for (const auto& plan : plans)
      EXPECT_TRUE(found.contains(plan)) << ::testing::PrintToString(plan);
  }
}

TEST(Search, AnEmptySpaceNamesTheCulprit) {
  SearchRequest request = small_request(nodes_of_two(), 8, 16);
  request.fixed = {parse_fixed("tp=3"), parse_fixed("zero=1")};
  const std::string text = error_text([&] { search(request); });
  EXPECT_NE(text.find("tp=3"), text.npos) << text;
  EXPECT_NE(text.find("there are plans without --fix tp=3"), text.npos) << text;
}

// Search and estimate accept the same plans: the memory is that of the rank with the most rows.
TEST(Search, MemoryIsThatOfTheFullestRank) {
  SearchRequest request = small_request(read_system("four-by-four", test_place), 16, 64);
  request.model = small_mixture(8, 2048, 16, 2048, 16, 2);
  request.fixed = {{"routing", {"hot:0.9"}}, {"recompute", {"none"}}, {"ep", {"8"}}, {"tp", {"1"}}};
  request.list.kind = BestList::Kind::top;
  request.max_memory = 1.0;
  request.list.most = 10;
  const SearchResult found = search(request);
  ASSERT_FALSE(found.plans.empty());
  double most = 0.0;
  for (const Found& plan : found.plans) {
    const Scenario& scenario = plan.result.scenario;
    EXPECT_EQ(plan.result.memory.peak(), memory_of(scenario).peak()) << plan.flags;
    EXPECT_TRUE(plan.result.memory.fits());
    most = std::max(most, memory_of(scenario).peak() / least_memory_of(scenario).peak());
  }
  EXPECT_GT(most, 1.1);  // And that is more than of even routing.
}

// With failures the rent is that of the job and its spares for all days, as `orrery run` bills it;
// without a number of spares, of as many as its sampled runs need.
TEST(Search, GoodputRentsTheSparesThatARunRents) {
  SearchRequest request = small_request(read_system("dgx-h100", test_place), 64, 64);
  request.model = read_model("llama3-8b", test_place);
  request.fixed = {{"cp", {"1"}}, {"mbs", {"1"}}, {"recompute", {"none"}}};
  request.goal = Goal::goodput;
  request.tokens = 1e12;
  request.list.most = 2;
  for (const std::optional<int> spares :
       {std::optional<int>{}, std::optional{0}, std::optional{3}}) {
    request.failures = AssumedFailures{read_reliability("default", {}), {}, spares, false};
    const SearchResult found = search(request);
    const JsonValue json = JsonValue::parse(
        search_json(found, request, {"llama3-8b", {"dgx-h100"}, ""}), "search.json");
    const Scenario& scenario = found.plans.front().result.scenario;
    const JsonValue training = json.at("ranking").elements().front().at("with_failures");
    const double days = training.at("days").number(0.0, 1e6);
    const double rented = 64.0 + 8.0 * training.at("spares").number(0.0, 1e6);
    const Economics economics = read_economics("h100-sxm", prices);
    EXPECT_NEAR(training.at("rent_usd").at("high").number(0.0, 1e12),
                economics.rent_usd_per_gpu_hour.high * rented * 24.0 * days, 1e-6 * rented * days);

    RunQuestion question;
    question.tokens = *request.tokens;
    question.reliability = request.failures->profile;
    question.policy.spares = spares;
    const TrainingRun run =
        sampled_run(scenario, found.plans.front().result.step_time, question, economics);
    EXPECT_NEAR(training.at("spares").number(0.0, 1e6), run.spares.kept, spares ? 0.0 : 1.0);
    EXPECT_NEAR(rented * 24.0 * days / run.bill.gpu_hours, 1.0, spares ? 0.03 : 0.15);
    std::string text = search_text(found, request, {"llama3-8b", {"dgx-h100"}, ""});
    std::replace(text.begin(), text.end(), '\n', ' ');
    EXPECT_NE(text.find(spares == 3 ? "3 spare nodes, which the rent includes"
                        : spares    ? "0 spare nodes, which the rent includes"
                                    : "a spare always at hand; the rent includes spares for 99 %"),
              std::string::npos);
  }
}

// Trained on something else: no plan, and no fault of the program.
TEST(Search, ARoutingThatSuitsNoPlanIsItsReason) {
  SearchRequest request = small_request(read_system("four-by-four", test_place), 16, 64);
  request.model = small_mixture(8, 256, 8, 2048, 16, 2);
  const TemporaryFolder folder;
  const std::string trace = (folder.path() / "other.csv").string();
  write_file(trace, "layer,micro_batch,rank,expert,tokens\n0,0,0,0,7\n");
  request.fixed = {{"routing", {trace}}, {"ep", {"4"}}};
  EXPECT_NE(
      error_text([&] { search(request); }).find("1 ranks, but the expert-parallel group has 4"),
      std::string::npos)
      << error_text([&] { search(request); });
}

}  // namespace
}  // namespace orrery::search_test
