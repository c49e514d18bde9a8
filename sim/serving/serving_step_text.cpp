#include "sim/serving/serving_step_text.hpp"

#include <map>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/serving/served_layers.hpp"

namespace orrery {
namespace {

constexpr int step_width = 78;

std::string time_text(Seconds time) { return fixed(time.si() * 1e3, 3); }

std::string memory(const ServingStep& step) {
  const ServingMemory& memory = step.kv.memory;
  Table table{{{"Memory of a GPU", Align::left}, {"GB"}, {"", Align::left}}, 0};
  const auto row = [&](const std::string& what, Bytes bytes, const std::string& note) {
    table.add_row({"  " + what, fixed(bytes.si() / 1e9, 2), note});
  };
  row("weights", memory.weights, "");
  if (memory.activations > Bytes{}) row("activations", memory.activations, "");
  row("engine", memory.reserve, "contexts, graphs, buffers");
  if (step.kv.state_slots > 0)
    row("states", memory.states,
        "of " + plural(step.kv.state_slots, "request") + ", " + name(step.setup.deployment.states));
  else if (memory.states > Bytes{})
    row("unfinished entries", memory.states,
        "of " + plural(step.setup.deployment.max_seqs, "request"));
  row("KV cache", memory.kv,
      plural(step.kv.tokens, "token") + " of " +
          grouped(static_cast<std::int64_t>(step.kv.bytes_per_token + 0.5)) + " bytes, blocks of " +
          grouped(step.kv.block));
  if (const std::string longest = longest_text(step.setup.deployment, step.kv); !longest.empty())
    table.add_row({"", "", longest});
  if (step.kv.groups.states > 0)
    table.add_row(
        {"", "",
         plural(step.kv.groups.states, "block") + " of each request for its " +
             (has_states(step.setup.model) ? "states, " + name(step.setup.deployment.states)
                                           : "windows and unfinished entries")});
  row("left free",
      memory.total - memory.weights - memory.activations - memory.reserve - memory.states -
          memory.kv,
      "kv_share " + fixed(step.setup.deployment.kv_share, 2));
  row("all", memory.total, "");
  if (step.setup.deployment.host_kv > Bytes{})
    row("on the host", step.setup.deployment.host_kv,
        plural(
            static_cast<std::int64_t>(step.setup.deployment.host_kv.si() / step.kv.bytes_per_token),
            "token"));
  return table.text();
}

std::string heading_of(const Iteration& iteration) {
  std::string text;
  if (iteration.decodes > 0)
    text = plural(iteration.decodes, "decode") + " over " + plural(iteration.context, "token");
  for (const PrefillChunk& chunk : iteration.chunks)
    text += (text.empty() ? "" : ", ") + std::string{"prompt of "} + plural(chunk.tokens, "token") +
            (chunk.cached > 0 ? " behind " + grouped(chunk.cached) : "");
  return text;
}

std::string parts(const ServingStep& step) {
  const IterationPrice& price = step.price;
  Table table{{{"", Align::left},
               {"kernels"},
               {"ms"},
               {"of GPU"},
               {"GB/s"},
               {"TFLOP/s"},
               {"basis", Align::left}}};
  const Seconds all = total(price.parts);
  for (const IterationPart& part : price.parts)
    table.add_row({part.op, grouped(part.count), time_text(part.time), percent(part.time / all),
                   part.bytes > Bytes{} ? fixed((part.bytes / part.time).si() / 1e9, 0) : "",
                   part.flop > Flop{} ? fixed((part.flop / part.time).si() / 1e12, 1) : "",
                   name(part.tag)});
  return table.text();
}

std::string ends(const IterationPrice& price, bool hidden) {
  Table table{{{"", Align::left}, {""}, {"", Align::left}}};
  if (price.eager > total(price.parts))
    table.add_row({"launches", time_text(price.eager), "ms: kernels wait for the host"});
  table.add_row({"GPU", time_text(price.gpu), "ms"});
  table.add_row({"host", time_text(price.host),
                 hidden ? "ms, concurrent, for the next iteration" : "ms after it"});
  if (price.gap > Seconds{}) table.add_row({"gap", time_text(price.gap), "ms"});
  table.add_row({"step", time_text(price.step), "ms, bound by " + name(price.bound)});
  return table.text();
}

std::string rate(const ServingStep& step, const TokenCost& cost) {
  if (!(step.tokens_per_s > 0.0)) return "";
  const auto gpus = static_cast<double>(step.setup.deployment.gpus());
  return "\nSteady state: " + fixed(step.tokens_per_s, 1) + " output tokens/s" +
         (gpus > 1.0 ? ", " + fixed(step.tokens_per_s / gpus, 1) + " a GPU" : "") + "\n" +
         token_cost_text(cost);
}

std::string basis(const ServingStep& step) {
  std::map<Tag, Seconds> by_tag;
  for (const IterationPart& part : step.price.parts) by_tag[part.tag] += part.time;
  const Seconds all = total(step.price.parts);
  std::vector<std::string> shares;
  for (const Tag tag : {Tag::measured, Tag::interpolated, Tag::default_value})
    shares.push_back(percent(by_tag[tag] / all) + " " + name(tag));
  std::string text = wrapped("Times from ", shares, ", ", step_width);
  const std::string& gpu = step.setup.system.gpu.name;
  if (step.measured_gpu.empty())
    text += "No inference kernel of " + gpu +
            " was measured: kernels are priced by assumed shares of its peaks.\n";
  else if (step.measured_gpu != gpu)
    text += "Kernels of " + step.measured_gpu + " stand for those of " + gpu +
            ", scaled by their peaks.\n";
  return text;
}

}  // namespace

std::string speculation_words(const Deployment& plan) {
  if (!plan.speculation) return "";
  return ", speculate " + speculation_text(*plan.speculation) + " (" +
         fixed(plan.speculation->a_step(), 2) + " tokens a step)";
}

std::string longest_text(const Deployment& plan, const KvCapacity& kv) {
  if (kv.groups.windowed == 0) return "";
  return "requests of " +
         (kv.groups.whole == 0 ? "any length"
                               : "up to " + plural(kv.longest(at_once(plan)), "token")) +
         ": some layers keep only a window";
}

std::string deployment_text(const ServingSetup& setup) {
  const Deployment& plan = setup.deployment;
  std::string text = setup.engine.name + ", tp " + std::to_string(plan.tp);
  const auto degree = [&](const char* what, int value) {
    if (value > 1) text += std::string{", "} + what + " " + std::to_string(value);
  };
  degree("pp", plan.pp);
  degree("dp", plan.dp);
  degree("ep", plan.ep);
  if (setup.model.experts && plan.moe_tp != plan.tp) degree("moe_tp", plan.moe_tp);
  degree("replicas", plan.replicas);
  if (plan.eplb) text += ", eplb";
  degree("redundant_experts", plan.redundant_experts);
  if (plan.two_batch) text += ", two_batch";
  degree("prefill_delay", plan.prefill_delay);
  degree("receive_interval", plan.receive_interval);
  if (!plan.graph_sizes.empty())
    text += ", graphs of up to " + grouped(plan.graph_sizes.back()) + " requests";
  text += ", weights " + name(plan.weights);
  if (setup.model.experts && plan.experts != plan.weights)
    text += ", experts " + name(plan.experts);
  if (plan.attention != plan.weights) text += ", attention " + name(plan.attention);
  if (plan.ends_16bit > 0) text += ", ends_16bit " + std::to_string(plan.ends_16bit);
  text += ", kv " + name(plan.kv);
  if (has_states(setup.model)) text += ", states " + name(plan.states);
  if (plan.window_ratio > 0.0) text += ", window_ratio " + nine_digits(plan.window_ratio);
  if (plan.max_length > 0) text += ", max_length " + grouped(plan.max_length);
  if (plan.host_kv > Bytes{}) text += ", host_kv " + bytes_text(plan.host_kv);
  if (!plan.kv_tiers.empty()) text += ", kv_tiers " + kv_tiers_text(plan.kv_tiers);
  return text + speculation_words(plan);
}

std::string serving_step_text(const ServingStep& step, const TokenCost& cost) {
  const ServingSetup& setup = step.setup;
  const std::int64_t gpus = setup.deployment.gpus();
  return setup.model.name + " on " + setup.system.name + ", " + plural(gpus, "GPU") + "\n" +
         deployment_text(setup) + "\n\n" + memory(step) +
         "\nIteration: " + heading_of(step.iteration) + "\n" + parts(step) + "\n" +
         ends(step.price, hides_host(setup.model, setup.engine, setup.deployment)) +
         rate(step, cost) + "\n" + basis(step);
}

}  // namespace orrery
