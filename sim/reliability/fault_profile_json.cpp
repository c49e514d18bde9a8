#include "sim/reliability/fault_profile_json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/number_text.hpp"

namespace orrery {
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
      {"gpus_per_node", {{"value", gpus_per_server}, {"source", "as the import was told"}}},
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
