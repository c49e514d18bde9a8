#include "sim/profile/operation_price.hpp"

#include <algorithm>

namespace orrery {

MachineRoofs roofs_of(const Gpu& gpu) {
  MachineRoofs roofs{gpu.name, {}, gpu.memory_bandwidth};
  for (const PeakKey& peak : peak_keys)
    if (gpu.*peak.peak > FlopPerSecond{})
      roofs.formats.push_back({name(peak.format), gpu.*peak.peak});
  std::stable_sort(roofs.formats.begin(), roofs.formats.end(),
                   [](const auto& a, const auto& b) { return a.peak > b.peak; });
  return roofs;
}

void sort_by_time(std::vector<OperationPrice>& operations) {
  std::stable_sort(operations.begin(), operations.end(),
                   [](const auto& a, const auto& b) { return a.all_time() > b.all_time(); });
}

bool is_plotted(const OperationPrice& operation) {
  return !operation.on_network && operation.roofs.flop > Flop{} &&
         operation.roofs.bytes > Bytes{} && operation.time > Seconds{};
}

KernelRoofs wire_roofs(const CollectiveCost& cost, const System& system) {
  const BytesPerSecond nic =
      (static_cast<double>(system.nics_per_node) / system.gpus_per_node) * system.nic;
  const KernelRoofs inside{Flop{}, cost.scale_up_bytes, FlopPerSecond{}, system.scale_up};
  const KernelRoofs outside{Flop{}, cost.network_bytes, FlopPerSecond{}, nic};
  return outside.memory_time() > inside.memory_time() ? outside : inside;
}

void set_range(OperationPrice& operation, PriceKind kind, const PriceErrors& errors) {
  StepRange range;
  range.step = operation.time;
  range.path.at(kind, operation.tag) = operation.time;
  range.errors = errors;
  range.errors.published.reset();
  operation.low = range.low();
  operation.high = range.high();
}

}  // namespace orrery
