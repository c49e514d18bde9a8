#include "sim/training/chrome_trace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/exhaustive/all_plans.hpp"
#include "tests/support/error_text.hpp"
#include "tests/unit/training/cases.hpp"

namespace orrery::chrome_trace_test {
namespace {

using Json = nlohmann::json;
using TrackKey = std::pair<int, int>;  // pid, tid

// A trace as a viewer takes it in: tracks of slices in file order, arrows by id, times in ns.
struct Slice {
  std::int64_t start = 0;
  std::int64_t finish = 0;
  std::string name;
  std::string category;
  Json args;
};
struct End {
  TrackKey track;
  std::int64_t at = 0;
};
struct Trace {
  std::map<TrackKey, std::vector<Slice>> tracks;
  std::map<TrackKey, std::string> track_names;
  std::map<int, std::string> rank_names;
  std::map<int, int> rank_order;
  std::map<int, std::vector<End>> leaves, arrives;
  Json other;

  const std::vector<Slice>& track(int pid, const std::string& name) const {
    static const std::vector<Slice> none;
    for (const auto& [key, title] : track_names)
      if (key.first == pid && title == name) return tracks.at(key);
    return none;
  }
};

std::int64_t ns(const Json& microseconds) { return std::llround(microseconds.get<double>() * 1e3); }

Trace parse(const std::string& text) {
  const Json json = Json::parse(text);
  Trace trace;
  trace.other = json["otherData"];
  for (const Json& event : json["traceEvents"]) {
    const std::string kind = event["ph"];
    const int pid = event["pid"];
    const TrackKey track{pid, event.value("tid", -1)};
    if (kind == "M" && event["name"] == "process_name")
      trace.rank_names[pid] = event["args"]["name"];
    if (kind == "M" && event["name"] == "process_sort_index")
      trace.rank_order[pid] = event["args"]["sort_index"];
    if (kind == "M" && event["name"] == "thread_name")
      trace.track_names[track] = event["args"]["name"];
    if (kind == "X")
      trace.tracks[track].push_back({ns(event["ts"]), ns(event["ts"]) + ns(event["dur"]),
                                     event["name"], event["cat"], event.value("args", Json{})});
    if (kind == "s") trace.leaves[event["id"]].push_back({track, ns(event["ts"])});
    if (kind == "f") {
      EXPECT_EQ(event["bp"], "e");
      trace.arrives[event["id"]].push_back({track, ns(event["ts"])});
    }
  }
  return trace;
}

Trace trace_of(const Scenario& scenario, const Estimate& answer, const TraceOptions& options = {}) {
  return parse(chrome_trace(answer.step, answer.timeline, scenario, options));
}

bool has_slice_at(const Trace& trace, const End& end, const std::string& categories) {
  for (const Slice& slice : trace.tracks.at(end.track))
    if (slice.start == end.at && categories.find(slice.category) != std::string::npos) return true;
  return false;
}

// Invariants of every trace.
void expect_sound(const Trace& trace) {
  for (const auto& [key, slices] : trace.tracks) {
    SCOPED_TRACE(trace.rank_names.at(key.first) + ", " + trace.track_names.at(key));
    EXPECT_NE(key.first, key.second) << "a viewer would take the track for the main thread";
    std::vector<std::int64_t> open;  // Ends of the slices that enclose the next one.
    std::int64_t last = 0;
    for (const Slice& slice : slices) {
      EXPECT_GE(slice.start, last) << slice.name << " is out of order";
      last = slice.start;
      EXPECT_GT(slice.finish, slice.start);
      while (!open.empty() && open.back() <= slice.start) open.pop_back();
      if (!open.empty()) {
        EXPECT_EQ(slice.category, "kernels") << "only kernels lie inside another slice";
        EXPECT_LE(slice.finish, open.back()) << slice.name << " sticks out at " << slice.start;
      }
      open.push_back(slice.finish);
    }
  }
  EXPECT_EQ(trace.leaves.size(), trace.arrives.size());
  for (const auto& [id, ends] : trace.leaves) {
    ASSERT_EQ(ends.size(), 1u);
    ASSERT_EQ(trace.arrives.count(id), 1u);
    ASSERT_EQ(trace.arrives.at(id).size(), 1u);
    const End& arrival = trace.arrives.at(id).front();
    EXPECT_TRUE(has_slice_at(trace, ends.front(), "transfer"));
    EXPECT_TRUE(has_slice_at(trace, arrival, "forward backward"));
    EXPECT_LT(ends.front().at, arrival.at);
  }
}

std::int64_t rounded(Ticks time) { return std::llround(time.seconds().si() * 1e9); }

// Slices that the trace must have for the passes and transfers of a graph.
void expect_complete(const Trace& trace, const Estimate& answer) {
  std::map<int, std::int64_t> drawn, simulated;
  std::size_t transfers = 0;
  for (const auto& [key, slices] : trace.tracks)
    for (const Slice& slice : slices)
      if (slice.args.contains("compute_us"))  // A pass, or a part of one, that is one task.
        drawn[key.first] += slice.finish - slice.start;
  for (int i = 0; i < answer.step.graph.size(); ++i) {
    const Label& label = answer.step.label(TaskId{i});
    transfers += label.what == Label::What::transfer;
    if (!label.cost) continue;
    const int rep = answer.step.graph.task(TaskId{i}).owner;
    const Span& span = answer.timeline.spans[static_cast<std::size_t>(i)];
    simulated[answer.step.classes.reps()[static_cast<std::size_t>(rep)].rank.value] +=
        rounded(span.finish) - rounded(span.start);
  }
  EXPECT_EQ(drawn, simulated);
  EXPECT_EQ(trace.leaves.size(), transfers);
  EXPECT_EQ(trace.rank_names.size(), answer.step.classes.reps().size());
}

// 1F1B on two stages and four micro-batches, as drawn above two_stages().
TEST(ChromeTrace, ShowsTheSchedule) {
  const Scenario scenario = two_stages();
  const Trace trace = trace_of(scenario, estimate(scenario));
  const auto names = [&](int pid, const char* track) {
    std::string text;
    for (const Slice& slice : trace.track(pid, track)) text += slice.name + "  ";
    return text;
  };
  EXPECT_EQ(names(0, "compute"), "F 0  F 1  B 0  F 2  B 1  F 3  B 2  B 3  optimizer  ");
  EXPECT_EQ(names(1, "compute"), "F 0  B 0  F 1  B 1  F 2  B 2  F 3  B 3  optimizer  ");
  EXPECT_EQ(names(0, "pipeline send forward"), "F 0  F 1  F 2  F 3  ");
  EXPECT_EQ(names(1, "pipeline send backward"), "B 0  B 1  B 2  B 3  ");
  EXPECT_EQ(names(0, "pipeline send backward"), "");
  EXPECT_EQ(names(0, "tensor parallel"), "");
  EXPECT_EQ(names(0, "data parallel"), "gradient norm  ");
  EXPECT_EQ(names(1, "data parallel"), "gradient norm  ");
  EXPECT_EQ(trace.rank_names.at(0), "rank 0 (stage 0, dp 0, tp 0)");
  // 512 tokens x 1024 channels x 2 bytes.
  EXPECT_EQ(trace.track(0, "pipeline send forward")[0].args["bytes"], 512 * 1024 * 2);
  EXPECT_EQ(trace.track(0, "pipeline send forward")[0].args["to_rank"], 1);
  EXPECT_EQ(trace.track(1, "compute")[2].args["microbatch"], 1);
  EXPECT_EQ(trace.other["model"], "small-gpt");
}

TEST(ChromeTrace, NamesChunksAndTheRanksThatOneRepresents) {
  const Scenario scenario = interleaved_replicas();
  const Estimate answer = estimate(scenario);
  const Trace trace = trace_of(scenario, answer);
  expect_sound(trace);
  expect_complete(trace, answer);
  // Stages of 8 ranks, two nodes each; one is shown for all.
  EXPECT_EQ(trace.rank_names,
            (std::map<int, std::string>{{0, "rank 0 (stage 0, dp 0, tp 0) x 8 ranks"},
                                        {8, "rank 8 (stage 1, dp 0, tp 0) x 8 ranks"}}));
  EXPECT_EQ(trace.rank_order, (std::map<int, int>{{0, 0}, {8, 1}}));
  const std::vector<Slice>& compute = trace.track(0, "compute");
  EXPECT_EQ(compute[0].name, "F 0 chunk 0");
  EXPECT_EQ(compute[0].args["chunk"], 0);
}

// With ZeRO and overlap weights are gathered and gradients reduced a part of the stage at a time,
// and the first and the last pass go from part to part.
TEST(ChromeTrace, NumbersThePartsOfAPass) {
  PlanRequest request = plan_request(1, 1, 1, 4, 512, "megatron-core");
  request.zero = 1;
  request.dp_overlap = true;
  const Scenario scenario =
      scenario_of(small_gpt(16, 1024, 8, 1024), read_system("two-gpus", test_place), request, 2);
  const Trace trace = trace_of(scenario, estimate(scenario));
  expect_sound(trace);
  std::map<std::string, int> parts;
  for (const Slice& slice : trace.track(0, "compute")) {
    const auto part = slice.args.find("part");
    if (part == slice.args.end()) continue;
    EXPECT_EQ(*part, parts[slice.name]);
    ++parts[slice.name];
  }
  // Two micro-batches a replica: the first forward pass and the last backward pass, in as many
  // parts as there are gathers and reductions; behind each but one, what it lost to one of them.
  std::map<std::string, int> traffic;
  for (const Slice& slice : trace.track(0, "data parallel")) ++traffic[slice.name];
  EXPECT_GT(traffic["weights"], 1);
  EXPECT_EQ(parts, (std::map<std::string, int>{{"F 0", 2 * traffic["weights"] - 1},
                                               {"B 1", 2 * traffic["gradients"] - 1}}));
}

// With `expand` the kernels and the exposed collectives of a pass fill it from end to end.
TEST(ChromeTrace, DrawsTheInsideOfTheFirstMicrobatches) {
  PlanRequest request = plan_request(4, 2, 1, 4, 512, "megatron-2021");
  const Scenario scenario =
      scenario_of(small_gpt(4, 1024, 8, 1024), read_system("four-by-four", test_place), request, 8);
  const Estimate answer = estimate(scenario);
  ASSERT_TRUE(answer.step.contracted);
  const Trace trace = trace_of(scenario, answer, {.expand = true});
  expect_sound(trace);
  expect_complete(trace, answer);
  EXPECT_EQ(trace.other["drawn_inside_passes"], "micro-batches 0 and 1");
  const std::vector<Slice>& compute = trace.track(0, "compute");
  const std::vector<Slice>& tensor = trace.track(0, "tensor parallel");
  ASSERT_EQ(compute[0].name, "F 0");
  std::int64_t filled = compute[0].start;
  std::size_t next = 0;
  for (std::size_t i = 1; i < compute.size() && compute[i].category == "kernels"; ++i) {
    for (; next < tensor.size() && tensor[next].start < compute[i].start; ++next)
      filled = std::max(filled, tensor[next].finish);
    EXPECT_EQ(filled, compute[i].start) << "a hole before kernels " << i;
    filled = compute[i].finish;
  }
  for (; next < tensor.size() && tensor[next].start < compute[0].finish; ++next)
    filled = std::max(filled, tensor[next].finish);
  EXPECT_EQ(filled, compute[0].finish);
  // Two all-reduces a layer in the forward pass, two layers a stage; one for the embedding.
  EXPECT_GE(next, 4u);
  for (const Slice& slice : tensor) EXPECT_LT(slice.args["microbatch"], 2);
}

// All plans of 8 GPUs in two nodes, with one rank a class and with every rank and collective.
TEST(ChromeTrace, IsSoundForEveryPlan) {
  const Model model = small_gpt(8, 512, 8, 1024);
  const System system = read_system("four-by-four", test_place);
  const int visited = for_each_plan(model, system, 8, [&](const Scenario& scenario) {
    for (const Detail detail :
         {Detail{}, Detail{true, false}, Detail{false, true}, Detail{true, true}}) {
      SCOPED_TRACE(describe(scenario) + (detail.unfolded ? " unfolded" : "") +
                   (detail.expanded ? " expanded" : ""));
      const Estimate answer = estimate(scenario, detail);
      const Trace trace = trace_of(scenario, answer, {.expand = true});
      expect_sound(trace);
      expect_complete(trace, answer);
    }
  });
  EXPECT_GT(visited, 50);
}

// The gradient of a tied embedding is added up by the first and the last stage.
TEST(ChromeTrace, DrawsATiedEmbeddingOnBothStages) {
  Model model = small_gpt(4, 1024, 8, 1024);
  model.tied_embeddings = true;
  const Scenario scenario = scenario_of(model, read_system("four-by-four", test_place),
                                        plan_request(1, 4, 1, 4, 512, "megatron-core"), 4);
  const Trace trace = trace_of(scenario, estimate(scenario));
  for (int rank = 0; rank < 4; ++rank) {
    const bool at_an_end = rank == 0 || rank == 3;
    EXPECT_EQ(trace.track(rank, "data parallel").front().name,
              at_an_end ? "gradients" : "gradient norm");
  }
}

TEST(ChromeTrace, ShowsTheRequestedRanks) {
  const Scenario scenario = interleaved_replicas();
  const Estimate answer = estimate(scenario);
  // Rank 11 is of stage 1, for which rank 8 was simulated; requested twice, it is shown once.
  const Trace one = trace_of(scenario, answer, {.ranks = {11, 8}});
  expect_sound(one);
  EXPECT_EQ(one.rank_names.size(), 1u);
  EXPECT_EQ(one.rank_names.count(8), 1u);
  EXPECT_TRUE(one.leaves.empty()) << "the other end is not drawn";
  EXPECT_FALSE(one.track(8, "pipeline send backward").empty());
  const Trace both = trace_of(scenario, answer, {.ranks = {8, 0}});
  EXPECT_EQ(both.rank_order, (std::map<int, int>{{0, 0}, {8, 1}})) << "stages in order";
  EXPECT_FALSE(both.leaves.empty());
}

TEST(ChromeTrace, RefusesARankThatIsNone) {
  const Scenario scenario = two_stages();
  const Estimate answer = estimate(scenario);
  EXPECT_EQ(error_text([&] {
              trace_of(scenario, answer, {.ranks = {0, 2}});
            }),
            "--perfetto-ranks: rank 2 is none of the plan's 2; use 0 to 1");
  EXPECT_EQ(error_text([&] { trace_of(scenario, answer, {.ranks = {-1}}); }),
            "--perfetto-ranks: rank -1 is none of the plan's 2; use 0 to 1");
}

// Two stages: 2 x (4 + 4) passes, 2 optimizers, 2 x 1 norm, 2 x 4 transfers, each with two arrow
// ends: 16 + 2 + 2 + 8 + 16 = 44 events.
TEST(ChromeTrace, RefusesMoreEventsThanViewersBear) {
  const Scenario scenario = two_stages();
  const Estimate answer = estimate(scenario);
  EXPECT_NO_THROW(trace_of(scenario, answer, {.most_events = 44}));
  EXPECT_EQ(error_text([&] { trace_of(scenario, answer, {.most_events = 43}); }),
            "--perfetto: the trace has 44 events, and viewers bear 43; draw fewer ranks, such as "
            "--perfetto-ranks 0 (about 22 events a rank)");
  // One rank has 8 passes, an optimizer, a norm and 4 transfers, and no arrows: 14.
  EXPECT_EQ(error_text([&] { trace_of(scenario, answer, {.ranks = {1}, .most_events = 13}); }),
            "--perfetto: the trace has 14 events, and viewers bear 13; trace a step of fewer "
            "micro-batches");
}

TEST(ChromeTrace, LeavesTheInsideOutBeyondItsLimit) {
  const Scenario scenario = interleaved_replicas();
  const Estimate answer = estimate(scenario);
  const Trace without = trace_of(scenario, answer);
  std::int64_t events = static_cast<std::int64_t>(2 * without.leaves.size());
  for (const auto& [key, slices] : without.tracks)
    events += static_cast<std::int64_t>(slices.size());
  const Trace full = trace_of(scenario, answer, {.most_events = events, .expand = true});
  EXPECT_EQ(full.other["drawn_inside_passes"], "none");
  EXPECT_EQ(full.track(0, "compute").size(), without.track(0, "compute").size());
}

// Four ranks that share four experts, three micro-batches each.
Scenario shared_experts(bool ep_overlap, const std::string& routing) {
  PlanRequest request = plan_request(1, 1, 1, 12, 256, "megatron-core");
  request.ep = 4;
  request.ep_overlap = ep_overlap;
  request.routing = routing;
  return scenario_of(small_mixture(2, 512, 4, 1024, 4, 1), read_system("four-by-four", test_place),
                     request, 4);
}

// Micro-batch 1 forward and 0 backward run together: kernels of both take turns on the compute
// track inside one slice, and each exchange overlaps a kernel of the other.
TEST(ChromeTrace, ShowsTwoPassesThatTakeTurns) {
  const Scenario scenario = shared_experts(true, "uniform");
  for (const bool expanded : {false, true}) {
    const Estimate answer = estimate(scenario, {.expanded = expanded});
    const Trace trace = trace_of(scenario, answer, {.expand = true});
    expect_sound(trace);
    std::vector<std::string> whole, parts;
    for (const Slice& slice : trace.track(0, "compute"))
      if (slice.category != "kernels")
        whole.push_back(slice.name);
      else if (whole.back() == "F 1 + B 0")
        parts.push_back(slice.name.substr(0, 3));
    EXPECT_EQ(whole,
              (std::vector<std::string>{"F 0", "F 1 + B 0", "F 2 + B 1", "B 2", "optimizer"}));
    ASSERT_GE(parts.size(), 4u);
    EXPECT_EQ(std::set<std::string>(parts.begin(), parts.end()),
              (std::set<std::string>{"B 0", "F 1"}));
    int overlapped = 0;
    for (const Slice& exchange : trace.track(0, "expert parallel"))
      for (const Slice& kernels : trace.track(0, "compute")) {
        const bool of_backward = exchange.name.starts_with("B 0");
        if (!of_backward && !exchange.name.starts_with("F 1")) continue;
        if (kernels.start == exchange.start &&
            kernels.name.starts_with(of_backward ? "F 1" : "B 0"))
          ++overlapped;
      }
    EXPECT_EQ(overlapped, 8);  // Two layers, dispatch and combine of both.
  }
}

// A stretch of kernels says what it is. Backward, the last layer runs first.
TEST(ChromeTrace, NamesLayersAndKernels) {
  const Scenario scenario =
      scenario_of(small_gpt(2, 256, 4, 1024), read_system("two-gpus", test_place),
                  plan_request(2, 1, 1, 1, 256, "megatron-core"), 2);
  const Trace trace = trace_of(scenario, estimate(scenario, {.expanded = true}));
  std::vector<std::string> products;
  for (const Slice& slice : trace.track(0, "compute"))
    if (slice.name.find("fc1") != slice.name.npos) products.push_back(slice.name);
  EXPECT_EQ(products, (std::vector<std::string>{"layer 0: fc1", "layer 1: fc1",
                                                "layer 1: fc1_dgrad", "layer 1: fc1_wgrad",
                                                "layer 0: fc1_dgrad", "layer 0: fc1_wgrad"}));
  EXPECT_EQ(trace.track(0, "compute")[1].name, "embedding");
}

// Passes and optimizer of a rank last as long as the breakdown of its stage says.
TEST(ChromeTrace, AgreesWithTheTableOnBusyTimes) {
  for (const Scenario& scenario : {two_stages(), interleaved_replicas()}) {
    const Estimate answer = estimate(scenario);
    const Trace trace = trace_of(scenario, answer);
    for (const RankClass& rep : answer.step.classes.reps()) {
      std::int64_t busy = 0;
      const auto& slices = trace.track(rep.rank.value, "compute");
      for (const Slice& slice : slices) busy += slice.finish - slice.start;
      const Breakdown& stage = answer.result.stages[static_cast<std::size_t>(rep.at.stage)];
      EXPECT_NEAR(static_cast<double>(busy), 1e9 * stage.busy().si(),
                  0.5 * static_cast<double>(slices.size()));
    }
  }
}

// A rank that represents its whole expert group shows the time of each member's experts: as long as
// where every rank is simulated.
TEST(ChromeTrace, ShowsTheExpertsOfEachRank) {
  const Scenario scenario = shared_experts(false, "zipf:1");
  const Trace every = trace_of(scenario, estimate(scenario, {.unfolded = true, .expanded = true}));
  for (const bool expanded : {false, true}) {
    const Trace trace =
        trace_of(scenario, estimate(scenario, {.expanded = expanded}), {.expand = true});
    expect_sound(trace);
    for (int rank = 0; rank < 4; ++rank) {
      const auto& own = trace.track(0, "experts of rank " + std::to_string(rank));
      EXPECT_EQ(own.size(), 2u * 2 * 2);  // Micro-batches 0 and 1, both ways, two layers.
      for (const Slice& experts : own)
        EXPECT_TRUE(std::any_of(every.track(rank, "compute").begin(),
                                every.track(rank, "compute").end(), [&](const Slice& kernels) {
                                  return std::abs((kernels.finish - kernels.start) -
                                                  (experts.finish - experts.start)) <= 1;
                                }));
    }
  }
}

}  // namespace
}  // namespace orrery::chrome_trace_test
