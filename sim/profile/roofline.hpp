#pragma once

#include <string>
#include <vector>

#include "sim/profile/operation_price.hpp"

namespace orrery {

/// Operations below the roofs of a GPU: over operations a byte (x) the operations a second that
/// each reaches (y), both logarithmic (Williams, Waterman and Patterson, "Roofline", CACM 52(4),
/// 2009). What computes nothing or moves nothing through memory has no place there.
struct RooflineChart {
  std::string title;
  std::string subtitle;  ///< "": none.
  MachineRoofs roofs;
  std::vector<OperationPrice> operations;  ///< Those first whose names matter most.
  bool sweep = false;                      ///< One operation at rising sizes: a line joins them.
};

/// The mark of the i-th operation that is drawn: a, b, ..., z, A, ..., Z, then *.
std::string roofline_mark(std::size_t drawn);

/// As lines of a terminal. A cell that several share has the mark of the first.
std::string roofline_text(const RooflineChart& roofline);
/// As an SVG document. Circles of a step are as large as the share of time that they take.
std::string roofline_svg(const RooflineChart& roofline);

}  // namespace orrery
