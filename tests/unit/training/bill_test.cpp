#include "sim/training/bill.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/cluster/fabric_plan.hpp"
#include "sim/core/catalog.hpp"
#include "tests/support/scenarios.hpp"

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

// The switches and cables of the topology that is simulated, wire by wire.
FabricParts counted(const System& system, int gpus, const Economics& prices) {
  const Topology topology = Topology::build(system, gpus);
  const FabricPlan& plan = topology.fabric();
  const double port = prices.switch_port.si();
  std::vector<double> ports(static_cast<std::size_t>(plan.switches()));
  std::int64_t cables = 0;
  const auto plug = [&](int at_switch, double rate) {
    ports[static_cast<std::size_t>(at_switch)] += rate / port;
  };
  const auto cables_of = [&](double rate) {
    return static_cast<std::int64_t>(std::ceil(rate / port - 1e-9));
  };
  for (int node = 0; node < plan.nodes(); ++node)
    for (int nic = 0; nic < plan.nics_per_node(); ++nic) {
      const int of_route = system.nics_per_node / plan.nics_per_node();  // Physical NICs.
      plug(plan.switch_of(node, nic), of_route * system.nic.si());
      cables += of_route * cables_of(system.nic.si());
    }
  for (std::size_t i = 0; i < plan.wires().size(); i += 2) {  // Both directions are one.
    const FabricWire& wire = plan.wires()[i];
    const double rate = wire.capacity.si() / system.network_efficiency;
    plug(wire.from, rate);
    plug(wire.to, rate);
    cables += cables_of(rate);
  }
  std::int64_t switches = 0;
  for (const double needed : ports)
    switches += std::max(1LL, std::llround(std::ceil(needed / prices.switch_ports - 1e-9)));
  return {switches, cables};
}

// All of a machine that exists needs what is described. A part of any needs no more, and less only
// of what is above the leaves; so do the cables.
TEST(FabricParts, AreThoseOfTheSimulatedTopology) {
  const Economics prices = round_prices();
  int whole = 0, parts_of = 0;
  for (const std::string& name : list_catalog("topologies/systems")) {
    System system = read_system(name, test_place);
    if (system.shape.layout == FabricLayout::single_switch) continue;
    system.link_overrides.clear();
    for (const int units : {2, 4, 16, 40, 128, 140}) {
      const int gpus = units * system.sold_together();
      if (system.max_gpus > 0 && gpus > system.max_gpus) continue;
      const FabricParts expected = counted(system, gpus, prices);
      const FabricParts parts = fabric_parts(system, gpus, prices);
      const bool as_described = gpus == system.max_gpus || parts.leaves == 0;
      if (as_described) {
        EXPECT_EQ(parts.switches, expected.switches) << name << ", " << gpus;
        EXPECT_EQ(parts.cables, expected.cables) << name << ", " << gpus;
      } else {
        EXPECT_LE(parts.leaves, parts.switches) << name << ", " << gpus;
        EXPECT_LE(parts.switches, expected.switches) << name << ", " << gpus;
        EXPECT_LE(parts.cables, expected.cables) << name << ", " << gpus;
      }
      (as_described ? whole : parts_of) += 1;
    }
  }
  EXPECT_GE(whole, 5);  // A dragonfly, and two machines that exist: rails, a fat tree.
  EXPECT_GE(parts_of, 12);
}

// Up to four units of 32 nodes with eight leaves each, a leaf with 32 links up: 4, 8, 12 and 16
// spines of 64 ports. NVIDIA's reference architecture of the DGX SuperPOD H100 (RA-11333-001, table
// 4) has 4, 8 and 16 of one, two and four units; of three it has 16, as its links spread evenly.
TEST(FabricParts, OfAPartOfASuperPod) {
  const System system = read_system("dgx-h100-superpod", test_place);
  for (const int units : {1, 2, 3, 4}) {
    const FabricParts parts = fabric_parts(system, units * 256, round_prices());
    EXPECT_EQ(parts.leaves, 8 * units);
    EXPECT_EQ(parts.switches, (8 + 4) * units);
    EXPECT_EQ(parts.cables, 2 * units * 256);
  }
  // Two nodes are on all eight leaves of the first unit, one is on none.
  EXPECT_EQ(fabric_parts(system, 16, round_prices()).switches, 8 + 4);
  EXPECT_EQ(fabric_parts(system, 16, round_prices()).cables, 16 + 256);
  EXPECT_EQ(fabric_parts(system, 8, round_prices()).switches, 0);
}

// Four nodes of 8 NICs are on one leaf; L leaves with 16 links up need ceil(16 L / 64) spines.
TEST(FabricParts, SpinesAreAsManyAsLeavesNeed) {
  const System system = read_system("hgx-h100-leaf-spine-2to1", test_place);
  for (const int nodes : {2, 4, 5, 8, 20, 64, 128}) {
    const FabricParts parts = fabric_parts(system, 8 * nodes, round_prices());
    const int leaves = (nodes + 3) / 4;
    EXPECT_EQ(parts.leaves, leaves);
    EXPECT_EQ(parts.switches, leaves + (leaves > 1 ? (16 * leaves + 63) / 64 : 0));
    EXPECT_EQ(parts.cables, 8 * nodes + (leaves > 1 ? 16 * leaves : 0));
  }
}

// 56 leaves, 80 spines and 28 cores are 140 nodes; a row of 20 is one leaf and two spines of each
// rail without cores, as each rail is a pod of its own.
TEST(FabricParts, OfAPartOfAFatTree) {
  const System system = read_system("dgx-a100-superpod", test_place);
  EXPECT_EQ(fabric_parts(system, 1120, round_prices()).switches, 56 + 80 + 28);
  std::int64_t last = 0;
  for (int rows = 1; rows <= 7; ++rows) {
    const FabricParts parts = fabric_parts(system, 160 * rows, round_prices());
    EXPECT_EQ(parts.leaves, 8 * rows);
    // Ten spines and 28 cores for seven rows.
    const int spines = 8 * ((10 * rows + 6) / 7), cores = 4 * rows;
    EXPECT_EQ(parts.switches, parts.leaves + spines + cores) << rows;
    EXPECT_GT(parts.switches, last);
    last = parts.switches;
  }
}

// Four nodes' 32 NICs and two cables to each of eight spines: 48 of 64 ports. 32 leaves have
// 8 x 2 x 32 cables up, on eight spines of 64 ports, half as many as their 1,024 NICs.
TEST(FabricParts, ATwoToOneFabricSavesHalfOfTheCablesUp) {
  const System system = read_system("hgx-h100-leaf-spine-2to1", test_place);
  const FabricParts parts = fabric_parts(system, 1024, round_prices());
  EXPECT_EQ(parts.switches, 32 + 8);
  EXPECT_EQ(parts.cables, 1024 + 512);
}

TEST(FabricParts, OversubscriptionNeverCostsMore) {
  const Economics prices = round_prices();
  for (const std::string& name : list_catalog("topologies/systems")) {
    System system = read_system(name, test_place);
    if (system.shape.layout == FabricLayout::single_switch) continue;
    const FabricShape full = system.shape;
    double last = 1e300;
    for (const double factor : {0.5, 1.0, 2.0, 4.0, 8.0}) {
      system.shape.uplink = full.uplink / factor;
      system.shape.core_uplink = full.core_uplink / factor;
      system.shape.global_link = full.global_link / factor;
      system.shape.local_link = full.local_link / factor;
      const double usd = hardware_for(system, 16 * system.sold_together(), prices).usd.high;
      EXPECT_LE(usd, last) << name << " " << factor;
      last = usd;
    }
  }
}

TEST(Hardware, MoreGpusNeverCostLess) {
  const Economics prices = round_prices();
  for (const std::string& name : list_catalog("topologies/systems")) {
    const System system = read_system(name, test_place);
    double last = 0.0;
    for (int gpus = 1; gpus <= (system.max_gpus > 0 ? system.max_gpus : 40'000);
         gpus += 1 + gpus / 50) {
      // A job may fill domains in part, which are bought whole.
      const Hardware hardware = hardware_for(filled_evenly(system, gpus), gpus, prices);
      EXPECT_GE(hardware.gpus(), gpus) << name;
      EXPECT_LT(hardware.gpus(), gpus + system.nvlink_domain) << name << ", " << gpus;
      EXPECT_GE(hardware.usd.low, last) << name << ", " << gpus;
      last = hardware.usd.low;
    }
  }
}

// 13 domains of 72 hold 936 GPUs, and 14 hold 1,008; the job of 1,000 lies on 25 x 40.
TEST(Hardware, IsSoldInWholeDomains) {
  const System system = read_system("gb200-nvl72", test_place);
  const Economics prices = round_prices();
  for (const int gpus : {937, 1000, 1008}) {
    const Hardware hardware = hardware_for(filled_evenly(system, gpus), gpus, prices);
    EXPECT_EQ(hardware.units, 14);
    EXPECT_EQ(hardware.units_text(), "14 NVLink domains");
    // 1,008 ports of 400 Gb/s are two levels: 1,008 x 3 / 64 switches, 2 x 1,008 cables.
    EXPECT_DOUBLE_EQ(hardware.usd.low, 1008 * 10'000.0 + 48 * 30'000.0 + 2016 * 1000.0);
  }
  EXPECT_EQ(hardware_for(system, 72, prices).usd.low, 720'000.0);
  EXPECT_EQ(hardware_for(dgx(), 9, prices).units_text(), "2 nodes");
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
  EXPECT_DOUBLE_EQ(bill.hardware.usd.low, 640'000.0 + 30'000.0 + 64'000.0);
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
