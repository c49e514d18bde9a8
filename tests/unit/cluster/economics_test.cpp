#include "sim/cluster/economics.hpp"

#include <gtest/gtest.h>

#include "sim/core/catalog.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::economics_test {
namespace {

JsonValue document(const std::string& keys) {
  return JsonValue::parse(R"({"schema": "orrery.economics/1", )" + keys + "}", "mine.json");
}

TEST(Economics, EveryRangeOfTheCatalogSaysWhereAndWhenItIsFrom) {
  const std::vector<std::string> names = list_catalog("topologies/economics");
  EXPECT_GE(names.size(), 9u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const JsonValue json = JsonValue::read_file(find_in_catalog("topologies/economics", name, {}));
    parse_economics(json, {});
    EXPECT_EQ(json.has("gpu") ? json.at("gpu").text() : "site", name);
    for (const std::string& key : json.keys()) {
      if (!json.at(key).is_object() || json.at(key).has("value")) continue;
      EXPECT_FALSE(json.at(key).at("source").text().empty()) << key;
      EXPECT_GE(json.at(key).at("date").text().size(), 4u) << key;
    }
  }
}

TEST(Economics, AGpuDrawsAtLeastItsOwnPower) {
  EXPECT_DOUBLE_EQ(read_economics("h100-sxm", "").server_watts_per_gpu.low, 700.0);
  EXPECT_DOUBLE_EQ(read_economics("h100-sxm", "").server_watts_per_gpu.high, 10'200.0 / 8);
}

TEST(Economics, ALaterDocumentWinsKeyByKey) {
  const Economics base = parse_economics(document(R"("pue": 1.2, "usd_per_kwh": 0.1)"), {});
  const Economics both =
      parse_economics(document(R"("usd_per_kwh": {"low": 0.05, "high": 0.2})"), base);
  EXPECT_DOUBLE_EQ(both.pue.high, 1.2);
  EXPECT_DOUBLE_EQ(both.usd_per_kwh.low, 0.05);
  EXPECT_DOUBLE_EQ(both.usd_per_kwh.high, 0.2);
  EXPECT_FALSE(both.switch_usd.known());
}

TEST(Economics, WhatCannotBeMeantIsRefused) {
  const auto error = [](const std::string& keys) {
    return error_text([&] { parse_economics(document(keys), {}); });
  };
  EXPECT_EQ(error(R"("pue": 0.9)"),
            "mine.json: /pue: 0.9 is out of range; write a number from 1 to 1000000000");
  EXPECT_EQ(error(R"("usd_per_kwh": {"low": 2, "high": 1})"),
            "mine.json: /usd_per_kwh: \"low\" is above \"high\"; exchange them");
  EXPECT_EQ(
      error(R"("rent_usd_per_hour": 2)"),
      "mine.json: the key 'rent_usd_per_hour' is unknown; did you mean 'rent_usd_per_gpu_hour'?");
}

}  // namespace
}  // namespace orrery::economics_test
