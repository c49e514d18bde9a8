#include <algorithm>
#include <cmath>
#include <iostream>

#include "sim/cli/options.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/serve_setup.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/value_list.hpp"
#include "sim/core/write_file.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/profile/kernel_pricer.hpp"
#include "sim/profile/kernel_text.hpp"
#include "sim/profile/profile_text.hpp"
#include "sim/profile/roofline.hpp"
#include "sim/profile/step_operations.hpp"
#include "sim/training/training_text.hpp"

namespace orrery {
namespace {

constexpr std::int64_t most_values = 1024;
constexpr std::int64_t most_experts = 1 << 16;

// The options that choose the form in which operations are printed.
struct PictureOptions {
  bool roofline = false, csv = false, json = false, force = false;
  TextWidth width = TextWidth::terminal;
  std::optional<std::string> svg;
};

void add_picture(Options& options, PictureOptions& into) {
  options.group("Output");
  options.add("roofline", "draw them below the roofs of the GPU", into.roofline);
  options.add("svg", "FILE", "write that drawing for a browser", into.svg);
  options.add("csv", "print comma-separated values", into.csv);
  options.add("json", "print orrery.kernel/1, or of many operations orrery.roofline/1", into.json);
  options.add("force", "replace files that Orrery did not write", into.force);
  options.wide(into.width);
  options.help();
}

void write_svg(const PictureOptions& picture, const RooflineChart& roofline) {
  if (!picture.svg) return;
  write_output(*picture.svg, roofline_svg(roofline), picture.force);
}

void one_form_only(const PictureOptions& picture) {
  if (picture.csv && picture.json)
    fail_input({}, "--csv and --json exclude each other", "keep one of them");
  if (picture.roofline && (picture.csv || picture.json))
    fail_input(command_line / "roofline", "draws in text, which --csv and --json have no place for",
               "leave one of them out; --svg goes with both");
}

// All operations of a step or an iteration.
int print_operations(const PictureOptions& picture, const OperationList& list,
                     const OperationsOf& of, const std::string& subtitle) {
  const std::string title = of.model + " on " + of.system + ", " + std::to_string(of.gpus) +
                            (of.gpus == 1 ? " GPU" : " GPUs") + ": " + of.what;
  const RooflineChart roofline{title, subtitle, list.roofs, list.operations};
  write_svg(picture, roofline);
  if (picture.json)
    std::cout << operations_json(list, of);
  else if (picture.csv)
    std::cout << operations_csv(list);
  else
    std::cout << (picture.roofline ? roofline_text(roofline) : title + "\n" + subtitle + "\n")
              << "\n"
              << operations_text(list, picture.width);
  return exit_ok;
}

int run_step(const Arguments& arguments) {
  ScenarioOptions inputs;
  PictureOptions picture;
  std::optional<std::string> of_stage;
  Options options{"What is simulated"};
  add_scenario(options, inputs);
  options.group("Which operations");
  options.add("stage", "N", "of a rank of that pipeline stage (that whose kernels take longest)",
              of_stage);
  add_picture(options, picture);
  options.basic({"model", "system", "gpus", "plan", "tp", "pp", "ep", "gbs", "mbs", "seq", "dtype",
                 "recompute", "software", "stage", "roofline", "svg", "csv", "json", "help"});
  if (!options.read(
          arguments,
          "usage: orrery kernel step --model M --system S --gpus N --gbs B [options]\n\n"
          "All operations of a training step, by what bounds them (docs/guides/operations.md)."))
    return exit_ok;
  options.refuse_words("see orrery help kernel");
  one_form_only(picture);
  const Scenario scenario = read_scenario(inputs);
  std::optional<int> stage;
  if (of_stage) stage = parse_count(*of_stage, command_line / "stage", 0, scenario.plan.pp - 1);
  EstimateContext context{scenario.system};
  const OperationList list = long_work([&] { return step_operations(scenario, context, stage); });
  const std::string rank = scenario.plan.pp == 1
                               ? "one rank"
                               : "one rank of stage " + std::to_string(list.stage) + " of " +
                                     std::to_string(scenario.plan.pp);
  return print_operations(
      picture, list,
      {scenario.model.name, scenario.system.name, scenario.plan.gpus(), "training step"},
      rank + ", " + name(scenario.plan.dtype) + ", " + scenario.software.name);
}

int run_iteration(const Arguments& arguments) {
  DeploymentOptions given;
  PictureOptions picture;
  Options options;
  add_deployment(options, given);
  add_step(options);
  add_picture(options, picture);
  options.basic({"model", "system", "gpus", "engine", "plan", "tp", "dp", "ep", "weights", "kv",
                 "step", "roofline", "svg", "csv", "json", "help"});
  if (!read_with_deployment_file(
          options, arguments,
          "usage: orrery kernel iteration --model M --system S --gpus N --engine E --step NxC "
          "[options]\n\n"
          "All operations of a serving iteration, by what bounds them (docs/guides/operations.md).",
          "see orrery help kernel"))
    return exit_ok;
  one_form_only(picture);
  const std::string text =
      options.required("step", "write an iteration, decodes x tokens each: --step 64x4096");
  const Iteration iteration = parse_iteration(text);
  const ServingSetup setup = read_serving_setup(given);
  print_published_note(setup.model, given.keys);
  const ServingStep step = serving_step(setup, iteration, command_line);
  return print_operations(
      picture, iteration_operations(step),
      {setup.model.name, setup.system.name, setup.deployment.gpus(), "serving iteration " + text},
      "one rank, " + setup.engine.name);
}

std::vector<std::string> size_names() {
  std::vector<std::string> names;
  for (const KernelKind& kind : kernel_kinds())
    for (const SizeKey& key : kind.sizes)
      if (std::find(names.begin(), names.end(), key.name) == names.end()) names.push_back(key.name);
  return names;
}

// The options of one operation.
struct KernelOptions {
  KernelQuestion question;
  std::optional<std::string> gpu, system, calibration, pass;
  std::string software = "megatron-core", engine = "vllm";
  std::map<std::string, std::string> sizes;
  bool long_ranges = false;
  PictureOptions picture;
};

void add_kernel(Options& options, KernelOptions& into) {
  options.add("gpu", "NAME|FILE", "a GPU: orrery list gpus", into.gpu);
  options.add("system", "NAME|FILE", "a cluster, in place of its GPU", into.system);
  options.add("calibration", "FILE", "measurements of the system: orrery calibrate fit",
              into.calibration);
  options.add("dtype", "FORMAT", "of the operands (bf16)", into.question.dtype,
              format_of(FormatUse::products));
  options.add("pass", "PASS", "forward, dgrad or wgrad of a product; forward or backward",
              into.pass);
  options.add("software", "NAME|FILE", "whose training step (megatron-core)", into.software);
  options.add("engine", "NAME|FILE", "whose decode attention (vllm)", into.engine);
  options.add("kv", "FORMAT", "of the cache that decode reads (bf16)", into.question.kv,
              format_of(FormatUse::kv_cache));
  options.add("dispatcher", "NAME", "of dispatch and combine (alltoall)", into.question.dispatcher,
              OneOf{enum_words<ExpertDispatcher>});
  options.group("Sizes, one of which may be a list: 1,2,4 or 1..8192");
  for (const std::string& size : size_names()) options.add(size, "N", "", into.sizes);
  options.add("yes", "a range may have more than 1,024 values", into.long_ranges);
  add_picture(options, into.picture);
  options.basic({"gpu", "system", "dtype", "pass", "software", "engine", "roofline", "svg", "csv",
                 "json", "help"});
}

std::string kinds_text() {
  std::string text;
  for (const KernelKind& kind : kernel_kinds()) {
    std::string sizes;
    for (const SizeKey& key : kind.sizes)
      sizes += (sizes.empty() ? "--" : " --") + key.name + (key.usual ? "*" : "");
    text += "  " + kind.name + std::string(15 - kind.name.size(), ' ') + kind.title + "\n" +
            std::string(17, ' ') + sizes + "\n";
  }
  return text +
         "  step           all operations of a training step: orrery kernel step --help\n"
         "  iteration      all of a serving iteration: orrery kernel iteration --help\n"
         "  * may be left out";
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names{"step", "iteration"};
  for (const KernelKind& kind : kernel_kinds()) names.push_back(kind.name);
  return names;
}

// "8192", and of parameters "8B".
std::int64_t parse_size(const std::string& text, const SizeKey& key) {
  const Place place{"", "--" + key.name};
  const std::int64_t least = key.usual == 0 ? 0 : 1;
  const std::int64_t most = key.name == "experts" ? most_experts : most_size;
  double value = -1.0;
  try {
    value = parse_tokens(text, place);
  } catch (const Error&) {
    if (text == "0") value = 0.0;
  }
  if (!(value >= static_cast<double>(least) && value <= static_cast<double>(most)) ||
      value != std::floor(value))
    fail_input(
        place, "'" + text + "' is no such size",
        "write a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return static_cast<std::int64_t>(value);
}

struct GivenSizes {
  KernelQuestion question;
  std::string key;  ///< The size that has several values; "": none.
  std::vector<std::int64_t> values;
};

// Sizes stand behind the kind in its order, or are options.
std::string size_text(const KernelOptions& options, const std::vector<std::string>& words,
                      const KernelKind& kind, std::size_t place) {
  const SizeKey& key = kind.sizes[place];
  const bool by_place = place + 1 < words.size();
  const auto typed = options.sizes.find(key.name);
  if (typed != options.sizes.end() && by_place)
    fail_input(command_line / key.name, "is given twice", "keep one of them");
  if (by_place) return words[place + 1];
  if (typed != options.sizes.end()) return typed->second;
  if (!key.usual)
    fail_input({}, "--" + key.name + " is missing",
               "write --" + key.name + " N (" + key.help + ")");
  return std::to_string(*key.usual);
}

void read_sizes(const KernelOptions& options, const std::vector<std::string>& words,
                GivenSizes& given) {
  const KernelKind& kind = *given.question.kind;
  if (words.size() > kind.sizes.size() + 1)
    fail_input({}, "'" + words.back() + "' is one size too many",
               kind.name + " has " + std::to_string(kind.sizes.size()));
  for (const std::string& size : size_names()) {
    const bool own = std::any_of(kind.sizes.begin(), kind.sizes.end(),
                                 [&](const SizeKey& key) { return key.name == size; });
    if (!own && options.sizes.contains(size))
      fail_input(command_line / size, "is no size of " + kind.name, "see orrery help kernel");
  }
  const std::int64_t most = options.long_ranges ? most_with_yes : most_values;
  for (std::size_t i = 0; i < kind.sizes.size(); ++i) {
    const SizeKey& key = kind.sizes[i];
    const Place place = command_line / key.name;
    std::vector<std::int64_t> values;
    for (const std::string& item : parse_value_list(size_text(options, words, kind, i), place,
                                                    {OpenRange::doubles, {}, most}))
      values.push_back(parse_size(item, key));
    given.question.sizes[key.name] = values.front();
    if (values.size() == 1) continue;
    if (!given.key.empty())
      fail_input(place, "is a list, as --" + given.key + " is", "vary one size at a time");
    if (!std::is_sorted(values.begin(), values.end()))
      fail_input(place, "does not rise", "write a list from small to large");
    given.key = key.name;
    given.values = values;
  }
}

GivenSizes read_question(const KernelOptions& options, const std::vector<std::string>& words,
                         const KernelKind& kind) {
  using Of = KernelKind::Of;
  GivenSizes given;
  KernelQuestion& question = given.question;
  question = options.question;
  question.kind = &kind;
  const Place pass = command_line / "pass";
  if (!kind.passes.empty()) {
    question.pass = options.pass.value_or(kind.passes.front());
    choice<std::size_t>(question.pass, pass, "is no pass of " + kind.name, kind.passes);
  } else if (options.pass) {
    fail_input(pass, kind.name + " is one pass alone", "leave it out");
  }
  if (kind.of == Of::cast && !is_narrow(question.dtype))
    fail_input(command_line / "dtype", name(question.dtype) + " is not quantised",
               "name what it becomes: --dtype fp8");
  read_sizes(options, words, given);
  if (kind.of == Of::attention || kind.of == Of::decode) {
    const std::int64_t keys = question.at("kv-heads");
    if (keys > 0 && question.at("heads") % keys != 0)
      fail_input(command_line / "kv-heads", "does not divide the heads",
                 "write a divisor of --heads");
  }
  return given;
}

// A GPU by itself: the command needs no other.
System machine_of(const KernelOptions& options, const KernelKind& kind) {
  const bool exchanges = kind.of == KernelKind::Of::dispatch || kind.of == KernelKind::Of::combine;
  if (options.gpu && options.system)
    fail_input(command_line / "gpu", "the system has its own", "name one of both");
  System machine;
  if (exchanges || options.system) {
    machine = read_system(named(options.system, "system"), command_line / "system");
  } else {
    machine.gpu = read_gpu(named(options.gpu, "gpu"), command_line / "gpu");
    machine.name = machine.gpu.name;
    machine.gpus_per_node = machine.nvlink_domain = machine.nics_per_node = 1;
    machine.scale_up = machine.gpu.pcie;
    machine.nic = machine.gpu.pcie;
  }
  if (options.calibration) calibrate(machine, *options.calibration, command_line / "calibration");
  return machine;
}

bool has_knee(const std::string& key) {
  static const std::vector<std::string> fewer{"experts",  "gpus",   "top-k",
                                              "kv-heads", "window", "head-dim"};
  return std::find(fewer.begin(), fewer.end(), key) == fewer.end();
}

// What changes nothing about an operation of this kind.
void refuse_unused(const Options& options, const KernelKind& kind) {
  using Of = KernelKind::Of;
  const bool decodes = kind.of == Of::decode;
  const bool exchanges = kind.of == Of::dispatch || kind.of == Of::combine;
  const std::pair<const char*, bool> used[] = {{"kv", decodes},
                                               {"dispatcher", exchanges},
                                               {"engine", decodes || kind.of == Of::gemm},
                                               {"dtype", !decodes},
                                               {"software", !decodes && !exchanges}};
  for (const auto& [name, is_used] : used)
    if (!is_used) options.refuse({name}, "changes nothing about " + kind.name, "leave it out");
}

int run_one(const KernelOptions& options, const std::vector<std::string>& words,
            const KernelKind& kind) {
  const PictureOptions& picture = options.picture;
  one_form_only(picture);
  const GivenSizes given = read_question(options, words, kind);
  const KernelPricer pricer{machine_of(options, kind),
                            read_software(options.software, command_line / "software"),
                            read_serving_engine(options.engine, command_line / "engine")};
  KernelSweep sweep;
  sweep.key = given.key;
  {
    LongWork line;
    if (given.key.empty()) sweep.answers.push_back(pricer.answer(given.question));
    for (const std::int64_t value : given.values) {
      ProgressListener::report({Progress::Of::sizes, sweep.answers.size(), given.values.size()});
      KernelQuestion one = given.question;
      one.sizes[given.key] = value;
      sweep.answers.push_back(pricer.answer(one));
    }
  }
  const OperationPrice& first = sweep.answers.front().main();
  sweep.has_knee = !given.key.empty() && !first.on_network && has_knee(given.key);
  if (sweep.has_knee) sweep.knee = knee(pricer, given.question, given.key);

  RooflineChart roofline{kernel_title(sweep.answers.front(), pricer.system().gpu.name),
                         "",
                         roofs_of(pricer.system().gpu),
                         {},
                         !given.key.empty()};
  for (const KernelAnswer& answer : sweep.answers) {
    roofline.operations.push_back(answer.main());
    if (!given.key.empty())
      roofline.operations.back().sizes =
          given.key + " " + std::to_string(answer.question.at(given.key));
  }
  if (!given.key.empty())
    roofline.title = kind.name + " on " + pricer.system().gpu.name + " over " + given.key;
  const bool draws = picture.roofline || picture.svg;
  if (draws && !std::any_of(roofline.operations.begin(), roofline.operations.end(), is_plotted))
    fail_input({}, kind.name + " has no place on a roofline: it computes nothing",
               "leave --roofline and --svg out");
  write_svg(picture, roofline);
  if (picture.json)
    std::cout << kernel_json(sweep, pricer);
  else if (picture.csv)
    std::cout << kernel_csv(sweep.answers, given.key);
  else
    std::cout << (picture.roofline ? roofline_text(roofline) + "\n" : "")
              << (given.key.empty() ? kernel_text(sweep.answers.front(), pricer, picture.width)
                                    : sweep_text(sweep, pricer, picture.width));
  return exit_ok;
}

}  // namespace

int run_kernel(const Arguments& arguments) {
  CommandListener::report(kind_names());
  const std::string word = arguments.empty() ? "" : arguments.front();
  if (word == "step") return run_step({arguments.begin() + 1, arguments.end()});
  if (word == "iteration") return run_iteration({arguments.begin() + 1, arguments.end()});
  KernelOptions given;
  Options options{"Where, and in which form"};
  add_kernel(options, given);
  if (!options.read(
          arguments,
          "usage: orrery kernel OPERATION SIZES --gpu NAME|FILE [options]\n"
          "       orrery kernel step --model M --system S --gpus N --gbs B [options]\n"
          "       orrery kernel iteration --model M --system S --gpus N --engine E --step NxC "
          "[options]\n\n"
          "One operation by itself: operations, bytes, what bounds it, how long it takes, and what "
          "was\nmeasured near it; or all of a training step or of a serving iteration "
          "(docs/guides/operations.md).\n\nOPERATION is one of\n" +
              kinds_text()))
    return exit_ok;
  if (options.words().empty())
    fail_input({}, "which operation?",
               "write like 'orrery kernel gemm 8192 4096 4096 --gpu h100-sxm'");
  const std::string& operation = options.words().front();
  const KernelKind* kind = find_kernel_kind(operation);
  if (!kind)
    fail_input({}, "'" + operation + "' is no operation",
               collective_named(operation)
                   ? "it is a collective: orrery collective " + operation + " --system ..."
                   : suggestion(operation, kind_names()));
  refuse_unused(options, *kind);
  return run_one(given, options.words(), *kind);
}

}  // namespace orrery
