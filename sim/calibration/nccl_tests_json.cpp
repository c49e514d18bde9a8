// The file that nccl-tests writes with -J, since 2.17.3. Its booleans are the strings "true" and
// "false", and a figure that was not measured is a string, too. The environment that it also holds
// is not looked at: it may have secrets in it.
#include "sim/calibration/nccl_tests_run.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

constexpr int most_ranks = 10'000'000;
// Above any time in us, any size in bytes and any rate in GB/s that a run can print.
constexpr double largest = 1e18;

double number_or_zero(const JsonValue& json, const std::string& key) {
  const auto found = json.find(key);
  return found && found->is_number() ? found->number(0.0, largest) : 0.0;
}

std::string text_or_empty(const JsonValue& json, const std::string& key) {
  const auto found = json.find(key);
  return found && found->is_string() ? found->text() : "";
}

NcclTestsRun::Device device_of(const JsonValue& json) {
  NcclTestsRun::Device device;
  device.rank = static_cast<int>(json.at("rank").integer(0, most_ranks));
  if (const auto group = json.find("group"))
    device.group = static_cast<int>(group->integer(0, most_ranks));
  device.host = json.at("hostname").text();
  device.device = static_cast<int>(json.at("device").integer(0, most_ranks));
  device.gpu = text_or_empty(json, "device_info");
  return device;
}

void refuse_wrong_half(const JsonValue& half) {
  const auto wrong = half.find("nwrong");
  if (wrong && wrong->is_number()) refuse_wrong_results(half.place(), wrong->number(0.0, largest));
}

NcclTestsRun::Row row_of(const JsonValue& json) {
  NcclTestsRun::Row row;
  row.place = json.place();
  row.bytes = json.at("size").number(0.0, largest);
  row.type = text_or_empty(json, "type");
  for (const char* key : {"out_of_place", "in_place"})
    if (const auto half = json.find(key)) refuse_wrong_half(*half);
  for (const char* key : {"out_of_place", "in_place"}) {
    const auto half = json.find(key);
    if (!half) continue;
    if (half->has("cpu_time"))
      half->at("cpu_time").fail("is the CPU's time (option -C)", "run it again without -C");
    row.time_us = number_or_zero(*half, "time");
    if (row.time_us == 0.0) continue;
    row.in_place = std::string{key} == "in_place";
    row.algorithm_gb_s = number_or_zero(*half, "alg_bw");
    row.bus_gb_s = number_or_zero(*half, "bus_bw");
    check_row(row);
    return row;
  }
  json.fail("has no time", "remove the entry, or run that size again");
}

}  // namespace

NcclTestsRun parse_nccl_tests_json(const std::string& text, const std::string& file) {
  const JsonValue json = JsonValue::parse(text, file);
  if (!json.is_object() || !json.has("results") || !json.has("config"))
    json.fail("is JSON, but not what nccl-tests writes with -J (no 'config' and 'results')",
              "give the file that all_reduce_perf -J FILE wrote, or its text output");
  NcclTestsRun run;
  run.place = json.place();
  run.has_table = true;
  if (const auto arguments = json.find("args"); arguments && arguments->is_array())
    if (const auto words = arguments->elements(); !words.empty() && words[0].is_string())
      run.program = words[0].text();
  if (const auto version = json.find("nccl_version"))
    run.nccl = nccl_version_text(
        version->is_string() ? version->text() : std::to_string(version->integer(0, 1 << 24)));
  if (const auto devices = json.at("config").find("devices"))
    for (const JsonValue& device : devices->elements()) run.devices.push_back(device_of(device));
  for (const JsonValue& row : json.at("results").elements()) run.rows.push_back(row_of(row));
  if (run.rows.empty())
    json.at("results").fail("the run has no row of results", "it failed; run it again");
  if (const auto bounds = json.find("out_of_bounds")) {
    run.is_complete = true;
    const auto okay = bounds->find("okay");
    const bool failed =
        okay && (okay->is_boolean() ? !okay->boolean() : text_or_empty(*bounds, "okay") == "false");
    if (failed) refuse_wrong_results(bounds->place(), 1.0);
  }
  return run;
}

}  // namespace orrery
