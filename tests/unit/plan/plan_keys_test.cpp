#include "sim/plan/plan_keys.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "tests/support/error_text.hpp"

namespace orrery::plan_keys_test {
namespace {

// One key, written as JSON and as a flag's text, and how to see that it arrived.
struct Written {
  std::string key, json, flag;
  std::function<bool(const PlanRequest&)> arrived;
};

const std::vector<Written>& written() {
  using P = const PlanRequest&;
  static const std::vector<Written> all{
      {"tp", "8", "8", [](P p) { return p.tp == 8; }},
      {"pp", "12", "12", [](P p) { return p.pp == 12; }},
      {"vpp", "6", "6", [](P p) { return p.vpp == 6; }},
      {"dp", "16", "16", [](P p) { return p.dp == 16; }},
      {"cp", "2", "2", [](P p) { return p.cp == 2; }},
      {"ep", "4", "4", [](P p) { return p.ep == 4; }},
      {"etp", "3", "3", [](P p) { return p.etp == 3; }},
      {"mbs", "5", "5", [](P p) { return p.mbs == 5; }},
      {"gbs", "1536", "1536", [](P p) { return p.gbs == 1536; }},
      {"seq", "4096.0", "4096", [](P p) { return p.seq == 4096; }},
      {"schedule", R"("1f1b")", "1f1b", [](P p) { return p.schedule == &one_f_one_b(); }},
      {"schedule", R"("gpipe")", "gpipe", [](P p) { return p.schedule == &gpipe(); }},
      {"schedule", R"("interleaved")", "interleaved",
       [](P p) { return p.schedule == &interleaved(); }},
      {"layers", R"("11,12*14,11")", "11+12x14+11",
       [](P p) { return p.layers.of.size() == 16 && p.layers.of[1] == 12; }},
      {"layers", R"("3+3+1")", "3x2+1",
       [](P p) {
         return p.layers.of == std::vector{3, 3, 1};
       }},
      {"recompute", R"("full")", "full", [](P p) { return p.recompute == Recompute::full; }},
      {"recompute", R"("selective")", "selective",
       [](P p) { return p.recompute == Recompute::selective; }},
      {"recompute", R"("selective:attn_only")", "selective:attn_only",
       [](P p) { return p.recompute == Recompute::selective; }},
      {"recompute", R"("selective:norm,act")", "selective:moe_act+layernorm",
       [](P p) {
         return p.recompute == std::set{RecomputeModule::layernorm, RecomputeModule::moe_act};
       }},
      {"recompute", R"("selective:moe,moe_act")", "selective:moe",
       [](P p) { return p.recompute == std::set{RecomputeModule::moe}; }},
      {"recompute", R"("full:5")", "full:5",
       [](P p) { return p.recompute.kind == Recompute::full && p.recompute.layers == 5; }},
      {"offload_layers", "3", "3", [](P p) { return p.offload_layers == 3; }},
      {"local_batch", "8", "8", [](P p) { return p.local_batch == 8; }},
      {"offload_modules", R"("moe_act,expert_fc1")", "expert_fc1+moe_act",
       [](P p) { return p.offload_modules.size() == 2; }},
      {"chunked_loss", "true", "true", [](P p) { return p.chunked_loss; }},
      {"zero", "1", "1", [](P p) { return p.zero == 1; }},
      {"zero", "0", "0", [](P p) { return p.zero == 0; }},
      {"dp_replicate", "4", "4", [](P p) { return p.dp_replicate == 4; }},
      {"offload_weights", "true", "true", [](P p) { return p.offload_weights; }},
      {"offload_optimizer", "75", "75", [](P p) { return p.offload_optimizer == 75; }},
      {"sp", "true", "true", [](P p) { return p.sp == true; }},
      {"sp", "false", "false", [](P p) { return p.sp == false; }},
      {"dtype", R"("fp16")", "fp16", [](P p) { return p.dtype == Dtype::fp16; }},
      {"dtype", R"("bf16")", "bf16", [](P p) { return p.dtype == Dtype::bf16; }},
      {"dtype", R"("fp8")", "fp8", [](P p) { return p.dtype == Dtype::fp8; }},
      {"dtype", R"("nvfp4")", "nvfp4", [](P p) { return p.dtype == Dtype::nvfp4; }},
      {"dtype", R"("tf32")", "tf32", [](P p) { return p.dtype == Dtype::tf32; }},
      {"dtype", R"("fp32")", "fp32", [](P p) { return p.dtype == Dtype::fp32; }},
      {"main_params", R"("remainders")", "remainders",
       [](P p) { return p.main_params == MainParams::remainders; }},
      {"exp_avg", R"("bf16")", "bf16", [](P p) { return p.exp_avg == Dtype::bf16; }},
      {"exp_avg_sq", R"("int8")", "int8", [](P p) { return p.exp_avg_sq == Dtype::int8_block; }},
      {"fp8_params", "true", "true", [](P p) { return p.fp8_params; }},
      {"bf16_start_layers", "1", "1", [](P p) { return p.bf16_start_layers == 1; }},
      {"bf16_end_layers", "14", "14", [](P p) { return p.bf16_end_layers == 14; }},
      {"fp8_attention", "true", "true", [](P p) { return p.fp8_attention; }},
      {"documents", R"("fixed:64")", "fixed:64",
       [](P p) { return p.documents.text == "fixed:64"; }},
      {"fp8_activation_inputs", "true", "true", [](P p) { return p.fp8_activation_inputs; }},
      {"finetune", R"("lora")", "lora", [](P p) { return p.finetune == Finetune::lora; }},
      {"lora_rank", "8", "8", [](P p) { return p.lora_rank == 8; }},
      {"lora_targets", R"("fc2,qkv")", "qkv+fc2",
       [](P p) {
         return p.lora_targets == LoraTargets{LoraTarget::qkv, LoraTarget::fc2};
       }},
      {"lora_dropout", "true", "true", [](P p) { return p.lora_dropout; }},
      {"train_tables", "true", "true", [](P p) { return p.train_tables; }},
      {"base_format", R"("nf4")", "nf4", [](P p) { return p.base_format == BaseFormat::nf4; }},
      {"reshard", "true", "true", [](P p) { return p.reshard == true; }},
      {"reshard", "false", "false", [](P p) { return p.reshard == false; }},
      {"attention", R"("flash")", "flash", [](P p) { return p.fused_attention == true; }},
      {"cp_comm", R"("all_gather")", "all_gather",
       [](P p) { return p.cp_comm == ContextExchange::all_gather; }},
      {"cp_comm", R"("a2a")", "a2a", [](P p) { return p.cp_comm == ContextExchange::a2a; }},
      {"routing", R"("zipf:1.2")", "zipf:1.2", [](P p) { return p.routing == "zipf:1.2"; }},
      {"nccl_algo", R"("Ring,Tree")", "Ring+Tree", [](P p) { return p.nccl_algo == "Ring+Tree"; }},
      {"wait_for_others", "false", "false", [](P p) { return !p.wait_for_others; }},
      {"software_stands_in", "true", "true", [](P p) { return p.software_stands_in; }},
      {"nccl_proto", R"("^LL128")", "^LL128", [](P p) { return p.nccl_proto == "^LL128"; }},
      {"cuda_graphs", R"("none")", "none", [](P p) { return p.cuda_graphs == CudaGraphs::none; }},
      {"cuda_graphs", R"("attention+router")", "attention+router",
       [](P p) { return p.cuda_graphs == CudaGraphs::attention_router; }},
      {"moe_dispatcher", R"("deepep")", "deepep",
       [](P p) { return p.moe_dispatcher == ExpertDispatcher::deepep; }},
      {"shared_expert_overlap", "true", "true", [](P p) { return p.shared_expert_overlap; }},
      {"ep_overlap", "true", "true", [](P p) { return p.ep_overlap; }},
      {"delay_wgrad", "true", "true", [](P p) { return p.delay_wgrad; }},
      {"attention", R"("unfused")", "unfused", [](P p) { return p.fused_attention == false; }},
      {"tp_overlap", "false", "false", [](P p) { return p.tp_overlap == false; }},
      {"dp_overlap", "true", "true", [](P p) { return p.dp_overlap == true; }},
      {"software", R"("my \"own\" é\n.json")", "my \"own\" é\n.json",
       [](P p) { return p.software == "my \"own\" é\n.json"; }}};
  return all;
}

PlanRequest from_json(const std::string& text) {
  PlanRequest plan;
  read_plan(plan, JsonValue::parse(text, "plan.json"));
  return plan;
}

std::string json_error(const std::string& text) {
  return error_text([&] { from_json(text); });
}

std::string flag_error(const std::string& key, const std::string& text) {
  PlanRequest plan;
  return error_text([&] { set_plan_flag(plan, key, text); });
}

TEST(PlanKeys, EveryKeyIsReadFromJsonAndFromAFlag) {
  for (const Written& w : written()) {
    SCOPED_TRACE(w.key + " " + w.flag);
    PlanRequest plan;
    EXPECT_FALSE(w.arrived(plan));  // Or arriving would prove nothing.
    set_plan_flag(plan, w.key, w.flag);
    EXPECT_TRUE(w.arrived(plan));
    EXPECT_TRUE(w.arrived(from_json("{\"" + w.key + "\": " + w.json + "}")));
  }
}

TEST(PlanKeys, NoKeyIsLeftOutAbove) {
  for (const PlanKey& key : plan_keys()) {
    SCOPED_TRACE(key.name);
    EXPECT_TRUE(std::any_of(written().begin(), written().end(),
                            [&](const Written& w) { return w.key == key.name; }));
    EXPECT_FALSE(key.help.empty());
    EXPECT_FALSE(key.access.values.empty());
  }
}

// A file sets what it names and leaves the rest: that is how a flag wins over it.
TEST(PlanKeys, ReadsOnTopOfWhatIsThere) {
  PlanRequest plan;
  set_plan_flag(plan, "pp", "4");
  read_plan(plan, JsonValue::parse(R"({"tp": 2, "dp": null})", "plan.json"));
  EXPECT_EQ(plan.tp, 2);
  EXPECT_EQ(plan.pp, 4);
  EXPECT_EQ(plan.dp, std::nullopt);  // null counts as absent.
  set_plan_flag(plan, "tp", "8");
  EXPECT_EQ(plan.tp, 8);
}

TEST(PlanKeys, NamesAreInTheOrderOfTheEnumerators) {
  EXPECT_EQ(name(Recompute::none), "none");
  EXPECT_EQ(name(Recompute::selective), "selective");
  EXPECT_EQ(name(Recompute::full), "full");
}

TEST(PlanKeys, FilesAreRefusedWithPlaceProblemAndRemedy) {
  EXPECT_EQ(json_error(R"({"tpp": 8})"), "plan.json: the key 'tpp' is unknown; did you mean 'tp'?");
  EXPECT_EQ(json_error(R"({"tp": 0})"),
            "plan.json: /tp: 0 is out of range; write a whole number from 1 to 1048576");
  EXPECT_EQ(json_error(R"({"pp": 1.5})"),
            "plan.json: /pp: 1.5 is not a whole number; write a whole number from 1 to 1048576");
  EXPECT_EQ(json_error(R"({"dp": "8"})"),
            "plan.json: /dp: \"8\" is not a whole number; write a whole number from 1 to 1048576");
  EXPECT_EQ(json_error(R"({"gbs": 1e30})"),
            "plan.json: /gbs: 1e+30 is out of range; write a whole number from 1 to 1073741824");
  EXPECT_EQ(json_error(R"({"zero": 4})"),
            "plan.json: /zero: 4 is out of range; write a whole number from 0 to 3");
  EXPECT_EQ(json_error(R"({"schedule": "1f2b"})"),
            "plan.json: /schedule: '1f2b' is unknown; did you mean '1f1b'?");
  EXPECT_EQ(json_error(R"({"schedule": 1})"),
            "plan.json: /schedule: 1 is not text; write it in quotes");
  EXPECT_EQ(json_error(R"({"recompute": "sometimes"})"),
            "plan.json: /recompute: 'sometimes' is unknown; write one of: none, selective, full");
  EXPECT_EQ(json_error(R"({"recompute": "full:0"})"),
            "plan.json: /recompute: 'full:0' does not say how many layers are computed again; "
            "write full for all, or full:5 for the first five of each virtual stage");
  EXPECT_EQ(json_error(R"({"recompute": "selective:mla_up,mlp"})"),
            "plan.json: /recompute: 'mla_up' is not a part of a layer that can be computed again; "
            "write one of: core_attn, layernorm, mla_up_proj, mlp, moe_act, shared_experts, moe");
  EXPECT_EQ(
      json_error(R"({"recompute": "selective:"})"),
      "plan.json: /recompute: '' is not a part of a layer that can be computed again; write one "
      "of: core_attn, layernorm, mla_up_proj, mlp, moe_act, shared_experts, moe");
  EXPECT_EQ(json_error(R"({"attention": "sparse"})"),
            "plan.json: /attention: 'sparse' is unknown; write one of: unfused, flash");
  EXPECT_EQ(json_error(R"({"sp": 1})"),
            "plan.json: /sp: 1 is neither true nor false; write one of the two");
  EXPECT_EQ(json_error(R"({"dtype": "fp64"})"),
            "plan.json: /dtype: 'fp64' is unknown; write one of: fp16, bf16, fp8, mxfp8, nvfp4, "
            "tf32, fp32");
  EXPECT_EQ(json_error("[8]"), "plan.json: [8] is not an object; write {\"key\": value, ...}");
}

TEST(PlanKeys, FlagsAreRefusedTheSameWay) {
  EXPECT_EQ(flag_error("tp", "-1"),
            "--tp: -1 is out of range; write a whole number from 1 to 1048576");
  EXPECT_EQ(flag_error("tp", "eight"),
            "--tp: \"eight\" is not a whole number; write a whole number from 1 to 1048576");
  EXPECT_EQ(flag_error("tp", ""),
            "--tp: \"\" is not a whole number; write a whole number from 1 to 1048576");
  EXPECT_EQ(flag_error("tp", "NaN"),
            "--tp: \"NaN\" is not a whole number; write a whole number from 1 to 1048576");
  EXPECT_EQ(flag_error("tp", "+8"), "--tp: '+8' is not a number; write a whole number");
  EXPECT_EQ(flag_error("tp", "1e999"), "--tp: '1e999' is not a number; write a whole number");
  EXPECT_EQ(flag_error("sp", "yes"),
            "--sp: \"yes\" is neither true nor false; write one of the two");
  EXPECT_EQ(flag_error("schedule", "gpip"), "--schedule: 'gpip' is unknown; did you mean 'gpipe'?");
  EXPECT_EQ(flag_error("software", "\xff"),
            "--software: '\\ufffd' is not UTF-8 text; write letters and digits");
  EXPECT_EQ(flag_error("warmup", "1"),
            "--warmup: 'warmup' is not a key of a plan; write one of: "
            "tp, pp, vpp, dp, cp, ep, etp, mbs, gbs, seq, documents, schedule, local_batch, "
            "layers, recompute, "
            "offload_layers, offload_modules, chunked_loss, zero, dp_replicate, offload_optimizer, "
            "offload_weights, "
            "reshard, sp, dtype, main_params, exp_avg, exp_avg_sq, fp8_params, "
            "fp8_activation_inputs, bf16_start_layers, bf16_end_layers, finetune, lora_rank, "
            "lora_targets, lora_dropout, train_tables, base_format, attention, fp8_attention, "
            "cp_comm, routing, "
            "moe_dispatcher, shared_expert_overlap, "
            "ep_overlap, "
            "delay_wgrad, tp_overlap, dp_overlap, cuda_graphs, nccl_algo, "
            "nccl_proto, wait_for_others, software, software_stands_in");
}

// A terminal shows one line whatever the file holds.
TEST(PlanKeys, HostileWordsAreEscapedAndCut) {
  EXPECT_EQ(json_error(R"({"dtype": "a\u001b[31m\n"})"),
            "plan.json: /dtype: \"a\\u001b[31m\\n\" holds a control character; leave it out");
  EXPECT_EQ(json_error(R"({"dtype": "a\n"})"),
            "plan.json: /dtype: 'a\\n' is unknown; write one of: fp16, bf16, fp8, mxfp8, nvfp4, "
            "tf32, fp32");
  const std::string error = json_error("{\"dtype\": \"" + std::string(1000, 'x') + "\"}");
  EXPECT_LT(error.size(), 200u);
}

// All 127 lists are the same when written and read, and "moe" is not repeated by its parts.
TEST(RecomputeChoice, EveryListIsReadAsItIsWritten) {
  const auto& names = enum_words<RecomputeModule>;
  for (unsigned subset = 1; subset < 1u << names.size(); ++subset) {
    std::string word = "selective";
    for (std::size_t i = 0; i < names.size(); ++i)
      if (subset >> i & 1u) word += (word.back() == 'e' && word.size() == 9 ? ":" : "+") + names[i];
    SCOPED_TRACE(word);
    const RecomputeChoice read = read_recompute(JsonValue::parse('"' + word + '"', "here"));
    EXPECT_EQ(read, read_recompute(JsonValue::parse('"' + recompute_text(read) + '"', "here")));
    const bool moe = subset >> static_cast<int>(RecomputeModule::moe) & 1u;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto module = static_cast<RecomputeModule>(i);
      const bool inside =
          module == RecomputeModule::moe_act || module == RecomputeModule::shared_experts;
      EXPECT_EQ(read.selects(module), (subset >> i & 1u) && !(moe && inside)) << names[i];
    }
  }
}

}  // namespace
}  // namespace orrery::plan_keys_test
