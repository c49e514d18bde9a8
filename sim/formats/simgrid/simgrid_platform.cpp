#include "sim/formats/simgrid/simgrid_platform.hpp"

#include <cassert>
#include <charconv>

#include "sim/cluster/topology.hpp"
#include "sim/core/quoting.hpp"

namespace orrery {
namespace {

// The shortest text that is read back as the same number.
std::string exact(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string host_name(const System& system, int gpu) {
  return "node" + std::to_string(gpu / system.gpus_per_node) + ".gpu" +
         std::to_string(gpu % system.gpus_per_node);
}

class PlatformWriter {
 public:
  PlatformWriter(const System& system, int gpus)
      : system_{system}, gpus_{gpus}, topology_{Topology::build(system, gpus)} {}

  std::string text() {
    const std::string routes = all_routes();  // Links come into being as routes use them.
    return "<?xml version='1.0'?>\n"
           "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
           "<!-- orrery -->\n<!-- The first " +
           std::to_string(gpus_) + " GPUs of " + escaped(system_.name) +
           ", written by orrery export simgrid. -->\n"
           "<platform version=\"4.1\">\n"
           "  <zone id=" +
           attribute(system_.name) + " routing=\"Full\">\n" + hosts() + links() + routes +
           "  </zone>\n"
           "</platform>\n";
  }

 private:
  static std::string attribute(const std::string& text) { return '"' + escaped(text) + '"'; }

  std::string hosts() const {
    std::string text;
    for (int gpu = 0; gpu < gpus_; ++gpu)
      text += "    <host id=" + attribute(host_name(system_, gpu)) + " speed=\"" +
              exact(topology_.gpu_speed(Rank{gpu}) * system_.gpu.peak_16bit.si()) + "f\"/>\n";
    return text;
  }

  std::string links() const {
    std::string text;
    for (int i = 0; i < topology_.link_count(); ++i) {
      const Link& link = topology_.link(LinkId{i});
      text += "    <link id=" + attribute(topology_.name(LinkId{i})) + " bandwidth=\"" +
              exact(link.capacity.si()) + "Bps\" latency=\"" + exact(link.latency.si()) + "s\"/>\n";
    }
    return text;
  }

  std::string all_routes() {
    std::string text;
    for (int from = 0; from < gpus_; ++from)
      for (int to = 0; to < gpus_; ++to)
        if (from != to) text += route(Rank{from}, Rank{to});
    return text;
  }

  std::string route(Rank from, Rank to) {
    std::string text = "    <route src=" + attribute(host_name(system_, from.value)) +
                       " dst=" + attribute(host_name(system_, to.value)) + " symmetrical=\"NO\">";
    for (const LinkId link : topology_.route(from, to))
      text += "<link_ctn id=" + attribute(topology_.name(link)) + "/>";
    return text + "</route>\n";
  }

  const System& system_;
  int gpus_;
  Topology topology_;
};

}  // namespace

std::string simgrid_platform(const System& system, int gpus) {
  assert(gpus >= 1 && gpus <= most_platform_gpus);
  return PlatformWriter{system, gpus}.text();
}

}  // namespace orrery
