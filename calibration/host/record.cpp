#include "calibration/host/record.hpp"

#include <algorithm>
#include <cassert>
#include <set>

namespace orrery::calibration {
namespace {

constexpr const char* record_schema = "orrery.calibration-record/1";
constexpr const char* digest_key = ",\n\"digest\": \"";
constexpr double longest_us = 1e10;  // Nearly three hours.

// FNV-1a, 64 bits: against slips, not against forgers.
std::string digest(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  static const char* const digits = "0123456789abcdef";
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += digits[(hash >> shift) & 15];
  return out;
}

const std::vector<std::string>& units() {
  static const std::vector<std::string> units{"_us",    "_s",           "_hz",         "_bytes",
                                              "_flop",  "_bytes_per_s", "_flop_per_s", "_ratio",
                                              "_count", "_w",           "_c",          "_bits"};
  return units;
}

bool has_unit(const std::string& name) {
  return std::any_of(units().begin(), units().end(), [&](const std::string& unit) {
    return name.size() > unit.size() && name.ends_with(unit);
  });
}

// A record is shown in terminals and quoted in messages.
std::string plain_text(const JsonPlace& json) {
  const std::string text = json.text();
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20)
      json.fail("has a control character", "write plain text");
  return text;
}

Json::Object machine_json(const Machine& machine) {
  return {{"gpu", machine.gpu},
          {"gpu_id", machine.gpu_id},
          {"compute_capability", machine.compute_capability},
          {"driver", machine.driver},
          {"cuda_runtime", machine.cuda_runtime},
          {"cublas", machine.cublas},
          {"nccl", machine.nccl},
          {"gpus", machine.gpus},
          {"multiprocessors", machine.multiprocessors},
          {"memory_bytes", machine.memory_bytes},
          {"l2_bytes", machine.l2_bytes},
          {"boost_clock_hz", machine.boost_clock_hz},
          {"power_limit_w", machine.power_limit_w},
          {"ecc", machine.ecc},
          {"mig", machine.mig},
          {"cpu", machine.cpu}};
}

Machine read_machine(const JsonPlace& json) {
  std::vector<std::string> keys;
  for (const auto& member : machine_json({})) keys.push_back(member.first);
  json.allow_only(keys);
  Machine machine;
  machine.gpu = plain_text(json.at("gpu"));
  if (machine.gpu.empty()) json.at("gpu").fail("is empty", "name the GPU");
  machine.gpu_id = plain_text(json.at("gpu_id"));
  machine.compute_capability = plain_text(json.at("compute_capability"));
  machine.driver = plain_text(json.at("driver"));
  machine.cuda_runtime = plain_text(json.at("cuda_runtime"));
  machine.cublas = plain_text(json.at("cublas"));
  machine.nccl = plain_text(json.at("nccl"));
  machine.gpus = static_cast<int>(json.at("gpus").integer(1, 1 << 20));
  machine.multiprocessors = static_cast<int>(json.at("multiprocessors").integer(1, 4096));
  machine.memory_bytes = json.at("memory_bytes").integer(1, std::int64_t{1} << 45);
  machine.l2_bytes = json.at("l2_bytes").integer(0, std::int64_t{1} << 40);
  machine.boost_clock_hz = json.at("boost_clock_hz").number(0.0, 1e11);
  // Records from before these were written lack them.
  if (json.has("power_limit_w")) machine.power_limit_w = json.at("power_limit_w").number(0.0, 1e6);
  for (const auto& [key, member] :
       {std::pair{"ecc", &Machine::ecc}, {"mig", &Machine::mig}, {"cpu", &Machine::cpu}})
    if (json.has(key)) machine.*member = plain_text(json.at(key));
  return machine;
}

Json summary_json(const TimingSummary& summary) {
  return Json::Object{{"median_us", summary.median_us}, {"p10_us", summary.p10_us},
                      {"p90_us", summary.p90_us},       {"noise_ratio", summary.noise},
                      {"drift_ratio", summary.drift},   {"samples", summary.samples}};
}

TimingSummary read_summary(const JsonPlace& json) {
  json.allow_only({"median_us", "p10_us", "p90_us", "noise_ratio", "drift_ratio", "samples"});
  constexpr double shortest_us = 1e-3;  // A tenth of the shortest kernel takes longer.
  TimingSummary summary;
  summary.median_us = json.at("median_us").number(shortest_us, longest_us);
  summary.p10_us = json.at("p10_us").number(shortest_us, longest_us);
  summary.p90_us = json.at("p90_us").number(shortest_us, longest_us);
  if (!(summary.p10_us <= summary.median_us && summary.median_us <= summary.p90_us))
    json.fail("p10, median and p90 are out of order", "measure again");
  summary.noise = json.at("noise_ratio").number(0.0, 1e9);
  summary.drift = json.at("drift_ratio").number(-1.0, 1e9);
  summary.samples = static_cast<int>(json.at("samples").integer(1, 1'000'000'000));
  return summary;
}

Json series_json(const std::vector<SeriesPoint>& series) {
  Json::Array points;
  for (const SeriesPoint& point : series) {
    Json::Object json{{"at_s", point.at_s}, {"median_us", point.median_us}};
    if (point.state.clock_hz) json.emplace_back("clock_hz", *point.state.clock_hz);
    if (point.state.power_w) json.emplace_back("power_w", *point.state.power_w);
    if (point.state.temperature_c) json.emplace_back("temperature_c", *point.state.temperature_c);
    if (point.state.held_by)
      json.emplace_back("held_by_bits", static_cast<std::int64_t>(*point.state.held_by));
    points.push_back(json);
  }
  return points;
}

std::vector<SeriesPoint> read_series(const JsonPlace& json) {
  std::vector<SeriesPoint> series;
  for (const JsonPlace& one : json.elements()) {
    one.allow_only({"at_s", "median_us", "clock_hz", "power_w", "temperature_c", "held_by_bits"});
    SeriesPoint point;
    point.at_s = one.at("at_s").number(0.0, 1e6);
    if (!series.empty() && point.at_s < series.back().at_s)
      one.at("at_s").fail("is before the one in front of it", "measure again");
    point.median_us = one.at("median_us").number(1e-3, longest_us);
    if (one.has("clock_hz")) point.state.clock_hz = one.at("clock_hz").number(0.0, 1e11);
    if (one.has("power_w")) point.state.power_w = one.at("power_w").number(0.0, 1e6);
    if (one.has("temperature_c"))
      point.state.temperature_c = one.at("temperature_c").number(-300.0, 1000.0);
    if (one.has("held_by_bits"))
      point.state.held_by = one.at("held_by_bits").integer(0, std::int64_t{1} << 52);
    series.push_back(point);
  }
  return series;
}

Json measurement_json(const Measurement& one) {
  Json::Object json;
  write_case(json, one.what);
  json.emplace_back("outcome", outcome_names()[static_cast<std::size_t>(one.outcome)]);
  if (!one.reason.empty()) json.emplace_back("reason", one.reason);
  if (!one.implementation.empty()) json.emplace_back("implementation", one.implementation);
  if (one.cold) json.emplace_back("cold", summary_json(*one.cold));
  if (one.warm) json.emplace_back("warm", summary_json(*one.warm));
  if (one.stopped != Stopped::not_yet)
    json.emplace_back("stopped", stopped_names()[static_cast<std::size_t>(one.stopped)]);
  if (one.relative_error) json.emplace_back("relative_error_ratio", *one.relative_error);
  json.emplace_back("reference_slowdown_ratio", one.reference_slowdown);
  Json::Object figures;
  for (const auto& [name, value] : one.figures) {
    assert(has_unit(name));
    figures.emplace_back(name, value);
  }
  if (!figures.empty()) json.emplace_back("figures", figures);
  if (!one.series.empty()) json.emplace_back("series", series_json(one.series));
  return json;
}

Measurement read_measurement(const JsonPlace& json) {
  std::vector<std::string> keys = case_keys(json.at("kind"));
  for (const char* key : {"outcome", "reason", "implementation", "cold", "warm", "stopped",
                          "relative_error_ratio", "reference_slowdown_ratio", "figures", "series"})
    keys.emplace_back(key);
  json.allow_only(keys);
  Measurement one;
  one.what = read_case(json);
  one.outcome = static_cast<Outcome>(json.at("outcome").choice(outcome_names()));
  if (json.has("reason")) one.reason = plain_text(json.at("reason"));
  if (json.has("implementation")) one.implementation = plain_text(json.at("implementation"));
  if (json.has("cold")) one.cold = read_summary(json.at("cold"));
  if (json.has("warm")) one.warm = read_summary(json.at("warm"));
  if (json.has("stopped")) {
    one.stopped = static_cast<Stopped>(json.at("stopped").choice(stopped_names()));
    if (one.stopped == Stopped::not_yet) json.at("stopped").fail("is empty", "leave the key out");
  }
  if (json.has("relative_error_ratio"))
    one.relative_error = json.at("relative_error_ratio").number(0.0, 1.0);
  one.reference_slowdown = json.at("reference_slowdown_ratio").number(1.0, 1e6);
  if (json.has("figures")) {
    const JsonPlace figures = json.at("figures");
    for (const std::string& name : figures.keys()) {
      if (!has_unit(name))
        figures.fail("a figure's name ends in no unit", "add one, such as _us or _bytes");
      for (const char c : name)
        if (!(c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')))
          figures.fail("a figure's name has other characters than a-z, 0-9 and _", "rename it");
      one.figures[name] = figures.at(name).number(name.ends_with("_c") ? -300.0 : 0.0, 1e30);
    }
  }
  if (json.has("series")) one.series = read_series(json.at("series"));
  const bool timed = one.cold || one.warm;
  if (one.outcome == Outcome::measured && !timed)
    json.fail("was measured, but has no times", "add cold or warm");
  if (one.outcome != Outcome::measured && (timed || one.reason.empty()))
    json.fail("was not measured: it needs a reason and has no times", "measure again");
  return one;
}

// The text in front of its own digest. Errors: there is none, or another one.
void require_digest(const std::string& text, const std::string& file) {
  const std::size_t at = text.rfind(digest_key);
  const Place place{file, ""};
  if (at == text.npos)
    fail_input(place, "has no digest at its end", "it is cut off or was edited; measure again");
  const std::string written = text.substr(at + std::string{digest_key}.size());
  if (written != digest(text.substr(0, at)) + "\"}\n")
    fail_input(place, "is not as it was written (its digest differs)",
               "it was edited or damaged; measure again");
}

}  // namespace

const std::vector<std::string>& outcome_names() {
  static const std::vector<std::string> names{"measured", "failed", "skipped"};
  return names;
}

const Measurement* Record::find(const std::string& id) const {
  for (const Measurement& one : measurements)
    if (one.what.id() == id) return &one;
  return nullptr;
}

std::string with_digest(const std::string& text) {
  return text + digest_key + digest(text) + "\"}\n";
}

std::string record_json(const Record& record) {
  const Json limits = Json::Object{{"noise_ratio", record.limits.noise},
                                   {"time_s", record.limits.time_s},
                                   {"least_samples", record.limits.least_samples},
                                   {"most_samples", record.limits.most_samples}};
  std::string out = std::string{"{\"schema\": \""} + record_schema + "\",\n";
  out += "\"machine\": " + Json{machine_json(record.machine)}.text() + ",\n";
  out += "\"limits\": " + limits.text() + ",\n";
  out += "\"command\": " + Json{record.command}.text() + ",\n";
  out += "\"program\": " + Json{record.program}.text() + ",\n";
  out += "\"started\": " + Json{record.started}.text() + ",\n";
  Json::Array checks;
  for (const auto& check : record.reference)
    checks.push_back(Json::Object{{"at_s", check.at_s}, {"median_us", check.median_us}});
  out += "\"reference\": " + Json{checks}.text() + ",\n";
  out += "\"measurements\": [";
  for (const Measurement& one : record.measurements)
    out += (&one == &record.measurements.front() ? "\n " : ",\n ") + measurement_json(one).text();
  out += "\n]";
  return with_digest(out);
}

Record parse_record(const std::string& text, const std::string& file) {
  const Json document = Json::parse(text, file);
  const JsonPlace root{document, {file, ""}};
  if (root.at("schema").text() != record_schema)
    root.at("schema").fail("is not a calibration record",
                           std::string{"write \""} + record_schema + "\"");
  root.allow_only({"schema", "machine", "limits", "command", "program", "started", "reference",
                   "measurements", "digest"});
  Record record;
  record.machine = read_machine(root.at("machine"));
  const JsonPlace limits = root.at("limits");
  limits.allow_only({"noise_ratio", "time_s", "least_samples", "most_samples"});
  record.limits.noise = limits.at("noise_ratio").number(1e-6, 1.0);
  record.limits.time_s = limits.at("time_s").number(1e-3, 1e6);
  record.limits.least_samples = static_cast<int>(limits.at("least_samples").integer(1, 1'000'000));
  record.limits.most_samples = static_cast<int>(limits.at("most_samples").integer(1, 1'000'000));
  record.command = plain_text(root.at("command"));
  record.program = plain_text(root.at("program"));
  record.started = plain_text(root.at("started"));
  for (const JsonPlace& json : root.at("reference").elements()) {
    json.allow_only({"at_s", "median_us"});
    record.reference.push_back(
        {json.at("at_s").number(0.0, 1e9), json.at("median_us").number(1e-3, longest_us)});
  }
  std::set<std::string> ids;
  for (const JsonPlace& json : root.at("measurements").elements()) {
    record.measurements.push_back(read_measurement(json));
    if (!ids.insert(record.measurements.back().what.id()).second)
      json.fail("repeats a case", "keep one of them");
  }
  root.at("digest").text();
  require_digest(text, file);
  return record;
}

void require_same_machine(const Record& record, const Machine& machine, const std::string& file) {
  const Json::Object then = machine_json(record.machine), now = machine_json(machine);
  for (std::size_t i = 0; i < then.size(); ++i)
    if (then[i].second.text() != now[i].second.text())
      fail_input({file, "/machine/" + then[i].first},
                 "is " + then[i].second.text() + ", but here it is " + now[i].second.text(),
                 "name another output file with -o and this one with --besides: one record holds "
                 "one machine, and orrery calibrate fit joins several");
}

}  // namespace orrery::calibration
