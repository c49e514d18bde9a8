#include "sim/plan/software.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "sim/core/catalog.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::software_test {
namespace {

const Place at{"command line", "--software"};

// Every figure differs from its default and from all others, so that two keys cannot be swapped.
std::string software_text() {
  return R"({"schema": "orrery.software/1", "name": "s", "title": "S", "source": "a paper",
    "dtype": {"value": "fp8", "source": "s"},
    "sequence_parallel": {"value": true, "source": "s"},
    "zero": {"value": 1, "source": "s"},
    "fused_attention": {"value": false, "source": "s"},
    "deterministic": {"value": true, "source": "s"},
    "dropout": {"value": true, "source": "s"},
    "fused_bias_gradients": {"value": false, "source": "s"},
    "scatter_gather": {"value": false, "source": "s"},
    "early_recompute_stop": {"value": true, "source": "s"},
    "selective_recompute": {"value": "alternate_products", "source": "s"},
    "microbatches_are_stages": {"value": true, "source": "s"},
    "overlap_tp_gradients": {"value": true, "source": "s"},
    "tp_hidden": {"value": 0.25, "source": "s"},
    "tp_overlap": {"value": false, "source": "s"},
    "overlap_pp": {"value": true, "source": "s"},
    "overlap_dp": {"value": true, "source": "s"},
    "accumulate_bytes": {"value": 11, "source": "s"},
    "logit_forward_bytes": {"value": 13, "source": "s"},
    "logit_backward_bytes": {"value": 14, "source": "s"},
    "logit_held_bytes": {"value": 15, "source": "s"},
    "optimizer_bytes": {"value": 50, "source": "s"},
    "gradient_pass_bytes": {"value": 17, "source": "s"},
    "permute_efficiency": {"value": 0.6, "source": "s"},
    "fused_projections": {"value": false, "source": "s"},
    "gathers_inputs_again": {"value": true, "source": "s"},
    "keeps_packed_qkv": {"value": false, "source": "s"},
    "keeps_quantised_inputs": {"value": true, "source": "s"},
    "keeps_quantised_activations": {"value": true, "source": "s"},
    "fp32": {"fused_attention": {"value": true, "source": "s"},
      "logit_forward_bytes": {"value": 21, "source": "s"},
      "logit_backward_bytes": {"value": 22, "source": "s"},
      "logit_held_bytes": {"value": 23, "source": "s"}},
    "quantise_bytes": {"value": 5, "source": "s"},
    "fp8_scaling": {"granularity": {"value": "row", "source": "s"},
      "columns_bytes": {"value": 6, "source": "s"},
      "gemm_efficiency": {"value": 0.75, "source": "s"},
      "forward_weight_bytes": {"value": 8, "source": "s"},
      "backward_weight_bytes": {"value": 9, "source": "s"}},
    "gradient_bytes": {"value": 2, "source": "s"},
    "main_gradient_bytes": {"value": 3, "source": "s"},
    "gemm_efficiency": {"value": 0.9, "source": "s"},
    "attention_efficiency": {"value": 0.8, "source": "s"},
    "batched_gemm_efficiency": {"value": 0.7, "source": "s"},
    "kernel_overhead": {"value": "2 us", "source": "s"},
    "host_launch": {"value": "7 us", "source": "s"}})";
}

Software read(const std::string& text, std::string* path = nullptr) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "s.json").string();
  if (path) *path = file;
  std::ofstream{file} << text;
  return read_software(file, at);
}

// The error with the file's folder left out.
std::string error_with(const std::string& right, const std::string& wrong) {
  std::string text = software_text();
  const std::size_t found = text.find(right);
  EXPECT_NE(found, text.npos) << right;
  if (found != text.npos) text.replace(found, right.size(), wrong);
  std::string path;
  const std::string error = error_text([&] { read(text, &path); });
  EXPECT_TRUE(error.starts_with(path)) << error;
  return error.substr(std::min(error.size(), path.size()));
}

TEST(Software, EveryKeyArrivesInItsPlace) {
  const Software s = read(software_text());
  EXPECT_EQ(s.name, "s");
  EXPECT_EQ(s.title, "S");
  EXPECT_EQ(s.dtype, Dtype::fp8);
  EXPECT_TRUE(s.sequence_parallel);
  EXPECT_EQ(s.zero, 1);
  EXPECT_FALSE(s.fused_attention);
  EXPECT_TRUE(s.dropout);
  EXPECT_FALSE(s.fused_bias_gradients);
  EXPECT_FALSE(s.scatter_gather);
  EXPECT_TRUE(s.early_recompute_stop);
  EXPECT_EQ(s.selective_recompute, SelectiveRecompute::alternate_products);
  EXPECT_TRUE(s.microbatches_are_stages);
  EXPECT_TRUE(s.overlap_tp_gradients);
  EXPECT_EQ(s.tp_hidden, 0.25);
  EXPECT_FALSE(s.tp_overlap);
  EXPECT_TRUE(s.overlap_pp);
  EXPECT_TRUE(s.overlap_dp);
  EXPECT_EQ(s.accumulate_bytes, 11.0);
  EXPECT_EQ(s.logit_forward_bytes, 13.0);
  EXPECT_EQ(s.logit_backward_bytes, 14.0);
  EXPECT_EQ(s.logit_held_bytes, 15.0);
  EXPECT_EQ(s.optimizer_bytes, 50.0);
  EXPECT_EQ(s.gradient_pass_bytes, 17.0);
  EXPECT_EQ(s.permute_efficiency, 0.6);
  EXPECT_FALSE(s.fused_projections);
  EXPECT_TRUE(s.gathers_inputs_again);
  EXPECT_TRUE(s.keeps_quantised_inputs);
  EXPECT_EQ(s.quantise_bytes, 5.0);
  EXPECT_TRUE(s.keeps_quantised_activations);
  EXPECT_EQ(s.fp32, (Fp32Training{true, 21.0, 22.0, 23.0, 0.0, 0.0}));
  EXPECT_TRUE(s.fp8_scaling.by_rows);
  EXPECT_EQ(s.fp8_scaling.columns_bytes, 6.0);
  EXPECT_EQ(s.fp8_scaling.gemm_efficiency, 0.75);
  EXPECT_EQ(s.fp8_scaling.forward_weight_bytes, 8.0);
  EXPECT_EQ(s.fp8_scaling.backward_weight_bytes, 9.0);
  EXPECT_EQ(s.gradient_bytes, 2.0);
  EXPECT_EQ(s.main_gradient_bytes, 3.0);
  EXPECT_EQ(s.gemm_efficiency, 0.9);
  EXPECT_EQ(s.attention_efficiency, 0.8);
  EXPECT_EQ(s.batched_gemm_efficiency, 0.7);
  EXPECT_EQ(s.kernel_overhead, microseconds(2));
  EXPECT_EQ(s.host_launch, microseconds(7));
}

// One flag at a time is turned round: a flag that is read into another's place shows here, which
// equal values above would hide.
TEST(Software, FlagsDoNotMix) {
  const std::vector<std::pair<std::string, bool Software::*>> flags{
      {"sequence_parallel", &Software::sequence_parallel},
      {"fused_attention", &Software::fused_attention},
      {"deterministic", &Software::deterministic},
      {"dropout", &Software::dropout},
      {"fused_bias_gradients", &Software::fused_bias_gradients},
      {"fused_projections", &Software::fused_projections},
      {"gathers_inputs_again", &Software::gathers_inputs_again},
      {"keeps_packed_qkv", &Software::keeps_packed_qkv},
      {"keeps_quantised_inputs", &Software::keeps_quantised_inputs},
      {"scatter_gather", &Software::scatter_gather},
      {"early_recompute_stop", &Software::early_recompute_stop},
      {"microbatches_are_stages", &Software::microbatches_are_stages},
      {"overlap_tp_gradients", &Software::overlap_tp_gradients},
      {"tp_overlap", &Software::tp_overlap},
      {"overlap_pp", &Software::overlap_pp},
      {"overlap_dp", &Software::overlap_dp}};
  const Software usual = read(software_text());
  for (const auto& [key, flag] : flags) {
    std::string text = software_text();
    const std::string before = "\"" + key + "\": {\"value\": ";
    const std::string old = usual.*flag ? "true" : "false";
    const std::size_t found = text.find(before + old);
    ASSERT_NE(found, text.npos) << key;
    text.replace(found + before.size(), old.size(), usual.*flag ? "false" : "true");
    const Software turned = read(text);
    for (const auto& [other, member] : flags)
      EXPECT_EQ(turned.*member == usual.*member, other != key) << key << " " << other;
  }
}

TEST(Software, EveryCatalogFileReadsAndIsNamedLikeItself) {
  const std::vector<std::string> names = list_catalog("workloads/software");
  EXPECT_GE(names.size(), 2u);
  for (const std::string& name : names) EXPECT_EQ(read_software(name, at).name, name);
}

// Narayanan et al. 2021, section 5, trained in fp16; bf16 needs Ampere and came with Megatron-Core.
TEST(Software, TheErasDifferAsTheirPapersSay) {
  const Software then = read_software("megatron-2021", at);
  const Software now = read_software("megatron-core", at);
  EXPECT_EQ(then.dtype, Dtype::fp16);
  EXPECT_EQ(now.dtype, Dtype::bf16);
  EXPECT_FALSE(then.fused_attention);  // FlashAttention is of 2022.
  EXPECT_TRUE(now.fused_attention);
  EXPECT_EQ(then.zero, 0);
  EXPECT_EQ(now.zero, 1);
  EXPECT_LT(now.optimizer_bytes, then.optimizer_bytes);
}

// Where a key is listed a plan may have the listed values; where not, any.
TEST(Software, SaysWhatAPlanMayAskOfIt) {
  const Software all = read(software_text());
  EXPECT_TRUE(all.support.empty());
  EXPECT_TRUE(supports(all, "zero", "3"));
  std::string text = software_text();
  text.insert(text.rfind('}'), R"(, "support": {
    "zero": {"value": [0, 1], "source": "s"}, "sp": {"value": [false], "source": "s"},
    "recompute": {"value": ["none", "full"], "source": "s"}},
    "interleaved_from": {"value": 3, "source": "s"},
    "frees_outputs": {"value": false, "source": "s"},
    "optimizers_gather_all": {"value": true, "source": "s"},
    "host_attention": {"value": "1 ms", "source": "s"},
    "host_router": {"value": "2 ms", "source": "s"},
    "host_exchange": {"value": "3 ms", "source": "s"},
    "host_expert": {"value": "4 us", "source": "s"})");
  const Software some = read(text);
  EXPECT_FALSE(all.optimizers_gather_all);
  EXPECT_TRUE(some.optimizers_gather_all);
  EXPECT_EQ(all.expert_layer_host.attention, Seconds{});
  EXPECT_EQ(some.expert_layer_host.attention, microseconds(1000));
  EXPECT_EQ(some.expert_layer_host.latent_attention, microseconds(1000));
  EXPECT_EQ(some.expert_layer_host.router, microseconds(2000));
  EXPECT_EQ(some.expert_layer_host.exchange, microseconds(3000));
  EXPECT_EQ(some.expert_layer_host.expert, microseconds(4));
  text.insert(text.rfind('}'), R"(, "host_latent_attention": {"value": "5 ms", "source": "s"},
    "host_shared_experts": {"value": "6 ms", "source": "s"})");
  EXPECT_EQ(read(text).expert_layer_host.latent_attention, microseconds(5000));
  EXPECT_EQ(some.expert_layer_host.shared_experts, Seconds{});
  EXPECT_EQ(read(text).expert_layer_host.shared_experts, microseconds(6000));
  EXPECT_EQ(captured(CudaGraphs::attention, read(text)).expert_layer_host.latent_attention,
            Seconds{});
  EXPECT_TRUE(supports(some, "zero", "1"));
  EXPECT_FALSE(supports(some, "zero", "2"));
  EXPECT_FALSE(supports(some, "sp", "true"));
  EXPECT_FALSE(supports(some, "recompute", "selective"));
  EXPECT_TRUE(supports(some, "recompute", "full"));
  EXPECT_TRUE(supports(some, "schedule", "gpipe"));
  EXPECT_EQ(some.interleaved_from, 3);
  EXPECT_FALSE(some.frees_outputs);

  const auto refusal = [&](void (*change)(Plan&)) {
    Plan plan;
    change(plan);
    const auto no = check_support(some, plan);
    return no ? std::string{no->error(at).what()} : "no error";
  };
  EXPECT_EQ(refusal([](Plan&) {}), "no error");
  EXPECT_EQ(refusal([](Plan& p) { p.zero = 2; }),
            "command line: --software/zero: the software 's' has no zero=2; use zero=0 or 1, or "
            "another software");
  EXPECT_EQ(
      refusal([](Plan& p) { p.sp = true; }),
      "command line: --software/sp: the software 's' has no sp=true; use sp=false, or another "
      "software");
  EXPECT_EQ(refusal([](Plan& p) { p.recompute = Recompute::selective; }),
            "command line: --software/recompute: the software 's' has no recompute=selective; use "
            "recompute=none or full, or another software");
  EXPECT_EQ(refusal([](Plan& p) { p.pp = 2, p.vpp = 2; }),
            "command line: --software/vpp: the software 's' has several chunks a stage from pp=3 "
            "on, not with pp=2; use vpp=1, or another software");
  EXPECT_EQ(refusal([](Plan& p) { p.pp = 3, p.vpp = 2; }), "no error");
}

TEST(Software, SupportIsRefusedWithPlaceProblemAndRemedy) {
  const auto error = [](const std::string& support) {
    return error_with("\"host_launch\"", "\"support\": " + support + ", \"host_launch\"");
  };
  EXPECT_EQ(error(R"({"zeroo": {"value": [0], "source": "s"}})"),
            ": /support: the key 'zeroo' is unknown; did you mean 'zero'?");
  EXPECT_EQ(error(R"({"zero": {"value": [], "source": "s"}})"),
            ": /support/zero/value: is empty; list the values that the software has, or leave the "
            "key out");
  EXPECT_EQ(error(R"({"schedule": {"value": ["1f1c"], "source": "s"}})"),
            ": /support/schedule/value/0: '1f1c' is unknown; did you mean '1f1b'?");
  EXPECT_EQ(error(R"({"zero": [0]})"),
            ": /support/zero: [0] names no source; write {\"value\": ..., \"source\": \"where the "
            "number is from\"}");
}

// Each of the catalog has its own defaults, and a plan of one GPU.
TEST(Software, EveryCatalogFileSupportsItsDefaults) {
  for (const std::string& name : list_catalog("workloads/software")) {
    const Software software = read_software(name, at);
    EXPECT_FALSE(software.support.empty()) << name;
    Plan plan;
    plan.zero = software.zero;
    plan.dtype = software.dtype;
    plan.fused_attention = software.fused_attention;
    plan.dp_overlap = software.overlap_dp;
    EXPECT_FALSE(check_support(software, plan)) << name;
  }
}

TEST(Software, IsRefusedWithPlaceProblemAndRemedy) {
  EXPECT_EQ(error_with("orrery.software/1", "orrery.software/2"),
            ": /schema: 'orrery.software/2' is not what is read here; write \"orrery.software/1\"");
  EXPECT_EQ(error_with("\"dropout\"", "\"dropuot\""),
            ": the key 'dropuot' is unknown; did you mean 'dropout'?");
  EXPECT_EQ(error_with("\"dropout\": {\"value\": true, \"source\": \"s\"},", ""),
            ": the key 'dropout' is missing; add it");
  EXPECT_EQ(
      error_with("{\"value\": true, \"source\": \"s\"}", "true"),
      ": /sequence_parallel: true names no source; write {\"value\": ..., \"source\": \"where "
      "the number is from\"}");
  EXPECT_EQ(error_with("\"source\": \"s\"", "\"source\": \"\""),
            ": /dtype/source: is empty; say where the number is from");
  EXPECT_EQ(error_with("\"a paper\"", "\"\""), ": /source: is empty; write the source");
  EXPECT_EQ(error_with("\"fp8\"", "\"fp9\""),
            ": /dtype/value: 'fp9' is unknown; did you mean 'fp8'?");
  EXPECT_EQ(error_with("0.25", "1.5"),
            ": /tp_hidden/value: 1.5 is out of range; write a number from 0 to 1");
  EXPECT_EQ(error_with("\"2 us\"", "\"2\""),
            ": /kernel_overhead/value: '2' has no known unit; use s, ms, us or ns");
  EXPECT_EQ(error_text([] { read_software("megatron-croe", at); }),
            "command line: --software: 'megatron-croe' is not in the catalog; did you mean "
            "'megatron-core'? (a path needs a '/' or ends in .json)");
}

}  // namespace
}  // namespace orrery::software_test
