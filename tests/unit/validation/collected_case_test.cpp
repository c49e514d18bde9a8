// Measurements of inference as collections of them have it: the same case in this project's words.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/validation/serving_case.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::collected_case_test {
namespace {

std::string collected(const std::string& model, const std::string& deployment) {
  return R"({"id": "a", "source": {"title": "t", "locator": "l"}, "system": "dgx-h100",
             "gpus": 4, "model": )" +
         model + R"(, "deployment": )" + deployment +
         R"(, "workload": {"arrival": "closed", "isl": 1024, "osl": 128, "concurrency": 4},
             "measured": {"tpot_ms": 10.0}, "peers": {"BLIS": {"tpot_ms": 11.0}}})";
}

ServingCase read(const std::string& model, const std::string& deployment) {
  const JsonValue json = JsonValue::parse(collected(model, deployment), "cases.json");
  EXPECT_TRUE(is_serving_case(json));
  return read_serving_case(json);
}

const std::string qwen = R"({"name": "Qwen/Qwen3-32B"})";

TEST(CollectedCase, IsTheSameInBothForms) {
  const ServingCase theirs =
      read(qwen, R"({"engine": "vllm", "engine_version": "0.19.0", "tp": 4, "pp": 1,
                     "weight_dtype": "fp8", "kv_dtype": "auto", "max_batched_tokens": 4096,
                     "max_seqs": 64, "gpu_memory_fraction": 0.95, "chunked_prefill": true,
                     "prefix_caching": false, "flags": "vllm serve ...", "cuda_graphs": true})");
  const ServingCase ours = read_serving_case(JsonValue::parse(
      R"({"id": "a", "source": {}, "system": "dgx-h100", "gpus": 4, "model": "qwen3-32b",
          "engine": "vllm",
          "deployment": {"tp": 4, "pp": 1, "weights": "fp8", "budget": 4096, "max_seqs": 64,
                         "kv_share": 0.95, "chunked": true},
          "serving": {"prefix_caching": false},
          "workload": {"arrival": "closed", "isl": 1024, "osl": 128, "concurrency": 4},
          "measured": {"tpot_ms": 10.0}, "peers": {"BLIS": {"tpot_ms": 11.0}}})",
      "cases.json"));
  EXPECT_EQ(theirs.id, ours.id);
  EXPECT_EQ(theirs.system, ours.system);
  EXPECT_EQ(theirs.engine, ours.engine);
  EXPECT_EQ(theirs.gpus, ours.gpus);
  EXPECT_EQ(theirs.model.name, ours.model.name);
  EXPECT_EQ(theirs.measured, ours.measured);
  EXPECT_EQ(theirs.peers, ours.peers);
  EXPECT_TRUE(*theirs.workload == *ours.workload);
  EXPECT_TRUE(*theirs.serving == *ours.serving);
  const Deployment one = setup_of(theirs).deployment;
  const Deployment other = setup_of(ours).deployment;
  EXPECT_EQ(one.tp, other.tp);
  EXPECT_EQ(one.replicas, other.replicas);
  EXPECT_EQ(one.weights, other.weights);
  EXPECT_EQ(one.kv, other.kv);
  EXPECT_EQ(one.budget, other.budget);
  EXPECT_EQ(one.max_seqs, other.max_seqs);
  EXPECT_EQ(one.kv_share, other.kv_share);
  EXPECT_EQ(one.chunked, other.chunked);
}

TEST(CollectedCase, TheEngineIsTheOneOfItsTime) {
  const auto engine = [](const std::string& said) { return read(qwen, "{" + said + "}").engine; };
  EXPECT_EQ(engine(R"("engine": "vllm")"), "vllm");
  EXPECT_EQ(engine(R"("engine": "vllm", "engine_version": "0.14.0")"), "vllm");
  EXPECT_EQ(engine(R"("engine": "vllm", "engine_version": "0.13.2")"), "vllm-2025");
  EXPECT_EQ(engine(R"("engine": "vllm", "engine_version": "0.9", "async_scheduling": true)"),
            "vllm");
  EXPECT_EQ(engine(R"("engine": "vllm", "engine_version": "2024")"), "vllm-2024");
  EXPECT_EQ(engine(R"("engine": "trtllm", "engine_version": "2024")"), "trtllm-2024");
  EXPECT_EQ(engine(R"("engine": "trtllm", "engine_version": "1.0.0rc3")"), "trtllm-2025");
  EXPECT_EQ(engine(R"("engine": "trtllm", "engine_version": "1.1.0rc2")"), "trtllm");
  EXPECT_EQ(engine(R"("engine": "sglang", "engine_version": "0.5.6.post2")"), "sglang-2025");
  EXPECT_EQ(engine(R"("engine": "sglang")"), "sglang-2025");
  EXPECT_EQ(engine(R"("engine": "sglang", "engine_version": "0.5.9")"), "sglang");
  EXPECT_EQ(engine(R"("engine": "sglang", "engine_version": "0.5.10.post1")"), "sglang");
  EXPECT_EQ(engine(R"("engine": "vllm", "engine_version": "2023, static batches")"),
            "huggingface-2023");
}

TEST(CollectedCase, FormatsThatACheckpointsNameSays) {
  const std::string vllm = R"({"engine": "vllm", "dtype": "float16"})";
  const auto weights = [&](const std::string& name) {
    return read(R"({"name": ")" + name + "\"}", vllm).deployment.weights;
  };
  EXPECT_EQ(weights("RedHatAI/Qwen2.5-7B-Instruct-quantized.w8a8"), Dtype::int8);
  EXPECT_EQ(weights("Qwen/Qwen2.5-7B-Instruct"), Dtype::fp16);
  const ServingCase published = read(R"({"name": "openai/gpt-oss-20b"})", vllm);
  EXPECT_EQ(checkpoint_of(published.model, published.deployment).experts, Dtype::mxfp4);
}

TEST(CollectedCase, AnUnknownModelIsReadFromItsShape) {
  const Model dense = read(R"({"name": "of-ours", "layers": 28, "hidden": 4096, "heads": 16,
                               "kv_heads": 4, "head_dim": 256, "ffn": 16384, "vocab": 50400,
                               "gated": false, "window": 128, "window_every": 2})",
                           R"({"engine": "vllm"})")
                          .model;
  EXPECT_EQ(dense.layers, 28);
  EXPECT_EQ(dense.kv_heads, 4);
  EXPECT_FALSE(dense.gated);
  EXPECT_EQ(std::count(dense.layer_is_local.begin(), dense.layer_is_local.end(), true), 14);

  const Model sparse =
      read(R"({"name": "of-ours", "layers": 6, "hidden": 7168, "heads": 128, "kv_heads": 128,
               "head_dim": 192, "ffn": 18432, "vocab": 129280, "experts": 256, "top_k": 8,
               "moe_ffn": 2048, "shared_experts": 2, "dense_layers": 1, "moe_every": 2,
               "mla": {"q_lora": 1536, "kv_lora": 512, "nope": 128, "rope": 64, "v": 128}})",
           R"({"engine": "sglang"})")
          .model;
  ASSERT_TRUE(sparse.experts && sparse.latent);
  EXPECT_EQ(sparse.latent->q_rank, 1536);
  EXPECT_EQ(sparse.latent->kv_rank, 512);
  EXPECT_EQ(sparse.latent->rope_dim, 64);
  EXPECT_EQ(sparse.experts->shared_ffn, 2 * 2048);
  EXPECT_EQ(sparse.layer_has_experts, (std::vector<bool>{false, true, false, true, false, true}));
}

TEST(CollectedCase, RefusesWhatNoKeySays) {
  const std::string vllm = R"({"engine": "vllm"})";
  const auto why = [](const std::string& model, const std::string& deployment) {
    return error_text([&] { read(model, deployment); });
  };
  EXPECT_EQ(why(R"({"name": "nobody/knows-7b"})", vllm),
            "cases.json: /model/name: 'nobody/knows-7b' is no model of the catalog; give its "
            "shape, or name one of orrery list models");
  EXPECT_EQ(why(R"({"name": "x", "layers": 2, "linear_attention": "some"})", vllm),
            "cases.json: /model/linear_attention: such layers are not modelled; serve a model "
            "whose layers are alike");
  EXPECT_EQ(why(qwen, R"({"engine": "vllm", "tensor_parallel": 4})").substr(0, 69),
            "cases.json: /deployment: the key 'tensor_parallel' is unknown; write ");
  EXPECT_EQ(why(qwen, R"({"engine": "vllm", "weight_dtype": "int3"})"),
            "cases.json: /deployment/weight_dtype: 'int3' is unknown; did you mean 'int8'?");
}

}  // namespace
}  // namespace orrery::collected_case_test
