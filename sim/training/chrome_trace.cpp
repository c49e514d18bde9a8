#include "sim/training/chrome_trace.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "sim/core/error.hpp"
#include "sim/core/number_text.hpp"
#include "sim/training/trace_slices.hpp"

namespace orrery {
namespace {

// Written by hand and not through a tree of values: half a million events need little memory, and
// times keep their three decimals.
std::string json_text(const std::string& text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

// At most three decimals, none where there are none.
std::string number(double value) {
  char text[400];
  char* end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 3).ptr;
  while (end[-1] == '0') --end;
  if (end[-1] == '.') --end;
  return {text, end};
}

std::vector<int> chosen_roles(const Cast& cast, const std::vector<int>& ranks) {
  std::vector<int> roles;
  const int most = cast.placement().ranks();
  for (int rank : ranks) {
    if (rank < 0 || rank >= most)
      fail_input(Place{} / "trace-ranks",
                 "rank " + std::to_string(rank) + " is none of the plan's " + std::to_string(most),
                 "use 0 to " + std::to_string(most - 1));
    roles.push_back(cast.role_of(Rank{rank}));
  }
  if (ranks.empty())
    for (std::size_t i = 0; i < cast.roles().size(); ++i) roles.push_back(static_cast<int>(i));
  sort_by_place(roles, cast);
  roles.erase(std::unique(roles.begin(), roles.end()), roles.end());
  return roles;
}

[[noreturn]] void refuse_so_many(std::int64_t events, std::int64_t most,
                                 const std::vector<int>& roles, const Cast& cast) {
  const std::int64_t a_rank = events / static_cast<std::int64_t>(roles.size());
  std::string remedy = "trace a step of fewer micro-batches";
  if (a_rank <= most && roles.size() > 1) {
    const auto rank_of = [&](int role) {
      return std::to_string(cast.roles()[static_cast<std::size_t>(role)].rank.value);
    };
    remedy = "draw fewer ranks, such as --trace-ranks " + rank_of(roles.front());
    if (2 * a_rank <= most) remedy += "," + rank_of(roles.back());
    remedy += " (about " + grouped(a_rank) + " events a rank)";
  }
  fail_infeasible(Place{} / "trace",
                  "the trace has " + grouped(events) + " events, and viewers bear " + grouped(most),
                  remedy);
}

bool has_collectives_inside(const Plan& plan) { return plan.tp > 1 || plan.cp > 1 || plan.ep > 1; }

class Writer {
 public:
  explicit Writer(const Cast& cast) : cast_{cast} {}

  void begin(const Scenario& scenario, Seconds step_time, bool expanded,
             const std::vector<std::string>& warnings) {
    std::string said;
    for (const std::string& warning : warnings)
      said += (said.empty() ? ",\"warnings\":[" : ",") + json_text(warning);
    if (!said.empty()) said += "]";
    text_ =
        "{\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"model\":" + json_text(scenario.model.name) +
        ",\"system\":" + json_text(scenario.system.name) +
        ",\"gpus\":" + std::to_string(scenario.plan.gpus()) +
        ",\"step_time_us\":" + number(step_time.si() * 1e6) +
        ",\"drawn_inside_passes\":" + (expanded ? "\"micro-batches 0 and 1\"" : "\"none\"") + said +
        "},\n\"traceEvents\":[";
  }

  void name_rank(int role_index, int position) {
    const Role& role = role_of(role_index);
    std::string name = "rank " + std::to_string(role.rank.value) + " (stage " +
                       std::to_string(role.at.stage) + ", dp " + std::to_string(role.at.data) +
                       ", tp " + std::to_string(role.at.tensor) + ")";
    if (role.ranks > 1) name += " x " + std::to_string(role.ranks) + " ranks";
    metadata(place(role, -1), "process_name", "\"name\":" + json_text(name));
    metadata(place(role, -1), "process_sort_index", "\"sort_index\":" + std::to_string(position));
  }

  void name_track(const Slice& first) {
    const Role& role = role_of(first.role);
    const int track = static_cast<int>(first.track);
    std::string name = orrery::name(first.track);
    if (first.of_rank >= 0) name += std::to_string(first.of_rank);
    const std::int64_t order = track + std::max(0, first.of_rank);
    metadata(place(role, track, first.of_rank), "thread_name", "\"name\":" + json_text(name));
    metadata(place(role, track, first.of_rank), "thread_sort_index",
             "\"sort_index\":" + std::to_string(order));
  }

  void add(const Slice& slice) {
    const std::string where =
        place(role_of(slice.role), static_cast<int>(slice.track), slice.of_rank) +
        ",\"ts\":" + microseconds_text(slice.start_ns);
    next_event();
    text_ += "{\"ph\":\"X\"," + where +
             ",\"dur\":" + microseconds_text(slice.finish_ns - slice.start_ns) + ",\"name\":\"" +
             slice.name + "\",\"cat\":\"" + std::string{slice.category} + "\"";
    if (!slice.facts.empty()) text_ += ",\"args\":{" + facts(slice) + "}";
    text_ += "}";
    // Right behind their slice, so that they bind to it and not to one that ends or begins there.
    if (slice.sends >= 0) arrow("\"ph\":\"s\"", slice.sends, where);
    for (const int id : slice.receives) arrow("\"ph\":\"f\",\"bp\":\"e\"", id, where);
  }

  std::string end() { return std::move(text_ += "\n]}\n"); }

 private:
  const Role& role_of(int index) const { return cast_.roles()[static_cast<std::size_t>(index)]; }

  // Thread numbers differ over the whole trace and from their process's: a thread with the number
  // of its process is taken for the main thread and moved to the top.
  static std::string place(const Role& role, int track, int of_rank = -1) {
    const std::string process = "\"pid\":" + std::to_string(role.rank.value);
    if (track < 0) return process;
    const std::int64_t whose = of_rank < 0 ? role.rank.value : of_rank;
    const std::int64_t thread = (whose + 1) * tracks + track;
    return process + ",\"tid\":" + std::to_string(thread);
  }

  static std::string facts(const Slice& slice) {
    std::string text;
    for (const auto& [key, value] : slice.facts)
      text += (text.empty() ? "\"" : ",\"") + std::string{key} + "\":" + number(value);
    return text;
  }

  void next_event() {
    text_ += first_ ? "\n" : ",\n";
    first_ = false;
  }

  void metadata(const std::string& where, const char* name, const std::string& args) {
    next_event();
    text_ += "{\"ph\":\"M\"," + where + ",\"name\":\"" + name + "\",\"args\":{" + args + "}}";
  }

  void arrow(const char* kind, int id, const std::string& where) {
    next_event();
    text_ += "{" + std::string{kind} + "," + where + ",\"id\":" + std::to_string(id) +
             ",\"name\":\"transfer\",\"cat\":\"transfer\"}";
  }

  const Cast& cast_;
  std::string text_;
  bool first_ = true;
};

}  // namespace

std::string chrome_trace(const TrainingStep& step, const Timeline& timeline,
                         const Scenario& scenario, const TraceOptions& options) {
  SliceChoice choice{chosen_roles(step.cast, options.ranks), options.expand, options.most_events};
  const auto events_of = [](const Slices& drawn) {
    std::int64_t arrows = 0;
    for (const Slice& slice : drawn.slices)
      arrows += (slice.sends >= 0) + static_cast<std::int64_t>(slice.receives.size());
    return drawn.count + arrows;
  };
  Slices drawn = slices_of(step, timeline, scenario, choice);
  if (choice.inside_passes && events_of(drawn) > options.most_events) {
    choice.inside_passes = false;
    drawn = slices_of(step, timeline, scenario, choice);
  }
  if (events_of(drawn) > options.most_events)
    refuse_so_many(events_of(drawn), options.most_events, choice.roles, step.cast);

  Writer writer{step.cast};
  writer.begin(scenario, timeline.makespan.seconds(),
               choice.inside_passes && has_collectives_inside(scenario.plan), options.warnings);
  for (std::size_t i = 0; i < choice.roles.size(); ++i)
    writer.name_rank(choice.roles[i], static_cast<int>(i));
  const Slice* last = nullptr;
  for (const Slice& slice : drawn.slices) {
    if (!last || last->role != slice.role || last->track != slice.track ||
        last->of_rank != slice.of_rank)
      writer.name_track(slice);
    writer.add(slice);
    last = &slice;
  }
  return writer.end();
}

}  // namespace orrery
