#include "sim/collectives/collective_text.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "sim/core/table.hpp"
#include "sim/engine/network_model.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

std::string printed(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// The range in microseconds, without decimals from a thousand on.
std::string range_text(const CollectiveLine& line) {
  const char* format = line.high() < Seconds{1e-3} ? "%.2f" : "%.0f";
  return printed(format, line.low().si() * 1e6) + " .. " + printed(format, line.high().si() * 1e6);
}

// nccl-tests counts what one rank puts in, or gets out: an n-th where the tensor is spread.
double elements(const IsolatedCollective& collective) {
  const bool spread = facts(collective.kind).passes == 1;
  return collective.bytes.si() / 4.0 / (spread ? collective.ranks : 1);
}

Json line_json(const std::string& system, const CollectiveLine& line) {
  const auto& [collective, result, deviation] = line;
  Json json{
      {"schema", "orrery.collective/1"},
      {"collective", name(collective.kind)},
      {"system", system},
      {"ranks", collective.ranks},
      {"nodes", collective.nodes},
      {"bytes", static_cast<std::int64_t>(collective.bytes.si())},
      {"time_s", result.time.si()},
      {"time_range",
       {{"coverage", range_coverage}, {"low_s", line.low().si()}, {"high_s", line.high().si()}}},
      {"algbw_bytes_per_s", result.algorithm_bandwidth(collective).si()},
      {"busbw_bytes_per_s", result.bus_bandwidth(collective).si()},
      {"algorithm", result.cost.algorithm},
      {"protocol", result.cost.protocol},
      {"channels", result.cost.channels},
      {"sms", result.cost.channels},  // One thread block a channel, one on a multiprocessor.
      {"scale_up_bytes_per_rank", result.cost.scale_up_bytes.si()},
      {"network_bytes_per_rank", result.cost.network_bytes.si()},
      {"flows", result.flows},
      {"tag", name(result.cost.tag)}};
  json["simulator"] = name(result.simulator);
  return json;
}

}  // namespace

std::string collective_text(const std::vector<CollectiveLine>& lines, TextWidth width) {
  Table table{{{"size (B)"},
               {"count", Align::right, true},
               {"type", Align::right, true},
               {"redop", Align::right, true},
               {"root", Align::right, true},
               {"time (us)"},
               {"algbw (GB/s)", Align::right, true},
               {"busbw (GB/s)"},
               {"#wrong", Align::right, true},
               {"algorithm", Align::left},
               {"protocol", Align::left, true},
               {"channels", Align::right, true},
               {"tag", Align::left},
               {"90 % range (us)", Align::left}}};
  for (const CollectiveLine& line : lines) {
    const auto& [collective, result, deviation] = line;
    table.add_row({printed("%.0f", collective.bytes.si()), printed("%.0f", elements(collective)),
                   "float", facts(collective.kind).reduces ? "sum" : "none",
                   facts(collective.kind).rooted ? "0" : "-1",
                   printed("%.2f", result.time.si() * 1e6),
                   printed("%.2f", result.algorithm_bandwidth(collective).si() / 1e9),
                   printed("%.2f", result.bus_bandwidth(collective).si() / 1e9), "N/A",
                   std::string{result.cost.algorithm}, std::string{result.cost.protocol},
                   std::to_string(result.cost.channels), name(result.cost.tag), range_text(line)});
  }
  const bool by_simgrid = !lines.empty() && lines.front().result.simulator == Simulator::simgrid;
  return table.text(width) + (by_simgrid ? std::string{simgrid_note} + "\n" : "");
}

std::string collective_json(const std::string& system, const std::vector<CollectiveLine>& lines) {
  if (lines.size() == 1) return line_json(system, lines.front()).dump(2) + "\n";
  Json list = Json::array();
  for (const CollectiveLine& line : lines) list.push_back(line_json(system, line));
  return list.dump(2) + "\n";
}

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
         (result.simulator == Simulator::simgrid ? std::string{", "} + simgrid_note : "") + "\n";
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
  document["simulator"] = name(result.simulator);
  return document.dump(2) + "\n";
}

}  // namespace orrery
