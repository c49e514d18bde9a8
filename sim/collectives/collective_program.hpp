#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/json_value.hpp"

namespace orrery {

/// One message of a user-defined collective.
struct Message {
  int step = 0;       ///< Of the sender.
  int recv_step = 0;  ///< Of the receiver.
  int src = 0;
  int dst = 0;
  Bytes bytes;
};

/// A collective written out. Each rank goes through its own steps: it begins one when all that it
/// sends and receives in its earlier steps has arrived. A message moves when both its ends have
/// come to their step. (docs/COLLECTIVES.md, "Your own collective".)
struct CollectiveProgram {
  std::vector<Message> messages;
  int ranks = 1;  ///< One more than the highest that is named.
};

/// A list of {"step": 0, "src": 0, "dst": 1, "bytes": 4096, "recv_step": 0}; without the last the
/// receiver's step is the sender's. Errors (bad_input): no list, or an empty one; missing, unknown
/// or misspelt keys; numbers out of range; a rank that sends to itself.
CollectiveProgram parse_collective_program(const JsonValue& json);

}  // namespace orrery
