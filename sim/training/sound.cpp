#include "sim/training/sound.hpp"

#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <utility>

namespace orrery {
namespace {

// Sums of thousands of parts, each rounded.
constexpr double rounding = 1e-6;

void require(bool sound, const char* figure, double value, const char* why) {
  if (sound) return;
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  throw std::logic_error{std::string{"the answer is not sound: "} + figure + " is " + text + ", " +
                         why};
}

void require_positive(const char* figure, double value) {
  require(std::isfinite(value) && value > 0.0, figure, value, "and has to be more than nothing");
}

void require_at_least_nothing(const char* figure, double value, double tolerance = 0.0) {
  require(std::isfinite(value) && value >= -tolerance, figure, value, "and cannot be negative");
}

void require_equal(const char* figure, double value, double other, const char* why) {
  require(std::abs(value - other) <= rounding * std::abs(other), figure, value, why);
}

void require_sound(const Breakdown& breakdown, Seconds step) {
  const double tolerance = rounding * step.si();
  for (const auto& [figure, part] : std::initializer_list<std::pair<const char*, Seconds>>{
           {"the time of kernels", breakdown.compute},
           {"exposed tensor-parallel time", breakdown.tp_exposed},
           {"exposed context-parallel time", breakdown.cp_exposed},
           {"exposed expert-parallel time", breakdown.ep_exposed},
           {"the pipeline's bubble", breakdown.pp_bubble},
           {"exposed pipeline time", breakdown.pp_exposed},
           {"exposed data-parallel time", breakdown.dp_exposed},
           {"the optimizer's time", breakdown.optimizer},
           {"imbalance", breakdown.imbalance},
           {"other time", breakdown.other}})
    require_at_least_nothing(figure, part.si(), tolerance);
  require_equal("the sum of the breakdown", breakdown.sum().si(), step.si(),
                "which is not the step");
}

void require_sound(const MemoryReport& memory) {
  require_positive("the GPU's memory", memory.capacity.si());
  for (const StageMemory& stage : memory.stages)
    for (const auto& [figure, part] : std::initializer_list<std::pair<const char*, Bytes>>{
             {"memory of weights", stage.weights},
             {"memory of gradients", stage.gradients},
             {"memory of the optimizer", stage.optimizer},
             {"memory of activations", stage.activations},
             {"other memory", stage.other}})
      require_at_least_nothing(figure, part.si());
  require_positive("peak memory", memory.peak().si());
}

}  // namespace

void require_sound(Seconds step_time) { require_positive("the step time", step_time.si()); }

void require_sound(const Result& result) {
  const double step = result.step_time.si();
  require_sound(result.step_time);
  require_positive("the lower bound", result.lower_bound.si());
  require(result.lower_bound <= result.step_time, "the lower bound", result.lower_bound.si(),
          "more than the step");
  require_positive("the short end of the range", result.range.low().si());
  require(result.range.low() <= result.step_time, "the short end of the range",
          result.range.low().si(), "more than the step");
  require(std::isfinite(result.range.high().si()) && result.range.high() >= result.step_time,
          "the long end of the range", result.range.high().si(), "less than the step");
  require_equal("the sum of the range's prices", result.range.path.total().si(), step,
                "which is not the step");
  require_equal("the sum of the critical path's parts", result.critical.parts.total().si(), step,
                "which is not the step");
  for (const Breakdown& breakdown : result.stages) require_sound(breakdown, result.step_time);
  require_positive("tokens/s", result.tokens_per_s);
  require_positive("tokens/s of a GPU", result.tokens_per_s_per_gpu);
  require_positive("MFU", result.mfu);
  require(result.mfu <= 1.0, "MFU", result.mfu, "more than the GPU can do");
  require_positive("MFU with full attention", result.mfu_full);
  double shares = 0.0;
  for (const double share : result.provenance) {
    require_at_least_nothing("a share of the prices", share);
    shares += share;
  }
  require_equal("the sum of the prices' shares", shares, 1.0, "and not 1");
  require_sound(result.memory);
}

}  // namespace orrery
