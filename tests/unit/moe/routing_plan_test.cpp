#include "sim/moe/routing_plan.hpp"

#include <gtest/gtest.h>

#include "sim/core/catalog.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::routing_plan_test {
namespace {

const Place at{"", "--moe-routing"};

TEST(RoutingPlan, TheCatalogIsRead) {
  const auto names = list_catalog("workloads/routing");
  EXPECT_GE(names.size(), 8u);
  for (const std::string& name : names) EXPECT_EQ(read_routing(name, at).name, name);
  EXPECT_TRUE(read_routing("uniform", at).even);
  EXPECT_FALSE(read_routing("drawn-uniform", at).even);
  EXPECT_TRUE(read_routing("zipf-1", at).statistical());
  const RoutingPlan trace = read_routing("example-trace", at, {4, 4, 16, 256, 2});
  ASSERT_TRUE(trace.trace);
  EXPECT_EQ(trace.trace->micro_batches, 2);
  EXPECT_FALSE(trace.statistical());
  EXPECT_EQ(read_routing("zipf-1-redundant", at).redundant_experts, 32);
}

TEST(RoutingPlan, AWordIsEnough) {
  const RoutingPlan zipf = read_routing("zipf:1.5", at);
  EXPECT_EQ(zipf.popularity.kind, PopularityKind::zipf);
  EXPECT_EQ(zipf.popularity.parameter, 1.5);
  EXPECT_EQ(read_routing("hot:0.9", at).popularity.parameter, 0.9);
  EXPECT_EQ(read_routing("bias", at).popularity.parameter, 0.04);
}

std::string refusal_of_word(const std::string& word) {
  return error_text([&] { read_routing(word, at); });
}

std::string refusal(const std::string& keys) {
  return error_text([&] {
    parse_routing(JsonValue::parse(
        "{\"schema\": \"orrery.routing/1\", \"name\": \"x\", " + keys + "}", "r.json"));
  });
}

TEST(RoutingPlan, WhatCannotBeMeantIsRefused) {
  EXPECT_EQ(refusal_of_word("zipf"),
            "--moe-routing: 'zipf' has no exponent; write it like zipf:1.2");
  EXPECT_EQ(refusal_of_word("hot:1.5"),
            "--moe-routing: 'hot:1.5' has no share of the tokens; write it like hot:0.9");
  EXPECT_EQ(refusal_of_word("bias:2"), "--moe-routing: 'bias:2': bias takes no number; write bias");
  EXPECT_EQ(refusal("\"seed\": 1"),
            "r.json: needs either 'popularity' or 'trace'; keep one of them");
  EXPECT_EQ(refusal("\"popularity\": \"zip\""),
            "r.json: /popularity: 'zip' is unknown; did you mean 'zipf'?");
  EXPECT_EQ(refusal("\"popularity\": \"hot\", \"share\": 0.5, \"exponent\": 1"),
            "r.json: /exponent: means nothing for 'hot'; leave it out");
  EXPECT_EQ(refusal("\"popularity\": \"uniform\", \"pad_to_capacity\": true"),
            "r.json: /pad_to_capacity: there is no capacity to pad to; give a capacity_factor");
  EXPECT_EQ(refusal("\"popularity\": \"uniform\", \"redundant_experts\": 4"),
            "r.json: /redundant_experts: are placed by load only; add \"placement\": \"balanced\"");
  EXPECT_EQ(refusal("\"trace\": \"none.jsonl\""),
            "none.jsonl: cannot be read; name a routing trace");
}

}  // namespace
}  // namespace orrery::routing_plan_test
