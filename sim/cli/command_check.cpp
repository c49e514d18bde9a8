#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "sim/cli/options.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cluster/system.hpp"
#include "sim/cluster/topology_text.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/object_reader.hpp"
#include "sim/core/value_list.hpp"
#include "sim/core/write_file.hpp"
#include "sim/model/layer_pattern.hpp"
#include "sim/model/model.hpp"
#include "sim/plan/unlikely_inputs.hpp"
#include "sim/reliability/reliability.hpp"
#include "sim/reliability/reliability_text.hpp"

namespace orrery {
namespace {

// The clusters whose failures were published have about as many.
constexpr int usual_job = 16384;

std::string with_commas(std::int64_t value) {
  std::string text = std::to_string(value);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

void row(std::ostream& out, const std::string& name, const std::string& value) {
  out << "  " << std::left << std::setw(22) << name << " " << value << "\n";
}

std::string number(double value, const std::string& unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%.5g %s", value, unit.c_str());
  return text;
}

void print_experts(std::ostream& out, const Model& model) {
  const Experts& experts = *model.experts;
  row(out, "experts",
      std::to_string(experts.count) + " of " + std::to_string(experts.ffn) + ", " +
          std::to_string(experts.per_token) + " a token");
  if (experts.shared_ffn > 0) row(out, "shared expert", std::to_string(experts.shared_ffn));
  if (experts.groups > 1)
    row(out, "expert groups",
        std::to_string(experts.groups) + ", " + std::to_string(experts.groups_per_token) +
            " a token");
  const auto& layers = model.layer_has_experts;
  const auto with = std::count(layers.begin(), layers.end(), true);
  if (with < model.layers) row(out, "layers without them", std::to_string(model.layers - with));
}

// Ranks and head sizes of queries, keys and values.
void print_latent(std::ostream& out, const LatentAttention& latent) {
  const std::string queries =
      latent.q_rank > 0 ? std::to_string(latent.q_rank) : std::string{"none"};
  row(out, "latent attention",
      "ranks " + queries + " and " + std::to_string(latent.kv_rank) + ", heads of " +
          std::to_string(latent.nope_dim) + " + " + std::to_string(latent.rope_dim) + " and " +
          std::to_string(latent.v_dim));
}

// Layers by kind, and what a sequence keeps in them.
void print_pattern(std::ostream& out, const LayerPattern& pattern, std::int64_t hidden) {
  for (const LayerPattern::Layer& kind : pattern.kinds())
    row(out, "  " + pattern.name_of(kind),
        std::to_string(std::count(pattern.layers.begin(), pattern.layers.end(), kind)));
  for (const LayerPattern::NamedMixer& one : pattern.mixers)
    row(out, "mixer " + one.name, one.mixer->kind());
  const KeptBytes kept = kept_bytes(pattern, hidden);
  row(out, "keys and values", grouped(std::llround(kept.per_token)) + " bytes a token");
  if (kept.window > 0) row(out, "windows", number(kept.window / 1e6, "MB a sequence"));
  if (kept.states > 0)
    row(out, "states", number(static_cast<double>(kept.states) / 1e6, "MB a sequence"));
}

void print_attention_and_mlp(std::ostream& out, const Model& model) {
  row(out, "heads x head size",
      std::to_string(model.heads) + " x " + std::to_string(model.head_dim) + ", " +
          std::to_string(model.kv_heads) + " for keys and values");
  if (model.latent) print_latent(out, *model.latent);
  const auto local = std::count(model.layer_is_local.begin(), model.layer_is_local.end(), true);
  if (local > 0)
    row(out, "windows",
        std::to_string(model.window) + " tokens in " + std::to_string(local) + " layers");
  row(out, "MLP",
      std::to_string(model.ffn) + (model.gated ? ", gated" : "") +
          (model.parallel_residual ? ", parallel to attention" : ""));
  if (model.experts) print_experts(out, model);
}

void print(std::ostream& out, const Model& model) {
  const ParameterCount count = count_parameters(model);
  out << "model " << model.name << "\n";
  row(out, "layers", std::to_string(model.layers));
  if (model.pattern) print_pattern(out, *model.pattern, model.hidden);
  row(out, "hidden", std::to_string(model.hidden));
  if (!model.pattern) print_attention_and_mlp(out, model);
  if (model.prediction_layers > 0)
    row(out, "prediction layers", std::to_string(model.prediction_layers) + ", not in the totals");
  row(out, "vocabulary",
      std::to_string(model.vocab) + (model.tied_embeddings ? ", output head tied" : ""));
  row(out, "longest sequence", std::to_string(model.max_sequence));
  row(out, "sequence in training",
      std::to_string(default_sequence(model)) + (guesses_sequence(model) ? ", assumed" : ""));
  row(out, "parameters", with_commas(count.total));
  if (count.active != count.total) row(out, "active a token", with_commas(count.active));
}

// Figures that have no source but the user.
void print_own_figures(std::ostream& out, const JsonValue& document) {
  constexpr std::size_t width = 72;
  std::string line;
  std::string name = "yours, without source";
  for (const std::string& where : own_figures(document)) {
    if (!line.empty() && line.size() + where.size() > width) {
      row(out, name, line + ",");
      name = line = "";
    }
    line += (line.empty() ? "" : ", ") + where;
  }
  if (!line.empty()) row(out, name, line);
}

void print(std::ostream& out, const System& system) {
  const Gpu& gpu = system.gpu;
  out << "system " << system.name << ": " << system.title << "\n";
  row(out, "GPU", gpu.title);
  row(out, "16-bit peak", number(gpu.peak_16bit.si() / 1e12, "TFLOP/s"));
  row(out, "memory",
      number(gpu.memory.si() / 1e9, "GB") + " at " +
          number(gpu.memory_bandwidth.si() / 1e9, "GB/s"));
  row(out, "GPUs a node", std::to_string(system.gpus_per_node));
  row(out, "GPUs a NVLink domain", std::to_string(system.nvlink_domain));
  row(out, "scale-up a GPU",
      number(system.scale_up.si() / 1e9, "GB/s each way, ") +
          number(system.scale_up_latency.si() * 1e6, "us"));
  row(out, "NICs a node",
      std::to_string(system.nics_per_node) + " of " + number(system.nic.si() * 8e-9, "Gb/s, ") +
          number(system.network_latency.si() * 1e6, "us, ") +
          number(100.0 * system.network_efficiency, "% payload"));
  print_own_figures(out, *system.document);
}

// The fewest GPUs with the whole pattern: two pods, four leaves, two domains; or all there are.
int shown_gpus(const System& system) {
  if (system.max_gpus > 0) return system.max_gpus;
  const FabricShape& shape = system.shape;
  if (shape.layout == FabricLayout::single_switch) return 2 * system.nvlink_domain;
  const std::int64_t leaves = shape.leaves_per_pod > 0 ? 2 * shape.leaves_per_pod : 4;
  const std::int64_t gpus = leaves * shape.nodes_per_leaf * system.gpus_per_node;
  return static_cast<int>(std::min<std::int64_t>(gpus, 1 << 24));
}

struct CheckOptions {
  std::optional<std::string> model, system, reliability, gpus, dot;
  bool force = false;
};

void check_system(std::ostream& out, const CheckOptions& given) {
  const System system = read_system(*given.system, command_line / "system");
  int gpus = shown_gpus(system);
  if (given.gpus) gpus = static_cast<int>(value_of_flag("gpus", *given.gpus).integer(1, 1 << 24));
  if (system.max_gpus > 0 && gpus > system.max_gpus)
    fail_infeasible(command_line / "gpus",
                    std::to_string(gpus) + " GPUs are more than the " +
                        std::to_string(system.max_gpus) + " of '" + system.name + "'",
                    "use --gpus " + std::to_string(system.max_gpus));
  note_doubt(unlikely_nic(system));
  note_doubt(unlikely_latency(system));
  const Topology topology = Topology::build(system, gpus);
  print(out, system);
  out << topology_text(system, topology);
  if (!given.dot) return;
  write_output(*given.dot, topology_dot(system, topology), given.force);
}

}  // namespace

int run_check(const Arguments& arguments) {
  CheckOptions given;
  Options options;
  options.add("model", "NAME|FILE", "a model", given.model);
  options.add("system", "NAME|FILE", "a system: drawn, with the figures of its fabric",
              given.system);
  options.add("reliability", "NAME|FILE", "what fails how often, and what follows",
              given.reliability);
  options.add("gpus", "N", "draw the fabric of so many GPUs; failures of a job of so many",
              given.gpus);
  options.add("dot", "FILE", "write the drawing for Graphviz too", given.dot);
  options.add("force", "replace files that Orrery did not write", given.force);
  options.help();
  if (!options.read(arguments,
                    "usage: orrery check [--model NAME|FILE] [--system NAME|FILE [--gpus N] [--dot "
                    "FILE]]\n"
                    "       orrery check --reliability NAME|FILE [--gpus N]"))
    return exit_ok;
  options.refuse_words("use --model, --system or --reliability", "is not an option");
  if (!given.model && !given.system && !given.reliability)
    fail_input({}, "nothing to check", "give --model, --system or --reliability");
  if (!given.system && ((given.gpus && !given.reliability) || given.dot))
    fail_input(
        {},
        "--" + std::string{given.gpus && !given.reliability ? "gpus" : "dot"} + " draws a system",
        "give --system too");
  std::ostringstream text;  // All or nothing is printed.
  if (given.model) print(text, read_model(*given.model, command_line / "model"));
  if (given.system) check_system(text, given);
  if (given.reliability)
    text << reliability_details(
        read_reliability(*given.reliability, command_line / "reliability"),
        given.gpus ? parse_count(*given.gpus, command_line / "gpus", 1, 1 << 24) : usual_job);
  std::cout << text.str();
  return exit_ok;
}

}  // namespace orrery
