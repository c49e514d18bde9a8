#include "sim/reliability/fault_trace.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <queue>

#include "sim/core/catalog.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/object_reader.hpp"
#include "sim/reliability/reliability.hpp"

namespace orrery {
namespace {

constexpr Seconds day{86400.0};
constexpr int most_servers = 1 << 20;

// A line of the file: a fault of one server, possibly while it is already down.
struct Event {
  Seconds start, end;
  std::string server;
  std::size_t cause = 0;
};

class TraceReader {
 public:
  explicit TraceReader(FaultTrace& trace) : trace_{trace} {}

  std::size_t cause(const std::string& name, const std::string& group) {
    for (std::size_t i = 0; i < trace_.causes.size(); ++i)
      if (trace_.causes[i].name == name && trace_.causes[i].group == group) return i;
    trace_.causes.push_back({name, group});
    return trace_.causes.size() - 1;
  }
  void add(Event event) { events_.push_back(std::move(event)); }

  // Merges the overlapping events of each server; its spans are sorted by their start.
  void finish(const JsonValue& json) {
    std::stable_sort(events_.begin(), events_.end(),
                     [](const Event& a, const Event& b) { return a.start < b.start; });
    std::map<std::string, std::size_t> last;  // Its place in trace_.faults.
    for (const Event& event : events_) {
      const auto [known, fresh] = last.try_emplace(event.server, trace_.faults.size());
      if (!fresh && event.start <= trace_.faults[known->second].end) {
        Seconds& end = trace_.faults[known->second].end;
        end = std::max(end, event.end);
        continue;
      }
      known->second = trace_.faults.size();
      trace_.faults.push_back({event.start, event.end, event.cause});
      ++trace_.causes[event.cause].faults;
    }
    if (trace_.faults.empty()) json.fail("has no faults", "there is nothing to replay");
    if (static_cast<int>(last.size()) > trace_.servers)
      json.fail("names " + grouped(static_cast<std::int64_t>(last.size())) +
                    " servers, more than the " + grouped(trace_.servers) + " of the fleet",
                "say how many there are");
    drop_unused_causes();
    count_down();
  }

 private:
  // Those of faults that came to servers which were down.
  void drop_unused_causes() {
    std::vector<FaultTrace::Cause> used;
    std::vector<std::size_t> now;
    for (const FaultTrace::Cause& cause : trace_.causes) {
      now.push_back(used.size());
      if (cause.faults > 0) used.push_back(cause);
    }
    trace_.causes = std::move(used);
    for (ServerFault& fault : trace_.faults) fault.cause = now[fault.cause];
  }

  void count_down() {
    std::priority_queue<double, std::vector<double>, std::greater<>> ends;
    for (ServerFault& fault : trace_.faults) {
      while (!ends.empty() && ends.top() <= fault.start.si()) ends.pop();
      fault.down_before = static_cast<int>(ends.size());
      ends.push(fault.end.si());
    }
  }

  FaultTrace& trace_;
  std::vector<Event> events_;
};

int servers_of(const JsonValue& json, std::optional<int> given) {
  if (given) return *given;
  if (!json.is_object() || !json.has("servers"))
    json.fail("does not say how many servers the fleet has, with those that never failed",
              "add --servers N");
  return static_cast<int>(json.at("servers").integer(1, most_servers));
}

void read_own(const JsonValue& json, FaultTrace& trace) {
  require_schema(json, "orrery.faults/1");
  json.allow_only({"schema", "title", "source", "servers", "length", "faults"});
  trace.length = span_of(json.at("length"));
  if (trace.length <= Seconds{}) json.at("length").fail("is no time", "write days: 349 d");
  TraceReader reader{trace};
  for (const JsonValue& entry : json.at("faults").elements()) {
    entry.allow_only({"server", "start", "end", "cause", "group"});
    Event event{span_of(entry.at("start")), trace.length, entry.at("server").text(), 0};
    if (entry.has("end")) event.end = span_of(entry.at("end"));
    if (event.end < event.start) entry.at("end").fail("is before \"start\"", "exchange them");
    if (event.end > trace.length)
      entry.fail("lasts beyond the record's " + span_text(trace.length),
                 "leave out \"end\" if it is unknown");
    event.cause = reader.cause(entry.at("cause").text(), entry.at("group").text());
    reader.add(std::move(event));
  }
  reader.finish(json);
}

// Their classes map to ours, by more specific names where they give them. Most of "other" had no
// cause found; it takes a server away like a fault of the host.
std::string group_of(const std::string& level, const std::string& of_class) {
  if (of_class == "GPU" || of_class == "Riser Card") return "gpu";
  if (of_class == "NIC" || of_class == "Parameter Plane Cable") return "network";
  return level == "Software Failure" ? "software" : "host";
}

// A list of starts and ends in days, each with its fault.
void read_infinite_hbd(const JsonValue& json, FaultTrace& trace) {
  TraceReader reader{trace};
  std::map<std::pair<std::string, std::size_t>, Seconds> open;
  Seconds now;
  for (const JsonValue& entry : json.elements()) {
    const JsonValue type = entry.at("fault_type");
    const std::string level = type.at("Level").text(), of_class = type.at("Class").text();
    const std::string server = entry.at("node_id").text();
    const Seconds at = day * entry.at("event_time").number(0.0, longest_span / day);
    if (at < now) entry.at("event_time").fail("is before the event above", "sort the events");
    now = at;
    const std::size_t cause = reader.cause(of_class, group_of(level, of_class));
    const bool starts = choice<int>(entry.at("event_type"), {"fault_start", "fault_end"}) == 0;
    const auto known = open.find({server, cause});
    if (starts) {
      if (known == open.end()) open[{server, cause}] = at;
    } else if (known == open.end()) {
      entry.fail("ends a fault that has not begun", "keep the \"fault_start\" of each");
    } else {
      reader.add({known->second, at, server, cause});
      open.erase(known);
    }
  }
  trace.length = now;
  for (const auto& [of, start] : open) reader.add({start, now, of.first, of.second});
  if (now <= Seconds{}) json.fail("has no faults", "there is nothing to replay");
  reader.finish(json);
}

// Faults that begin within an hour of the one before come together.
std::vector<double> batches_of(const FaultTrace& trace) {
  constexpr Seconds together{3600.0};
  std::vector<Seconds> starts;
  for (const ServerFault& fault : trace.faults) starts.push_back(fault.start);
  std::sort(starts.begin(), starts.end());
  std::vector<double> counts;
  for (std::size_t i = 0; i < starts.size();) {
    std::size_t end = i + 1;
    while (end < starts.size() && starts[end] - starts[end - 1] <= together) ++end;
    if (counts.size() < end - i) counts.resize(end - i);
    ++counts[end - i - 1];
    i = end;
  }
  return counts;
}

// The variance of a month's count over its mean at a constant rate: a batch counts as often as it
// is large.
double counting_variance(const std::vector<double>& batches) {
  double faults = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const auto size = static_cast<double>(i + 1);
    faults += size * batches[i], squares += size * size * batches[i];
  }
  return faults > 0.0 ? squares / faults : 1.0;
}

double month_deviation(const FaultTrace& trace, Seconds month, double counting) {
  const int months = static_cast<int>(trace.length / month);
  if (months < 2) return 0.0;
  std::vector<double> counts(static_cast<std::size_t>(months));
  for (const ServerFault& fault : trace.faults)
    if (const auto of = static_cast<std::size_t>(fault.start / month); of < counts.size())
      ++counts[of];
  double mean = 0.0, variance = 0.0;
  for (const double count : counts) mean += count / months;
  for (const double count : counts) variance += (count - mean) * (count - mean) / (months - 1);
  return mean > 0.0 ? std::sqrt(std::max(0.0, variance - counting * mean)) / mean : 0.0;
}

std::vector<Seconds> repair_quantiles(const FaultTrace& trace) {
  constexpr std::size_t parts = 20;
  std::vector<Seconds> times, quantiles;
  for (const ServerFault& fault : trace.faults)
    times.push_back(std::max(Seconds{1.0}, fault.end - fault.start));
  std::sort(times.begin(), times.end());
  for (std::size_t i = 0; i <= parts; ++i)
    quantiles.push_back(times[((times.size() - 1) * i + parts / 2) / parts]);
  return quantiles;
}

}  // namespace

FaultTrace parse_fault_trace(const JsonValue& json, std::optional<int> servers) {
  FaultTrace trace;
  trace.file = json.place().file;
  trace.name = std::filesystem::path{trace.file}.stem().string();
  trace.servers = servers_of(json, servers);
  if (json.is_array())
    read_infinite_hbd(json, trace);
  else
    read_own(json, trace);
  return trace;
}

FaultTrace read_fault_trace(const std::string& word, std::optional<int> servers, const Place& at) {
  return parse_fault_trace(JsonValue::read_file(find_in_catalog("workloads/faults", word, at)),
                           servers);
}

Reliability profile_of(const FaultTrace& trace, const Reliability& base, int gpus_per_server) {
  Reliability profile = base;
  profile.name = trace.name;
  profile.title = grouped(trace.servers) + " servers for " + span_text(trace.length);
  profile.causes.clear();
  const double gpu_days = trace.length / day * trace.servers * gpus_per_server;
  for (const FaultTrace::Cause& cause : trace.causes) {
    const auto group =
        std::find_if(base.groups.begin(), base.groups.end(),
                     [&](const FailureGroup& known) { return known.name == cause.group; });
    if (group == base.groups.end())
      fail_input({trace.file, ""}, "has faults of the group '" + shown_text(cause.group) + "'",
                 "use a group of the profile '" + base.name + "', or a profile that has it");
    profile.causes.push_back({cause.name, static_cast<std::size_t>(group - base.groups.begin()),
                              cause.faults / gpu_days, 0.0, static_cast<double>(cause.faults)});
  }
  profile.batches = batches_of(trace);
  profile.batch_gpus = trace.servers * gpus_per_server;
  profile.month_deviation = month_deviation(trace, base.month, counting_variance(profile.batches));
  profile.repair = repair_quantiles(trace);
  profile.document.reset();
  return profile;
}

}  // namespace orrery
