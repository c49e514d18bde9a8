#include "sim/plan/scenario.hpp"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "sim/plan/plan_keys.hpp"
#include "sim/plan/software_keys.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::scenario_test {
namespace {

const Place plan_file{"plan.json", ""};

Model small_model() {
  Model model;
  model.name = "small";
  model.layers = 24;
  model.hidden = 1024;
  model.heads = 16;
  model.kv_heads = 4;
  model.head_dim = 64;
  model.ffn = 4096;
  model.vocab = 51'200;
  model.max_sequence = 2048;
  return model;
}

System small_system() {
  System system;
  system.name = "s";
  system.gpu.name = "g";
  system.gpu.architecture = Architecture::hopper;
  system.gpu.peak_16bit = FlopPerSecond{1e15};
  system.gpu.peak_fp8 = FlopPerSecond{2e15};
  return system;
}

PlanRequest request(int tp, int pp, std::int64_t gbs) {
  PlanRequest plan;
  plan.tp = tp;
  plan.pp = pp;
  plan.gbs = gbs;
  return plan;
}

Scenario scenario(const PlanRequest& plan, int gpus, const Model& model = small_model(),
                  const System& system = small_system()) {
  return make_scenario(model, system, plan, gpus, plan_file);
}

struct Refusal {
  Error::Kind kind;
  std::string text;
  bool operator==(const Refusal&) const = default;
};
void PrintTo(const Refusal& refusal, std::ostream* out) {
  *out << (refusal.kind == Error::Kind::infeasible ? "infeasible: " : "bad input: ")
       << refusal.text;
}

Refusal refusal(const PlanRequest& plan, int gpus, const Model& model = small_model(),
                const System& system = small_system()) {
  try {
    scenario(plan, gpus, model, system);
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  return {Error::Kind::bad_input, "no error"};
}

Refusal infeasible(const std::string& text) { return {Error::Kind::infeasible, text}; }
Refusal bad_input(const std::string& text) { return {Error::Kind::bad_input, text}; }

TEST(SplitLayers, IsEqualOrFewerAtTheEnds) {
  using Split = std::vector<int>;
  EXPECT_EQ(split_layers(8, 4), (Split{2, 2, 2, 2}));
  EXPECT_EQ(split_layers(7, 1), (Split{7}));
  EXPECT_EQ(split_layers(4, 4), (Split{1, 1, 1, 1}));
  // Llama 3.1 405B: 126 = 16 * 8 - 2 (arXiv 2407.21783, section 3.3.2).
  const Split llama = split_layers(126, 16);
  EXPECT_EQ(llama.front(), 7);
  EXPECT_EQ(llama[1], 8);
  EXPECT_EQ(llama.back(), 7);
  EXPECT_EQ(split_layers(7, 4), (Split{2, 2, 2, 1}));  // 4 * 2 - 1: the last holds one fewer.
  EXPECT_EQ(split_layers(6, 4), (Split{1, 2, 2, 1}));  // 4 * 2 - 2.
  // 61 = 16 * 4 - 3: DeepSeek-V3's last stage has the prediction layer as well (arXiv 2412.19437).
  EXPECT_EQ(split_layers(9, 4), (Split{2, 3, 3, 1}));
  EXPECT_EQ(split_layers(12, 8), Split{});             // Four short of a multiple.
  EXPECT_EQ(split_layers(3, 4), (Split{1, 1, 1, 0}));  // The last has the head alone.
}

// For all L, n <= 24: where a split exists it holds every layer, the ends at most two fewer than
// the others and only they none; it exists exactly where n divides L + 0, 1, 2 or 3 and neither end
// would hold less than nothing.
TEST(SplitLayers, LosesNoLayerInAnySmallCase) {
  for (int layers = 1; layers <= 24; ++layers)
    for (int stages = 1; stages <= 24; ++stages) {
      SCOPED_TRACE(std::to_string(layers) + " layers, " + std::to_string(stages) + " stages");
      const std::vector<int> split = split_layers(layers, stages);
      const auto fills = [&](int missing) {
        const int each = (layers + missing) / stages;
        if ((layers + missing) % stages != 0) return false;
        if (missing == 0) return each >= 1;
        return stages > 1 && each >= (missing + 1) / 2 && (stages == 2 || each >= 1);
      };
      EXPECT_EQ(!split.empty(), fills(0) || fills(1) || fills(2) || fills(3));
      if (split.empty()) continue;
      EXPECT_EQ(split.size(), static_cast<std::size_t>(stages));
      EXPECT_EQ(std::accumulate(split.begin(), split.end(), 0), layers);
      const int most = *std::max_element(split.begin(), split.end());
      for (std::size_t stage = 0; stage < split.size(); ++stage) {
        const bool end = stage == 0 || stage + 1 == split.size();
        EXPECT_GE(split[stage], end ? std::max(0, most - 2) : most);
        EXPECT_GE(split[stage], end && layers % stages != 0 ? 0 : 1);
      }
    }
}

TEST(StageLayersOfAPlan, AreTakenOrRefused) {
  PlanRequest plan = request(1, 4, 32);
  plan.layers.of = {5, 7, 7, 5};
  EXPECT_EQ(scenario(plan, 4).layers_of, plan.layers.of);
  plan.layers.of = {0, 12, 12, 0};
  EXPECT_EQ(scenario(plan, 4).layers_of, plan.layers.of);
  plan.layers.of = {5, 7, 7};
  EXPECT_EQ(refusal(plan, 4),
            bad_input("plan.json: /layers: layers are said of 3 virtual stages, but pp x vpp = 4; "
                      "write 4 numbers that make 24, or leave layers out"));
  plan.layers.of = {6, 6, 6, 7};
  EXPECT_EQ(refusal(plan, 4), bad_input("plan.json: /layers: the stages have 25 layers, but the "
                                        "model has 24; write 4 numbers that make 24, or leave "
                                        "layers out"));
  plan.layers.of = {12, 0, 6, 6};
  EXPECT_EQ(refusal(plan, 4),
            infeasible("plan.json: /layers: a stage between the first and the last has no layer; "
                       "write 4 numbers that make 24, or leave layers out"));
}

// Every tp, pp, dp whose product is 16: dp follows, micro-batches follow, layers are all placed.
TEST(Scenario, DerivesEveryPlanOfSixteenGpus) {
  std::set<std::tuple<int, int, int>> plans;
  for (int tp = 1; tp <= 16; ++tp)
    for (int pp = 1; pp <= 16; ++pp) {
      SCOPED_TRACE("tp=" + std::to_string(tp) + " pp=" + std::to_string(pp));
      if (16 % (tp * pp) != 0) {
        EXPECT_NE(refusal(request(tp, pp, 64), 16).text, "no error");
        continue;
      }
      const int dp = 16 / (tp * pp);
      plans.insert({tp, pp, dp});
      if (pp == 16) {  // 24 layers: 16 divides none of 24, 25, 26.
        EXPECT_EQ(refusal(request(tp, pp, 64), 16),
                  infeasible("plan.json: /pp: 24 layers do not divide into pp x vpp = 16 x 1 = 16 "
                             "chunks; use pp x vpp = 12 or 24"));
        continue;
      }
      const Scenario s = scenario(request(tp, pp, 64), 16);
      EXPECT_EQ(s.plan.dp, dp);
      EXPECT_EQ(s.plan.gpus(), 16);
      EXPECT_EQ(s.plan.microbatches * s.plan.mbs * dp, 64);
      EXPECT_EQ(static_cast<int>(s.layers_of.size()), pp);
      EXPECT_EQ(std::accumulate(s.layers_of.begin(), s.layers_of.end(), 0), 24);
      EXPECT_EQ(s.padded_vocab % (128 * tp), 0);
      EXPECT_GE(s.padded_vocab, 51'200);
      EXPECT_LT(s.padded_vocab, 51'200 + 128 * tp);
      EXPECT_EQ(s.plan.sp, tp > 1);  // Megatron-Core switches it on where it means something.

      PlanRequest given = request(tp, pp, 64);  // The same the other way round: gpus from dp.
      given.dp = dp;
      EXPECT_EQ(scenario(given, 0).plan.gpus(), 16);
      EXPECT_EQ(scenario(given, 16).plan.dp, dp);
    }
  EXPECT_EQ(plans.size(), 15u);  // 2^4 over three places: 6 choose 2.
}

// 51,200 = 400 * 128. tp = 3 pads to multiples of 384: 134 * 384 = 51,456.
// GPT-2's 50,257 at tp = 8 pads to multiples of 1,024: 50 * 1,024 = 51,200.
TEST(Scenario, PadsTheVocabularyAsMegatronDoes) {
  EXPECT_EQ(scenario(request(1, 1, 8), 1).padded_vocab, 51'200);
  Model three = small_model();
  three.heads = three.kv_heads = 6;
  three.ffn = 3072;
  PlanRequest plan = request(3, 1, 8);
  plan.sp = false;
  EXPECT_EQ(scenario(plan, 3, three).padded_vocab, 51'456);
  Model gpt2 = small_model();
  gpt2.vocab = 50'257;
  EXPECT_EQ(scenario(request(8, 1, 8), 8, gpt2).padded_vocab, 51'200);
  EXPECT_EQ(scenario(request(1, 1, 8), 1, gpt2).padded_vocab, 50'304);  // 393 * 128.
}

TEST(Scenario, FillsInWhatThePlanLeavesOpen) {
  const Scenario now = scenario(request(2, 2, 8), 8);
  EXPECT_EQ(now.software.name, "megatron-core");
  EXPECT_EQ(now.plan.dtype, Dtype::bf16);
  EXPECT_EQ(now.plan.mbs, 1);
  EXPECT_EQ(now.plan.seq, 2048);
  EXPECT_EQ(now.plan.schedule, &one_f_one_b());
  EXPECT_EQ(now.plan.zero, 1);
  EXPECT_TRUE(now.plan.fused_attention);
  EXPECT_EQ(now.tokens_per_microbatch(), 2048);
  PlanRequest chunked = request(2, 2, 8);
  chunked.vpp = 3;
  EXPECT_EQ(scenario(chunked, 8).plan.schedule, &interleaved());
  EXPECT_EQ(scenario(chunked, 8).layers_of, std::vector<int>(6, 4));
  chunked.vpp.reset();
  EXPECT_EQ(scenario(chunked, 8).plan.vpp, 1);
  chunked.schedule = &interleaved();
  EXPECT_EQ(scenario(chunked, 8).plan.vpp, 2);
}

// Two stages and dp = 2: two micro-batches a replica, or with one stage a single one.
TEST(Scenario, MicrobatchesCanBeAsManyAsStages) {
  PlanRequest plan = request(2, 2, 24);
  plan.software = "torchtitan";
  EXPECT_EQ(scenario(plan, 8).plan.mbs, 6);
  EXPECT_EQ(scenario(plan, 8).plan.microbatches, 2);
  plan.mbs = 3;
  EXPECT_EQ(scenario(plan, 8).plan.microbatches, 4);
  plan.mbs.reset();
  plan.pp = 1;
  EXPECT_EQ(scenario(plan, 8).plan.mbs, 6);
  EXPECT_EQ(scenario(plan, 8).plan.microbatches, 1);
}

TEST(Scenario, TakesWhatThePlanSays) {
  PlanRequest plan = request(2, 2, 48);
  plan.mbs = 3;
  plan.seq = 1024;
  plan.schedule = &gpipe();
  plan.recompute = Recompute::full;
  plan.zero = 0;
  plan.sp = false;
  plan.dtype = Dtype::fp8;
  plan.fused_attention = false;
  plan.dp_overlap = false;
  plan.tp_overlap = false;
  Software anything = read_software("megatron-core", plan_file);
  anything.support.clear();
  const Scenario s = make_scenario(small_model(), small_system(), anything, plan, 8, plan_file);
  EXPECT_EQ(s.plan.microbatches, 8);  // 48 / (3 * 2)
  EXPECT_EQ(s.tokens_per_microbatch(), 3 * 1024);
  EXPECT_EQ(s.plan.schedule, &gpipe());
  EXPECT_EQ(s.plan.recompute, Recompute::full);
  EXPECT_EQ(s.plan.zero, 0);
  EXPECT_FALSE(s.plan.sp);
  EXPECT_EQ(s.plan.dtype, Dtype::fp8);
  EXPECT_FALSE(s.plan.fused_attention);
  EXPECT_FALSE(s.plan.dp_overlap);
  EXPECT_FALSE(s.plan.overlap_tp_gradients);
  EXPECT_EQ(s.plan.tp_hidden, 0.0);
}

// User buffers and symmetric memory send over NVLink: none of a group's traffic is pipelined into
// GEMMs where it leaves its domain. What waits for no such kernel still overlaps.
TEST(Scenario, TensorTrafficIsPipelinedInsideNvlinkDomains) {
  const Model model = small_gpt(16, 4096, 64, 4096);
  const auto plan = [&](const char* system, const char* software, int tp) {
    PlanRequest request;
    request.tp = tp;
    request.gbs = 64;
    return make_scenario(model, read_system(system, plan_file), read_software(software, plan_file),
                         request, 64, plan_file)
        .plan;
  };
  for (const int tp : {1, 2, 4, 8, 16, 32}) {
    SCOPED_TRACE(tp);
    EXPECT_EQ(plan("dgx-h200", "megatron-core", tp).tp_hidden, tp <= 8 ? 0.6 : 0.0);
    EXPECT_TRUE(plan("dgx-h200", "megatron-core", tp).overlap_tp_gradients);
    EXPECT_EQ(plan("gb200-nvl72", "megatron-core", tp).tp_hidden, 0.6);  // All in one rack.
  }
  PlanRequest request;
  request.tp = 16;
  request.gbs = 64;
  request.tp_overlap = true;
  EXPECT_EQ(error_text([&] {
              make_scenario(model, read_system("dgx-h200", plan_file),
                            read_software("torchtitan", plan_file), request, 64, plan_file);
            }),
            "plan.json: /tp_overlap: its kernels send over NVLink, and groups of tp=16 leave "
            "domains of 8 GPUs; use tp_overlap=false, or a smaller tp");
}

TEST(Scenario, PicksTheSoftwareOfTheTime) {
  System volta = small_system();
  volta.gpu.architecture = Architecture::volta;
  PlanRequest plan;
  EXPECT_EQ(default_software(plan, small_system()), "megatron-core");
  EXPECT_EQ(default_software(plan, volta), "megatron-2021");
  plan.dtype = Dtype::fp16;
  EXPECT_EQ(default_software(plan, small_system()), "megatron-core");
  EXPECT_EQ(default_software(plan, volta), "megatron-2021");
  plan.dtype = Dtype::bf16;
  EXPECT_EQ(default_software(plan, volta), "megatron-core");
}

TEST(Scenario, TakesTheNearestSoftwareThatHasWhatIsRequested) {
  PlanRequest plan = request(1, 4, 8);
  set_plan_flag(plan, "schedule", "gpipe");
  const Scenario s = make_scenario(small_model(), small_system(), plan, 8, plan_file);
  EXPECT_EQ(s.plan.software, "nanotron");
  EXPECT_EQ(s.why_software,
            "software nanotron is taken, as no software is named and the software "
            "'megatron-core' has no schedule=gpipe");
  EXPECT_EQ(s.plan,
            make_scenario(small_model(), small_system(), plan_again(s.plan), 8, plan_file).plan);
  PlanRequest loops = plan;
  set_plan_flag(loops, "schedule", "looped-bfs");
  set_plan_flag(loops, "vpp", "2");
  const Scenario looped = make_scenario(small_model(), small_system(), loops, 8, plan_file);
  EXPECT_EQ(looped.plan.software, "torchtitan-2026");
  EXPECT_EQ(looped.plan.mbs, 1);

  plan.software = "megatron-core";
  EXPECT_EQ(refusal(plan, 8),
            infeasible("plan.json: /schedule: the software 'megatron-core' has no schedule=gpipe; "
                       "use schedule=1f1b or interleaved, or software=nanotron, torchtitan-2026 or "
                       "olmo-core"));
  // None has both.
  plan.software.clear();
  set_plan_flag(plan, "schedule", "zb-h1");
  set_plan_flag(plan, "dtype", "fp8");
  EXPECT_EQ(refusal(plan, 8),
            infeasible("plan.json: /schedule: the software 'megatron-core' has no schedule=zb-h1; "
                       "use schedule=1f1b or interleaved"));
}

// Unscaling of fp32 gradients: 8 bytes more for each parameter updated.
TEST(Scenario, ModernSoftwareTakesHalfPrecision) {
  PlanRequest plan = request(2, 1, 8);
  set_plan_flag(plan, "dtype", "fp16");
  const Scenario s = make_scenario(small_model(), small_system(), plan, 8, plan_file);
  EXPECT_EQ(s.plan.software, "megatron-core");
  EXPECT_EQ(s.why_software, "");
  EXPECT_TRUE(s.plan.fused_attention);
  EXPECT_EQ(s.software.loss_scaling_bytes, 8.0);
}

TEST(Scenario, RefusesTensorParallelismThatDoesNotDivide) {
  EXPECT_EQ(refusal(request(3, 1, 8), 3),
            infeasible("plan.json: /tp: tp=3 does not divide the model's 16 attention heads; use "
                       "tp=1"));
  EXPECT_EQ(refusal(request(32, 1, 8), 32),
            infeasible("plan.json: /tp: tp=32 does not divide the model's 16 attention heads; use "
                       "tp=16"));
  Model odd = small_model();
  odd.ffn = 4100;  // 4 * 1025
  EXPECT_EQ(refusal(request(8, 1, 8), 8, odd),
            infeasible("plan.json: /tp: tp=8 does not divide the model's 4100 MLP channels; use "
                       "tp=4"));
  Model grouped = small_model();
  grouped.heads = 36;
  grouped.kv_heads = 6;
  grouped.ffn = 3600;
  EXPECT_EQ(
      refusal(request(9, 1, 8), 9, grouped),
      infeasible("plan.json: /tp: tp=9 neither divides the model's 6 key/value heads nor is a "
                 "multiple of them; use tp=3"));
  PlanRequest sequence = request(2, 1, 8);
  sequence.seq = 2047;
  EXPECT_EQ(refusal(sequence, 2),
            infeasible("plan.json: /sp: sequence parallelism needs tp=2 to divide seq=2047; use "
                       "--sp false or another seq"));
}

TEST(Scenario, RefusesGpusThatDoNotAddUp) {
  EXPECT_EQ(
      refusal(request(2, 2, 8), 0),
      bad_input("plan.json: neither gpus nor dp is given; add --gpus N (dp follows from it)"));
  EXPECT_EQ(refusal(request(2, 3, 8), 16),
            infeasible("plan.json: tp x pp x cp = 2 x 3 x 1 = 6 does not divide the 16 GPUs given; "
                       "use --gpus 12 or --gpus 18"));
  EXPECT_EQ(refusal(request(8, 4, 8), 16),
            infeasible("plan.json: tp x pp x cp = 8 x 4 x 1 = 32 ranks need more than the 16 GPUs "
                       "given; lower tp or pp, or use --gpus 32"));
  PlanRequest contrary = request(2, 2, 8);
  contrary.dp = 3;
  EXPECT_EQ(refusal(contrary, 16),
            bad_input("plan.json: /dp: dp=3 contradicts 16 GPUs / (tp x pp x cp = 2 x 2 x 1 = 4) = "
                      "4; leave dp out, or use --gpus 12"));
  System small = small_system();
  small.max_gpus = 8;
  EXPECT_EQ(
      refusal(request(2, 2, 8), 16, small_model(), small),
      infeasible("plan.json: /gpus: 16 GPUs are more than the 8 of system 's'; use --gpus 8"));
  PlanRequest four = request(2, 2, 8);
  four.dp = 4;  // The machine is as small when its size is implied.
  EXPECT_EQ(refusal(four, 0, small_model(), small),
            infeasible("plan.json: /dp: 16 GPUs are more than the 8 of system 's'; use --gpus 8"));
}

// The largest degrees and batches that a plan may hold: their products must not overflow.
TEST(Scenario, RefusesDegreesWithoutOverflow) {
  PlanRequest many = request(16, 2, 8);
  many.dp = 1 << 20;
  EXPECT_EQ(refusal(many, 0),
            infeasible("plan.json: /dp: tp x pp x cp = 16 x 2 x 1 = 32 times dp=1048576 are more "
                       "than 16777216 GPUs; use fewer ranks"));
  PlanRequest deep = request(1, 1 << 20, 8);
  deep.vpp = 1 << 20;
  EXPECT_EQ(refusal(deep, 0),
            infeasible("plan.json: /pp: 24 layers do not fill pp x vpp = 1048576 x 1048576 = "
                       "1099511627776 chunks; use pp x vpp = 24 or less"));
  PlanRequest long_batch = request(1, 1, 1 << 30);
  EXPECT_EQ(
      refusal(long_batch, 1),
      infeasible("plan.json: /gbs: 1073741824 micro-batches on 1 virtual stages are more than "
                 "10 million passes; lower gbs or raise mbs"));
  PlanRequest wide = request(1, 1, 1 << 20);
  wide.mbs = 1 << 20;
  wide.seq = 1 << 30;
  EXPECT_EQ(refusal(wide, 1),
            infeasible("plan.json: /mbs: 1048576 sequences of 1073741824 tokens are more than any "
                       "GPU can hold; lower mbs or seq"));
}

TEST(Scenario, RefusesBatchesThatDoNotDivide) {
  PlanRequest none = request(1, 1, 8);
  none.gbs.reset();
  EXPECT_EQ(refusal(none, 8),
            bad_input("plan.json: the key 'gbs' is missing; add --gbs N, sequences in a step"));
  EXPECT_EQ(
      refusal(request(1, 1, 20), 8),
      infeasible("plan.json: /gbs: gbs=20 is not a multiple of mbs x dp = 1 x 8 = 8; use gbs=16 "
                 "or gbs=24"));
  EXPECT_EQ(
      refusal(request(1, 1, 4), 8),
      infeasible("plan.json: /gbs: gbs=4 is not a multiple of mbs x dp = 1 x 8 = 8; use gbs=8"));
  Model endless = small_model();
  endless.max_sequence = 0;
  EXPECT_EQ(refusal(request(1, 1, 8), 8, endless),
            bad_input("plan.json: neither the plan nor the model says how long a sequence is; add "
                      "--seq N"));
}

TEST(Scenario, RefusesSchedulesThatDoNotFitThePlan) {
  PlanRequest plain = request(1, 2, 8);
  plain.vpp = 2;
  plain.schedule = &one_f_one_b();
  EXPECT_EQ(refusal(plain, 2),
            bad_input("plan.json: /schedule: schedule=1f1b has one chunk a stage, but vpp=2; use "
                      "schedule=interleaved, or vpp=1"));
  PlanRequest flat = request(1, 1, 8);
  flat.vpp = 2;
  EXPECT_EQ(refusal(flat, 1),
            infeasible("plan.json: /vpp: vpp=2 needs several stages, but pp=1; use vpp=1"));
  PlanRequest odd = request(1, 4, 6);
  odd.vpp = 2;
  EXPECT_EQ(
      refusal(odd, 4),
      infeasible("plan.json: /gbs: the interleaved schedule needs micro-batches (6) in "
                 "multiples of pp=4; change gbs, mbs or dp, or use schedule=1f1b with vpp=1"));
  EXPECT_EQ(refusal(request(1, 7, 7), 7),
            infeasible("plan.json: /pp: 24 layers do not divide into pp x vpp = 7 x 1 = 7 chunks; "
                       "use pp x vpp = 6 or 8"));
}

// Four racks of 72 GPUs: 256 lie as 4 x 64, 144 fill two, 64 fit in one.
TEST(Scenario, JobsTakeEquallyManyGpusOfEachDomain) {
  const System system = read_system("gb200-nvl72", Place{"test", ""});
  const auto domain = [&](int gpus) {
    return make_scenario(small_model(), system, request(1, 1, gpus), gpus, Place{"plan.json", ""})
        .system.nvlink_domain;
  };
  EXPECT_EQ(domain(64), 72);
  EXPECT_EQ(domain(144), 72);
  EXPECT_EQ(domain(256), 64);
  EXPECT_EQ(domain(120), 60);
  EXPECT_EQ(domain(76), 72);  // 76 = 4 x 19: 38 is no number of whole nodes.
}

TEST(Scenario, ExpertRanksDivideExpertsAndRanks) {
  Model mixture = small_model();
  mixture.experts = Experts{.count = 12, .per_token = 2, .ffn = 1000, .shared_ffn = 0};
  mixture.layer_has_experts.assign(24, true);
  const auto with = [&](int tp, int ep, int etp, bool sp = true) {
    PlanRequest plan = request(tp, 1, 32);
    plan.ep = ep;
    plan.etp = etp;
    plan.sp = sp;
    return plan;
  };
  EXPECT_EQ(refusal(with(1, 8, 1), 16, mixture),
            infeasible("plan.json: /ep: ep=8 does not divide the model's 12 experts; use ep=4"));
  EXPECT_EQ(
      refusal(with(1, 3, 1), 16, mixture),
      infeasible("plan.json: /ep: ep=3 does not divide the 16 ranks of a pipeline stage (tp x "
                 "cp x dp); use ep=2 or 4"));
  EXPECT_EQ(refusal(with(1, 4, 8), 16, mixture),
            infeasible("plan.json: /ep: ep=4 x etp=8 does not divide the 16 ranks of a pipeline "
                       "stage (tp x cp x dp); use ep=2"));
  EXPECT_EQ(refusal(with(1, 1, 16), 16, mixture),
            infeasible("plan.json: /etp: etp=16 does not divide the model's 1000 channels of an "
                       "expert; use etp=10 or 20"));
  EXPECT_EQ(refusal(with(2, 2, 1, false), 16, mixture),
            infeasible("plan.json: /sp: experts with tp=2 need sequence parallelism, as each rank "
                       "sends tokens of its own; use --sp true"));
  const Plan plan =
      make_scenario(mixture, small_system(), with(2, 4, 2), 16, Place{"plan.json", ""}).plan;
  EXPECT_EQ(plan.expert_data_ranks(), 2);
}

TEST(Scenario, RefusesWhatItCannotEstimate) {
  PlanRequest plan = request(1, 1, 8);
  plan.ep = 2;
  EXPECT_EQ(
      refusal(plan, 8),
      infeasible("plan.json: /ep: expert parallelism needs a model with experts; leave ep and "
                 "etp out"));
  plan = request(1, 1, 8);
  plan.etp = 2;
  EXPECT_EQ(refusal(plan, 8),
            infeasible("plan.json: /etp: expert parallelism needs a model with experts; leave ep "
                       "and etp out"));
  plan = request(1, 1, 8);
  plan.cp = 4;  // 2 x 4 parts of 2,044 tokens.
  plan.seq = 2044;
  EXPECT_EQ(refusal(plan, 8),
            infeasible("plan.json: /cp: cp=4 needs 2 cp = 8 to divide seq=2044; use another cp or "
                       "seq"));
  plan = request(1, 1, 8);
  plan.zero = 1;
  plan.reshard = true;
  EXPECT_EQ(refusal(plan, 8),
            bad_input("plan.json: /reshard: reshard is of sharded weights, but zero=1; use zero=3, "
                      "or leave reshard out"));
  plan = request(1, 1, 8);
  plan.software = "megatron-cores";
  EXPECT_EQ(refusal(plan, 8),
            bad_input("plan.json: /software: 'megatron-cores' is not in the catalog; did you mean "
                      "'megatron-core'? (a path needs a '/' or ends in .json)"));
  System ampere = small_system();
  ampere.gpu.architecture = Architecture::ampere;
  ampere.gpu.peak_fp8 = FlopPerSecond{};
  plan = request(1, 1, 8);
  plan.dtype = Dtype::fp8;
  EXPECT_EQ(refusal(plan, 8, small_model(), ampere),
            infeasible("plan.json: /dtype: the GPU 'g' has no fp8 units; use bf16 or fp16"));
}

// Replicas, and what they do in a step, are not part of it; everything else is.
TEST(Scenario, PlansOfAReplicaAreThoseOfAnyNumberOfThem) {
  const auto plan_with = [](int gpus, const std::map<std::string, std::string>& flags) {
    PlanRequest plan;
    plan.gbs = gpus;
    for (const auto& [key, value] : flags) set_plan_flag(plan, key, value);
    return plan_of_a_replica(make_scenario(small_model(), small_system(), plan, gpus, plan_file));
  };
  const std::string plan = plan_with(4, {{"tp", "2"}});
  EXPECT_EQ(plan_with(8, {{"tp", "2"}}), plan);
  EXPECT_EQ(plan_with(8, {{"tp", "2"}, {"gbs", "32"}}), plan);
  EXPECT_NE(plan_with(8, {{"tp", "4"}}), plan);
  EXPECT_NE(plan_with(8, {{"tp", "2"}, {"recompute", "full"}}), plan);
  Model renamed = small_model();
  renamed.name = "another name";
  PlanRequest same;
  same.gbs = 4;
  set_plan_flag(same, "tp", "2");
  EXPECT_EQ(plan_of_a_replica(make_scenario(renamed, small_system(), same, 4, plan_file)), plan);
}

}  // namespace
}  // namespace orrery::scenario_test
