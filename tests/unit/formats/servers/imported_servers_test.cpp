#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/text_file.hpp"
#include "sim/formats/servers/server_reader.hpp"
#include "sim/serving/deployment.hpp"
#include "tests/unit/calibration/sample.hpp"

namespace orrery::imported_servers_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Set = std::map<std::string, std::string>;

std::string file(const std::string& name) {
  return read_text_file(std::string{ORRERY_TEST_SOURCE} + "/tests/unit/formats/servers/data/" +
                        name);
}

ImportedRun run_of(const std::string& text, Set set = {}) {
  return import_servers({{text, "run.sh"}},
                        {"run", std::nullopt, std::nullopt, std::move(set), {}});
}

// "model=... tp=2 ...", as orrery serve takes them; the checkpoint is in a test of its own.
std::string words_of(const ImportedRun& run) {
  std::string all;
  for (const auto& [name, value] : deployment_options_of(JsonValue::parse(run.json, "run.json")))
    if (name != "checkpoint") all += (all.empty() ? "" : " ") + name + "=" + value;
  return all;
}
std::string words_of(const std::string& text, Set set = {}) {
  return words_of(run_of(text, std::move(set)));
}
std::string refusal(const std::string& text, Set set = {}) {
  return refusal_of([&] { run_of(text, std::move(set)); });
}

TEST(ImportedServers, ALoopOfServersIsReplicas) {
  const ImportedRun run = run_of(file("vllm_four.sh"));
  EXPECT_EQ(words_of(run),
            "model=llama3.1-70b engine=vllm gpus=8 tp=2 pp=1 replicas=4 weights=fp8 kv=fp8 "
            "max_seqs=256 max_length=16384 kv_share=0.92 prefix-cache=off");
  EXPECT_THAT(run.notes, IsEmpty());
}

TEST(ImportedServers, VariablesOfTheScriptAreSetOutside) {
  EXPECT_THAT(words_of(file("vllm_four.sh"), {{"MODEL", "Qwen/Qwen2.5-72B-Instruct-AWQ"}}),
              HasSubstr("model=qwen2.5-72b"));
  EXPECT_THAT(words_of(file("vllm_four.sh"), {{"max_num_seqs", "64"}}), HasSubstr("max_seqs=64"));
}

TEST(ImportedServers, ExpertsOverCopiesOfAttentionAndDrafts) {
  const ImportedRun run = run_of(file("vllm_experts.sh"), {{"accepted", "0.8/0.5"}});
  EXPECT_EQ(words_of(run),
            "model=deepseek-v3 engine=vllm gpus=8 tp=1 pp=1 dp=8 ep=8 moe_tp=1 eplb=true "
            "replicas=1 weights=fp8_block experts=fp8_block kv=bf16 max_length=163840 "
            "speculate=mtp:2@0.8/0.5");
}

// max_position_embeddings of the checkpoint, not of the model of its shape.
TEST(ImportedServers, ChatModelsHaveTheirOwnLength) {
  const auto length = [](const std::string& model) {
    const std::string words = words_of("vllm serve " + model + "\n");
    const std::size_t at = words.find("max_length=") + 11;
    return words.substr(at, words.find(' ', at) - at);
  };
  EXPECT_EQ(length("Qwen/Qwen2.5-14B-Instruct"), "32768");
  EXPECT_EQ(length("Qwen/Qwen2.5-14B"), "131072");
  EXPECT_EQ(length("Qwen/Qwen3-30B-A3B-Instruct-2507"), "262144");
  EXPECT_EQ(length("Qwen/Qwen3-235B-A22B-Thinking-2507-FP8"), "262144");
  EXPECT_EQ(length("Qwen/Qwen3-30B-A3B"), "40960");
  EXPECT_EQ(read_model("Qwen/Qwen2.5-7B-Instruct", {}).max_sequence, 32768);
}

TEST(ImportedServers, DraftsWithoutARateAreRefused) {
  EXPECT_EQ(refusal(file("vllm_experts.sh")),
            "run.sh: line 4: speculative_config.num_speculative_tokens drafts tokens, and how many "
            "are accepted depends on what is asked; give it as the engine logs it: --accepted 0.7, "
            "or --accepted 0.8/0.6/0.4 by position");
}

// SGLang counts ranks, tokens of a part and requests for all copies of attention together; the
// second command of the decode pool is a further node of the first.
TEST(ImportedServers, PoolsOfSglang) {
  EXPECT_EQ(words_of(file("sglang_pools.sh")),
            "model=deepseek-v3 engine=sglang "
            "prefill=tp=1,pp=1,dp=8,ep=8,moe_tp=1,replicas=1,weights=fp8_block,experts=fp8_block,"
            "kv=bf16,budget=8192,max_seqs=128,max_length=163840,kv_share=0.85 "
            "decode=tp=1,pp=1,dp=16,ep=16,moe_tp=1,replicas=1,weights=fp8_block,experts=fp8_block,"
            "kv=bf16,max_seqs=128,max_length=163840 prefix-cache=off router=round-robin");
}

TEST(ImportedServers, DynamosWorkersAndItsRouter) {
  EXPECT_EQ(words_of(file("dynamo_vllm.sh")),
            "model=qwen3-32b engine=vllm prefill=tp=2,pp=1,replicas=2,weights=fp8_block,kv=bf16,"
            "max_length=40960 "
            "decode=tp=4,pp=1,replicas=1,weights=fp8_block,kv=bf16,max_length=40960 "
            "router=prefix");
}

// The file of settings lies in the script, as a here-document, and wins over the flags.
TEST(ImportedServers, SettingsOfTensorRtLlmFromAHereDocument) {
  const ImportedRun run = run_of(file("trtllm.sh"), {{"TP", "2"}});
  EXPECT_EQ(words_of(run),
            "model=gpt-oss-120b engine=trtllm gpus=2 tp=2 pp=1 dp=1 ep=1 moe_tp=2 replicas=1 "
            "weights=bf16 experts=mxfp4 kv=fp8 budget=20000 max_seqs=128 max_length=131072 "
            "kv_share=0.85 "
            "prefix-cache=off");
  EXPECT_THAT(run.notes,
              ElementsAre("openai/gpt-oss-120b is taken to be in bf16, experts in mxfp4, "
                          "by its publisher's config.json",
                          "stream_interval sends several tokens at a time; ITL is "
                          "priced token by token"));
}

TEST(ImportedServers, AFileOfSettingsThatTheUserNames) {
  const RecipeAnswers answers{"run", std::nullopt, std::nullopt, {}, {}};
  const RecipeFile script{"trtllm-serve Qwen/Qwen3-235B-A22B --extra_llm_api_options /opt/x.yaml",
                          "run.sh"};
  EXPECT_EQ(words_of(import_servers({script,
                                     {"tensor_parallel_size: 8\nenable_attention_dp: true\n"
                                      "moe_expert_parallel_size: 4\n",
                                      "mine/x.yaml"}},
                                    answers)),
            "model=qwen3-235b-a22b engine=trtllm gpus=8 tp=1 pp=1 dp=8 ep=4 moe_tp=2 replicas=1 "
            "weights=bf16 experts=bf16 kv=bf16 max_length=40960");
  EXPECT_EQ(refusal_of([&] { import_servers({script}, answers); }),
            "run.sh: names /opt/x.yaml, which is not there; name it too: orrery import server "
            "run.sh x.yaml");
}

TEST(ImportedServers, CopiesWithoutExpertsAreReplicas) {
  EXPECT_EQ(words_of("vllm serve meta-llama/Llama-3.1-8B-Instruct -dp 4 -tp=2 --dtype half\n"),
            "model=llama3.1-8b engine=vllm gpus=8 tp=2 pp=1 replicas=4 weights=fp16 kv=fp16 "
            "max_length=131072");
  EXPECT_EQ(words_of("sglang serve --model-path Qwen/Qwen3-8B --dp 2\n"),
            "model=qwen3-8b engine=sglang gpus=2 tp=1 pp=1 replicas=2 weights=bf16 kv=bf16 "
            "max_length=40960");
  EXPECT_EQ(words_of("sglang serve --model-path Qwen/Qwen3-8B --enable-mixed-chunk\n"),
            "model=qwen3-8b engine=sglang gpus=1 tp=1 pp=1 replicas=1 weights=bf16 kv=bf16 "
            "max_length=40960 mixed=true");
}

TEST(ImportedServers, TheIntervalOfReceivingIsOfOneAttentionRank) {
  const std::string command =
      "sglang serve --model-path Qwen/Qwen3-30B-A3B --tp 4 --scheduler-recv-interval ";
  EXPECT_THAT(words_of(command + "30\n"), testing::HasSubstr("receive_interval=30"));
  EXPECT_THAT(words_of(command + "0\n"), testing::Not(testing::HasSubstr("receive_interval")));
  EXPECT_THAT(words_of(command + "30 --dp 4 --enable-dp-attention\n"),
              testing::Not(testing::HasSubstr("receive_interval=")));
}

TEST(ImportedServers, TheRatioOfWindowsIsOfCompressedAttention) {
  const std::string flag = " --tp 8 --swa-full-tokens-ratio ";
  const std::string v4 = "sglang serve --model-path deepseek-ai/DeepSeek-V4-Flash" + flag;
  EXPECT_THAT(words_of(v4 + "0.075\n"), testing::HasSubstr("window_ratio=0.075"));
  EXPECT_THAT(error_text([&] { words_of(v4 + "1.5\n"); }),
              testing::HasSubstr("write a ratio from 0.001 to 1"));
  EXPECT_THAT(words_of("sglang serve --model-path openai/gpt-oss-120b" + flag + "0.5\n"),
              testing::Not(testing::HasSubstr("window_ratio")));
}

// The recipe of DeepSeek-V4 Pro on eight B200 (SGLang's cookbook): the chunk is of all ranks.
TEST(ImportedServers, PromptsOfAttentionRanksBeginTogether) {
  const std::string command =
      "sglang serve --model-path deepseek-ai/DeepSeek-V4-Pro --tp 8 --dp 8 --enable-dp-attention "
      "--moe-a2a-backend megamoe --mem-fraction-static 0.835 --chunked-prefill-size 65536";
  EXPECT_THAT(words_of(command + "\n"), testing::Not(testing::HasSubstr("prefill_delay")));
  const std::string delayed = words_of(command + " --enable-prefill-delayer\n");
  EXPECT_THAT(delayed, testing::HasSubstr("budget=8192"));
  EXPECT_THAT(delayed, testing::HasSubstr("prefill_delay=30"));
  EXPECT_THAT(words_of(command + " --enable-prefill-delayer --prefill-delayer-max-delay-passes 12"
                                 "\n"),
              testing::HasSubstr("prefill_delay=12"));
  const std::string pooled = command + " --enable-prefill-delayer --disaggregation-mode ";
  EXPECT_THAT(words_of(pooled + "prefill\n" + pooled + "decode\n"),
              testing::Not(testing::HasSubstr("prefill_delay=")));
}

// Flags of several values (argparse's nargs) hold no model.
TEST(ImportedServers, FlagsOfSeveralNumbers) {
  for (const char* command :
       {"sglang serve --model-path Qwen/Qwen3-8B --cuda-graph-bs 1 2 4 --tp 2\n",
        "sglang serve --cuda-graph-bs 1 2 4 --tp 2 --model-path Qwen/Qwen3-8B\n",
        "vllm serve Qwen/Qwen3-8B --cuda-graph-sizes 1 2 4 --tensor-parallel-size 2\n"})
    EXPECT_THAT(words_of(command),
                testing::AllOf(testing::HasSubstr("model=qwen3-8b "), testing::HasSubstr("tp=2")))
        << command;
  EXPECT_THAT(words_of("vllm serve --tensor-parallel-size 2 Qwen/Qwen3-8B\n"),
              testing::HasSubstr("model=qwen3-8b "));
}

TEST(ImportedServers, NestedFlagsAndSwitchesBeforeTheModel) {
  EXPECT_EQ(words_of("python -m vllm.entrypoints.openai.api_server --enable-prefix-caching "
                     "--model=Qwen/Qwen3-8B --speculative-config.method ngram "
                     "--speculative-config.num_speculative_tokens 3\n",
                     {{"accepted", "0.4"}}),
            "model=qwen3-8b engine=vllm gpus=1 tp=1 pp=1 replicas=1 weights=bf16 kv=bf16 "
            "max_length=40960 speculate=ngram:3@0.4");
  EXPECT_THAT(words_of("vllm serve --trust-remote-code Qwen/Qwen3-8B\n"),
              HasSubstr("model=qwen3-8b"));
}

TEST(ImportedServers, UnknownFlagsAreReportedOrRefused) {
  EXPECT_THAT(run_of("vllm serve Qwen/Qwen3-8B --some-new-flag 3\n").notes,
              ElementsAre("not read: some_new_flag"));
  EXPECT_EQ(refusal("vllm serve Qwen/Qwen3-8B --enable-lora\n"),
            "run.sh: line 1: enable_lora serves LoRA adapters, which are not modelled; leave it "
            "out: --set enable_lora=0");
  EXPECT_EQ(refusal("echo hello\n"),
            "run.sh: starts no server; give a script with vllm serve, sglang.launch_server, "
            "trtllm-serve or Dynamo's workers");
  EXPECT_EQ(refusal("vllm serve acme/Own-9B\n"),
            "run.sh: line 1: model is acme/Own-9B, a model that is not known; give its shape: "
            "--model NAME or a config.json");
  EXPECT_EQ(refusal("vllm serve Qwen/Qwen3-8B -q gguf\n"),
            "run.sh: line 1: q is 'gguf', a format that is not known here; write the nearest: fp8, "
            "modelopt_fp4, mxfp4, awq, as --set quantization=fp8");
  EXPECT_EQ(refusal("vllm serve Qwen/Qwen3-8B -tp $TP\n"),
            "run.sh: line 1: tp is $TP, which the script does not say; give it: --set TP=N");
  EXPECT_EQ(refusal("vllm serve Qwen/Qwen3-8B\nvllm serve Qwen/Qwen3-8B -tp 2\n"),
            "run.sh: starts servers that differ: "
            R"({"tp":1,"pp":1,"weights":"bf16","kv":"bf16","max_length":40960} and )"
            R"({"tp":2,"pp":1,"weights":"bf16","kv":"bf16","max_length":40960}; give )"
            "a script that starts one of them");
  EXPECT_EQ(refusal("python -m sglang.launch_server --model Qwen/Qwen3-8B "
                    "--disaggregation-mode prefill\n"),
            "run.sh: starts no server that goes on with the prompts; give a script that starts "
            "both pools, or neither");
}

// vLLM expands doubly quantised scales when it loads them, SGLang keeps them.
TEST(ImportedServers, BitsandbytesIsNf4) {
  EXPECT_THAT(words_of("vllm serve Qwen/Qwen3-8B --quantization bitsandbytes\n"),
              HasSubstr("weights=nf4 "));
  EXPECT_THAT(words_of("vllm serve unsloth/Qwen3-8B-bnb-4bit\n"), HasSubstr("weights=nf4 "));
  EXPECT_THAT(words_of("python -m sglang.launch_server --model Qwen/Qwen3-8B "
                       "--quantization bitsandbytes\n"),
              HasSubstr("weights=nf4_dq "));
}

// Also of a file that answers to its own length.
TEST(ImportedServers, TheLongestRequestIsKept) {
  const std::string vllm = "vllm serve meta-llama/Llama-3.1-8B-Instruct ";
  struct Case {
    std::string command, length;
  };
  for (const Case& one : {Case{vllm, "131072"},
                          {vllm + "--max-model-len 20000", "20000"},
                          {vllm + "--max-model-len 16k", "16000"},
                          {vllm + "--max-model-len=16K", "16384"},
                          {"sglang serve --model-path Qwen/Qwen3-8B --context-length 8192", "8192"},
                          {"sglang serve --model-path Qwen/Qwen3-8B", "40960"},
                          {"trtllm-serve Qwen/Qwen3-8B --max_seq_len 4096", "4096"},
                          {"vllm serve moonshotai/Kimi-K2-Thinking -tp 8", "262144"}})
    EXPECT_THAT(words_of(one.command + "\n"), HasSubstr(" max_length=" + one.length))
        << one.command;
  EXPECT_THAT(words_of(vllm + "--max-model-len auto\n"), testing::Not(HasSubstr("max_length")));
  EXPECT_THAT(run_of(vllm + "--max-model-len 200000\n").notes,
              ElementsAre("max_model_len is longer than the model's 131,072 tokens, with which "
                          "engines start only if they are told so"));
  EXPECT_THAT(words_of(vllm + "--max-num-batched-tokens 16K\n"), HasSubstr("budget=16384"));
  EXPECT_EQ(refusal(vllm + "--max-model-len many\n"),
            "run.sh: line 1: max_model_len is 'many'; write a number of tokens: 32768, 32k or 32K");
}

// An engine of then takes 16 bits where one of now takes what the checkpoint names.
TEST(ImportedServers, KeysAndValuesAreInTheCheckpointsFormat) {
  const std::string command = "vllm serve nvidia/Llama-3.1-8B-Instruct-FP8 ";
  EXPECT_THAT(words_of(command + "\n"), HasSubstr("kv=fp8"));
  EXPECT_THAT(words_of(command + "--kv-cache-dtype bfloat16\n"), HasSubstr("kv=bf16"));
  EXPECT_THAT(words_of(command + "\n", {{"engine", "vllm-2025"}}), HasSubstr("kv=bf16"));
  EXPECT_THAT(words_of("trtllm-serve nvidia/Llama-3.1-8B-Instruct-FP8\n"), HasSubstr("kv=fp8"));
  EXPECT_THAT(run_of(command + "\n").notes,
              ElementsAre("nvidia/Llama-3.1-8B-Instruct-FP8 is taken to be in fp8, keys and values "
                          "in fp8, by its name, and hf_quant_config.json of NVIDIA's checkpoints"));
}

TEST(ImportedServers, EntriesOfCompressedAttentionAreInFp8) {
  for (const std::string command :
       {"python -m sglang.launch_server --model-path ", "vllm serve ", "trtllm-serve "})
    EXPECT_THAT(
        words_of(command + "deepseek-ai/DeepSeek-V4-Flash\n"),
        AllOf(HasSubstr("weights=fp8_block"), HasSubstr("experts=mxfp4"), HasSubstr("kv=fp8")))
        << command;
}

TEST(ImportedServers, VllmsReleaseDecidesItsProfile) {
  const auto image = [](const std::string& tag) {
    return "docker run --gpus all vllm/vllm-openai:" + tag + " --model Qwen/Qwen3-8B\n";
  };
  EXPECT_THAT(words_of(image("v0.6.3")), HasSubstr("engine=vllm-2024"));
  EXPECT_THAT(words_of(image("v0.11.0")), HasSubstr("engine=vllm-2025"));
  EXPECT_THAT(words_of(image("v0.14.1")), HasSubstr("engine=vllm "));
  EXPECT_THAT(words_of(image("latest")), HasSubstr("engine=vllm "));
  EXPECT_THAT(words_of("pip install vllm==0.7.3\nvllm serve Qwen/Qwen3-8B\n"),
              HasSubstr("engine=vllm-2024"));
  EXPECT_THAT(words_of(image("v0.6.3"), {{"engine", "vllm"}}), HasSubstr("engine=vllm "));
  EXPECT_THAT(run_of(image("v0.6.3")).notes,
              ElementsAre("vLLM 0.6 is priced as vllm-2024; of the newest: --engine vllm"));
}

}  // namespace
}  // namespace orrery::imported_servers_test
