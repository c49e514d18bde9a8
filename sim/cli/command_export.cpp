#include <algorithm>
#include <iostream>

#include "sim/cli/import_output.hpp"
#include "sim/cli/options.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/serve_pools.hpp"
#include "sim/cli/serve_setup.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/core/nearest.hpp"
#include "sim/formats/megatron/megatron_parts.hpp"
#include "sim/formats/megatron/megatron_run.hpp"
#include "sim/formats/servers/server_flags.hpp"
#include "sim/formats/simgrid/simgrid_platform.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/search/plan_space.hpp"

namespace orrery {
namespace {

// The options of `orrery export megatron`.
struct ExportOptions {
  ScenarioOptions inputs;
  std::optional<std::string> script, diff;
  std::map<std::string, std::string> variables;  ///< Values for the script.
};

// The arguments of the script that the options or the plan file name; nothing: none do.
std::optional<MegatronArguments> script_of(const ExportOptions& given) {
  if (given.diff) return read_launch_script(*given.diff, given.variables);
  if (given.script) return read_launch_script(*given.script, given.variables);
  if (!given.inputs.plan) return std::nullopt;
  const std::string& plan = *given.inputs.plan;
  const JsonValue file = read_plan_file(plan);
  const auto arguments = file.find("arguments");
  if (!arguments) return std::nullopt;
  std::string text;
  for (const JsonValue& argument : arguments->elements()) text += argument.text() + " \\\n";
  return MegatronArguments::read(text, plan, {});
}

// The script's plan and model.
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

// A plan does not decide in which precision gradients are reduced: the script's software does,
// unless another one is named.
Scenario on_software_of(const Scenario& before, const Scenario& after) {
  return make_scenario(after.model, after.system, software_as_read(before), plan_again(after.plan),
                       after.plan.gpus(), {});
}

int export_changes(const ExportOptions& options, const ScriptedRun& run) {
  const Scenario given = read_scenario(options.inputs, run.model);
  const Scenario before = scenario_of(run, given);
  const Scenario after = options.inputs.has_key("software") ? given : on_software_of(before, given);
  const MegatronFlags had = megatron_flags(before), flags = megatron_flags(after);
  if (options.diff) {
    EstimateContext context{after.system};
    std::cout << megatron_changes_text(run.script, plan_steps(before, after, context));
  } else {
    std::cout << changed_script_text(run.script, changed_arguments(run.script, had, flags));
  }
  for (const std::string& what : flags.left_out)
    if (std::find(had.left_out.begin(), had.left_out.end(), what) == had.left_out.end())
      print_note("no flag for " + what);
  return exit_ok;
}

int print_script(const ServerScript& script, const ServingEngine& engine) {
  std::cout << script.text;
  // vllm-2025, trtllm-2024: the command is that of every release.
  if (engine.name.find("-20") != std::string::npos)
    print_note("the command does not say its release: import it with --engine " + engine.name);
  for (const std::string& what : script.left_out) print_note(what);
  return exit_ok;
}

int export_server(const Arguments& arguments) {
  DeploymentOptions given;
  PoolOptions pools;
  bool keeps_prefixes = true;
  Options options;
  add_deployment(options, given);
  options.add(deployment_option("checkpoint"), "NAME",
              "the checkpoint to serve (default: the plan's, or the model's)", given.checkpoint);
  add_pools(options, pools);
  options.group("Options");
  options.add("prefix-cache", "on|off", "what prompts begin with stays in the cache (on)",
              keeps_prefixes, parse_on_off);
  options.help();
  options.basic({"model", "system", "gpus", "engine", "plan", "tp", "pp", "dp", "ep", "weights",
                 "kv", "max_length", deployment_option("checkpoint"), "prefill", "decode", "pools",
                 "prefix-cache", "help"});
  if (!read_with_deployment_file(
          options, arguments,
          "usage: orrery export server --plan FILE | --model M --system S --gpus N --engine E "
          "[options]\n\n"
          "Prints commands that start a deployment: vllm serve, sglang.launch_server, "
          "trtllm-serve, or\nDynamo's workers. What no flag says goes to stderr.",
          "see orrery export --help"))
    return exit_ok;
  const Place& at = command_line;
  if (const auto request = read_pools(options, pools, given.keys)) {
    const Model model = read_model(named(given.model, "model"), at / "model");
    const System system = read_system(named(given.system, "system"), at / "system");
    const ServingEngine engine = read_serving_engine(named(given.engine, "engine"), at / "engine");
    const PoolsPlan plan =
        make_pools(model, system, engine, *request, {"--prefill", ""}, {"--decode", ""});
    return print_script(server_script(model, system, engine,
                                      {{ServerRole::prefill, plan.prefill, plan.prefill_gpus},
                                       {ServerRole::decode, plan.decode, plan.decode_gpus}},
                                      keeps_prefixes, at, given.checkpoint),
                        engine);
  }
  const ServingSetup setup = read_serving_setup(given);
  ScriptedPool pool{ServerRole::all, setup.deployment, {}};
  for (int replica = 0; replica < setup.deployment.replicas; ++replica)
    pool.first_gpus.push_back(static_cast<int>(replica * setup.deployment.replica_gpus()));
  print_deployment_notes(setup,
                         kv_capacity(setup.model, setup.system, setup.deployment, setup.engine), 1);
  return print_script(server_script(setup.model, setup.system, setup.engine, {pool}, keeps_prefixes,
                                    at, given.checkpoint),
                      setup.engine);
}

int export_simgrid(const Arguments& arguments) {
  std::optional<std::string> gpus;
  ImportOutput output;
  Options options;
  options.add("system", "NAME|FILE", "a cluster");
  options.add("gpus", "N", "its first N GPUs (default: those of two NVLink domains)", gpus);
  add_output(options, output);
  if (!options.read(arguments,
                    "usage: orrery export simgrid --system NAME|FILE [--gpus N] [-o FILE]\n\n"
                    "Prints a cluster as a SimGrid platform: a host a GPU, links, and the route "
                    "between each two\nGPUs. SimGrid's own programs, Batsim and WRENCH read it."))
    return exit_ok;
  options.refuse_words("see orrery export --help");
  const System system = read_system(options.required("system", "name one: orrery list systems"),
                                    command_line / "system");
  const int most =
      system.max_gpus > 0 ? std::min(system.max_gpus, most_platform_gpus) : most_platform_gpus;
  const int count = gpus ? parse_count(*gpus, command_line / "gpus", 1, most)
                         : std::min(2 * system.nvlink_domain, most);
  write_result(options, output, simgrid_platform(system, count), {});
  return exit_ok;
}

int export_megatron(const Arguments& arguments) {
  ExportOptions given;
  Options options{""};
  add_scenario(options, given.inputs);
  options.group("What is exported");
  options.add("script", "FILE",
              "a launch script: print its arguments with those changed that the plan needs",
              given.script);
  options.add("diff", "FILE",
              "a launch script: print only what must change, why, and what it brings", given.diff);
  add_variables(options, given.variables);
  options.group("");
  options.help();
  options.basic({"model", "system", "gpus", "plan", "tp", "pp", "cp", "ep", "gbs", "mbs", "seq",
                 "zero", "dtype", "recompute", "software", "script", "diff", "set", "help"});
  if (!options.read(
          arguments,
          "usage: orrery export megatron --model M --system S --gpus N --gbs B "
          "[options]\n"
          "       orrery export server --help\n"
          "       orrery export simgrid --help\n\n"
          "Prints a plan and its model as arguments of Megatron-LM's pretrain_gpt.py, or of "
          "its\npretrain_hybrid.py for a pattern of Mamba layers and others; what they "
          "cannot say goes to\nstderr. A plan that orrery import wrote, or --script, keeps "
          "all arguments of the script that\nthe plan does not change."))
    return exit_ok;
  options.refuse_words("see orrery export --help");
  if (given.diff && given.script)
    fail_input(command_line / "diff", "prints what changes, and --script prints all",
               "leave one out");
  if (auto script = script_of(given)) return export_changes(given, run_of(std::move(*script)));
  const Scenario scenario = read_scenario(given.inputs);
  if (!scenario.plan.trains_weights())
    fail_input(
        command_line / "finetune",
        "Megatron-LM's programs train all weights, and finetune=" + name(scenario.plan.finetune),
        "leave it out for the arguments of the frozen model's plan");
  const MegatronFlags flags = megatron_flags(scenario);
  std::cout << megatron_text(flags);
  for (const std::string& what : flags.left_out) print_note("no flag for " + what);
  return exit_ok;
}

}  // namespace

int run_export(const Arguments& arguments) {
  const std::vector<Subcommand> all{
      {"megatron", export_megatron}, {"server", export_server}, {"simgrid", export_simgrid}};
  if (!arguments.empty() && arguments.front() == "--help") {
    CommandListener::report(names_of(all));
    return export_megatron(arguments);
  }
  return run_subcommand(arguments, all, "", "export to what?", "is not a format");
}

}  // namespace orrery
