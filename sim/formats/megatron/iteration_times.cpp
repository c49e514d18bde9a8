#include "sim/formats/megatron/iteration_times.hpp"

#include <vector>

#include "sim/core/statistics.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

// Megatron-LM, megatron/training/training.py, training_log.
constexpr std::string_view mark = "elapsed time per iteration (ms):";

}  // namespace

std::optional<MeasuredSteps> measured_steps(const std::string& log) {
  std::vector<double> times_ms;
  for (const std::string_view line : lines_of(log)) {
    const std::size_t at = line.find(mark);
    if (at == line.npos) continue;
    const auto words = words_of(line.substr(at + mark.size()));
    const auto time = words.empty() ? std::nullopt : plain_number(words[0]);
    if (time && *time > 0.0) times_ms.push_back(*time);
  }
  if (times_ms.empty()) return std::nullopt;
  if (times_ms.size() > 1) times_ms.erase(times_ms.begin());
  return MeasuredSteps{Seconds{median(times_ms) / 1000.0}, static_cast<int>(times_ms.size())};
}

}  // namespace orrery
