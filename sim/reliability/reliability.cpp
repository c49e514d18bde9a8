#include "sim/reliability/reliability.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/core/catalog.hpp"
#include "sim/core/field.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/object_reader.hpp"

namespace orrery {
namespace {

constexpr double most = 1e12;
constexpr double most_slower = 10.0;

// A number at the front of `text`, which loses it and the blanks behind it.
double leading_number(std::string_view& text, const JsonValue& json) {
  double value = -1.0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value) || value > most)
    json.fail("'" + shown_text(json.text()) + "' is no rate",
              "write it like \"6.5 per 1000 node-days\"");
  if (value < 0.0) json.fail("'" + shown_text(json.text()) + "' is negative", "write 0 or more");
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  while (text.starts_with(' ')) text.remove_prefix(1);
  return value;
}

// The time in which events were counted, of GPUs or of jobs.
struct Exposure {
  double days = 0.0;
  bool of_jobs = false;
};

Exposure read_exposure(std::string_view text, const JsonValue& json, int gpus_per_node) {
  Exposure exposure{leading_number(text, json), text == "job-days"};
  if (text == "node-days")
    exposure.days *= gpus_per_node;
  else if (text != "GPU-days" && text != "job-days")
    json.fail("'" + shown_text(json.text()) + "' has no known unit",
              "use GPU-days, node-days or job-days");
  if (exposure.days <= 0.0)
    json.fail("'" + shown_text(json.text()) + "' is no time", "write more than 0");
  return exposure;
}

void set_rate(FailureCause& cause, double count, const Exposure& over) {
  (over.of_jobs ? cause.per_job_day : cause.per_gpu_day) = count / over.days;
}

// Reads a rate like "6.5 per 1000 node-days".
void read_rate(FailureCause& cause, const JsonValue& json, int gpus_per_node) {
  const std::string whole = json.text();
  std::string_view text = whole;
  const double count = leading_number(text, json);
  if (!text.starts_with("per "))
    json.fail("'" + shown_text(whole) + "' does not say over which time",
              "write it like \"6.5 per 1000 node-days\"");
  text.remove_prefix(4);
  set_rate(cause, count, read_exposure(text, json, gpus_per_node));
}

TimeRange read_detection(const JsonValue& json) {
  json.allow_only({"low", "high", "source"});
  required_text(json, "source");
  const TimeRange range{span_of(json.at("low")), span_of(json.at("high"))};
  if (range.low > range.high) json.fail("\"low\" is above \"high\"", "exchange them");
  return range;
}

FailureGroup read_group(const std::string& name, const JsonValue& json) {
  json.allow_only({"detection", "replaces", "planned", "survives"});
  FailureGroup group;
  group.name = name;
  group.detection = read_detection(json.at("detection"));
  group.replaces = json.at("replaces").boolean();
  if (const auto planned = json.find("planned")) group.planned = planned->boolean();
  group.survives = choice<CheckpointTier>(json.at("survives"));
  return group;
}

void read_groups(Reliability& profile, const JsonValue& json) {
  for (const std::string& name : json.keys()) {
    const FailureGroup group = read_group(name, json.at(name));
    const auto known = std::find_if(profile.groups.begin(), profile.groups.end(),
                                    [&](const FailureGroup& other) { return other.name == name; });
    if (known == profile.groups.end())
      profile.groups.push_back(group);
    else
      *known = group;
  }
}

std::size_t group_of(const Reliability& profile, const JsonValue& json) {
  return choice<std::size_t>(json, names_of(profile.groups));
}

// The "events" or the "rate" of an entry of the profile `json`.
void read_frequency(FailureCause& cause, const JsonValue& entry, const JsonValue& json) {
  const int gpus_per_node =
      json.has("gpus_per_node")
          ? static_cast<int>(json.at("gpus_per_node").sourced().integer(1, 1024))
          : 1;
  if (entry.has("events") == entry.has("rate"))
    entry.fail("needs either \"events\", a count in the file's \"exposure\", or \"rate\"",
               "write one of them");
  if (const auto rate = entry.find("rate")) {
    if (rate->sourced().text().find("node-days") != std::string::npos) json.at("gpus_per_node");
    read_rate(cause, rate->sourced(), gpus_per_node);
  } else {
    const JsonValue exposure = json.at("exposure").sourced();
    cause.events = entry.at("events").sourced().number(0, most);
    set_rate(cause, cause.events, read_exposure(exposure.text(), exposure, gpus_per_node));
  }
}

SlowGpus read_slow_gpus(const JsonValue& entry, const JsonValue& json) {
  entry.allow_only({"events", "rate", "slower", "detection"});
  FailureCause frequency;
  read_frequency(frequency, entry, json);
  if (frequency.per_job_day > 0.0)
    entry.at("rate").fail("is of jobs, and GPUs become slow", "use GPU-days or node-days");
  SlowGpus slow{frequency.per_gpu_day, frequency.events, 0.0, 0.0,
                read_detection(entry.at("detection"))};
  const JsonValue slower = entry.at("slower");
  slower.allow_only({"low", "high", "source"});
  required_text(slower, "source");
  slow.least = slower.at("low").number(0.0, most_slower);
  slow.most = slower.at("high").number(0.0, most_slower);
  if (slow.most == 0.0)
    slower.at("high").fail("is not slower", "write by how much kernels take longer: 0.05 is 5 %");
  if (slow.least > slow.most) slower.fail("\"low\" is above \"high\"", "exchange them");
  return slow;
}

std::vector<FailureCause> read_causes(const Reliability& profile, const JsonValue& json) {
  std::vector<FailureCause> causes;
  for (const JsonValue& entry : json.at("causes").elements()) {
    entry.allow_only({"name", "group", "events", "rate"});
    FailureCause cause;
    cause.name = required_text(entry, "name");
    cause.group = group_of(profile, entry.at("group"));
    read_frequency(cause, entry, json);
    for (const FailureCause& other : causes)
      if (other.name == cause.name) entry.at("name").fail("stands here twice", "name it once");
    causes.push_back(cause);
  }
  if (causes.empty()) json.at("causes").fail("is empty", "say what fails");
  return causes;
}

std::vector<Seconds> read_repair(const JsonValue& json) {
  std::vector<Seconds> quantiles;
  for (const JsonValue& value : json.elements()) {
    quantiles.push_back(span_of(value));
    if (quantiles.back() < Seconds{1e-6}) value.fail("is no time to repair", "write more than 0");
    if (quantiles.size() > 1 && quantiles.back() < quantiles[quantiles.size() - 2])
      value.fail("is below the quantile before it", "list them from the shortest to the longest");
  }
  if (quantiles.size() < 2)
    json.fail("has too few quantiles", "list the shortest and the longest at least");
  return quantiles;
}

std::vector<double> read_batches(const JsonValue& json) {
  json.allow_only({"counts", "gpus", "source"});
  required_text(json, "source");
  std::vector<double> counts;
  double sum = 0.0;
  for (const JsonValue& count : json.at("counts").elements())
    sum += counts.emplace_back(count.number(0, most));
  if (sum == 0.0)
    json.at("counts").fail("counts nothing", "write how many came alone, in twos, in threes");
  return counts;
}

// The store's stall, or one of each tier.
void read_stalls(Reliability& profile, const JsonValue& json) {
  Seconds& store = profile.stalls[static_cast<std::size_t>(CheckpointTier::store)];
  if (json.is_object() && !json.has("value") && !json.has("source")) {
    json.allow_only(enum_words<CheckpointTier>);
    for (std::size_t i = 0; i < profile.stalls.size(); ++i)
      if (const auto of_tier = json.find(enum_words<CheckpointTier>[i]))
        profile.stalls[i] = span_of(of_tier->sourced());
  } else {
    store = span_of(json.sourced());
  }
  if (store == Seconds{}) json.fail("is no time for the store", "write at least 1e-6 s");
}

TimeByGpus read_by_gpus(const JsonValue& json) {
  json.allow_only({"base", "each", "source"});
  required_text(json, "source");
  const JsonValue each = json.at("each");
  if (each.duration() > Seconds{1000.0})
    each.fail("is much for one GPU", "check the number and its unit");
  return {span_of(json.at("base")), each.duration()};
}

}  // namespace

double Reliability::per_day(int gpus) const {
  double sum = 0.0;
  for (const FailureCause& cause : causes) sum += cause.per_day(gpus);
  return sum;
}

double Reliability::events() const {
  double sum = 0.0;
  for (const FailureCause& cause : causes) {
    if (cause.events == 0.0) return 0.0;
    sum += cause.events;
  }
  return sum;
}

Reliability parse_reliability(const JsonValue& json, const Reliability& base) {
  require_schema(json, "orrery.reliability/1");
  json.allow_only({"schema", "name", "title", "gpus_per_node", "exposure", "groups", "causes",
                   "slow_gpus", "speeds", "spread", "months", "batches", "repair", "refill",
                   "restart", "regroup", "stall", "store_per_gpu"});
  Reliability profile = base;
  profile.name = required_text(json, "name");
  profile.title = required_text(json, "title");
  if (const auto groups = json.find("groups")) read_groups(profile, *groups);
  profile.causes = read_causes(profile, json);
  if (const auto slow = json.find("slow_gpus")) profile.slow = read_slow_gpus(*slow, json);
  if (const auto speeds = json.find("speeds")) {
    speeds->allow_only({"deviation", "source"});
    required_text(*speeds, "source");
    profile.speed_deviation = speeds->at("deviation").number(0, 1);
  }
  if (const auto spread = json.find("spread")) profile.spread = spread->sourced().number(1, 10);
  // A key is required where the base has no value.
  for (const auto& [key, open] :
       {std::pair{"months", profile.month == Seconds{}},
        std::pair{"repair", profile.repair.empty()},
        std::pair{"restart", profile.restart.base == Seconds{}},
        std::pair{"regroup", profile.regroup.each == Seconds{}},
        std::pair{"stall", profile.stall(CheckpointTier::store) == Seconds{}},
        std::pair{"store_per_gpu", profile.store_per_gpu == BytesPerSecond{}}})
    if (open) json.at(key);
  if (const auto months = json.find("months")) {
    months->allow_only({"deviation", "length", "source"});
    required_text(*months, "source");
    profile.month_deviation = months->at("deviation").number(0, 3);
    profile.month = span_of(months->at("length"));
    if (profile.month < Seconds{60.0}) months->at("length").fail("is no month", "write days: 30 d");
  }
  if (const auto batches = json.find("batches")) {
    profile.batches = read_batches(*batches);
    profile.batch_gpus = static_cast<int>(batches->at("gpus").integer(1, 100'000'000));
  }
  if (const auto repair = json.find("repair")) profile.repair = read_repair(repair->sourced());
  if (const auto refill = json.find("refill")) profile.refill = span_of(refill->sourced());
  if (const auto restart = json.find("restart")) profile.restart = read_by_gpus(*restart);
  if (const auto regroup = json.find("regroup")) profile.regroup = read_by_gpus(*regroup);
  if (const auto stall = json.find("stall")) read_stalls(profile, *stall);
  if (const auto store = json.find("store_per_gpu"))
    profile.store_per_gpu = store->sourced().bandwidth();
  profile.document = json;
  return profile;
}

Reliability read_reliability(const std::string& word, const Place& at) {
  const std::string folder = "workloads/reliability";
  const std::string path = find_in_catalog(folder, word, at);
  const std::string usual = find_in_catalog(folder, "default", {});
  const Reliability base = parse_reliability(JsonValue::read_file(usual), {});
  return path == usual ? base : parse_reliability(JsonValue::read_file(path), base);
}

}  // namespace orrery
