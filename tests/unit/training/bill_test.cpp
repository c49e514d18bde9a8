#include "sim/training/bill.hpp"

#include <gtest/gtest.h>

namespace orrery::bill_test {
namespace {

// Round prices: everything that is certain is a closed form.
Economics round_prices() {
  Economics economics;
  economics.rent_usd_per_gpu_hour = {1.0, 2.0};
  economics.server_usd_per_gpu = {10'000.0, 20'000.0};
  economics.server_watts_per_gpu = {500.0, 1000.0};
  economics.switch_usd = {30'000.0, 30'000.0};
  economics.switch_watts = {1000.0, 1000.0};
  economics.cable_usd = {1000.0, 1000.0};
  economics.switch_ports = 64;
  economics.switch_port = BytesPerSecond{50e9};
  economics.usd_per_kwh = {0.1, 0.1};
  economics.pue = {1.0, 1.5};
  economics.hardware_years = {4.0, 6.0};
  return economics;
}

System dgx(double nic_rate = 50e9) {
  System system;
  system.gpus_per_node = system.nvlink_domain = system.nics_per_node = 8;
  system.nic = BytesPerSecond{nic_rate};
  return system;
}

TEST(FabricParts, FatTreesOfSixtyFourPorts) {
  const Economics prices = round_prices();
  const auto parts = [&](int gpus) { return fabric_parts(dgx(), gpus, prices); };
  // A node needs none; one switch joins 64 ports; two levels 2 x 32^2 = 2,048; three 65,536.
  EXPECT_EQ(parts(8).switches, 0);
  EXPECT_EQ(parts(64).switches, 1);
  EXPECT_EQ(parts(64).cables, 64);
  EXPECT_EQ(parts(1024).switches, 32 + 16);  // 32 leaves with 32 ports up, 16 spines.
  EXPECT_EQ(parts(1024).cables, 2 * 1024);
  EXPECT_EQ(parts(2048).switches, 64 + 32);
  EXPECT_EQ(parts(65'536).switches, 2048 + 2048 + 1024);
  EXPECT_EQ(parts(65'536).cables, 3 * 65'536);
}

TEST(FabricParts, ANicTakesAsManyPortsAsItsSpeedNeeds) {
  const Economics prices = round_prices();
  EXPECT_EQ(fabric_parts(dgx(25e9), 2048, prices).switches, 48);
  EXPECT_EQ(fabric_parts(dgx(100e9), 512, prices).switches, 48);
}

TEST(FabricParts, RailsArePlanesOfTheirOwn) {
  System system = dgx();
  system.shape.layout = FabricLayout::rail_optimized;
  // 4,096 GPUs are 512 ports a rail: two levels of 16 + 8 switches each.
  EXPECT_EQ(fabric_parts(system, 4096, round_prices()).switches, 8 * 24);
}

TEST(Bill, FollowsFromStepTimeAndPrices) {
  Scenario scenario;
  scenario.system = dgx();
  scenario.plan.dp = 64;
  scenario.plan.gbs = 1000;
  scenario.plan.seq = 1000;
  // A million tokens a step of 36 s: 1,000 steps, ten hours, 640 GPU-hours.
  const Bill bill = bill_of(scenario, Seconds{36.0}, 1e9, round_prices());
  EXPECT_DOUBLE_EQ(bill.steps, 1000.0);
  EXPECT_DOUBLE_EQ(bill.time.si(), 36'000.0);
  EXPECT_DOUBLE_EQ(bill.rent_usd.low, 640.0);
  EXPECT_DOUBLE_EQ(bill.rent_usd.high, 1280.0);
  EXPECT_DOUBLE_EQ(bill.usd_per_step.low, 0.64);
  EXPECT_DOUBLE_EQ(bill.usd_per_trillion_tokens.low, 640'000.0);
  // 64 GPUs and one switch: 33 kW, or 65 kW at a PUE of 1.5.
  EXPECT_DOUBLE_EQ(bill.watts.low, 33'000.0);
  EXPECT_DOUBLE_EQ(bill.watts.high, 97'500.0);
  EXPECT_DOUBLE_EQ(bill.energy_kwh.low, 330.0);
  EXPECT_DOUBLE_EQ(bill.energy_usd.high, 97.5);
  EXPECT_DOUBLE_EQ(bill.hardware_usd.low, 640'000.0 + 30'000.0 + 64'000.0);
}

TEST(Bill, WhatHasNoPriceLeavesAGapAndNoMore) {
  Scenario scenario;
  scenario.system = dgx();
  scenario.plan.dp = 64;
  scenario.plan.gbs = scenario.plan.seq = 1000;
  Economics economics = round_prices();
  economics.rent_usd_per_gpu_hour = economics.usd_per_kwh = {};
  const Bill bill = bill_of(scenario, Seconds{36.0}, 1e9, economics);
  EXPECT_DOUBLE_EQ(bill.time.si(), 36'000.0);
  EXPECT_DOUBLE_EQ(bill.energy_kwh.low, 330.0);
  EXPECT_FALSE(bill.rent_usd.known());
  EXPECT_FALSE(bill.usd_per_trillion_tokens.known());
  EXPECT_FALSE(bill.energy_usd.known());
  EXPECT_EQ(bill.unknown_prices,
            (std::vector<std::string>{"rent_usd_per_gpu_hour", "usd_per_kwh"}));
}

TEST(Bill, APartOfAStepIsAStep) {
  Scenario scenario;
  scenario.plan.gbs = 1000;
  scenario.plan.seq = 1000;
  EXPECT_DOUBLE_EQ(bill_of(scenario, Seconds{1.0}, 1e6 + 1, round_prices()).steps, 2.0);
}

}  // namespace
}  // namespace orrery::bill_test
