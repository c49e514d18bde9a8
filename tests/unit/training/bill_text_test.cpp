#include <gtest/gtest.h>

#include <set>

#include "sim/cluster/system.hpp"
#include "sim/core/catalog.hpp"
#include "sim/training/training_text.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::bill_text_test {
namespace {

Bill ten_minutes() {
  Bill bill;
  bill.tokens = 1e9;
  bill.steps = 20.0;
  bill.time = Seconds{600.0};
  bill.hardware = {8, 1, 8, {1, 64}, {}};
  bill.gpus = 64;
  bill.domains = 8;
  return bill;
}

TEST(BillText, SaysWhichKeysWouldFillItsGaps) {
  Bill bill = ten_minutes();
  bill.unknown_prices = {"rent_usd_per_gpu_hour", "pue"};
  EXPECT_EQ(bill_text(bill),
            "Training on 1.00 billion tokens without interruption\n"
            "  time    10.0 minutes  20 steps\n"
            "  rent\n"
            "  to buy                8 nodes, 1 switch, 64 cables\n"
            "  energy\n"
            "Not known are rent_usd_per_gpu_hour, pue: --economics FILE with these keys\n"
            "fills the gaps.\n");
}

TEST(BillText, PowerIsSaidWhereItsPriceIsNot) {
  Bill bill = ten_minutes();
  bill.watts = {1e3, 2e3};
  bill.energy_kwh = {10.0, 20.0};
  EXPECT_NE(bill_text(bill).find("energy  10.0 to 20.0 kWh  drawing 1.00 to 2.00 kW\n"),
            std::string::npos)
      << bill_text(bill);
  EXPECT_EQ(bill_note(bill), "");
}

TEST(BillText, SaysWhyMoreIsBought) {
  Bill bill = ten_minutes();
  bill.hardware = {72, 18, 15, {48, 2160}, {}};
  bill.gpus = 1024;
  bill.domains = 16;
  EXPECT_EQ(
      bill_note(bill),
      "15 NVLink domains of 72 GPUs are bought for 1,024, as they are sold whole. The step was "
      "simulated on 16 of them, 64 GPUs in each, as schedulers place jobs.");
}

// The machines of a cloud are rented at prices that the range of their GPU need not hold.
TEST(BillText, SaysWhoseTheRentIs) {
  const std::set<std::string> clouds{"AWS", "Google Cloud"};
  std::set<std::string> seen;
  for (const std::string& name : list_catalog("topologies/systems")) {
    const System system = read_system(name, test_place);
    const bool of_cloud = name.rfind("aws-", 0) == 0 || name.rfind("gcp-", 0) == 0;
    EXPECT_EQ(of_cloud, clouds.count(system.provider) == 1) << name;
    EXPECT_EQ(!of_cloud, system.provider.empty()) << name;
    Bill bill = ten_minutes();
    bill.provider = system.provider;
    const bool said = bill_note(bill).find(system.provider + "'s own price") != std::string::npos;
    EXPECT_EQ(of_cloud, said) << name;
    if (of_cloud) seen.insert(system.provider);
  }
  EXPECT_EQ(seen, clouds);
}

}  // namespace
}  // namespace orrery::bill_text_test
