#pragma once

#include <string>
#include <vector>

#include "sim/collectives/collective_sweeps.hpp"
#include "sim/moe/expert_exchange.hpp"

namespace orrery {

/// A published table of dispatch and combine times of one MoE layer's shape, with a router that
/// spreads tokens evenly over the experts.
struct ExchangeCase {
  struct Row {
    int multiprocessors = 0;  ///< 0: the kernel's own choice.
    double tokens = 0.0;      ///< Tokens of each rank.
    Seconds dispatch, combine;
  };

  std::string id;
  System system;
  ExpertDispatcher dispatcher = ExpertDispatcher::deepep;
  int nodes = 1;
  GroupShape group;
  Experts experts;
  std::int64_t hidden = 0;
  Dtype dispatched = Dtype::fp8;
  std::vector<Row> rows;

  ExchangeTable table() const { return {nodes, hidden, experts.per_token, experts.count}; }
};

/// True if an entry of a list of cases is such a table: it names a dispatcher.
bool is_exchange_case(const JsonValue& entry);

/// Reads a table as docs/notes/validation.md describes it. Dispatched tokens are fp8, as in
/// DeepEP's own benchmarks, unless it says otherwise. Errors: experts that the ranks do not divide,
/// invalid times.
ExchangeCase read_exchange_case(const JsonValue& entry);

/// A published sweep of one collective, and the system that it ran on.
struct CollectiveCase {
  std::string id;
  System system;
  CollectiveShape shape;
  int nodes = 1;
  std::vector<MeasuredCurve::Point> points;
};

/// True if an entry of a list of cases is a sweep: it names a collective.
bool is_collective_case(const JsonValue& entry);

/// Reads a case as docs/notes/validation.md describes it. Its `system` is prose from logs; the
/// known words are in calibration/data/collective_systems.json. Errors: an unknown or unstated GPU
/// or network, an unknown collective, ranks that do not lie evenly on nodes.
CollectiveCase read_collective_case(const JsonValue& entry);

}  // namespace orrery
