#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/serving/deployment.hpp"

namespace orrery::deployment_file_test {
namespace {

using testing::ElementsAre;
using testing::Pair;

auto options_of(const std::string& text) {
  return deployment_options_of(JsonValue::parse(text, "d.json"));
}
std::string refusal(const std::string& text) {
  try {
    options_of(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(DeploymentFile, SaysWhatOptionsWould) {
  EXPECT_THAT(
      options_of(R"({"schema": "orrery.deployment/1", "router": "prefix", "kv": "fp8",
                             "gpus": 8, "tp": 2, "engine": "vllm", "model": "qwen3-32b",
                             "chunked": false, "kv_share": 0.85, "prefix_cache": false})"),
      ElementsAre(Pair("model", "qwen3-32b"), Pair("engine", "vllm"), Pair("gpus", "8"),
                  Pair("tp", "2"), Pair("kv", "fp8"), Pair("kv_share", "0.85"),
                  Pair("chunked", "false"), Pair("prefix-cache", "off"), Pair("router", "prefix")));
}

TEST(DeploymentFile, ItsModelIsNamedByTheFile) {
  EXPECT_THAT(options_of(R"({"schema": "orrery.deployment/1", "model": {"name": "own"}})"),
              ElementsAre(Pair("model", "d.json")));
}

TEST(DeploymentFile, PoolsAreLists) {
  EXPECT_THAT(options_of(R"({"schema": "orrery.deployment/1", "prefill": {"replicas": 2, "tp": 4},
                             "decode": {"tp": 8}})"),
              ElementsAre(Pair("prefill", "tp=4,replicas=2"), Pair("decode", "tp=8")));
}

TEST(DeploymentFile, MistakesAreNamedByTheirPlace) {
  const std::string head = R"({"schema": "orrery.deployment/1", )";
  EXPECT_EQ(refusal(R"({"tp": 2})"),
            "d.json: is no deployment; give a file of schema orrery.deployment/1, as orrery import "
            "server writes it");
  EXPECT_EQ(refusal(head + R"("tq": 2})"), "d.json: the key 'tq' is unknown; did you mean 'tp'?");
  EXPECT_EQ(refusal(head + R"("tp": 0})"),
            "d.json: /tp: 0 is out of range; write a whole number from 1 to 1024");
  EXPECT_EQ(refusal(head + R"("prefill": {"tp": 2}})"),
            "d.json: has prefill, but no decode; say both pools");
  EXPECT_EQ(refusal(head + R"("prefill": {"tq": 2}, "decode": {}})"),
            "d.json: /prefill/tq: 'tq' is no key of a deployment; did you mean 'tp'?");
}

}  // namespace
}  // namespace orrery::deployment_file_test
