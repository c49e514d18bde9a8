#include "sim/collectives/collective_program.hpp"

#include <algorithm>

namespace orrery {

CollectiveProgram parse_collective_program(const JsonValue& json) {
  constexpr std::int64_t most_steps = 1'000'000'000, most_ranks = 1'000'000;
  constexpr std::int64_t most_bytes = 1'000'000'000'000'000;
  CollectiveProgram program;
  for (const JsonValue& entry : json.elements()) {
    entry.allow_only({"step", "src", "dst", "bytes", "recv_step"});
    const auto whole = [&](const char* key, std::int64_t most) {
      return static_cast<int>(entry.at(key).integer(0, most));
    };
    Message message;
    message.step = whole("step", most_steps);
    message.recv_step = entry.has("recv_step") ? whole("recv_step", most_steps) : message.step;
    message.src = whole("src", most_ranks - 1);
    message.dst = whole("dst", most_ranks - 1);
    message.bytes = Bytes{static_cast<double>(entry.at("bytes").integer(0, most_bytes))};
    if (message.src == message.dst)
      entry.at("dst").fail("rank " + std::to_string(message.dst) + " sends to itself",
                           "leave out what a rank keeps");
    program.ranks = std::max({program.ranks, message.src + 1, message.dst + 1});
    program.messages.push_back(message);
  }
  if (program.messages.empty())
    json.fail("has no message", "write [{\"step\": 0, \"src\": 0, \"dst\": 1, \"bytes\": 4096}]");
  return program;
}

}  // namespace orrery
