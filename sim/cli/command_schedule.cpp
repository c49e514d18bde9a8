#include <algorithm>
#include <iostream>

#include "sim/cli/options.hpp"
#include "sim/core/write_file.hpp"
#include "sim/pipeline/schedule_drawing.hpp"
#include "sim/pipeline/schedule_file.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

constexpr int most = 100'000;
constexpr int most_passes = 1'000'000;
constexpr int longest_pass = 1000;
// A drawing is for the eye: what is wider than this no screen shows.
constexpr int longest_drawing = 20'000;

po::options_description schedule_options() {
  po::options_description options{"Options", 100};
  const auto value = [](const char* name) { return po::value<std::string>()->value_name(name); };
  options.add_options()("pp", value("N"), "pipeline stages")("microbatches", value("N"),
                                                             "of a step, a pipeline")(
      "vpp", value("N"), "virtual stages a rank, where the schedule has several (then default 2)")(
      "ep_overlap", "forward and backward passes run together where the schedule can")(
      "lengths", value("F,I,W"),
      "whole units of time: forward pass, gradients of inputs and of weights (default 1,1,1)")(
      "transfer", value("T"), "units of time between two ranks (default 0)")(
      "draw", "draw it as text instead of printing the file")("svg", value("FILE"),
                                                              "write a drawing as SVG as well")(
      "force", "replace a file that Orrery did not write")("help", "this text");
  return options;
}

int count(const ParsedOptions& parsed, const std::string& name, int otherwise) {
  return parsed.has(name) ? parse_count(parsed.text(name), name, 1, most) : otherwise;
}

PassLengths lengths_of(const ParsedOptions& parsed) {
  if (!parsed.has("lengths")) return {Seconds{1.0}, Seconds{1.0}, Seconds{1.0}};
  const std::string text = parsed.text("lengths");
  std::vector<Seconds> lengths;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    lengths.emplace_back(parse_count(text.substr(begin, end - begin), "lengths", 1, longest_pass));
    begin = end + 1;
  }
  if (lengths.size() != 3)
    fail_input({"", "--lengths"}, "'" + text + "' are not three numbers",
               "write those of F, I and W, as 10,11,9");
  return {lengths[0], lengths[1], lengths[2]};
}

// The pipeline that the options name; of a file, its own.
Pipeline pipeline_of(const ParsedOptions& parsed, const Schedule& schedule) {
  const Pipeline own = schedule.own_pipeline().value_or(Pipeline{0, 0, 0});
  ScheduleUse use;
  use.stages = count(parsed, "pp", own.stages);
  if (use.stages == 0) fail_input({}, "--pp is missing", "add --pp N, the pipeline's stages");
  use.vpp = count(parsed, "vpp", schedule.usual_vpp(use.stages));
  use.microbatches = count(parsed, "microbatches", own.microbatches);
  if (use.microbatches == 0)
    fail_input({}, "--microbatches is missing", "add --microbatches N, those of a step");
  const Place at{"", ""};
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
  if (parsed.has("ep_overlap") && pairing == Pairing::none)
    fail_infeasible(at / "ep_overlap",
                    "schedule=" + schedule.name() + " has no passes that can run together here",
                    "leave it out, or use schedule=interleaved or dualpipe");
  return {use.stages, chunks, use.microbatches,
          parsed.has("ep_overlap") || pairing == Pairing::by_itself};
}

void check_drawing(const DrawnSchedule& drawn) {
  if (drawn.played.end.si() <= longest_drawing) return;
  fail_infeasible({"", "--lengths"},
                  "a drawing of " + std::to_string(static_cast<int>(drawn.played.end.si())) +
                      " units is too long to look at",
                  "use shorter lengths or fewer micro-batches");
}

}  // namespace

int run_schedule(const Arguments& arguments) {
  const po::options_description options = schedule_options();
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout
        << "usage: orrery schedule NAME|FILE --pp N --microbatches N [options]\n\n"
           "Prints a pipeline schedule as a file to read and to edit, which every command "
           "reads again as\n--schedule FILE, or draws it (docs/guides/own-pipelines.md). A file is "
           "checked and knows its own sizes.\n\n"
        << options;
    return exit_ok;
  }
  if (parsed.words.size() != 1)
    fail_input({}, parsed.words.empty() ? "which schedule?" : "one schedule at a time",
               "write a name of `orrery list schedules`, or a file");
  const Schedule& schedule = schedule_of_word(parsed.words[0], {"", ""});
  const Pipeline pipeline = pipeline_of(parsed, schedule);
  const PassLengths lengths = lengths_of(parsed);
  const Seconds transfer{static_cast<double>(
      parsed.has("transfer") ? parse_count(parsed.text("transfer"), "transfer", 0, longest_pass)
                             : 0)};
  const SpeltOrder order = spelt_out(
      schedule, pipeline,
      std::vector<PassLengths>(static_cast<std::size_t>(pipeline.stages), lengths), transfer);
  const bool draws = parsed.has("draw");
  if (draws || parsed.has("svg")) {
    const DrawnSchedule drawn{schedule.name(), order, lengths, replay(order, lengths, transfer)};
    check_drawing(drawn);
    OutputFiles files{parsed.has("force")};
    if (parsed.has("svg")) files.add(parsed.text("svg"), schedule_chart(drawn));
    files.commit();
    if (draws) std::cout << schedule_drawing(drawn);
  }
  if (!draws) std::cout << schedule_text(order);
  return exit_ok;
}

}  // namespace orrery
