#include <algorithm>
#include <iostream>

#include "sim/cli/import_output.hpp"
#include "sim/cli/options.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/serve_pools.hpp"
#include "sim/cli/serve_setup.hpp"
#include "sim/core/nearest.hpp"
#include "sim/formats/megatron/megatron_changes.hpp"
#include "sim/formats/megatron/megatron_run.hpp"
#include "sim/formats/servers/server_flags.hpp"
#include "sim/formats/simgrid/simgrid_platform.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/search/plan_space.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

po::options_description script_options() {
  po::options_description options{"What is exported", 100};
  options.add_options()  //
      ("script", po::value<std::string>()->value_name("FILE"),
       "a launch script: print its arguments with those changed that the plan needs")  //
      ("diff", po::value<std::string>()->value_name("FILE"),
       "a launch script: print only what must change, why, and what it brings");
  add_script_options(options);
  return options;
}

// The arguments of the script that the options or the plan file name; nothing: none do.
std::optional<MegatronArguments> script_of(const ParsedOptions& parsed) {
  for (const char* option : {"diff", "script"})
    if (parsed.has(option)) return read_launch_script(parsed.text(option), parsed);
  if (!parsed.has("plan")) return std::nullopt;
  const JsonValue file = read_plan_file(parsed.text("plan"), {"--plan", ""});
  const auto arguments = file.find("arguments");
  if (!arguments) return std::nullopt;
  std::string text;
  for (const JsonValue& argument : arguments->elements()) text += argument.text() + " \\\n";
  return MegatronArguments::read(text, parsed.text("plan"), {});
}

// What the script runs.
struct ScriptedRun {
  MegatronArguments script;
  JsonValue plan;
  Model model;
};
ScriptedRun run_of(MegatronArguments script) {
  const ImportedRun run = import_megatron_run(script, "script");
  const JsonValue plan = JsonValue::parse(run.json, script.place().file);
  return {std::move(script), plan, parse_model(plan.at("model"))};
}

// Its plan, on the system and the GPUs of `now`.
Scenario scenario_of(const ScriptedRun& run, const Scenario& now) {
  const Place& place = run.script.place();
  if (run.model.layers != now.model.layers || run.model.hidden != now.model.hidden)
    fail_input(place, "trains another model than the plan is for", "leave out --model");
  PlanRequest request;
  for (const std::string& key : run.plan.keys())
    if (find_plan_key(key)) set_plan_key(request, key, run.plan.at(key));
  return make_scenario(now.model, now.system, request, now.plan.gpus(), place);
}

// A plan does not decide in which precision gradients are reduced: the script's software prices it,
// unless another is asked for.
Scenario on_software_of(const Scenario& before, const Scenario& after) {
  return make_scenario(after.model, after.system, software_as_read(before), plan_again(after.plan),
                       after.plan.gpus(), {});
}

int export_changes(const ParsedOptions& parsed, const ScriptedRun& run) {
  const Scenario asked = read_scenario(parsed, run.model);
  const Scenario before = scenario_of(run, asked);
  const Scenario after = parsed.has("software") ? asked : on_software_of(before, asked);
  const MegatronFlags had = megatron_flags(before), flags = megatron_flags(after);
  if (parsed.has("diff")) {
    EstimateContext context{after.system};
    std::cout << megatron_changes_text(run.script, plan_steps(before, after, context));
  } else {
    std::cout << changed_script_text(run.script, changed_arguments(run.script, had, flags));
  }
  for (const std::string& what : flags.left_out)
    if (std::find(had.left_out.begin(), had.left_out.end(), what) == had.left_out.end())
      std::cerr << "orrery: note: no flag for " << what << "\n";
  return exit_ok;
}

po::options_description server_options() {
  po::options_description options = deployment_options();
  options.add(pool_options());
  options.add_options()  //
      ("prefix-cache", po::value<std::string>()->value_name("on|off"),
       "what prompts begin with stays in the cache (on)")  //
      ("router", po::value<std::string>()->value_name("NAME"), "is left out: no server is told");
  options.add_options()("help", "this text");
  return options;
}

int print_script(const ServerScript& script) {
  std::cout << script.text;
  for (const std::string& what : script.left_out) std::cerr << "orrery: note: " << what << "\n";
  return exit_ok;
}

int export_server(const Arguments& arguments) {
  const po::options_description options = server_options();
  ParsedOptions parsed = parse_options(options, arguments, {"chunked", "mixed"});
  if (parsed.has("help")) {
    std::cout << "usage: orrery export server --plan FILE | --model M --system S --gpus N --engine "
                 "E [options]\n\n"
                 "Prints commands that start a deployment: vllm serve, sglang.launch_server, "
                 "trtllm-serve, or\nDynamo's workers. What no flag says goes to stderr.\n\n"
              << options;
    return exit_ok;
  }
  if (!parsed.words.empty())
    fail_input({}, "'" + parsed.words[0] + "' belongs to no option", "see orrery export --help");
  take_deployment_file(parsed);
  const Place at{"", ""};
  const bool keeps_prefixes = !parsed.has("prefix-cache") || parsed.text("prefix-cache") != "off";
  if (const auto request = read_pools(parsed, read_deployment_flags(parsed))) {
    const Model model =
        read_model(required(parsed, "model", "name one: orrery list models"), at / "model");
    const System system =
        read_system(required(parsed, "system", "name one: orrery list systems"), at / "system");
    const ServingEngine engine = read_serving_engine(
        required(parsed, "engine", "name one: orrery list engines"), at / "engine");
    const PoolsPlan plan =
        make_pools(model, system, engine, *request, {"--prefill", ""}, {"--decode", ""});
    return print_script(server_script(model, system, engine,
                                      {{ServerRole::prefill, plan.prefill, plan.prefill_gpus},
                                       {ServerRole::decode, plan.decode, plan.decode_gpus}},
                                      keeps_prefixes, at));
  }
  const ServingSetup setup = read_serving_setup(parsed);
  ScriptedPool pool{ServerRole::all, setup.deployment, {}};
  for (int replica = 0; replica < setup.deployment.replicas; ++replica)
    pool.first_gpus.push_back(static_cast<int>(replica * setup.deployment.replica_gpus()));
  return print_script(
      server_script(setup.model, setup.system, setup.engine, {pool}, keeps_prefixes, at));
}

int export_simgrid(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  options.add_options()                                                           //
      ("system", po::value<std::string>()->value_name("NAME|FILE"), "a cluster")  //
      ("gpus", po::value<std::string>()->value_name("N"),
       "its first N GPUs (default: those of two NVLink domains)");
  add_output_options(options);
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout
        << "usage: orrery export simgrid --system NAME|FILE [--gpus N] [-o FILE]\n\n"
           "Prints a cluster as a SimGrid platform: a host a GPU, links, and the route between "
           "each two\nGPUs. SimGrid's own programs, Batsim and WRENCH read it.\n\n"
        << options;
    return exit_ok;
  }
  if (!parsed.words.empty())
    fail_input({}, "'" + parsed.words[0] + "' belongs to no option", "see orrery export --help");
  const System system = read_system(required(parsed, "system", "name one: orrery list systems"),
                                    command_line / "system");
  const int most =
      system.max_gpus > 0 ? std::min(system.max_gpus, most_platform_gpus) : most_platform_gpus;
  const int gpus = parsed.has("gpus") ? parse_count(parsed.text("gpus"), "gpus", 1, most)
                                      : std::min(2 * system.nvlink_domain, most);
  write_result(parsed, simgrid_platform(system, gpus), {});
  return exit_ok;
}

}  // namespace

int run_export(const Arguments& arguments) {
  static const std::vector<std::string> formats{"megatron", "server", "simgrid"};
  CommandListener::tell(formats);
  po::options_description options;
  options.add(scenario_options()).add(script_options());
  options.add_options()("help", "this text");
  const std::string format = arguments.empty() ? "" : arguments[0];
  if (format == "--help") return run_export({formats.front(), "--help"});
  if (format == "server") return export_server({arguments.begin() + 1, arguments.end()});
  if (format == "simgrid") return export_simgrid({arguments.begin() + 1, arguments.end()});
  if (format != formats.front())
    fail_input({}, format.empty() ? "export to what?" : "'" + format + "' is not a format",
               suggestion(format, formats));
  const ParsedOptions parsed =
      parse_options(options, {arguments.begin() + 1, arguments.end()}, scenario_booleans());
  if (parsed.has("help")) {
    std::cout << "usage: orrery export megatron --model M --system S --gpus N --gbs B [options]\n\n"
                 "Prints a plan and its model as arguments of Megatron-LM's pretrain_gpt.py; what "
                 "they cannot\nsay goes to stderr. A plan that orrery import wrote, or --script, "
                 "keeps all arguments of\nthe script that the plan does not change.\n\n"
              << options;
    return exit_ok;
  }
  if (!parsed.words.empty())
    fail_input({}, "'" + parsed.words[0] + "' belongs to no option", "see orrery export --help");
  if (parsed.has("diff") && parsed.has("script"))
    fail_input({"", "--diff"}, "prints what changes, and --script prints all", "leave one out");
  if (auto script = script_of(parsed)) return export_changes(parsed, run_of(std::move(*script)));
  const MegatronFlags flags = megatron_flags(read_scenario(parsed));
  std::cout << megatron_text(flags);
  for (const std::string& what : flags.left_out)
    std::cerr << "orrery: note: no flag for " << what << "\n";
  return exit_ok;
}

}  // namespace orrery
