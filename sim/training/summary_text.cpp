#include <algorithm>
#include <cmath>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/engine/network_model.hpp"
#include "sim/kernels/kernel_time.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/training/result_items.hpp"
#include "sim/training/training_text.hpp"

namespace orrery {
namespace {

constexpr int width = 78;  // Fits a terminal of 80 columns, and a quoted mail.

class Painter {
 public:
  explicit Painter(bool colour) : colour_{colour} {}
  // Colours are of the terminal's own palette, which is legible on its background.
  std::string head(const std::string& text) const { return paint("1", text); }
  std::string work(const std::string& text) const { return paint("32", text); }
  std::string wait(const std::string& text) const { return paint("33", text); }
  std::string alarm(const std::string& text) const { return paint("1;31", text); }

 private:
  std::string paint(const char* code, const std::string& text) const {
    if (!colour_ || text.empty()) return text;
    return "\x1b[" + std::string{code} + "m" + text + "\x1b[0m";
  }
  bool colour_;
};

std::string title(const Result& result, const Painter& paint) {
  const Scenario& scenario = result.scenario;
  const int gpus = scenario.plan.gpus();
  return wrapped("",
                 {paint.head(scenario.model.name), "on", scenario.system.name + ",", grouped(gpus),
                  gpus == 1 ? "GPU" : "GPUs"},
                 " ", width);
}

// Those of the plan, and what of the model is trained besides its layers.
std::vector<std::string> heading_items(const Result& result) {
  std::vector<std::string> items = plan_items(result.scenario.plan);
  if (const int more = result.scenario.model.prediction_layers; more > 0)
    items.push_back(grouped(more) + (more == 1 ? " prediction layer" : " prediction layers"));
  return items;
}

std::string speed(const Result& result, const Painter& paint) {
  const DisplayUnit unit = time_unit(result.step_time);
  Table table{{{"", Align::left}, {""}, {"", Align::left}, {"", Align::left}}, 0};
  const auto amount = [&](Seconds time) { return fixed(time.si() / unit.si, 3); };
  table.add_row(
      {paint.head("Step time"), paint.head(amount(result.step_time)), std::string{unit.name},
       amount(result.range.low()) + " .. " + amount(result.range.high()) + " (90 % interval)"});
  if (result.range.errors.published && !result.by_runs)
    table.add_row({"", "", "",
                   std::string{result.range.stands_in ? "for software without a description"
                                                      : "for described software"} +
                       "; a measured step of this plan narrows it (--runs)"});
  if (const auto& runs = result.by_runs)
    table.add_row({"as your runs", amount(runs->step(result.range)), std::string{unit.name},
                   amount(runs->low(result.range)) + " .. " + amount(runs->high(result.range)) +
                       " by " + std::to_string(runs->runs) + (runs->runs == 1 ? " run" : " runs") +
                       ", " + std::to_string(runs->same_plan) + " of this plan"});
  table.add_row({"Throughput", fixed(result.tokens_per_s, 0), "tokens/s",
                 "lower bound " + amount(result.lower_bound) + " " + std::string{unit.name}});
  table.add_row({"", fixed(result.tokens_per_s_per_gpu, 1), "tokens/s/GPU"});
  const char* frozen =
      result.scenario.plan.trains_weights() ? "" : ", 4 a frozen weight and token (as NVIDIA)";
  table.add_row({"Model FLOP", fixed(result.model_tflops_per_gpu, 1), "TFLOP/s/GPU",
                 "MFU " + percent(result.mfu) + "  causal half (as Megatron-LM)" + frozen});
  table.add_row({"", fixed(result.model_tflops_per_gpu_full, 1), "TFLOP/s/GPU",
                 "MFU " + percent(result.mfu_full) + "  full attention (as PaLM)"});
  return table.text();
}

// Shows all stages if there are few, else the first, the fullest and the last.
std::vector<int> stages_to_show(const MemoryReport& memory) {
  constexpr int most = 4;
  const int count = static_cast<int>(memory.stages.size());
  std::vector<int> shown;
  if (count <= most) {
    for (int stage = 0; stage < count; ++stage) shown.push_back(stage);
    return shown;
  }
  shown = {0, memory.fullest_stage(), count - 1};
  std::sort(shown.begin(), shown.end());
  shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
  return shown;
}

std::string memory(const MemoryReport& report, const Plan& plan, const Painter& paint) {
  const auto gigabytes = [](Bytes bytes) { return fixed(bytes.si() / 1e9, 2); };
  Table table{{{"stage"},
               {"weights"},
               {"grads"},
               {"optim"},
               {"activations"},
               {"other"},
               {"peak"},
               {"of GPU"},
               {"", Align::left}}};
  const std::vector<int> shown = stages_to_show(report);
  for (int index : shown) {
    const StageMemory& stage = report.stages[static_cast<std::size_t>(index)];
    const double share = stage.peak() / report.capacity;
    const std::string marks = bar(share, 10);
    table.add_row({grouped(index), gigabytes(stage.weights), gigabytes(stage.gradients),
                   gigabytes(stage.optimizer), gigabytes(stage.activations), gigabytes(stage.other),
                   gigabytes(stage.peak()), percent(share),
                   share > 1.0 ? paint.alarm(marks) : paint.work(marks)});
  }
  std::string head = "Memory of a GPU, GB of " + gigabytes(report.capacity);
  const std::size_t left_out = report.stages.size() - shown.size();
  if (left_out > 0)
    head += "; fullest is stage " + grouped(report.fullest_stage()) + ", " +
            grouped(static_cast<std::int64_t>(left_out)) + " stages left out";
  std::string host;
  if (report.host > Bytes{}) {
    host = "the host of a node holds " + gigabytes(report.host) + " GB of " + text_of_host(plan);
    if (report.host_capacity > Bytes{}) host += ", of " + gigabytes(report.host_capacity) + " GB";
    host += "\n";
  }
  return paint.head(head) + "\n" + table.text() + host;
}

std::string kinds(const Result& result, const Painter& paint) {
  if (result.kinds.empty()) return "";
  return paint.head(kinds_head()) + "\n" + kinds_table(result).text() + "\n";
}

std::string time_by_part(const Result& result, const Painter& paint) {
  return paint.head(critical_head(result)) + "\n" +
         critical_table(result,
                        [&](const std::string& marks, bool useful) {
                          return useful ? paint.work(marks) : paint.wait(marks);
                        })
             .text() +
         "\n" + paint.head(stage_head(result)) + "\n" + stage_table(result).text();
}

std::string routing(const Result& result, const Painter& paint) {
  const std::vector<LabelledItems> lines = routing_items(result);
  if (lines.empty()) return "";
  std::string text = paint.head("Routing " + result.scenario.plan.routing) + "\n";
  for (const auto& [label, items] : lines) {
    std::string head = label;
    head.resize(14, ' ');
    text += wrapped(head, items, ", ", width);
  }
  return text;
}

std::string longer_or_shorter(double logarithm) {
  return percent(std::abs(std::expm1(logarithm))) + (logarithm > 0.0 ? " longer" : " shorter");
}

std::string range_text(const Result& result) {
  const auto& published = result.range.errors.published;
  if (!published) return "";
  const double half_width = result.range.half_width();
  std::string text = "nine in ten published steps on software ";
  text += result.range.stands_in ? "for which another stands in" : "that is described";
  text += " are from " + longer_or_shorter(-half_width) + " to " + longer_or_shorter(half_width) +
          " than predicted";
  if (!result.by_runs || result.by_runs->same_plan == 0)
    text += "; one measured step of this plan narrows that to " + percent(published->same_plan) +
            " either way (--runs)";
  return wrapped_words("Range         ", text, width);
}

std::string provenance_text(const Result& result) {
  const System& system = result.scenario.system;
  return wrapped("Times from    ", basis_items(result), ", ", width) + range_text(result) +
         (system.calibration
              ? wrapped("Measured by   ", {shown_text(system.calibration->file)}, "", width)
              : "");
}

std::string busiest_link(const Result& result) {
  if (result.links.empty()) return "";
  const LinkReport& link = result.links.front();
  return wrapped("Busiest link  ",
                 {link.kind + " " + percent(link.busy_fraction) + " of the step",
                  bytes_text(link.bytes) + " over " + link.name, users_text(link)},
                 ", ", width);
}

std::string links(const Result& result, const Painter& paint) {
  if (result.links.empty()) return "";
  return paint.head("Links: the busiest of each class, and by whom") + "\n" +
         link_table(result).text();
}

std::string simulation_text(const Result& result, const TextStyle& style) {
  const int gpus = result.scenario.plan.gpus();
  const bool folded = result.reps < gpus;
  std::vector<std::string> items{
      grouped(result.tasks) + " tasks on " + grouped(result.reps) +
          (result.reps == 1 ? " rank" : " ranks"),
      folded ? "representing " + grouped(gpus) : "every rank of the plan"};
  if (!result.contracted) items.push_back("each tensor-parallel collective");
  if (result.simulator == Simulator::simgrid) items.push_back(simgrid_note);
  std::string text = wrapped("Simulated     ", items, ", ", width);
  if (style.wall_time) text += "Took          " + duration_text(result.simulation_wall) + "\n";
  return text;
}

std::string details(const Result& result, const TextStyle& style) {
  return provenance_text(result) + busiest_link(result) + simulation_text(result, style);
}

std::string warnings(const Result& result, const Painter& paint) {
  std::string text;
  for (const std::string& warning : result.warnings)
    text += wrapped_words(paint.alarm("Warning") + "       ", warning, width);
  return text;
}

std::string bill(const Result& result, const Painter& paint) {
  if (!result.bill) return "";
  const std::string note = bill_note(*result.bill);
  return paint.head(bill_head(*result.bill)) + "\n" + bill_table(*result.bill).text() +
         (note.empty() ? "" : wrapped_words("", note, width));
}

}  // namespace

std::string summary_text(const Result& result, const TextStyle& style) {
  const Painter paint{style.colour};
  std::string text = wrapped_words("", verdict(result), width) + "\n" +                          //
                     title(result, paint) + wrapped("  ", heading_items(result), ", ", width) +  //
                     "\n" + speed(result, paint) + "\n" +                                        //
                     memory(result.memory, result.scenario.plan, paint) + "\n" +                 //
                     kinds(result, paint) +                                                      //
                     time_by_part(result, paint);
  for (const std::string& part :
       {bill(result, paint), routing(result, paint), style.links ? links(result, paint) : "",
        style.verbose ? details(result, style) : "", warnings(result, paint)})
    if (!part.empty()) text += "\n" + part;
  return text;
}

}  // namespace orrery
