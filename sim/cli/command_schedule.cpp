#include <algorithm>
#include <iostream>

#include "sim/cli/options.hpp"
#include "sim/core/value_list.hpp"
#include "sim/core/write_file.hpp"
#include "sim/pipeline/schedule_file.hpp"
#include "sim/pipeline/schedule_replay.hpp"

namespace orrery {
namespace {

constexpr int most = 100'000;
constexpr int most_passes = 1'000'000;
constexpr int longest_pass = 1000;
// A drawing is for the eye: what is wider than this no screen shows.
constexpr int longest_drawing = 20'000;

// The options of `orrery schedule`; 0: left to the schedule.
struct ScheduleRequest {
  int stages = 0, vpp = 0, microbatches = 0;
  bool ep_overlap = false, draws = false, force = false;
  PassLengths lengths{Seconds{1.0}, Seconds{1.0}, Seconds{1.0}};
  int transfer = 0;
  std::optional<std::string> svg;
};

PassLengths parse_lengths(const std::string& text, const Place& at) {
  std::vector<Seconds> lengths;
  for (const std::string& length : split(text, ","))
    lengths.emplace_back(parse_count(length, at, 1, longest_pass));
  if (lengths.size() != 3)
    fail_input(at, "'" + text + "' are not three numbers", "write those of F, I and W, as 10,11,9");
  return {lengths[0], lengths[1], lengths[2]};
}

void add_schedule(Options& options, ScheduleRequest& into) {
  options.add("pp", "N", "pipeline stages", into.stages, Counted{1, most});
  options.add("microbatches", "N", "of a step, a pipeline", into.microbatches, Counted{1, most});
  options.add("vpp", "N", "virtual stages a rank, where the schedule has several (then default 2)",
              into.vpp, Counted{1, most});
  options.add("ep_overlap", "true|false",
              "forward and backward passes run together where the schedule can", into.ep_overlap,
              truth());
  options.add("pass-lengths", "F,I,W",
              "whole units of time: forward pass, gradients of inputs and of weights (default "
              "1,1,1)",
              into.lengths, parse_lengths);
  options.add("transfer", "T", "units of time between two ranks (default 0)", into.transfer,
              Counted{0, longest_pass});
  options.add("draw", "draw it as text instead of printing the file", into.draws);
  options.add("svg", "FILE", "write a drawing as SVG as well", into.svg);
  options.add("force", "replace files that Orrery did not write", into.force);
  options.help();
}

// The pipeline that the options name; of a file, its own.
Pipeline pipeline_of(const ScheduleRequest& given, const Schedule& schedule) {
  const Pipeline own = schedule.own_pipeline().value_or(Pipeline{0, 0, 0});
  ScheduleUse use;
  const auto given_or = [](int value, int otherwise) { return value > 0 ? value : otherwise; };
  use.stages = given_or(given.stages, own.stages);
  if (use.stages == 0) fail_input({}, "--pp is missing", "add --pp N, the pipeline's stages");
  use.vpp = given_or(given.vpp, schedule.default_vpp(use.stages));
  use.microbatches = given_or(given.microbatches, own.microbatches);
  if (use.microbatches == 0)
    fail_input({}, "--microbatches is missing", "add --microbatches N, those of a step");
  const Place& at = command_line;
  if (const auto refusal = schedule.refuses(use)) {
    const bool of_microbatches = refusal->key == "gbs";
    (refusal->contradiction ? fail_input : fail_infeasible)(
        at / (of_microbatches ? "microbatches" : refusal->key), refusal->problem,
        of_microbatches ? "use another number of micro-batches" : refusal->remedy);
  }
  const int chunks = use.vpp * schedule.copies();
  if (std::int64_t{use.stages} * chunks * use.microbatches > most_passes)
    fail_infeasible(at / "microbatches", "more than a million passes in each direction",
                    "use fewer micro-batches");
  const Pairing pairing = schedule.pairing(use.stages, use.vpp);
  if (given.ep_overlap && pairing == Pairing::none)
    fail_infeasible(at / "ep_overlap",
                    "schedule=" + schedule.name() + " has no passes that can run together here",
                    "leave it out, or use schedule=interleaved or dualpipe");
  return {use.stages, chunks, use.microbatches, given.ep_overlap || pairing == Pairing::by_itself};
}

void check_drawing(const PlottedSchedule& plot) {
  if (plot.played.end.si() <= longest_drawing) return;
  fail_infeasible(command_line / "pass-lengths",
                  "a drawing of " + std::to_string(static_cast<int>(plot.played.end.si())) +
                      " units is too long to look at",
                  "use shorter lengths or fewer micro-batches");
}

}  // namespace

int run_schedule(const Arguments& arguments) {
  ScheduleRequest given;
  Options options;
  add_schedule(options, given);
  if (!options.read(
          arguments,
          "usage: orrery schedule NAME|FILE --pp N --microbatches N [options]\n\n"
          "Prints a pipeline schedule as a file to read and to edit, which every command "
          "reads again as\n--schedule FILE, or draws it (docs/guides/own-pipelines.md). A file "
          "is checked and knows its own sizes."))
    return exit_ok;
  const Schedule& schedule =
      schedule_of_word(options.only_word("which schedule?", "one schedule at a time",
                                         "write a name of `orrery list schedules`, or a file"),
                       {"", ""});
  const Pipeline pipeline = pipeline_of(given, schedule);
  const Seconds transfer{static_cast<double>(given.transfer)};
  const ExplicitOrder order = explicit_order(
      schedule, pipeline,
      std::vector<PassLengths>(static_cast<std::size_t>(pipeline.stages), given.lengths), transfer);
  if (given.draws || given.svg) {
    const PlottedSchedule plot{schedule.name(), order, given.lengths,
                               replay(order, given.lengths, transfer)};
    check_drawing(plot);
    OutputFiles files{given.force};
    if (given.svg) files.add(*given.svg, schedule_chart(plot));
    files.commit();
    if (given.draws) std::cout << schedule_drawing(plot);
  }
  if (!given.draws) std::cout << schedule_text(order);
  return exit_ok;
}

}  // namespace orrery
