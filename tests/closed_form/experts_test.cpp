// Mixtures of experts through whole steps: bytes, loads and times that can be written down.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "sim/layers/expert_ops.hpp"
#include "sim/training/estimate.hpp"
#include "tests/closed_form/hand_made.hpp"
#include "tests/support/conserved.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::experts_test {
namespace {

constexpr int layers = 2;
constexpr std::int64_t hidden = 512;
constexpr std::int64_t tokens = 1024;  // Tokens of a rank in a micro-batch.

// Replicas alone, whose `ep` x `etp` share the experts; `m` micro-batches each. The host is fast.
Scenario mixture(const System& system, int gpus, int ep, int etp, std::int64_t experts,
                 std::int64_t per_token, int m, const std::string& routing = "uniform") {
  PlanRequest request = plan_request(1, 1, 1, std::int64_t{m} * gpus, tokens, "megatron-core");
  request.ep = ep;
  request.etp = etp;
  request.routing = routing;
  request.zero = 0;
  request.dp_overlap = false;
  Scenario scenario = scenario_of(small_mixture(layers, hidden, 4, 1024, experts, per_token),
                                  system, request, gpus);
  scenario.software.expert_layer_host = {};
  return scenario;
}

// Activations of 2 bytes, k copies of each of a rank's own tokens.
double copies_bytes(std::int64_t per_token) {
  return 2.0 * static_cast<double>(per_token * tokens * hidden);
}

double of(const Result& result, const std::string& kind, LinkUser user) {
  for (const LinkReport& link : result.links)
    if (link.kind == kind) return link.of(user).si();
  return 0.0;
}

// A rank sends k copies of each token, evenly to n ranks: (n-1)/n of them leave, of which its
// node's d - 1 other GPUs get theirs over NVLink and the n - d others over the NIC. A micro-batch
// crosses each layer's dispatch twice, forward and with the gradients of what was combined; so for
// combine.
TEST(Experts, UniformDispatchSendsAllButItsOwn) {
  for (int n : {2, 4, 8})
    for (std::int64_t k : {1, 2})
      for (int m : {1, 3}) {
        SCOPED_TRACE(std::to_string(n) + " ranks, top " + std::to_string(k));
        const int d = std::min(n, 4);
        const Scenario scenario = mixture(without_latency(), 8, n, 1, 8, k, m);
        const double crossings = 2.0 * m * layers;
        const double near = crossings * copies_bytes(k) * (d - 1) / n;
        const double far = crossings * copies_bytes(k) * (n - d) / n;
        for (const bool unfolded : {false, true})
          for (const bool expanded : {false, true}) {
            const Result result = estimate(scenario, {unfolded, expanded}).result;
            for (const LinkUser user : {LinkUser::dispatch, LinkUser::combine}) {
              EXPECT_NEAR(of(result, "nvlink", user), near, 1e-6 * near);
              EXPECT_NEAR(of(result, "nic", user), far, 1e-6 * far);
            }
            EXPECT_NEAR(result.routing->scale_up_bytes.si(), 2.0 * near, 1e-6 * near);
            EXPECT_NEAR(result.routing->network_bytes.si(), 2.0 * far, 1e-6 * far);
            expect_tokens_to_come_back(result);
          }
      }
}

// Two optimizers gather all weights one after the other, where nothing hides that: the step grows
// by one gather of the dense weights over all ranks, and one of the experts' over those that hold
// the same. Without expert parallelism there is one optimizer.
TEST(Experts, OptimizersGatherAllWeightsEach) {
  for (const bool with_experts : {true, false})
    for (int ep : {1, 2, 4}) {
      if (!with_experts && ep > 1) continue;
      SCOPED_TRACE(ep);
      PlanRequest request = plan_request(1, 1, 1, 8, 64, "megatron-core");
      request.ep = ep;
      request.zero = 1;
      request.dp_overlap = false;
      const Model model = with_experts ? small_mixture(layers, hidden, 4, 1024, 4, 1)
                                       : small_gpt(layers, hidden, 4, 1024);
      Scenario scenario = scenario_of(model, without_latency(), request, 4);
      scenario.software.optimizers_gather_all = false;
      const Seconds once = estimate(scenario).result.step_time;
      scenario.software.optimizers_gather_all = true;
      const Seconds twice = estimate(scenario).result.step_time;

      const CollectiveTime collectives{scenario.system};
      const GroupShapes shapes = Placement{scenario.plan, scenario.system}.shapes();
      const RankParameters held = parameters_on_rank(scenario, 0);
      Seconds gathers;
      for (const GroupKind kind : {GroupKind::data, GroupKind::expert_data})
        if (ep > 1 && shapes[kind].ranks > 1)
          gathers += collectives(CollectiveKind::all_gather,
                                 Bytes{2.0 * static_cast<double>(held.of(kind))}, shapes[kind])
                         .time();
      EXPECT_NEAR((twice - once).si(), gathers.si(), 1e-9);
      EXPECT_EQ(gathers > Seconds{}, ep > 1);
    }
}

// Top 1, and everybody visits the same expert, of n with one a rank: nothing is left to chance. Its
// rank computes n times the mean rows, and its port receives (n-1) T instead of (n-1)/n T copies,
// which all wait for. The step grows by just that.
TEST(Experts, ACollapsedRouterSlowsTheStepByItsRank) {
  for (int n : {2, 4}) {
    SCOPED_TRACE(n);
    constexpr int m = 3;
    const Scenario even = mixture(without_latency(), n, n, 1, n, 1, m);
    const Scenario hot = mixture(without_latency(), n, n, 1, n, 1, m, "hot:1");
    expect_tokens_conserved(hot);
    const Result of_even = estimate(even).result;
    const Result of_hot = estimate(hot).result;
    EXPECT_DOUBLE_EQ(of_hot.routing->max_over_mean, n);
    EXPECT_DOUBLE_EQ(of_hot.routing->gini, (n - 1.0) / n);

    const double passes = 2.0 * m * layers;  // Forward and backward.
    const double exchange = copies_bytes(1) * (n - 1) / n / 10e9;
    EXPECT_NEAR(of_hot.routing->lost.dispatch.si(), passes * (n - 1) * exchange, 1e-12);
    EXPECT_NEAR(of_hot.routing->lost.combine.si(), passes * (n - 1) * exchange, 1e-12);

    const KernelModel kernels{even.system.gpu, Dtype::bf16, nullptr};
    const CollectiveTime collectives{even.system};
    const GroupShapes shapes = Placement{even.plan, even.system}.shapes();
    const Pricer pricer{kernels, collectives, shapes, even.software, even.system.gpu};
    const auto experts = [&](std::int64_t rows) {
      const LayerSizes s{even};
      const std::vector<std::int64_t> of_each{rows};
      return (pricer.price(of_experts_forward(s, of_each)).time() +
              pricer.price(of_experts_backward(s, of_each)).time())
          .si();
    };
    const double slower = m * layers * (experts(n * tokens) - experts(tokens));
    EXPECT_NEAR((of_hot.step_time - of_even.step_time).si(),
                2.0 * passes * (n - 1) * exchange + slower, 1e-8);
    EXPECT_NEAR(
        of_hot.routing->lost.compute.si(),
        m * layers * (experts(n * tokens) - (experts(n * tokens) + (n - 1) * experts(0)) / n),
        1e-9);
    for (const Detail detail : {Detail{true, false}, Detail{false, true}, Detail{true, true}})
      EXPECT_NEAR(estimate(hot, detail).result.step_time / of_hot.step_time, 1.0, 1e-7);
  }
}

// Mean of max(0, X - C) of a binomial, term by term.
double mean_excess(double n, double p, double capacity) {
  double sum = 0.0;
  for (double x = capacity + 1.0; x <= n; x += 1.0)
    sum +=
        (x - capacity) * std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) +
                                  x * std::log(p) + (n - x) * std::log1p(-p));
  return sum;
}

// Capacity 1: each rank's copies for each of E experts are a binomial of T tokens at k / E, and the
// excess over T k / E is dropped. The sampled loads of the group vary by 1/R of a rank's variance,
// and each rank's part around them is approximated by a binomial again, so that the excess, which
// goes as the deviation, is up to sqrt(1 + 1/R) higher. Dropped copies are neither sent nor
// computed.
TEST(Experts, CapacityDropsTheBinomialExcess) {
  constexpr int ranks = 8;
  constexpr int m = 8;
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "capacity.json").string();
  std::ofstream{file} << R"({"schema": "orrery.routing/1", "name": "capacity", "title": "drops",
    "source": "this test", "popularity": "uniform", "drawn": true, "seed": 7,
    "capacity_factor": 1.0})";
  for (std::int64_t k : {1, 2, 4}) {
    SCOPED_TRACE(k);
    constexpr double experts = 16.0;
    const Scenario scenario = mixture(without_latency(), ranks, ranks, 1, 16, k, m, file);
    expect_tokens_conserved(scenario);
    const Result result = estimate(scenario).result;
    const double mean = static_cast<double>(k * tokens) / experts;
    const double share = mean_excess(tokens, static_cast<double>(k) / experts, mean) / mean;
    EXPECT_GT(result.routing->dropped_share, 0.97 * share);
    EXPECT_LT(result.routing->dropped_share, 1.03 * std::sqrt(1.0 + 1.0 / ranks) * share);
    const double copies = static_cast<double>(k * tokens * ranks * m * layers);
    EXPECT_NEAR(static_cast<double>(result.routing->dropped_a_step),
                result.routing->dropped_share * copies, 0.5);
    // The busiest port has at most what capacity lets in, and at least the mean of what is kept.
    const double full = 2.0 * m * layers * copies_bytes(k) * 4.0 / ranks;
    EXPECT_LE(of(result, "nic", LinkUser::dispatch), full * (1.0 + 1e-9));
    EXPECT_GE(of(result, "nic", LinkUser::dispatch), full * (1.0 - result.routing->dropped_share));
    expect_tokens_to_come_back(result);
  }
}

// Experts over 4 GPUs of a node, NVLink 10 GB/s, NIC 1 GB/s. With S = 2 T k h bytes of copies a
// rank, each of dispatch, combine and their gradients takes
//     expert-parallel, in a node       3/4 S / 10 GB/s
//     expert-parallel, over two nodes  4/8 S / 1 GB/s, which hides 3/8 S / 10 GB/s
// An expert whose channels four ranks share needs the rows of all four on each: a gather and a
// reduction of 4 S around experts instead,
//     tensor-parallel, in a node       3/4 4 S / 10 GB/s
//     both, expert-parallel over nodes that are tensor-parallel inside: that and 1/2 S / 1 GB/s
TEST(Experts, ExpertParallelAgainstTensorParallel) {
  constexpr int m = 2;
  const double copies = copies_bytes(2);
  const double times = 4.0 * m * layers;
  const auto exposed = [&](int ep, int etp) {
    const Scenario scenario = mixture(without_latency(), 8, ep, etp, 8, 2, m);
    const Result result = estimate(scenario).result;
    EXPECT_NEAR(estimate(scenario, {true, true}).result.step_time / result.step_time, 1.0, 1e-6);
    return result.busiest().ep_exposed.si();
  };
  const double inside = times * 0.75 * copies / 10e9;
  EXPECT_NEAR(exposed(4, 1) / inside, 1.0, 1e-6);
  EXPECT_NEAR(exposed(8, 1) / (times * 0.5 * copies / 1e9), 1.0, 1e-6);
  EXPECT_NEAR(exposed(1, 4) / (4.0 * inside), 1.0, 1e-6);
  EXPECT_NEAR(exposed(2, 4) / (4.0 * inside + times * 0.5 * copies / 1e9), 1.0, 1e-6);
}

// Where steps follow each other stage by stage: pipelines that meet between routers keep a stage
// from beginning longer than from ending, so that its window is shorter than one without them would
// be from its earliest begin to its earliest end. Its bound is not.
TEST(Experts, AStageThatBeginsLateIsNotShorterThanItsBound) {
  PlanRequest request = plan_request(1, 4, 1, 128, 1024, "zerobubble");
  request.routing = "aux-loss";
  request.schedule = &zb_2p();
  const Scenario scenario = scenario_of(small_mixture(12, 2048, 32, 100'375, 4, 1),
                                        read_system("hgx-h100-dragonfly", test_place), request, 16);
  const Result result = estimate(scenario).result;
  EXPECT_LE(result.lower_bound, result.step_time);
  EXPECT_GT(result.lower_bound, 0.9999 * result.step_time);
}

}  // namespace
}  // namespace orrery::experts_test
