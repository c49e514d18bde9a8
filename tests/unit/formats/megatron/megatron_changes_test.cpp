#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/formats/megatron/megatron_parts.hpp"
#include "sim/formats/megatron/megatron_run.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/search/plan_space.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::megatron_changes_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A run of Llama 3 8B with arguments that no plan knows.
const std::string arguments =
    "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 "
    "--group-query-attention --num-query-groups 8 --seq-length 8192 --max-position-embeddings 8192 "
    "--swiglu --normalization RMSNorm --position-embedding-type rope --rotary-base 1000000 "
    "--untie-embeddings-and-output-weights --disable-bias-linear --vocab-size 128256 "
    "--micro-batch-size 1 --global-batch-size 256 --bf16 --use-distributed-optimizer "
    "--tensor-model-parallel-size 4 --sequence-parallel --num-virtual-stages-per-pipeline-rank 4 "
    "--pipeline-model-parallel-size 2 --recompute-activations --no-overlap-p2p-communication "
    "--save \"$OUT/a b\"";

MegatronArguments script() {
  return MegatronArguments::read("torchrun --nproc_per_node 8 pretrain_gpt.py " + arguments,
                                 "run.sh", {});
}

struct Imported {
  Model model;
  PlanRequest request;
};
Imported run_of(const MegatronArguments& read) {
  const JsonValue plan = JsonValue::parse(import_megatron_run(read, "llama").json, "plan");
  Imported run{parse_model(plan.at("model")), {}};
  for (const std::string& key : plan.keys())
    if (find_plan_key(key)) set_plan_key(run.request, key, plan.at(key));
  return run;
}

Scenario with(const std::vector<std::pair<std::string, std::string>>& flags) {
  Imported run = run_of(script());
  for (const auto& [key, value] : flags) set_plan_flag(run.request, key, value);
  return make_scenario(run.model, read_system("dgx-h100", test_place), run.request, 64, test_place);
}

std::vector<std::string> changes(const std::vector<std::pair<std::string, std::string>>& flags) {
  std::vector<std::string> texts;
  for (const ArgumentChange& change :
       changed_arguments(script(), megatron_flags(with({})), megatron_flags(with(flags))))
    texts.push_back(change.before + " => " + change.after);
  return texts;
}

TEST(MegatronChanges, TheSamePlanChangesNothing) {
  EXPECT_THAT(changes({}), IsEmpty());
  std::string text = changed_script_text(script(), {});
  for (std::size_t at; (at = text.find(" \\\n")) != text.npos;) text.replace(at, 3, " ");
  EXPECT_EQ(text, arguments + "\n");
}

TEST(MegatronChanges, OnlyWhatThePlanChanges) {
  EXPECT_THAT(changes({{"mbs", "2"}}), ElementsAre("--micro-batch-size 1 => --micro-batch-size 2"));
  EXPECT_THAT(changes({{"recompute", "none"}}), ElementsAre("--recompute-activations => "));
  EXPECT_THAT(changes({{"dp_overlap", "true"}}),
              ElementsAre(" => --overlap-grad-reduce", " => --overlap-param-gather"));
  EXPECT_THAT(changes({{"dtype", "fp8"}}), ElementsAre(" => --fp8-format hybrid"));
  // Sequence parallelism means nothing without tensor parallelism, but is in the script's plan.
  EXPECT_THAT(changes({{"tp", "1"}}),
              ElementsAre("--tensor-model-parallel-size 4 => --tensor-model-parallel-size 1",
                          "--sequence-parallel => "));
}

// One of two arguments that mean the same goes when the other comes.
TEST(MegatronChanges, ChunksByAnotherName) {
  EXPECT_THAT(changes({{"vpp", "8"}}), ElementsAre(" => --num-layers-per-virtual-pipeline-stage 2",
                                                   "--num-virtual-stages-per-pipeline-rank 4 => "));
}

// Software reduces in bf16, the run in fp32: that is the run's to decide.
TEST(MegatronChanges, WhatARunComputesStays) {
  EXPECT_THAT(changes({{"software", "megatron-core"}}),
              ElementsAre(" => --tp-comm-overlap", "--no-overlap-p2p-communication => "));
}

TEST(MegatronChanges, TheWholeScript) {
  const std::string text = changed_script_text(
      script(), changed_arguments(script(), megatron_flags(with({})),
                                  megatron_flags(with({{"tp", "2"}, {"dp_overlap", "true"}}))));
  EXPECT_THAT(text, HasSubstr("--rotary-base 1000000 \\\n"));
  EXPECT_THAT(text, HasSubstr("--tensor-model-parallel-size 2 \\\n--sequence-parallel \\\n"));
  EXPECT_THAT(text, HasSubstr("--save \"$OUT/a b\" \\\n--overlap-grad-reduce \\\n"));
  EXPECT_THAT(text, Not(HasSubstr("grad-reduce-in-bf16")));
  // It reads back as the plan.
  const Imported again = run_of(MegatronArguments::read("pretrain_gpt.py " + text, "again.sh", {}));
  EXPECT_EQ(again.request.tp, 2);
  EXPECT_EQ(again.request.dp_overlap, true);
}

// Key by key, each with its time; the times are those of estimates.
TEST(MegatronChanges, StepsToAnotherPlan) {
  const Scenario before = with({}), after = with({{"tp", "2"}, {"dp_overlap", "true"}});
  EstimateContext context{before.system};
  const std::vector<PlanStep> steps = plan_steps(before, after, context);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_THAT(steps[0].keys, IsEmpty());
  EXPECT_THAT(steps[1].keys, ElementsAre("tp"));
  EXPECT_THAT(steps[2].keys, ElementsAre("dp_overlap"));
  EXPECT_EQ(steps[0].step, estimate(before).result.step_time);
  EXPECT_EQ(steps[1].step, estimate(with({{"tp", "2"}})).result.step_time);
  EXPECT_EQ(steps[2].step, estimate(after).result.step_time);
  const std::string text = megatron_changes_text(script(), steps);
  EXPECT_THAT(text, HasSubstr("tp 4 -> 2                 --tensor-model-parallel-size 4 -> 2\n"));
  EXPECT_THAT(text, HasSubstr("dp_overlap false -> true  --overlap-grad-reduce\n"));
  EXPECT_THAT(megatron_changes_text(script(), plan_steps(before, before, context)),
              HasSubstr("the script has this plan\n"));
}

// Fewer stages need fewer chunks first: alone neither is a plan.
TEST(MegatronChanges, KeysThatGoTogether) {
  const Scenario before = with({}), after = with({{"pp", "1"}, {"vpp", "1"}, {"schedule", "1f1b"}});
  EstimateContext context{before.system};
  const std::vector<PlanStep> steps = plan_steps(before, after, context);
  EXPECT_EQ(steps.back().scenario.plan, after.plan);
  EXPECT_THAT(steps[1].keys, testing::Contains("pp"));
}

}  // namespace
}  // namespace orrery::megatron_changes_test
