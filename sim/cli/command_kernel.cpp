#include <algorithm>
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
#include "sim/profile/kernel_json.hpp"
#include "sim/profile/kernel_pricer.hpp"
#include "sim/profile/kernel_text.hpp"
#include "sim/profile/roofline.hpp"
#include "sim/profile/step_operations.hpp"
#include "sim/training/plan_heading.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

constexpr const char* usual_software = "megatron-core";
constexpr const char* usual_engine = "vllm";
constexpr std::int64_t most_values = 1024;
constexpr std::int64_t most_experts = 1 << 16;

po::options_description picture_options() {
  po::options_description options{"What comes out", 100};
  options.add_options()                                     //
      ("roofline", "draw them below the roofs of the GPU")  //
      ("svg", po::value<std::string>()->value_name("FILE"),
       "write that drawing for a browser")                                        //
      ("csv", "print comma-separated values")                                     //
      ("json", "print orrery.kernel/1, or of many operations orrery.roofline/1")  //
      ("force", "replace a file that Orrery did not write")                       //
      ("help", "this text");
  return options;
}

void write_svg(const ParsedOptions& parsed, const RooflineChart& roofline) {
  if (!parsed.has("svg")) return;
  OutputFiles files{parsed.has("force")};
  files.add(parsed.text("svg"), roofline_svg(roofline));
  files.commit();
}

void one_form_only(const ParsedOptions& parsed) {
  if (parsed.has("csv") && parsed.has("json"))
    fail_input({}, "--csv and --json exclude each other", "keep one of them");
  if (parsed.has("roofline") && (parsed.has("csv") || parsed.has("json")))
    fail_input({"", "--roofline"}, "draws in text, which --csv and --json have no place for",
               "leave one of them out; --svg goes with both");
}

// All operations of a step or an iteration.
int print_operations(const ParsedOptions& parsed, const OperationList& list, const OperationsOf& of,
                     const std::string& subtitle) {
  const std::string title = of.model + " on " + of.system + ", " + std::to_string(of.gpus) +
                            (of.gpus == 1 ? " GPU" : " GPUs") + ": " + of.what;
  const RooflineChart roofline{title, subtitle, list.roofs, list.operations};
  write_svg(parsed, roofline);
  if (parsed.has("json"))
    std::cout << operations_json(list, of);
  else if (parsed.has("csv"))
    std::cout << operations_csv(list);
  else
    std::cout << (parsed.has("roofline") ? roofline_text(roofline) : title + "\n" + subtitle + "\n")
              << "\n"
              << operations_text(list);
  return exit_ok;
}

int run_step(const Arguments& arguments) {
  po::options_description options = scenario_options();
  po::options_description own{"Which operations", 100};
  own.add_options()("stage", po::value<std::string>()->value_name("N"),
                    "of a rank of that pipeline stage (that whose kernels take longest)");
  options.add(own).add(picture_options());
  const ParsedOptions parsed = parse_options(options, arguments, scenario_booleans());
  if (parsed.has("help")) {
    std::cout
        << "usage: orrery kernel step --model M --system S --gpus N --gbs B [options]\n\n"
           "All operations of a training step, by what bounds them (docs/guides/operations.md).\n\n"
        << options;
    return exit_ok;
  }
  if (!parsed.words.empty())
    fail_input({}, "'" + parsed.words[0] + "' belongs to no option", "see orrery help kernel");
  one_form_only(parsed);
  const Scenario scenario = read_scenario(parsed);
  std::optional<int> stage;
  if (parsed.has("stage"))
    stage = parse_count(parsed.text("stage"), "stage", 0, scenario.plan.pp - 1);
  EstimateContext context{scenario.system};
  const OperationList list = [&] {
    LongWork line;
    return step_operations(scenario, context, stage);
  }();
  const std::string of_stage = scenario.plan.pp == 1
                                   ? "one rank"
                                   : "one rank of stage " + std::to_string(list.stage) + " of " +
                                         std::to_string(scenario.plan.pp);
  return print_operations(
      parsed, list,
      {scenario.model.name, scenario.system.name, scenario.plan.gpus(), "training step"},
      of_stage + ", " + name(scenario.plan.dtype) + ", " + scenario.software.name);
}

int run_iteration(const Arguments& arguments) {
  po::options_description options = deployment_options();
  options.add(picture_options());
  ParsedOptions parsed = parse_options(options, arguments, {"chunked", "mixed"});
  if (parsed.has("help")) {
    std::cout << "usage: orrery kernel iteration --model M --system S --gpus N --engine E "
                 "--step NxC [options]\n\n"
                 "All operations of a serving iteration, by what bounds them "
                 "(docs/guides/operations.md).\n\n"
              << options;
    return exit_ok;
  }
  if (!parsed.words.empty())
    fail_input({}, "'" + parsed.words[0] + "' belongs to no option", "see orrery help kernel");
  one_form_only(parsed);
  take_deployment_file(parsed);
  const Iteration iteration = parse_iteration(
      required(parsed, "step", "write an iteration, decodes x tokens each: --step 64x4096"));
  const ServingSetup setup = read_serving_setup(parsed);
  const ServingStep step = serving_step(setup, iteration, {"", ""});
  return print_operations(parsed, iteration_operations(step),
                          {setup.model.name, setup.system.name, setup.deployment.gpus(),
                           "serving iteration " + parsed.text("step")},
                          "one rank, " + setup.engine.name);
}

std::vector<std::string> size_names() {
  std::vector<std::string> names;
  for (const KernelKind& kind : kernel_kinds())
    for (const SizeKey& key : kind.sizes)
      if (std::find(names.begin(), names.end(), key.name) == names.end()) names.push_back(key.name);
  return names;
}

po::options_description kernel_options() {
  const auto text = [](const char* shown) { return po::value<std::string>()->value_name(shown); };
  po::options_description options{"Where, and in which form", 100};
  options.add_options()                                                                    //
      ("gpu", text("NAME|FILE"), "a GPU: orrery list gpus")                                //
      ("system", text("NAME|FILE"), "a cluster, in place of its GPU")                      //
      ("calibration", text("FILE"), "measurements of it: orrery calibrate fit")            //
      ("dtype", text("FORMAT"), "of the operands (bf16)")                                  //
      ("pass", text("PASS"), "forward, dgrad or wgrad of a product; forward or backward")  //
      ("software", text("NAME|FILE"), "whose training step (megatron-core)")               //
      ("engine", text("NAME|FILE"), "whose decode attention (vllm)")                       //
      ("kv", text("FORMAT"), "of the cache that decode reads (bf16)")                      //
      ("dispatcher", text("NAME"), "of dispatch and combine (alltoall)");
  po::options_description sizes{"Sizes, one of which may be a list: 1,2,4 or 1..8192", 100};
  for (const std::string& size : size_names()) sizes.add_options()(size.c_str(), text("N"), "");
  sizes.add_options()("yes", "a range may have more than 1,024 values");
  return options.add(sizes).add(picture_options());
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
         "  * may be left out\n";
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

struct AskedSizes {
  KernelQuestion question;
  std::string key;  ///< The size that has several values; "": none.
  std::vector<std::int64_t> values;
};

// Sizes stand behind the kind in its order, or are options.
std::string size_text(const ParsedOptions& parsed, const KernelKind& kind, std::size_t place) {
  const SizeKey& key = kind.sizes[place];
  const bool by_place = place + 1 < parsed.words.size();
  if (parsed.has(key.name) && by_place)
    fail_input({"", "--" + key.name}, "is given twice", "keep one of them");
  if (by_place) return parsed.words[place + 1];
  if (parsed.has(key.name)) return parsed.text(key.name);
  if (!key.usual)
    fail_input({}, "--" + key.name + " is missing",
               "write --" + key.name + " N (" + key.help + ")");
  return std::to_string(*key.usual);
}

void read_sizes(const ParsedOptions& parsed, AskedSizes& asked) {
  const KernelKind& kind = *asked.question.kind;
  if (parsed.words.size() > kind.sizes.size() + 1)
    fail_input({}, "'" + parsed.words.back() + "' is one size too many",
               kind.name + " has " + std::to_string(kind.sizes.size()));
  for (const std::string& size : size_names()) {
    const bool own = std::any_of(kind.sizes.begin(), kind.sizes.end(),
                                 [&](const SizeKey& key) { return key.name == size; });
    if (!own && parsed.has(size))
      fail_input({"", "--" + size}, "is no size of " + kind.name, "see orrery help kernel");
  }
  const std::int64_t most = parsed.has("yes") ? most_with_yes : most_values;
  for (std::size_t i = 0; i < kind.sizes.size(); ++i) {
    const SizeKey& key = kind.sizes[i];
    const Place place{"", "--" + key.name};
    std::vector<std::int64_t> values;
    for (const std::string& item :
         parse_value_list(size_text(parsed, kind, i), place, {OpenRange::doubles, {}, most}))
      values.push_back(parse_size(item, key));
    asked.question.sizes[key.name] = values.front();
    if (values.size() == 1) continue;
    if (!asked.key.empty())
      fail_input(place, "is a list, as --" + asked.key + " is", "vary one size at a time");
    if (!std::is_sorted(values.begin(), values.end()))
      fail_input(place, "does not rise", "write a list from small to large");
    asked.key = key.name;
    asked.values = values;
  }
}

template <class Enum>
Enum word_of(const ParsedOptions& parsed, const char* option, const std::vector<std::string>& words,
             Enum usual) {
  if (!parsed.has(option)) return usual;
  const std::string word = parsed.text(option);
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end())
    fail_input({"", std::string{"--"} + option}, "'" + word + "' is unknown",
               suggestion(word, words));
  return static_cast<Enum>(found - words.begin());
}

Dtype format_of(const ParsedOptions& parsed, const char* option, FormatUse use) {
  if (!parsed.has(option)) return Dtype::bf16;
  return formats_for(use)[word_of<std::size_t>(parsed, option, format_names(use), 0)];
}

AskedSizes read_question(const ParsedOptions& parsed, const KernelKind& kind) {
  using Of = KernelKind::Of;
  AskedSizes asked;
  KernelQuestion& question = asked.question;
  question.kind = &kind;
  question.dtype = format_of(parsed, "dtype", FormatUse::products);
  question.kv = format_of(parsed, "kv", FormatUse::kv_cache);
  question.dispatcher =
      word_of(parsed, "dispatcher", expert_dispatcher_names(), ExpertDispatcher::all_to_all);
  if (!kind.passes.empty()) {
    question.pass = parsed.has("pass") ? parsed.text("pass") : kind.passes.front();
    if (std::find(kind.passes.begin(), kind.passes.end(), question.pass) == kind.passes.end())
      fail_input({"", "--pass"}, "'" + question.pass + "' is no pass of " + kind.name,
                 suggestion(question.pass, kind.passes));
  } else if (parsed.has("pass")) {
    fail_input({"", "--pass"}, kind.name + " is one pass alone", "leave it out");
  }
  if (kind.of == Of::cast && !is_narrow(question.dtype))
    fail_input({"", "--dtype"}, name(question.dtype) + " is not quantised",
               "name what it becomes: --dtype fp8");
  read_sizes(parsed, asked);
  if (kind.of == Of::attention || kind.of == Of::decode) {
    const std::int64_t keys = question.at("kv-heads");
    if (keys > 0 && question.at("heads") % keys != 0)
      fail_input({"", "--kv-heads"}, "does not divide the heads", "write a divisor of --heads");
  }
  return asked;
}

// A GPU by itself: what is asked of it needs no other.
System machine_of(const ParsedOptions& parsed, const KernelKind& kind) {
  const bool exchanges = kind.of == KernelKind::Of::dispatch || kind.of == KernelKind::Of::combine;
  if (parsed.has("gpu") && parsed.has("system"))
    fail_input({"", "--gpu"}, "the system has its own", "name one of both");
  if (exchanges || parsed.has("system")) {
    System system =
        read_system(required(parsed, "system", "name one: orrery list systems"), {"", "--system"});
    if (parsed.has("calibration"))
      calibrate(system, parsed.text("calibration"), {"--calibration", ""});
    return system;
  }
  System alone;
  alone.gpu = read_gpu(required(parsed, "gpu", "name one: orrery list gpus"), {"", "--gpu"});
  alone.name = alone.gpu.name;
  alone.gpus_per_node = alone.nvlink_domain = alone.nics_per_node = 1;
  alone.scale_up = alone.gpu.pcie;
  alone.nic = alone.gpu.pcie;
  if (parsed.has("calibration"))
    calibrate(alone, parsed.text("calibration"), {"--calibration", ""});
  return alone;
}

bool has_knee(const std::string& key) {
  static const std::vector<std::string> fewer{"experts",  "gpus",   "top-k",
                                              "kv-heads", "window", "head-dim"};
  return std::find(fewer.begin(), fewer.end(), key) == fewer.end();
}

int run_one(const ParsedOptions& parsed, const KernelKind& kind) {
  one_form_only(parsed);
  const auto or_else = [&](const char* option, const char* usual) {
    return parsed.has(option) ? parsed.text(option) : std::string{usual};
  };
  const AskedSizes asked = read_question(parsed, kind);
  const KernelPricer pricer{machine_of(parsed, kind),
                            read_software(or_else("software", usual_software), {"--software", ""}),
                            read_serving_engine(or_else("engine", usual_engine), {"--engine", ""})};
  KernelSweep sweep;
  sweep.key = asked.key;
  {
    LongWork line;
    if (asked.key.empty()) sweep.answers.push_back(pricer.answer(asked.question));
    for (const std::int64_t value : asked.values) {
      ProgressListener::tell({Progress::Of::sizes, sweep.answers.size(), asked.values.size()});
      KernelQuestion one = asked.question;
      one.sizes[asked.key] = value;
      sweep.answers.push_back(pricer.answer(one));
    }
  }
  const OperationPrice& first = sweep.answers.front().main();
  sweep.has_knee = !asked.key.empty() && !first.on_network && has_knee(asked.key);
  if (sweep.has_knee) sweep.knee = knee(pricer, asked.question, asked.key);

  RooflineChart roofline{kernel_title(sweep.answers.front(), pricer.system().gpu.name),
                         "",
                         roofs_of(pricer.system().gpu),
                         {},
                         !asked.key.empty()};
  for (const KernelAnswer& answer : sweep.answers) {
    roofline.operations.push_back(answer.main());
    if (!asked.key.empty())
      roofline.operations.back().sizes =
          asked.key + " " + std::to_string(answer.question.at(asked.key));
  }
  if (!asked.key.empty())
    roofline.title = kind.name + " on " + pricer.system().gpu.name + " over " + asked.key;
  const bool draws = parsed.has("roofline") || parsed.has("svg");
  if (draws && !std::any_of(roofline.operations.begin(), roofline.operations.end(), is_drawn))
    fail_input({}, kind.name + " has no place on a roofline: it computes nothing",
               "leave --roofline and --svg out");
  write_svg(parsed, roofline);
  if (parsed.has("json"))
    std::cout << kernel_json(sweep, pricer);
  else if (parsed.has("csv"))
    std::cout << kernel_csv(sweep.answers, asked.key);
  else
    std::cout << (parsed.has("roofline") ? roofline_text(roofline) + "\n" : "")
              << (asked.key.empty() ? kernel_text(sweep.answers.front(), pricer)
                                    : sweep_text(sweep, pricer));
  return exit_ok;
}

}  // namespace

int run_kernel(const Arguments& arguments) {
  CommandListener::tell(kind_names());
  const std::string word = arguments.empty() ? "" : arguments.front();
  if (word == "step") return run_step({arguments.begin() + 1, arguments.end()});
  if (word == "iteration") return run_iteration({arguments.begin() + 1, arguments.end()});
  po::options_description options = kernel_options();
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery kernel OPERATION SIZES --gpu NAME|FILE [options]\n"
                 "       orrery kernel step --model M --system S --gpus N --gbs B [options]\n"
                 "       orrery kernel iteration --model M --system S --gpus N --engine E "
                 "--step NxC [options]\n\n"
                 "One operation by itself: operations, bytes, what bounds it, how long it takes, "
                 "and what was\nmeasured near it; or all of a training step or of a serving "
                 "iteration (docs/guides/operations.md).\n\nOPERATION is one of\n"
              << kinds_text() << "\n"
              << options;
    return exit_ok;
  }
  if (parsed.words.empty())
    fail_input({}, "which operation?",
               "write like 'orrery kernel gemm 8192 4096 4096 --gpu h100-sxm'");
  const KernelKind* kind = find_kernel_kind(parsed.words.front());
  if (!kind)
    fail_input({}, "'" + parsed.words.front() + "' is no operation",
               suggestion(parsed.words.front(), kind_names()));
  return run_one(parsed, *kind);
}

}  // namespace orrery
