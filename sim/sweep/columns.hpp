#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/training/result.hpp"

namespace orrery {

/// One column of a sweep's results, called and rounded as in `orrery estimate --json`, where
/// docs/OUTPUT.md defines it; parts of an object are joined: "memory.peak_bytes" is
/// memory_peak_bytes.
struct Figure {
  std::string name;
  double (*of)(const Result&);
};
const std::vector<Figure>& figures();

/// Those that need no simulation.
struct MemoryFigure {
  std::string name;
  double (*of)(const MemoryReport&);
};
const std::vector<MemoryFigure>& memory_figures();

/// What training on a number of tokens takes and costs, as the object `bill` of the JSON has it,
/// and in days. Prices and powers have a low and a high end, where they are known.
struct BillFigure {
  std::string name;
  std::optional<double> value;
};
std::vector<BillFigure> bill_figures(const Bill& bill);

/// Times are whole nanoseconds; other numbers have 9 significant digits, whole ones below 2^53
/// all of theirs.
std::string figure_text(const std::string& name, double value);

}  // namespace orrery
