#include "sim/posttraining/rl_search.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_text.hpp"

namespace orrery::rl_search_test {
namespace {

RlRequest usual() {
  RlRequest request;
  request.prompts = 16;
  request.samples = 8;
  request.train_batch = 64;
  request.prompt_length = LengthDistribution{LengthDistribution::Kind::fixed, 128, 128};
  request.mean_response = 600.0;
  request.max_response = 1920;
  return request;
}

RlSearchRequest on(const RlRequest& job, int gpus) {
  return {read_model("llama3.1-8b", {}), read_system("dgx-h100", {}),
          read_rl_framework("nemo-rl", {}), job, gpus};
}

// All plans of a small cluster one by one: recomputation only where nothing else fits.
Seconds shortest(const RlSearchRequest& search, const std::vector<int>& splits) {
  Seconds best{1e9};
  for (const int rollout_gpus : splits)
    for (int engine = 1; engine <= 8; engine *= 2)
      for (int tp = 1; tp <= 8; tp *= 2)
        for (int pp = 1; pp <= 32; pp *= 2)
          for (const Recompute recompute : {Recompute::none, Recompute::full}) {
            RlRequest job = search.job;
            if (rollout_gpus > 0) job.rollout_gpus = rollout_gpus;
            job.rollout.tp = engine;
            job.training.tp = tp;
            job.training.pp = pp;
            job.training.recompute = recompute;
            try {
              best =
                  std::min(best, rl_step(make_rl_job(search.model, search.system, search.framework,
                                                     job, search.gpus, {"", ""}))
                                     .time);
              break;
            } catch (const Error&) {
              // It does not divide or fit.
            }
          }
  return best;
}

TEST(RlSearch, FindsTheShortestOfAllPlans) {
  const RlSearchRequest by_turns = on(usual(), 8);
  const RlSearchResult result = search_rl(by_turns, 3);
  ASSERT_FALSE(result.best.empty());
  EXPECT_DOUBLE_EQ(result.best.front().time.si(), shortest(by_turns, {0}).si());

  RlRequest job = usual();
  job.max_staleness = 1;
  job.in_flight_updates = true;
  const RlSearchRequest split = on(job, 8);
  const RlSearchResult both = search_rl(split, 3);
  ASSERT_FALSE(both.best.empty());
  EXPECT_DOUBLE_EQ(both.best.front().time.si(), shortest(split, {1, 2, 3, 4, 5, 6, 7}).si());
  EXPECT_GT(both.bounded_out, 0);
  for (std::size_t i = 1; i < both.best.size(); ++i)
    EXPECT_LE(both.best[i - 1].time, both.best[i].time);
}

TEST(RlSearch, KeepsWhatIsGiven) {
  RlSearchRequest search = on(usual(), 8);
  search.job.training.tp = 2;
  search.job.rollout.tp = 4;
  search.job.training_keys = {"tp", "pp", "recompute"};
  const RlSearchResult result = search_rl(search, 10);
  ASSERT_EQ(result.best.size(), 1u);
  EXPECT_EQ(result.best.front().job.training.plan.tp, 2);
  EXPECT_EQ(result.best.front().job.training.plan.pp, 1);
  EXPECT_EQ(result.best.front().job.rollout.deployment.tp, 4);
}

// FSDP alone has neither tensor parallelism nor pipelines: Ulysses and shards that stay whole
// between passes are what is left.
TEST(RlSearch, ContextRanksAndShardsOfFsdp) {
  RlSearchRequest search = on(usual(), 8);
  search.framework = read_rl_framework("verl-fsdp", {});
  const RlSearchResult found = search_rl(search, 10);
  EXPECT_EQ(found.jobs, 2 * 4);
  Seconds best{1e9};
  for (const int cp : {1, 2, 4, 8})
    for (const int zero : {2, 3})
      for (const Recompute recompute : {Recompute::none, Recompute::full})
        for (const int engine : {1, 2, 4, 8}) {
          RlRequest job = search.job;
          job.training.cp = cp;
          job.training.zero = zero;
          job.training.recompute = recompute;
          job.training_keys = {"recompute"};
          job.rollout.tp = engine;
          try {
            const RlStep step = rl_step(make_rl_job(search.model, search.system, search.framework,
                                                    job, search.gpus, {"", ""}));
            EXPECT_EQ(step.job.training.plan.cp_comm, ContextExchange::a2a);
            best = std::min(best, step.time);
          } catch (const Error&) {
            // It does not fit.
          }
        }
  EXPECT_DOUBLE_EQ(found.best.front().time.si(), best.si());
}

TEST(RlSearch, SaysWhyNothingFits) {
  RlSearchRequest search = on(usual(), 8);
  search.model = read_model("llama3.1-405b", {});
  const RlSearchResult result = search_rl(search, 10);
  EXPECT_TRUE(result.best.empty());
  EXPECT_FALSE(result.refusal.empty());
}

// Each change is the step of the changed job, and those that cannot be say why.
TEST(RlChanges, AreStepsOfChangedJobs) {
  RlRequest job = usual();
  job.training.recompute = Recompute::full;
  const RlSearchRequest on_eight = on(job, 8);
  const auto step_of = [&](const RlRequest& request, int gpus) {
    return rl_step(
        make_rl_job(on_eight.model, on_eight.system, on_eight.framework, request, gpus, {"", ""}));
  };
  const RlStep step = step_of(job, 8);
  std::map<std::string, Seconds> by_option;
  for (const RlChange& change : rl_changes(step)) {
    EXPECT_EQ(change.refused.empty(), change.step > Seconds{}) << change.options;
    by_option[change.options] = change.step;
  }
  RlRequest other = job;
  other.train_batch.reset();
  EXPECT_EQ(by_option.at("--train_batch 128"), step_of(other, 8).time);
  other = job;
  other.reference = false;
  EXPECT_EQ(by_option.at("--reference false"), step_of(other, 8).time);
  EXPECT_LT(by_option.at("--reference false"), step.time);
  EXPECT_EQ(by_option.at("--gpus 16"), step_of(job, 16).time);
  other = job;
  other.rollout_gpus = 4;
  other.max_staleness = 1;
  other.in_flight_updates = true;
  EXPECT_EQ(by_option.at("--rollout_gpus 4 --max_staleness 1 --in_flight_updates true"),
            step_of(other, 8).time);
  const auto cut = std::find_if(by_option.begin(), by_option.end(), [](const auto& one) {
    return one.first.starts_with("--max_response 960 --response_length lognormal:");
  });
  ASSERT_NE(cut, by_option.end());
  EXPECT_LE(cut->second, step.time);
}

// An offer is the search of its machine, whatever degrees the job had elsewhere.
TEST(RlOffers, EachIsTheSearchOfItsMachine) {
  const RlSearchRequest plain = on(usual(), 8);
  RlSearchRequest imported = plain;
  imported.job.training.tp = 4;
  imported.job.training.pp = 2;
  imported.job.rollout.tp = 8;
  imported.job.training_keys = {"tp", "pp", "recompute", "tp_overlap"};
  const std::vector<System> systems{read_system("dgx-h100", {}), read_system("dgx-h200", {})};
  const std::vector<RlOffer> offers = rl_offers(imported, systems, {1, 8, 16});
  ASSERT_EQ(offers.size(), 6u);
  EXPECT_FALSE(offers[0].best);  // The optimizer's state of 8B does not fit a GPU.
  EXPECT_NE(offers[0].refusal, "");
  ASSERT_TRUE(offers[1].best && offers[2].best && offers[4].best);
  EXPECT_EQ(offers[1].best->time.si(), search_rl(plain, 1).best.front().time.si());
  EXPECT_LE(offers[2].best->time, offers[1].best->time);  // More GPUs,
  EXPECT_LE(offers[4].best->time, offers[1].best->time);  // more bandwidth.
}

}  // namespace
}  // namespace orrery::rl_search_test
