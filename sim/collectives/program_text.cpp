#include "sim/collectives/program_text.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "sim/core/table.hpp"
#include "sim/engine/engine_text.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

std::string microseconds_text(Seconds time) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f", time.si() * 1e6);
  return text;
}

std::string exact_bytes_text(Bytes bytes) {
  return std::to_string(static_cast<std::int64_t>(bytes.si()));
}

ProgramStep whole(const ProgramTime& result) {
  ProgramStep all;
  for (const auto& [number, step] : result.steps) {
    all.messages += step.messages;
    all.bytes += step.bytes;
  }
  all.finish = result.time;
  return all;
}

}  // namespace

std::string program_text(const CollectiveProgram& program, const ProgramTime& result) {
  Table table{{{"step"}, {"messages"}, {"bytes"}, {"starts (us)"}, {"ends (us)"}}};
  const auto add = [&](const std::string& name, const ProgramStep& step) {
    table.add_row({name, std::to_string(step.messages), exact_bytes_text(step.bytes),
                   microseconds_text(step.start), microseconds_text(step.finish)});
  };
  for (const auto& [number, step] : result.steps) add(std::to_string(number), step);
  add("all", whole(result));
  return table.text() + std::to_string(program.ranks) + " ranks" +
         (result.engine == Engine::simgrid ? std::string{", "} + all_by_simgrid : "") + "\n";
}

std::string program_json(const std::string& file, const std::string& system,
                         const CollectiveProgram& program, const ProgramTime& result) {
  Json steps = Json::array();
  for (const auto& [number, step] : result.steps)
    steps.push_back({{"step", number},
                     {"messages", step.messages},
                     {"bytes", static_cast<std::int64_t>(step.bytes.si())},
                     {"start_s", step.start.si()},
                     {"finish_s", step.finish.si()}});
  Json document{{"schema", "orrery.collective_program/1"},
                {"file", file},
                {"system", system},
                {"ranks", program.ranks},
                {"messages", program.messages.size()},
                {"bytes", static_cast<std::int64_t>(whole(result).bytes.si())},
                {"time_s", result.time.si()},
                {"steps", std::move(steps)}};
  if (result.engine != Engine::own) document["engine"] = name(result.engine);
  return document.dump(2) + "\n";
}

}  // namespace orrery
