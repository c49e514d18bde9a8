// SimGrid reads the platform that `orrery export simgrid` writes, and finds the same machine in it:
// hosts, links, the route of every pair, and the time of a transfer.
#include "sim/formats/simgrid/simgrid_platform.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <simgrid/s4u.hpp>

#include "sim/cluster/topology.hpp"
#include "tests/support/fabrics.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::simgrid_platform_test {
namespace {

namespace sg4 = simgrid::s4u;

std::string host_name(const System& system, int gpu) {
  return "node" + std::to_string(gpu / system.gpus_per_node) + ".gpu" +
         std::to_string(gpu % system.gpus_per_node);
}

void compare_machines(const System& system, int gpus) {
  SCOPED_TRACE(system.name);
  const TemporaryFolder folder;
  const std::string file = folder.path() / "platform.xml";
  std::ofstream{file} << simgrid_platform(system, gpus);
  const Topology topology = Topology::build(system, gpus);

  static char name[] = "test", quiet[] = "--log=root.thresh:error";
  static char* arguments[] = {name, quiet, nullptr};
  int count = 2;
  sg4::Engine engine{&count, arguments};
  for (const char* setting : {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0",
                              "surf/precision:1e-11"})
    sg4::Engine::set_config(setting);
  engine.load_platform(file);
  engine.seal_platform();
  ASSERT_EQ(engine.get_host_count(), static_cast<std::size_t>(gpus));
  for (int gpu = 0; gpu < gpus; ++gpu)
    EXPECT_DOUBLE_EQ(engine.host_by_name(host_name(system, gpu))->get_speed(),
                     topology.gpu_speed(Rank{gpu}) * system.gpu.peak_16bit.si());
  for (int from = 0; from < gpus; ++from)
    for (int to = 0; to < gpus; ++to) {
      if (from == to) continue;
      std::vector<sg4::Link*> links;
      double latency = 0.0;
      engine.host_by_name(host_name(system, from))
          ->route_to(engine.host_by_name(host_name(system, to)), links, &latency);
      const std::vector<LinkId> expected = topology.route(Rank{from}, Rank{to});
      ASSERT_EQ(links.size(), expected.size()) << from << " to " << to;
      for (std::size_t i = 0; i < links.size(); ++i) {
        EXPECT_EQ(links[i]->get_name(), topology.name(expected[i]));
        EXPECT_DOUBLE_EQ(links[i]->get_bandwidth(), topology.link(expected[i]).capacity.si());
      }
      EXPECT_NEAR(latency, topology.latency(Rank{from}, Rank{to}).si(), 1e-15);
    }

  // A transfer that is alone takes its latency, and its bytes over the narrowest link.
  const double bytes = 1e9, begin = sg4::Engine::get_clock();
  double narrowest = 1e300;
  for (const LinkId link : topology.route(Rank{0}, Rank{gpus - 1}))
    narrowest = std::min(narrowest, topology.link(link).capacity.si());
  const sg4::CommPtr comm = sg4::Comm::sendto_async(
      engine.host_by_name(host_name(system, 0)), engine.host_by_name(host_name(system, gpus - 1)),
      static_cast<std::uint64_t>(bytes));
  engine.run();
  EXPECT_NEAR(sg4::Engine::get_clock() - begin,
              topology.latency(Rank{0}, Rank{gpus - 1}).si() + bytes / narrowest,
              1e-9 * bytes / narrowest);
}

// SimGrid reads one platform file in a process.
void expect_the_same_machine(const System& system, int gpus) {
  EXPECT_EXIT(
      {
        compare_machines(system, gpus);
        std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "")
      << system.name;
}

TEST(SimgridPlatform, IsTheSameMachine) {
  for (const char* name : {"dgx-h100", "gb200-nvl72", "dgx-1-v100-cube-mesh", "rtx-pro-6000-pcie",
                           "hgx-h100-leaf-spine-2to1", "hgx-h100-dragonfly"}) {
    const System system = read_system(name, {"test", ""});
    expect_the_same_machine(system, system.max_gpus > 0 ? std::min(system.max_gpus, 24) : 24);
  }
  expect_the_same_machine(rail_optimized(2, 2, 1e9), 16);
  expect_the_same_machine(ring_of_switches(4, 4e9), 16);
}

}  // namespace
}  // namespace orrery::simgrid_platform_test
