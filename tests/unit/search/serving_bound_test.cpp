#include "sim/search/serving_bound.hpp"

#include <gtest/gtest.h>

#include "sim/serving/pooled_serving.hpp"
#include "sim/serving/request_traffic.hpp"

namespace orrery::serving_bound_test {
namespace {

struct DeploymentQuery {
  const char* model;
  const char* system;
  int gpus;
  std::vector<std::pair<const char*, const char*>> keys;
};

std::unique_ptr<PricedServing> priced(const DeploymentQuery& query, const char* engine) {
  DeploymentRequest request;
  for (const auto& [key, value] : query.keys) set_deployment_flag(request, key, value);
  return std::make_unique<PricedServing>(
      make_serving_setup(query.model, query.system, engine, request, query.gpus, {"", ""}));
}

ServingLoad load_of(const char* prompt, const char* output, int clients, std::int64_t requests) {
  RequestTraffic traffic;
  traffic.arrivals = clients > 0 ? Arrivals::closed : Arrivals::burst;
  traffic.concurrency = clients;
  traffic.prompt = parse_length_distribution(prompt, {});
  traffic.output = parse_length_distribution(output, {});
  traffic.requests = requests;
  ServingLoad load;
  load.list = sample_requests(traffic);
  return load;
}

const std::vector<DeploymentQuery>& deployments() {
  static const std::vector<DeploymentQuery> all{
      {"llama3.1-8b", "dgx-h100", 1, {{"tp", "1"}}},
      {"llama3.1-8b", "dgx-h100", 4, {{"tp", "2"}}},
      {"llama3.1-8b", "dgx-h100", 4, {{"tp", "1"}, {"weights", "fp8"}, {"kv", "fp8"}}},
      {"llama3.1-8b", "dgx-h100", 4, {{"tp", "1"}, {"pp", "4"}}},
      {"llama3.1-8b", "dgx-h100", 4, {{"tp", "1"}, {"pp", "2"}}},
      {"llama3.1-8b", "dgx-h100", 1, {{"max_seqs", "16"}, {"budget", "512"}}},
      {"llama3.1-8b", "dgx-h100", 2, {{"tp", "1"}, {"speculate", "eagle3:3@0.66/0.39/0.24"}}},
      {"llama3.1-8b", "dgx-h100", 1, {{"tp", "1"}, {"speculate", "ngram:4@1"}}},
      {"gemma-3-27b", "dgx-h100", 2, {{"tp", "2"}}},
      {"qwen3-30b-a3b", "dgx-h100", 4, {{"tp", "2"}, {"ep", "2"}}},
      {"qwen3-30b-a3b", "dgx-h100", 4, {{"tp", "1"}, {"dp", "4"}}},
      {"deepseek-v3", "dgx-h200", 8, {{"tp", "1"}, {"dp", "8"}, {"weights", "fp8_block"}}},
      {"deepseek-v3",
       "dgx-h200",
       8,
       {{"tp", "1"}, {"dp", "8"}, {"weights", "fp8_block"}, {"speculate", "mtp:1@0.8"}}},
      {"deepseek-v3", "dgx-h200", 8, {{"tp", "8"}, {"weights", "fp8_block"}}}};
  return all;
}

// The proof in the header, tried: every scheduler, layouts of all kinds, lengths of all kinds.
TEST(ServingBound, NoReplayEndsBeforeIt) {
  double closest = 0.0, sum = 0.0;
  int cases = 0;
  for (const char* engine : {"vllm", "sglang", "trtllm", "huggingface-2023"})
    for (const DeploymentQuery& query : deployments()) {
      std::unique_ptr<PricedServing> serving;
      try {
        serving = priced(query, engine);
      } catch (const Error&) {
        continue;  // Formats that an engine lacks.
      }
      for (const ServingLoad& load :
           {load_of("1024", "128", 1, 10), load_of("1024", "128", 64, 256),
            load_of("100..2000", "lognormal:100,0.9", 24, 200), load_of("64", "1", 8, 50),
            load_of("3000", "300", 0, 120)}) {
        ServingRun run;
        try {
          run = serve_requests(*serving, load, {"", ""});
        } catch (const Error&) {
          continue;  // Deployments that do not fit.
        }
        const RequestWork work{load.list};
        const ServingBound bound{*serving, work.longest_prompt};
        const double share = bound.least_span(work, load) / run.span();
        EXPECT_LE(share, 1.0) << engine << " " << query.model << " " << query.gpus << " "
                              << query.keys.front().second << " " << load.list.clients;
        const LatencyHistogram& tpot = run.replay.counts.tpot;
        if (tpot.count() > 0) {
          EXPECT_LE(bound.least_gap().si(), tpot.least().si());
        }
        closest = std::max(closest, share);
        sum += share;
        ++cases;
      }
    }
  EXPECT_GT(cases, 100);
  RecordProperty("mean_share", std::to_string(sum / cases));
  EXPECT_GT(sum / cases, 0.5);  // A bound that says little prunes nothing.
  EXPECT_GT(closest, 0.9);
}

// Each pool has its part to do, whatever the other does.
TEST(ServingBound, NoReplayOfPoolsEndsBeforeIt) {
  struct Pools {
    const char *model, *prefill, *decode;
  };
  const std::vector<Pools> all{
      {"llama3.1-8b", "tp=1", "tp=1"},
      {"llama3.1-8b", "tp=1,replicas=3", "tp=2,replicas=2"},
      {"llama3.1-8b", "tp=2,pp=2", "tp=1,pp=4"},
      {"llama3.1-8b", "tp=1", "tp=2,speculate=eagle3:2@0.7"},
      {"llama3.1-8b", "tp=1,max_seqs=16", "tp=1,max_seqs=16,replicas=5"},
      {"qwen3-30b-a3b", "tp=2,ep=2", "tp=1,dp=4"},
      {"deepseek-v3", "tp=8,weights=fp8_block", "tp=1,dp=8,weights=fp8_block"}};
  double sum = 0.0;
  int cases = 0;
  for (const char* engine : {"vllm", "sglang", "trtllm"})
    for (const Pools& query : all) {
      PoolsRequest request;
      parse_pool(query.prefill, request.prefill, {"", "--prefill"});
      parse_pool(query.decode, request.decode, {"", "--decode"});
      const Place place{"", ""};
      std::optional<PricedPools> pools;
      try {
        pools = price_pools(query.model, "dgx-h200", engine, request, place, place, place);
      } catch (const Error&) {
        continue;  // Formats that an engine lacks.
      }
      for (const ServingLoad& load :
           {load_of("1024", "128", 1, 10), load_of("1024", "128", 64, 256),
            load_of("100..2000", "lognormal:100,0.9", 24, 200), load_of("64", "1", 8, 50),
            load_of("3000", "300", 0, 120)}) {
        const ServingRun run = serve_pools(*pools, load);
        const RequestWork work{load.list};
        const ServingBound prefill{*pools->prefill, work.longest_prompt};
        const ServingBound decode{*pools->decode, work.longest_prompt};
        const Seconds prompts =
            prefill.least_span_of_pool(work.prompts_alone(), load, pools->plan.prefill.replicas);
        const Seconds answers =
            decode.least_span_of_pool(work.answers_alone(), load, pools->plan.decode.replicas);
        const double share = std::max(prompts, answers) / run.span();
        EXPECT_LE(share, 1.0) << engine << " " << query.model << " " << query.prefill;
        const LatencyHistogram& tpot = run.replay.counts.tpot;
        if (tpot.count() > 0) {
          EXPECT_LE(decode.least_gap().si(), tpot.least().si());
        }
        sum += share;
        ++cases;
      }
    }
  EXPECT_GT(cases, 70);
  RecordProperty("mean_share", std::to_string(sum / cases));
  EXPECT_GT(sum / cases, 0.4);  // The pools of a single client take turns.
}

}  // namespace
}  // namespace orrery::serving_bound_test
