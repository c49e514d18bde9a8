#include "sim/training/result_figures.hpp"

#include <cmath>

#include "sim/core/number_text.hpp"

namespace orrery {

NamedNumbers step_figures(const Result& result) {
  return {{"step_time_s", result.step_time.si()},
          {"lower_bound_s", result.lower_bound.si()},
          {"tokens_per_s", result.tokens_per_s},
          {"tokens_per_s_per_gpu", result.tokens_per_s_per_gpu},
          {"model_tflops_per_gpu", result.model_tflops_per_gpu},
          {"model_tflops_per_gpu_full_attn", result.model_tflops_per_gpu_full},
          {"mfu", result.mfu},
          {"mfu_full_attn", result.mfu_full}};
}

NamedNumbers breakdown_figures(const Breakdown& breakdown) {
  return {{"compute", breakdown.compute.si()},           {"tp_exposed", breakdown.tp_exposed.si()},
          {"pp_bubble", breakdown.pp_bubble.si()},       {"pp_exposed", breakdown.pp_exposed.si()},
          {"ep_exposed", breakdown.ep_exposed.si()},     {"cp_exposed", breakdown.cp_exposed.si()},
          {"dp_exposed", breakdown.dp_exposed.si()},     {"optimizer", breakdown.optimizer.si()},
          {"imbalance", breakdown.imbalance.si()},       {"other", breakdown.other.si()},
          {"waiting_for_others", breakdown.waiting.si()}};
}

NamedNumbers provenance_figures(const Result& result) {
  NamedNumbers shares;
  for (const Tag tag : {Tag::measured, Tag::interpolated, Tag::default_value})
    shares.emplace_back(name(tag), result.provenance[static_cast<std::size_t>(tag)]);
  return shares;
}

std::vector<std::pair<std::string, Range>> bill_ranges(const Bill& bill) {
  return {{"usd_per_step", bill.usd_per_step},
          {"usd_per_trillion_tokens", bill.usd_per_trillion_tokens},
          {"rent_usd", bill.rent_usd},
          {"power_w", bill.watts},
          {"energy_kwh", bill.energy_kwh},
          {"energy_usd", bill.energy_usd},
          {"hardware_usd", bill.hardware.usd}};
}

double rounded_figure(const std::string& name, double value) {
  if (name.ends_with("_s") && !name.ends_with("per_s"))
    return static_cast<double>(std::llround(value * 1e9)) / 1e9;
  return to_nine_digits(value);
}

}  // namespace orrery
