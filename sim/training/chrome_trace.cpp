#include "sim/training/chrome_trace.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "sim/core/error.hpp"
#include "sim/core/number_text.hpp"
#include "sim/training/trace_slices.hpp"

namespace orrery {
namespace {

// The trace is written as text, not as a tree of values: half a million events then need little
// memory, and times keep their three decimals.
std::string json_text(const std::string& text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

// Prints up to three decimals, without trailing zeros.
std::string number(double value) {
  char text[400];
  char* end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 3).ptr;
  while (end[-1] == '0') --end;
  if (end[-1] == '.') --end;
  return {text, end};
}

std::vector<int> chosen_reps(const RankClasses& classes, const std::vector<int>& ranks) {
  std::vector<int> reps;
  const int most = classes.placement().ranks();
  for (int rank : ranks) {
    if (rank < 0 || rank >= most)
      fail_input(Place{} / "perfetto-ranks",
                 "rank " + std::to_string(rank) + " is none of the plan's " + std::to_string(most),
                 "use 0 to " + std::to_string(most - 1));
    reps.push_back(classes.rep_of(Rank{rank}));
  }
  if (ranks.empty())
    for (std::size_t i = 0; i < classes.reps().size(); ++i) reps.push_back(static_cast<int>(i));
  sort_by_place(reps, classes);
  reps.erase(std::unique(reps.begin(), reps.end()), reps.end());
  return reps;
}

[[noreturn]] void refuse_so_many(std::int64_t events, std::int64_t most,
                                 const std::vector<int>& reps, const RankClasses& classes) {
  const std::int64_t a_rank = events / static_cast<std::int64_t>(reps.size());
  std::string remedy = "trace a step of fewer micro-batches";
  if (a_rank <= most && reps.size() > 1) {
    const auto rank_of = [&](int rep) {
      return std::to_string(classes.reps()[static_cast<std::size_t>(rep)].rank.value);
    };
    remedy = "draw fewer ranks, such as --perfetto-ranks " + rank_of(reps.front());
    if (2 * a_rank <= most) remedy += "," + rank_of(reps.back());
    remedy += " (about " + grouped(a_rank) + " events a rank)";
  }
  fail_infeasible(Place{} / "perfetto",
                  "the trace has " + grouped(events) + " events, and viewers bear " + grouped(most),
                  remedy);
}

bool has_collectives_inside(const Plan& plan) { return plan.tp > 1 || plan.cp > 1 || plan.ep > 1; }

class Writer {
 public:
  explicit Writer(const RankClasses& classes) : classes_{classes} {}

  void begin(const Scenario& scenario, Seconds step_time, bool expanded,
             const std::vector<std::string>& warnings) {
    std::string listed;
    for (const std::string& warning : warnings)
      listed += (listed.empty() ? ",\"warnings\":[" : ",") + json_text(warning);
    if (!listed.empty()) listed += "]";
    text_ =
        "{\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"model\":" + json_text(scenario.model.name) +
        ",\"system\":" + json_text(scenario.system.name) +
        ",\"gpus\":" + std::to_string(scenario.plan.gpus()) +
        ",\"step_time_us\":" + number(step_time.si() * 1e6) +
        ",\"drawn_inside_passes\":" + (expanded ? "\"micro-batches 0 and 1\"" : "\"none\"") +
        listed + "},\n\"traceEvents\":[";
  }

  void name_rank(int rep_index, int position) {
    const RankClass& rep = rep_of(rep_index);
    std::string name = "rank " + std::to_string(rep.rank.value) + " (stage " +
                       std::to_string(rep.at.stage) + ", dp " + std::to_string(rep.at.data) +
                       ", tp " + std::to_string(rep.at.tensor) + ")";
    if (rep.ranks > 1) name += " x " + std::to_string(rep.ranks) + " ranks";
    metadata(place(rep, -1), "process_name", "\"name\":" + json_text(name));
    metadata(place(rep, -1), "process_sort_index", "\"sort_index\":" + std::to_string(position));
  }

  void name_track(const Slice& first) {
    const RankClass& rep = rep_of(first.rep);
    const int track = static_cast<int>(first.track);
    std::string name = orrery::name(first.track);
    if (first.of_rank >= 0) name += std::to_string(first.of_rank);
    const std::int64_t order = track + std::max(0, first.of_rank);
    metadata(place(rep, track, first.of_rank), "thread_name", "\"name\":" + json_text(name));
    metadata(place(rep, track, first.of_rank), "thread_sort_index",
             "\"sort_index\":" + std::to_string(order));
  }

  void add(const Slice& slice) {
    const std::string where =
        place(rep_of(slice.rep), static_cast<int>(slice.track), slice.of_rank) +
        ",\"ts\":" + microseconds_text(slice.start_ns);
    next_event();
    text_ += "{\"ph\":\"X\"," + where +
             ",\"dur\":" + microseconds_text(slice.finish_ns - slice.start_ns) + ",\"name\":\"" +
             slice.name + "\",\"cat\":\"" + std::string{slice.category} + "\"";
    if (!slice.facts.empty()) text_ += ",\"args\":{" + facts(slice) + "}";
    text_ += "}";
    // Arrows follow their slice directly, so that viewers bind them to it and not to a neighbour.
    if (slice.sends >= 0) arrow("\"ph\":\"s\"", slice.sends, where);
    for (const int id : slice.receives) arrow("\"ph\":\"f\",\"bp\":\"e\"", id, where);
  }

  std::string end() { return std::move(text_ += "\n]}\n"); }

 private:
  const RankClass& rep_of(int index) const {
    return classes_.reps()[static_cast<std::size_t>(index)];
  }

  // Thread numbers are unique in the trace and differ from their process's number: viewers take a
  // thread with the number of its process for the main thread and move it to the top.
  static std::string place(const RankClass& rep, int track, int of_rank = -1) {
    const std::string process = "\"pid\":" + std::to_string(rep.rank.value);
    if (track < 0) return process;
    const std::int64_t whose = of_rank < 0 ? rep.rank.value : of_rank;
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

  const RankClasses& classes_;
  std::string text_;
  bool first_ = true;
};

}  // namespace

std::string chrome_trace(const TrainingStep& step, const Timeline& timeline,
                         const Scenario& scenario, const TraceOptions& options) {
  SliceChoice choice{chosen_reps(step.classes, options.ranks), options.expand, options.most_events};
  const auto events_of = [](const Slices& shown) {
    std::int64_t arrows = 0;
    for (const Slice& slice : shown.slices)
      arrows += (slice.sends >= 0) + static_cast<std::int64_t>(slice.receives.size());
    return shown.count + arrows;
  };
  Slices shown = slices_of(step, timeline, scenario, choice);
  if (choice.inside_passes && events_of(shown) > options.most_events) {
    choice.inside_passes = false;
    shown = slices_of(step, timeline, scenario, choice);
  }
  if (events_of(shown) > options.most_events)
    refuse_so_many(events_of(shown), options.most_events, choice.reps, step.classes);

  Writer writer{step.classes};
  writer.begin(scenario, timeline.makespan.seconds(),
               choice.inside_passes && has_collectives_inside(scenario.plan), options.warnings);
  for (std::size_t i = 0; i < choice.reps.size(); ++i)
    writer.name_rank(choice.reps[i], static_cast<int>(i));
  const Slice* last = nullptr;
  for (const Slice& slice : shown.slices) {
    if (!last || last->rep != slice.rep || last->track != slice.track ||
        last->of_rank != slice.of_rank)
      writer.name_track(slice);
    writer.add(slice);
    last = &slice;
  }
  return writer.end();
}

}  // namespace orrery
