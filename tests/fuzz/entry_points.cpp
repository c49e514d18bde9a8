#include "tests/fuzz/entry_points.hpp"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "calibration/host/record.hpp"
#include "calibration/host/work_list.hpp"
#include "sim/analysis/calibrate/fit.hpp"
#include "sim/analysis/compare/compared_plan.hpp"
#include "sim/analysis/estimate/estimate.hpp"
#include "sim/analysis/grid/grid.hpp"
#include "sim/analysis/sweep/sweep_folder.hpp"
#include "sim/analysis/validate/validate.hpp"
#include "sim/base/text/quantity_text.hpp"
#include "sim/cluster/routing/router.hpp"
#include "sim/import/deepspeed/deepspeed_run.hpp"
#include "sim/import/inventory/nccl_topology.hpp"
#include "sim/import/inventory/smi_topology.hpp"
#include "sim/import/measurements/nccl_tests.hpp"
#include "sim/import/megatron/megatron_run.hpp"
#include "sim/import/nanotron/nanotron_run.hpp"
#include "sim/import/nemo/nemo_run.hpp"
#include "sim/import/shell/shell_script.hpp"
#include "sim/import/toml/toml_tree.hpp"
#include "sim/import/torchtitan/torchtitan_run.hpp"
#include "sim/import/yaml/yaml_tree.hpp"
#include "sim/input/machine/economics.hpp"
#include "sim/input/measured/calibration.hpp"
#include "sim/input/measured/kernel_tables.hpp"
#include "sim/input/scenario/plan_keys.hpp"
#include "sim/input/scenario/scenario.hpp"
#include "sim/input/schedule/replay.hpp"
#include "sim/input/schedule/schedule_file.hpp"
#include "sim/work/standalone/collective_program.hpp"

namespace orrery {
namespace {

const Place nowhere{"fuzz", ""};

// A refusal must be one printable line: it goes to a terminal.
void check_message(const Error& error) {
  for (const char c : std::string{error.what()})
    if (static_cast<unsigned char>(c) < 0x20) __builtin_trap();
}

template <class Action>
void refuse_or_accept(Action action) {
  try {
    action();
  } catch (const Error& error) {
    check_message(error);
  }
}

JsonValue parsed(const std::string& text) { return JsonValue::parse(text, "fuzz.json"); }

// What is accepted runs, and is the same after it was printed and read again.
void fuzz_schedule(const std::string& text) {
  refuse_or_accept([&] {
    const SpeltOrder order = read_schedule(text, "fuzz");
    if (!replay(order, {Seconds{1.0}, Seconds{1.0}, Seconds{1.0}}, Seconds{}).complete)
      __builtin_trap();
    if (read_schedule(schedule_text(order), "fuzz") != order) __builtin_trap();
  });
}

// What a model is used for first: totals must neither overflow nor come out negative.
void fuzz_model(const std::string& text) {
  refuse_or_accept([&] {
    const Model model = parse_model(parsed(text));
    const ParameterCount count = count_parameters(model);
    if (count.total <= 0 || count.active <= 0) __builtin_trap();
  });
}

void fuzz_gpu(const std::string& text) {
  refuse_or_accept([&] { parse_gpu(parsed(text)); });
}

void fuzz_system(const std::string& text) {
  refuse_or_accept([&] {
    const System system = parse_system(parsed(text));
    if (system.gpus_per_node < 1 || system.nics_per_node < 1) __builtin_trap();
  });
}

void fuzz_kernel_tables(const std::string& text) {
  refuse_or_accept([&] { parse_kernel_tables(parsed(text)); });
}

void fuzz_price_errors(const std::string& text) {
  refuse_or_accept([&] {
    const PriceErrors errors = parse_price_errors(parsed(text), "h100-sxm", Dtype::bf16, {});
    for (const auto& kind : errors.of)
      for (const double error : kind)
        if (!(error >= 0.0 && error <= 3.0)) __builtin_trap();
  });
}

// A result is like itself, and its step lies in its range.
void fuzz_result(const std::string& text) {
  refuse_or_accept([&] {
    const ComparedPlan plan = read_compared_plan(parsed(text), "fuzz");
    const StepRange& range = plan.range;
    if (!(range.low() <= range.step && range.step <= range.high())) __builtin_trap();
    if (!difference(plan, plan).step.is_tie()) __builtin_trap();
  });
}

void fuzz_economics(const std::string& text) {
  refuse_or_accept([&] {
    const Range pue = parse_economics(parsed(text), {}).pue;
    if (pue.known() && !(1.0 <= pue.low && pue.low <= pue.high)) __builtin_trap();
  });
}

// A request for every cluster size; what comes out must add up.
void make_scenarios(const PlanRequest& request) {
  static const Model model = read_model("gpt3-175b", nowhere);
  static const System system = read_system("dgx-h100", nowhere);
  for (const int gpus : {0, 8, 1024, 1 << 24})
    refuse_or_accept([&] {
      const Scenario scenario = make_scenario(model, system, request, gpus, nowhere);
      const Plan& plan = scenario.plan;
      int layers = 0;
      for (const int held : scenario.layers_of) layers += held;
      if (layers != model.layers || (gpus && plan.gpus() != gpus) ||
          plan.microbatches * plan.mbs * plan.dp != plan.gbs)
        __builtin_trap();
    });
}

void fuzz_plan(const std::string& text) {
  refuse_or_accept([&] {
    PlanRequest request;
    read_plan(request, parsed(text));
    make_scenarios(request);
  });
}

// Lines of "key=value", as the command line hands them over.
void fuzz_flags(const std::string& text) {
  refuse_or_accept([&] {
    PlanRequest request;
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) {
      const std::size_t equals = line.find('=');
      if (equals != line.npos)
        set_plan_flag(request, line.substr(0, equals), line.substr(equals + 1));
    }
    make_scenarios(request);
  });
}

template <class Quantity>
void fuzz_one_quantity(const std::string& text, Quantity (*parse)(std::string_view, const Place&)) {
  refuse_or_accept([&] {
    const double si = parse(text, nowhere).si();
    if (!(si >= 0.0 && si < 1e24)) __builtin_trap();  // NaN fails both.
  });
}

void fuzz_quantity(const std::string& text) {
  fuzz_one_quantity(text, parse_bandwidth);
  fuzz_one_quantity(text, parse_bytes);
  fuzz_one_quantity(text, parse_duration);
  fuzz_one_quantity(text, parse_flop_rate);
  refuse_or_accept([&] {
    if (!(parse_tokens(text, nowhere) > 0.0)) __builtin_trap();
  });
}

// With and without the answers that a log may lack. What comes out must be a document of ours.
void fuzz_nccl_tests(const std::string& text) {
  for (const NcclTestsAnswers& answers :
       {NcclTestsAnswers{}, NcclTestsAnswers{"all_reduce", "system", 8, 1}})
    refuse_or_accept([&] {
      const std::vector<Curve> curves = read_nccl_tests(text, "fuzz.log", answers);
      for (const Curve& curve : curves)
        if (curve.points.empty() || curve.ranks < 1 || curve.nodes < 1) __builtin_trap();
      parsed(curves_json(curves)).at("curves").elements();
    });
}

// No text stops it but one that grows without end, and no marks are left in what it says. Files
// that it reads are itself.
void fuzz_shell(const std::string& text) {
  refuse_or_accept([&] {
    const auto itself = [&](const std::string&) { return std::optional{text}; };
    const ShellScript script =
        read_shell_script(text, "fuzz.sh", {{"TP", "2"}, {"1", "a"}}, itself);
    for (const auto& command : script.commands) {
      if (command.empty()) __builtin_trap();
      for (const ShellWord& word : command)
        if (word.file >= script.files.size() ||
            word.text.find_first_of("\x01\x02\x05\x06") != std::string::npos)
          __builtin_trap();
    }
  });
}

// Every value stands on a line of the text.
void check_lines(const SettingsTree& tree, std::size_t lines) {
  if (tree.line > lines) __builtin_trap();
  for (const SettingsTree& item : tree.items) check_lines(item, lines);
  for (const auto& [key, value] : tree.entries) check_lines(value, lines);
}
void fuzz_yaml(const std::string& text) {
  refuse_or_accept([&] { check_lines(read_yaml(text, "fuzz.yaml"), text.size()); });
}

void fuzz_toml(const std::string& text) {
  refuse_or_accept([&] { check_lines(read_toml(text, "fuzz.toml"), text.size()); });
}

// What is written is read again: a plan, and a model that may yet be refused.
void check_run(const ImportedRun& run) {
  const JsonValue plan = parsed(run.json);
  PlanRequest request;
  for (const std::string& key : plan.keys())
    if (find_plan_key(key)) set_plan_key(request, key, plan.at(key));
  parse_model(plan.at("model"));
}
void fuzz_megatron(const std::string& text) {
  refuse_or_accept([&] {
    check_run(import_megatron_run(MegatronArguments::read(text, "fuzz.sh", {{"TP", "2"}}), "fuzz"));
  });
}

// As it is, and with a model and a number of GPUs, so that what follows is read too.
const RecipeAnswers recipe_answers[] = {{"fuzz", std::nullopt, std::nullopt, {}, {}},
                                        {"fuzz", "llama3-8b", 64, {}, {}}};
void fuzz_torchtitan(const std::string& text) {
  for (const RecipeAnswers& answers : recipe_answers)
    refuse_or_accept([&] { check_run(import_torchtitan_run(text, "fuzz.toml", answers)); });
}

void fuzz_nanotron(const std::string& text) {
  for (const RecipeAnswers& answers : recipe_answers)
    refuse_or_accept([&] { check_run(import_nanotron_run(text, "fuzz.yaml", answers)); });
}

// A script, arguments and a configuration of DeepSpeed, of which each is the text.
void fuzz_deepspeed(const std::string& text) {
  for (RecipeAnswers answers : recipe_answers) {
    answers.other_file = [&](const std::string&) { return std::optional{text}; };
    refuse_or_accept([&] { check_run(import_deepspeed_run({{text, "fuzz.sh"}}, answers)); });
    refuse_or_accept([&] { check_run(import_deepspeed_run({{text, "fuzz.json"}}, answers)); });
    refuse_or_accept([&] {
      check_run(import_deepspeed_run(
          {{"bf16: true\nmodel_name_or_path: gpt2\nmax_len: 64\n", "args.yaml"},
           {text, "fuzz.yaml"}},
          answers));
    });
  }
}

void fuzz_nemo(const std::string& text) {
  for (const RecipeAnswers& answers : recipe_answers)
    refuse_or_accept([&] { check_run(import_nemo_run(text, "fuzz.yaml", answers)); });
}

void fuzz_nccl_topology(const std::string& text) {
  refuse_or_accept([&] {
    const SystemDraft draft = read_nccl_topology(text, "fuzz.xml");
    system_json(draft, {{"gpu", draft.gpu.empty() ? "h100-sxm" : draft.gpu}});
  });
}

void fuzz_collective_program(const std::string& text) {
  refuse_or_accept([&] {
    const CollectiveProgram program = parse_collective_program(parsed(text));
    for (const Message& message : program.messages)
      if (message.src >= program.ranks || message.dst >= program.ranks ||
          message.src == message.dst || message.step < 0 || message.bytes.si() < 0.0)
        __builtin_trap();
  });
}

void fuzz_smi_topology(const std::string& text) {
  const SystemAnswers answers{
      {"gpu", "h100-sxm"}, {"nic-bandwidth", "400 Gb/s"}, {"fabric", "ethernet"}};
  refuse_or_accept([&] { system_json(read_smi_topology(text, "fuzz.txt", answers), answers); });
}

// Every token is somewhere: kept or dropped.
void fuzz_routing(const std::string& text) {
  refuse_or_accept([&] {
    const RoutingPlan plan = parse_routing(parsed(text));
    RoutingShape shape;
    shape.experts.count = 16;
    shape.experts.per_token = 2;
    shape.ranks = shape.per_domain = 4;
    shape.tokens = 64;
    const RoutedBatch batch = Router{plan, shape, nowhere}.route(0, 0, 0);
    if (batch.total_kept() + batch.total_dropped() != shape.copies()) __builtin_trap();
  });
}

void fuzz_routing_trace(const std::string& text) {
  for (const TraceExpectation& expected : {TraceExpectation{}, TraceExpectation{1, 2, 4, 64, 2}})
    refuse_or_accept([&] {
      const RoutingTrace trace = parse_trace(text, "fuzz.jsonl", expected);
      double copies = 0.0;
      for (int layer = 0; layer < trace.layers; ++layer)
        for (const double tokens : trace.totals(layer)) copies += tokens;
      if (trace.counts.empty() || copies < 0.0) __builtin_trap();
      if (expected.tokens > 0 && copies != trace.micro_batches * 2.0 * 64 * 2) __builtin_trap();
    });
}

// What is accepted is written and read as the same sweep, and every combination can be looked at.
void check_sweep(const SweepBuilder& builder) {
  const Sweep sweep = builder.sweep();
  const std::string text = sweep_json(sweep);
  SweepBuilder again;
  again.read(parsed(text));
  if (sweep_json(again.sweep()) != text) __builtin_trap();
  const Grid grid{sweep};
  if (grid.combinations() <= 10'000) grid.count_points();
  for (const std::int64_t number : {std::int64_t{0}, grid.combinations() - 1})
    if (grid.values(number).size() != grid.axes().size()) __builtin_trap();
}

void fuzz_sweep(const std::string& text) {
  refuse_or_accept([&] {
    SweepBuilder builder;
    builder.read(parsed(text));
    check_sweep(builder);
  });
}

void fuzz_sweep_axes(const std::string& text) {
  refuse_or_accept([&] {
    SweepBuilder builder;
    builder.add_axes(text, {"", "--sweep"});
    check_sweep(builder);
  });
}

// Keys of both kinds; the values decide whether kinds go together.
void fuzz_condition(const std::string& text) {
  refuse_or_accept([&] {
    SweepBuilder builder;
    builder.add_axes("model=m system=s gpus=8 gbs=8,16 tp=1..4 sp=true,false schedule=1f1b,gpipe",
                     {"", "--sweep"});
    builder.add_conditions(text, {"", "--where"});
    check_sweep(builder);
  });
}

// What is accepted can be written, and is then the same again.
void fuzz_calibration_record(const std::string& text) {
  refuse_or_accept([&] {
    const std::string again = record_json(calibration::parse_record(text, "fuzz.json"));
    if (record_json(calibration::parse_record(again, "fuzz.json")) != again) __builtin_trap();
  });
}

void fuzz_work_list(const std::string& text) {
  refuse_or_accept([&] {
    const std::string again =
        calibration::work_list_json(calibration::parse_work_list(text, "fuzz.json"));
    if (calibration::work_list_json(calibration::parse_work_list(again, "fuzz.json")) != again)
      __builtin_trap();
  });
}

// The other JSON reader, which stands alone: what it writes, it reads.
void fuzz_calibration_json(const std::string& text) {
  refuse_or_accept([&] {
    const std::string again = calibration::Json::parse(text, "fuzz.json").text();
    if (calibration::Json::parse(again, "fuzz.json").text() != again) __builtin_trap();
  });
}

// With the digest that it would have, so that what is behind the reader is reached. What is fitted
// must be of finite figures.
void fuzz_calibration_fit(const std::string& text) {
  refuse_or_accept([&] {
    const calibration::Record record =
        calibration::parse_record(calibration::with_digest(text), "fuzz.json");
    const CalibrationFit fit = fit_calibration({{"fuzz.json", record}}, {}, {"test-gpu", true, 2});
    if (!fit.kernels) return;
    for (const FittedFactor* factor :
         {&fit.kernels->sustained, &fit.kernels->wgrad_efficiency, &fit.kernels->copy_efficiency,
          &fit.kernels->attention_backward})
      if (!(factor->value > 0.0 && factor->value < 100.0)) __builtin_trap();
    for (const GemmTable& table : fit.kernels->tables.gemm)
      if (!(table.left_out && table.left_out->p90 >= table.left_out->median)) __builtin_trap();
  });
}

void fuzz_calibration(const std::string& text) {
  refuse_or_accept([&] {
    const Calibration calibration = parse_calibration(parsed(text), "fuzz.json");
    if (!calibration.kernels && calibration.curves.empty()) __builtin_trap();
  });
}

// What is read from a file alone, in one of this process.
template <class Action>
void with_file(const std::string& name, const std::string& text, Action action) {
  namespace fs = std::filesystem;
  static const fs::path folder = [] {
    std::string pattern = (fs::temp_directory_path() / "orrery-fuzz-XXXXXX").string();
    return fs::path{::mkdtemp(pattern.data())};
  }();
  const std::string path = (folder / name).string();
  std::ofstream{path, std::ios::binary} << text;
  refuse_or_accept([&] { action(path); });
}

void fuzz_software(const std::string& text) {
  with_file("software.json", text, [](const std::string& path) { read_software(path, nowhere); });
}

// Whatever is accepted is predicted, with figures or a reason.
void fuzz_validation(const std::string& text) {
  if (text.size() > 4096) return;  // Many cases take long, and say no more.
  with_file("validation.json", text, [](const std::string& path) { validate_file(path); });
}

// Rows of a shard whose header is sound: what follows counts as far as it is sealed.
void fuzz_shard(const std::string& text) {
  const ShardHeader header{sealed(R"({"schema":"orrery.sweep-rows/2"})"), 4};
  with_file("shard.jsonl", header.line + "\n" + text, [&](const std::string& path) {
    const ShardContents found = read_shard(path, header);
    if (found.rows > header.rows || found.complete == !found.damage.empty()) __builtin_trap();
  });
}

void fuzz_sweep_folder(const std::string& text) {
  with_file("sweep.json", text, [](const std::string& path) {
    const SweepFolder folder = open_sweep_folder(std::filesystem::path{path}.parent_path());
    if (folder.shards > 100) return;
    if (missing_shards(shard_states(folder)).empty()) __builtin_trap();
  });
}

// From the words of a plan to its answer, which is sound or refused.
void fuzz_estimate(const std::string& text) {
  refuse_or_accept([&] {
    static const Model dense = read_model("llama3.2-1b", nowhere);
    static const Model mixture = read_model("mixtral-8x7b", nowhere);
    static const System system = read_system("dgx-h200", nowhere);
    static EstimateContext context{system};
    const bool experts = !text.empty() && text.front() == 'e';
    PlanRequest request;
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);)
      if (const std::size_t equals = line.find('='); equals != line.npos)
        set_plan_flag(request, line.substr(0, equals), line.substr(equals + 1));
    const Scenario scenario =
        make_scenario(experts ? mixture : dense, system, request, 16, nowhere);
    if (scenario.plan.microbatches > 64 || scenario.plan.seq > 65536) return;
    estimate(scenario, context);
  });
}

}  // namespace

const std::vector<EntryPoint>& entry_points() {
  static const std::vector<EntryPoint> all{{"model", fuzz_model},
                                           {"gpu", fuzz_gpu},
                                           {"system", fuzz_system},
                                           {"plan", fuzz_plan},
                                           {"schedule", fuzz_schedule},
                                           {"flags", fuzz_flags},
                                           {"kernel_tables", fuzz_kernel_tables},
                                           {"economics", fuzz_economics},
                                           {"price_errors", fuzz_price_errors},
                                           {"result", fuzz_result},
                                           {"quantity", fuzz_quantity},
                                           {"nccl_tests", fuzz_nccl_tests},
                                           {"shell", fuzz_shell},
                                           {"yaml", fuzz_yaml},
                                           {"toml", fuzz_toml},
                                           {"megatron", fuzz_megatron},
                                           {"torchtitan", fuzz_torchtitan},
                                           {"nanotron", fuzz_nanotron},
                                           {"deepspeed", fuzz_deepspeed},
                                           {"nemo", fuzz_nemo},
                                           {"nccl_topology", fuzz_nccl_topology},
                                           {"smi_topology", fuzz_smi_topology},
                                           {"collective_program", fuzz_collective_program},
                                           {"routing", fuzz_routing},
                                           {"routing_trace", fuzz_routing_trace},
                                           {"sweep", fuzz_sweep},
                                           {"sweep_axes", fuzz_sweep_axes},
                                           {"condition", fuzz_condition},
                                           {"calibration_record", fuzz_calibration_record},
                                           {"calibration_json", fuzz_calibration_json},
                                           {"work_list", fuzz_work_list},
                                           {"calibration", fuzz_calibration},
                                           {"calibration_fit", fuzz_calibration_fit},
                                           {"estimate", fuzz_estimate},
                                           {"software", fuzz_software},
                                           {"validation", fuzz_validation},
                                           {"shard", fuzz_shard},
                                           {"sweep_folder", fuzz_sweep_folder}};
  return all;
}

const EntryPoint* find_entry_point(const std::string& name) {
  for (const EntryPoint& entry : entry_points())
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace orrery
