#include "sim/sweep/columns.hpp"

#include <charconv>
#include <cmath>

namespace orrery {

const std::vector<MemoryFigure>& memory_figures() {
  static const std::vector<MemoryFigure> all{
      {"memory_peak_bytes", [](const MemoryReport& m) { return m.peak().si(); }},
      {"memory_capacity_bytes", [](const MemoryReport& m) { return m.capacity.si(); }},
  };
  return all;
}

const std::vector<Figure>& figures() {
  static const std::vector<Figure> all{
      {"step_time_s", [](const Result& r) { return r.step_time.si(); }},
      {"lower_bound_s", [](const Result& r) { return r.lower_bound.si(); }},
      {"tokens_per_s", [](const Result& r) { return r.tokens_per_s; }},
      {"tokens_per_s_per_gpu", [](const Result& r) { return r.tokens_per_s_per_gpu; }},
      {"model_tflops_per_gpu", [](const Result& r) { return r.model_tflops_per_gpu; }},
      {"model_tflops_per_gpu_full_attn",
       [](const Result& r) { return r.model_tflops_per_gpu_full; }},
      {"mfu", [](const Result& r) { return r.mfu; }},
      {"mfu_full_attn", [](const Result& r) { return r.mfu_full; }},
      {"breakdown_compute_s", [](const Result& r) { return r.busiest().compute.si(); }},
      {"breakdown_tp_exposed_s", [](const Result& r) { return r.busiest().tp_exposed.si(); }},
      {"breakdown_pp_bubble_s", [](const Result& r) { return r.busiest().pp_bubble.si(); }},
      {"breakdown_pp_exposed_s", [](const Result& r) { return r.busiest().pp_exposed.si(); }},
      {"breakdown_ep_exposed_s", [](const Result& r) { return r.busiest().ep_exposed.si(); }},
      {"breakdown_cp_exposed_s", [](const Result& r) { return r.busiest().cp_exposed.si(); }},
      {"breakdown_dp_exposed_s", [](const Result& r) { return r.busiest().dp_exposed.si(); }},
      {"breakdown_optimizer_s", [](const Result& r) { return r.busiest().optimizer.si(); }},
      {"breakdown_imbalance_s", [](const Result& r) { return r.busiest().imbalance.si(); }},
      {"breakdown_other_s", [](const Result& r) { return r.busiest().other.si(); }},
      {"provenance_measured", [](const Result& r) { return r.provenance[0]; }},
      {"provenance_interpolated", [](const Result& r) { return r.provenance[1]; }},
      {"provenance_default", [](const Result& r) { return r.provenance[2]; }},
  };
  return all;
}

std::vector<BillFigure> bill_figures(const Bill& bill) {
  std::vector<BillFigure> all{
      {"bill_steps", bill.steps},
      {"bill_training_time_s", bill.time.si()},
      {"bill_training_days", bill.time.si() / 86400.0},
  };
  const std::vector<std::pair<std::string, Range>> ranges{
      {"usd_per_step", bill.usd_per_step},
      {"usd_per_trillion_tokens", bill.usd_per_trillion_tokens},
      {"rent_usd", bill.rent_usd},
      {"power_w", bill.watts},
      {"energy_kwh", bill.energy_kwh},
      {"energy_usd", bill.energy_usd},
      {"hardware_usd", bill.hardware_usd},
  };
  for (const auto& [name, range] : ranges) {
    const auto end = [known = range.known()](double value) {
      return known ? std::optional{value} : std::nullopt;
    };
    all.push_back({"bill_" + name + "_low", end(range.low)});
    all.push_back({"bill_" + name + "_high", end(range.high)});
  }
  return all;
}

std::string figure_text(const std::string& name, double value) {
  char text[64];
  const auto write = [&](double number) {
    return std::string(text, std::to_chars(text, text + sizeof text, number).ptr);
  };
  if (name.ends_with("_bytes")) return std::to_string(std::llround(value));
  if (name.ends_with("_s") && !name.ends_with("per_s"))
    return write(static_cast<double>(std::llround(value * 1e9)) / 1e9);
  const auto end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::general, 9).ptr;
  std::from_chars(text, end, value);
  return write(value);
}

}  // namespace orrery
