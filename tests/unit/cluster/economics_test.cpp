#include "sim/cluster/economics.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "sim/core/catalog.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

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

// A cloud's quote is for its own system, whatever else has the same GPU.
TEST(Economics, AFileCountsForTheGpuOrTheSystemThatItNames) {
  const TemporaryFolder folder;
  const auto file = [&](const std::string& name, const std::string& keys) {
    std::ofstream{folder.path() / name} << R"({"schema": "orrery.economics/1", )" << keys << "}";
    return (folder.path() / name).string();
  };
  const std::string cloud = file("cloud.json", R"("system": "aws-p5", "rent_usd_per_gpu_hour": 4)");
  const std::string gpu = file("gpu.json", R"("gpu": "h100-sxm", "rent_usd_per_gpu_hour": 2)");
  const std::vector<PricedMachine> asked{{"h100-sxm", "dgx-h100"}, {"h100-sxm", "aws-p5"}};
  const auto rent = [&](const PricedMachine& of, const std::string& files) {
    return read_economics(of, files, asked).rent_usd_per_gpu_hour.low;
  };
  EXPECT_EQ(rent(asked[0], gpu + "," + cloud), 2.0);
  EXPECT_EQ(rent(asked[1], gpu + "," + cloud), 4.0);
  EXPECT_EQ(rent(asked[1], cloud + "," + gpu), 4.0);  // Of one machine before of its GPU.
  const std::string later = file("later.json", R"("gpu": "h100-sxm", "rent_usd_per_gpu_hour": 3)");
  EXPECT_EQ(rent(asked[0], gpu + "," + later), 3.0);
  EXPECT_EQ(rent(asked[0], later + "," + gpu), 2.0);
  EXPECT_EQ(price_files(asked[0], gpu + "," + cloud), std::vector{gpu});
  EXPECT_EQ(error_text([&] {
              read_economics({"h100-sxm", "dgx-h100"}, cloud);
            }),
            cloud +
                ": /system: holds prices of the system 'aws-p5', and what is asked about has "
                "dgx-h100; name that system, or leave the key out");
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
