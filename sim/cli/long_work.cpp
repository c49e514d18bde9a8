#include "sim/cli/long_work.hpp"

#include "sim/core/number_text.hpp"

namespace orrery {
namespace {

const char* name(Progress::Of kind) {
  switch (kind) {
    case Progress::Of::plans:
      return "plans";
    case Progress::Of::cases:
      return "cases";
    case Progress::Of::sizes:
      return "sizes";
    case Progress::Of::keys:
      return "keys";
    case Progress::Of::tasks:
      return "tasks";
    case Progress::Of::flows:
      return "flows";
  }
  return "";
}

}  // namespace

std::string progress_text(const std::vector<Progress>& parts) {
  std::string text;
  for (const Progress& part : parts)
    text += (text.empty() ? "" : ", ") + grouped(static_cast<std::int64_t>(part.done)) + " of " +
            grouped(static_cast<std::int64_t>(part.all)) + " " + name(part.of);
  return text;
}

LongWork::LongWork() {
  if (line_.is_shown()) listener_.emplace([this](const Progress& progress) { draw(progress); });
}

void LongWork::draw(const Progress& progress) {
  // What is inside begins anew with each of what is outside.
  std::erase_if(parts_, [&](const Progress& part) { return part.of >= progress.of; });
  parts_.push_back(progress);
  // Many flows that share links end together, after they were computed for long without a word.
  constexpr std::size_t many_flows = 5'000;
  const bool silent = progress.of == Progress::Of::flows && progress.all >= many_flows;
  constexpr Seconds soon{1.0};
  if ((silent || since_.passed() >= soon) && line_.is_due()) line_.draw(progress_text(parts_));
}

}  // namespace orrery
