#include "sim/calibration/fit_overlap.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

namespace orrery {
namespace {

using calibration::Measurement;

// Over 0, or nothing.
std::optional<double> figure(const Measurement& one, const std::string& name) {
  const auto found = one.figures.find(name);
  if (found == one.figures.end() || !(found->second > 0.0)) return std::nullopt;
  return found->second;
}

struct Busy {
  double share, slowdown;

  double lost() const { return 1.0 - 1.0 / slowdown; }
};

void add_collectives(const std::vector<Measurement>& measurements, int multiprocessors,
                     OverlapFit& fit) {
  std::map<std::string, std::vector<double>> hindered;
  for (const Measurement& one : measurements) {
    if (one.what.kind != "collective_overlap") continue;
    const auto product = figure(one, "product_slowdown_ratio"),
               own = figure(one, "collective_slowdown_ratio");
    if (!product || !own) continue;
    const std::string& collective = one.what.choice("collective");
    char text[160];
    std::snprintf(text, sizeof text,
                  "%s of %lld ranks: products beside it take %.1f %% longer, as beside %.1f busy "
                  "multiprocessors",
                  collective.c_str(), static_cast<long long>(one.what.size("ranks")),
                  100.0 * (*product - 1.0),
                  (1.0 - 1.0 / *product) * multiprocessors / fit.share.value_or(1.0));
    fit.findings.emplace_back(text);
    hindered[collective + " beside products, as if alone"].push_back(1.0 / *own - 1.0);
  }
  for (auto& [what, some] : hindered) fit.checks.push_back({what, std::move(some)});
}

}  // namespace

OverlapFit fit_overlap(const std::vector<Measurement>& measurements, int multiprocessors) {
  constexpr std::size_t fewest = 3;
  std::vector<Busy> busy;
  std::vector<double> copies;
  for (const Measurement& one : measurements) {
    if (one.what.kind != "overlap") continue;
    const auto slowdown = figure(one, "slowdown_ratio");
    if (!slowdown) continue;
    if (one.what.choice("beside") == "copy")
      copies.push_back(1.0 / *slowdown - 1.0);
    else if (one.what.size("busy") > 0)
      busy.push_back({static_cast<double>(one.what.size("busy")) / multiprocessors, *slowdown});
  }
  OverlapFit fit;
  fit.busy_cases = busy.size();
  double product = 0.0, square = 0.0;
  for (const Busy& one : busy) {
    product += one.share * one.lost();
    square += one.share * one.share;
  }
  if (busy.size() >= fewest) fit.share = product / square;
  std::vector<double> errors;
  for (const Busy& one : busy) {
    const double kept = std::max(1.0 - fit.share.value_or(1.0) * one.share, 0.5);
    errors.push_back(1.0 / (kept * one.slowdown) - 1.0);
  }
  if (!errors.empty())
    fit.checks.push_back({"product beside busy multiprocessors", std::move(errors)});
  if (!copies.empty())
    fit.checks.push_back({"product beside a copy, as if alone", std::move(copies)});
  add_collectives(measurements, multiprocessors, fit);
  return fit;
}

}  // namespace orrery
