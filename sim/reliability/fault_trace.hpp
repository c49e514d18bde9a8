#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/reliability/reliability.hpp"

namespace orrery {

/// The outage of one server, from its first moment until the server is back.
struct ServerFault {
  Seconds start, end;
  std::size_t cause = 0;  ///< Index into FaultTrace::causes.
  int down_before = 0;    ///< Servers that are down when it comes.
};

/// The recorded outages of the servers of a fleet.
struct FaultTrace {
  struct Cause {
    std::string name;
    std::string group;  ///< Group of a profile: "gpu", "host", "network", "software".
    int faults = 0;
  };

  std::string file;
  std::string name;  ///< The file's name, without ".json".
  int servers = 0;
  Seconds length;
  std::vector<Cause> causes;
  /// Sorted by start. None comes to a server that is down; none lasts beyond the record.
  std::vector<ServerFault> faults;
};

/// `word`: a name in workloads/faults or a path. Reads "orrery.faults/1"
/// (docs/reference/failure-models.md), and the list of events that StepFun published with
/// InfiniteHBD (Shou et al., SIGCOMM 2025). `servers`: size of the fleet, if the file does not
/// count servers without a fault. Faults of a server that overlap are one, of the first one's
/// cause. Errors (bad_input): ends before their starts, events out of place, more servers than
/// there are.
FaultTrace read_fault_trace(const std::string& word, std::optional<int> servers, const Place& at);
FaultTrace parse_fault_trace(const JsonValue& json, std::optional<int> servers);

/// `base` with the rates, the times to repair and the months of `trace`, whose servers have
/// `gpus_per_server`. Months: the variance of faults over months, less what
/// counting alone brings, over their squared mean. Errors (bad_input): a group that `base` has not.
Reliability profile_of(const FaultTrace& trace, const Reliability& base, int gpus_per_server);

}  // namespace orrery
