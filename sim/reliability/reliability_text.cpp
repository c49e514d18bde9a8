#include "sim/reliability/reliability_text.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/reliability/slow_gpus.hpp"

namespace orrery {
namespace {

constexpr double day_s = 86400.0;

std::string detection_text(const TimeRange& range) {
  if (range.high == Seconds{}) return "announced";
  const std::string high = span_text(range.high);
  return range.low == range.high ? high : "up to " + high;
}

// Keys that the profile's own file leaves to default.json.
std::string borrowed_keys(const Reliability& profile) {
  std::string keys;
  for (const char* key :
       {"groups", "speeds", "months", "repair", "restart", "regroup", "stall", "store_per_gpu"})
    if (profile.name != "default" && profile.document && !profile.document->has(key))
      keys += (keys.empty() ? "" : ", ") + std::string{key};
  return keys;
}

}  // namespace

std::string reliability_text(const Reliability& profile) {
  std::string text = profile.name + ": " + profile.title;
  if (profile.events() > 0.0)
    text += ", " + grouped(std::llround(profile.events())) + " events";
  else if (profile.spread > 1.0)
    text += ", known to a factor of " + fixed(profile.spread, 2);
  return text;
}

std::string reliability_details(const Reliability& profile, int gpus) {
  std::string text = "reliability " + reliability_text(profile) + "\n";
  Table table{{{"cause", Align::left},
               {"group", Align::left},
               {"at " + grouped(gpus) + " GPUs"},
               {"found after"},
               {"its node", Align::left},
               {"copies left", Align::left}}};
  const auto each = [&](double per_day) {
    return per_day > 0.0 ? "each " + span_text(Seconds{day_s / per_day}) : std::string{"never"};
  };
  for (const FailureCause& cause : profile.causes) {
    const FailureGroup& group = profile.groups[cause.group];
    table.add_row({cause.name, group.name, each(cause.per_day(gpus)),
                   detection_text(group.detection), group.replaces ? "replaced" : "stays",
                   name(group.survives)});
  }
  table.add_row({"all", "", each(profile.per_day(gpus))});
  text += table.text();
  Seconds mean;
  for (std::size_t i = 0; i + 1 < profile.repair.size(); ++i) {
    // The mean of a log-uniform time.
    const double low = profile.repair[i].si(), high = profile.repair[i + 1].si();
    const double part = high > low ? (high - low) / std::log(high / low) : low;
    mean += Seconds{part / static_cast<double>(profile.repair.size() - 1)};
  }
  Table rest{{{"", Align::left}, {"", Align::left}}};
  rest.add_row({"repair", span_text(profile.repair[profile.repair.size() / 2]) +
                              " in half of all cases, " + span_text(mean) + " on average"});
  if (profile.refill)
    rest.add_row({"refill", "a fresh node after " + span_text(*profile.refill) + " of repair"});
  if (profile.slow.per_gpu_day > 0.0) {
    const TimeRange& found = profile.slow.detection;
    rest.add_row({"slow GPUs", each(profile.slow.per_gpu_day * gpus) + " one more, by " +
                                   percent(profile.slow.least) + " to " +
                                   percent(profile.slow.most) + "; found after " +
                                   detection_text(found)});
  }
  if (profile.speed_deviation > 0.0)
    rest.add_row({"speeds", "healthy GPUs differ by " + percent(profile.speed_deviation) +
                                ", the slowest of all by " +
                                percent(profile.speed_deviation * largest_of_normal(gpus, 0.5))});
  if (profile.batches.size() > 1) {
    double batches = 0.0, failures = 0.0;
    for (std::size_t i = 0; i < profile.batches.size(); ++i)
      batches += profile.batches[i], failures += static_cast<double>(i + 1) * profile.batches[i];
    rest.add_row({"batches", fixed(failures / batches, 2) + " fail together on average, up to " +
                                 grouped(static_cast<std::int64_t>(profile.batches.size())) +
                                 ", and are repaired together"});
  }
  rest.add_row({"months", "rates differ by " + percent(profile.month_deviation) + " from one " +
                              span_text(profile.month) + " to the next"});
  rest.add_row({"restart", span_text(profile.restart.at(gpus)) + " of all processes, " +
                               span_text(profile.regroup.at(gpus)) + " of communicators alone"});
  std::string stalls = "training stalls for the copy off the GPUs";
  for (std::size_t i = 0; i < profile.stalls.size(); ++i)
    if (profile.stalls[i] > Seconds{})
      stalls +=
          ", " + span_text(profile.stalls[i]) + " more for '" + enum_words<CheckpointTier>[i] + "'";
  rest.add_row({"checkpoint", stalls});
  rest.add_row({"storage", bytes_text(profile.store_per_gpu * Seconds{1.0}) + "/s for each GPU"});
  if (const std::string borrowed = borrowed_keys(profile); !borrowed.empty())
    rest.add_row({"default's", borrowed});
  return text + rest.text();
}

namespace {

using Json = nlohmann::ordered_json;

// Six digits: far better than any record is known.
std::string digits(double value) {
  const double scale = std::pow(10.0, 5.0 - std::floor(std::log10(value)));
  return Json(std::round(value * scale) / scale).dump();
}

// A record may know one cause in several groups; a profile names each once.
std::string unique_name(const Reliability& profile, const FailureCause& cause) {
  for (const FailureCause& other : profile.causes)
    if (&other != &cause && other.name == cause.name)
      return cause.name + " (" + profile.groups[cause.group].name + ")";
  return cause.name;
}

}  // namespace

std::string fault_profile_json(const FaultTrace& trace, const Reliability& base,
                               int gpus_per_server) {
  const Reliability profile = profile_of(trace, base, gpus_per_server);
  const std::string record = trace.name + ", " + profile.title;
  const auto counted = [&](const char* what) { return record + ": " + what; };
  Json causes = Json::array();
  for (const FailureCause& cause : profile.causes)
    causes.push_back({{"name", unique_name(profile, cause)},
                      {"group", profile.groups[cause.group].name},
                      {"events",
                       {{"value", static_cast<std::int64_t>(cause.events)},
                        {"source", counted("faults of servers that were up")}}}});
  Json repair = Json::array();
  for (const Seconds time : profile.repair) repair.push_back(digits(time.si()) + " s");
  Json json{
      {"schema", "orrery.reliability/1"},
      {"name", profile.name},
      {"title", profile.title + ": faults of servers, whether or not a job ran"},
      {"gpus_per_node", {{"value", gpus_per_server}, {"source", "as given to the import"}}},
      {"exposure",
       {{"value", digits(trace.length.si() / 86400.0 * trace.servers) + " node-days"},
        {"source", record}}},
      {"causes", std::move(causes)},
      {"months",
       {{"deviation", std::round(1e4 * profile.month_deviation) / 1e4},
        {"length", digits(profile.month.si() / 86400.0) + " d"},
        {"source", counted("the variance of faults over months, less that of counting, over the "
                           "squared mean")}}},
      {"batches",
       {{"counts", profile.batches},
        {"gpus", profile.batch_gpus},
        {"source", counted("batches of 1, 2, ... faults that begin within an hour of the one "
                           "before")}}},
      {"repair",
       {{"value", std::move(repair)},
        {"source", counted("quantiles of the times that servers were down")}}}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery
