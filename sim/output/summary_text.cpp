#include "sim/output/summary_text.hpp"

#include <algorithm>

#include "sim/cost/tag.hpp"
#include "sim/input/calibration.hpp"
#include "sim/output/bill_text.hpp"
#include "sim/output/number_text.hpp"
#include "sim/output/table.hpp"

namespace orrery {
namespace {

constexpr int width = 78;  // Fits a terminal of 80 columns, and a quoted mail.

class Painter {
 public:
  explicit Painter(bool colour) : colour_{colour} {}
  // Colours of the terminal's own palette, which its owner can read on its background.
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

std::string plan_lines(const Result& result) {
  const Plan& plan = result.scenario.plan;
  std::vector<std::string> items{"tp " + grouped(plan.tp) + " x pp " + grouped(plan.pp) + " x dp " +
                                 grouped(plan.dp) +
                                 (plan.cp > 1 ? " x cp " + grouped(plan.cp) : "")};
  if (plan.cp > 1) items.push_back(name(plan.cp_comm) + " attention");
  if (plan.experts)
    items.push_back("experts over ep " + grouped(plan.ep) +
                    (plan.etp > 1 ? " x etp " + grouped(plan.etp) : "") + " x dp " +
                    grouped(plan.expert_data_ranks()));
  if (plan.ep > 1) items.push_back(name(plan.moe_dispatcher) + " dispatch");
  if (plan.shared_expert_overlap) items.push_back("shared experts beside it");
  if (plan.ep_overlap)
    items.push_back(std::string{"beside another micro-batch's kernels"} +
                    (plan.delay_wgrad ? " and weight gradients" : ""));
  if (plan.routing != "uniform") items.push_back("routing " + plan.routing);
  items.push_back(name(plan.schedule) +
                  (plan.vpp > 1 ? " with " + grouped(plan.vpp) + " chunks a stage" : ""));
  items.push_back(grouped(plan.microbatches) + " micro-batches of " + grouped(plan.mbs) + " x " +
                  grouped(plan.seq) + " tokens");
  items.push_back("global batch " + grouped(plan.gbs));
  items.push_back(name(plan.dtype));
  items.push_back(plan.fused_attention ? "flash attention" : "unfused attention");
  if (plan.recompute.kind != Recompute::none)
    items.push_back(recompute_text(plan.recompute) + " recompute");
  if (plan.zero > 0 && plan.data_ranks() > 1) items.push_back("ZeRO-" + grouped(plan.zero));
  if (plan.sp) items.push_back("sequence parallel");
  const bool tp_overlap = plan.overlap_tp_gradients || plan.tp_hidden > 0.0;
  if (tp_overlap && plan.tp > 1) items.push_back("tp overlap");
  if (plan.dp_overlap && plan.data_ranks() > 1) items.push_back("dp overlap");
  items.push_back("software " + result.scenario.software.name);
  return wrapped("  ", items, ", ", width);
}

std::string speed(const Result& result, const Painter& paint) {
  const DisplayUnit unit = time_unit(result.step_time);
  Table table{{{"", Align::left}, {""}, {"", Align::left}, {"", Align::left}}, 0};
  const auto amount = [&](Seconds time) { return fixed(time.si() / unit.si, 3); };
  table.add_row(
      {paint.head("Step time"), paint.head(amount(result.step_time)), std::string{unit.name},
       amount(result.range.low()) + " .. " + amount(result.range.high()) + " in 9 of 10"});
  table.add_row({"Throughput", fixed(result.tokens_per_s, 0), "tokens/s",
                 "critical path " + amount(result.lower_bound) + " " + std::string{unit.name}});
  table.add_row({"", fixed(result.tokens_per_s_per_gpu, 1), "tokens/s/GPU"});
  table.add_row({"Model FLOP", fixed(result.model_tflops_per_gpu, 1), "TFLOP/s/GPU",
                 "MFU " + percent(result.mfu) + "  causal half (as Megatron-LM)"});
  table.add_row({"", fixed(result.model_tflops_per_gpu_full, 1), "TFLOP/s/GPU",
                 "MFU " + percent(result.mfu_full) + "  full attention (as PaLM)"});
  return table.text();
}

// First, fullest and last where there are too many to read.
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

std::string memory(const MemoryReport& report, const Painter& paint) {
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
  return paint.head(head) + "\n" + table.text();
}

std::string breakdown(const Result& result, const Painter& paint) {
  const Breakdown& b = result.breakdown;
  const DisplayUnit unit = time_unit(result.step_time);
  Table table{{{"", Align::left}, {std::string{unit.name}}, {"share"}, {"", Align::left}}};
  const auto add = [&](const char* what, Seconds time, bool useful) {
    const double share = time / result.step_time;
    const std::string value = fixed(time.si() / unit.si, 3);
    if (value == fixed(0.0, 3)) return;
    const std::string marks = bar(share, 30);
    table.add_row({what, value, percent(share), useful ? paint.work(marks) : paint.wait(marks)});
  };
  add("compute", b.compute, true);
  add("tensor parallel, exposed", b.tp_exposed, false);
  add("context parallel, exposed", b.cp_exposed, false);
  add("expert parallel, exposed", b.ep_exposed, false);
  add("pipeline bubble", b.pp_bubble, false);
  add("pipeline transfers, exposed", b.pp_exposed, false);
  add("data parallel, exposed", b.dp_exposed, false);
  add("optimizer", b.optimizer, true);
  add("imbalance", b.imbalance, false);
  add("other", b.other, false);
  table.add_row(
      {"step", fixed(result.step_time.si() / unit.si, 3), percent(b.sum() / result.step_time)});
  return paint.head("Where the time goes on stage " + grouped(result.critical_stage) +
                    ", which computes the longest") +
         "\n" + table.text();
}

std::string routing(const Result& result, const Painter& paint) {
  if (!result.routing || result.routing->even) return "";
  const RoutingReport& report = *result.routing;
  const DisplayUnit unit = time_unit(result.step_time);
  const auto time = [&](Seconds seconds) {
    return fixed(seconds.si() / unit.si, 3) + " " + std::string{unit.name};
  };
  std::string text = paint.head("Routing " + result.scenario.plan.routing) + "\n";
  text += wrapped("Rows of ranks ",
                  {"mean " + fixed(report.mean_rows, 0) + " a layer and micro-batch",
                   "fullest " + fixed(report.max_over_mean, 2) + " times as many (at worst " +
                       fixed(report.worst_over_mean, 2) + ")",
                   "Gini " + fixed(report.gini, 3)},
                  ", ", width);
  text += wrapped(
      "Lost to it    ",
      {"dispatch " + time(report.lost.dispatch), "slower experts " + time(report.lost.compute),
       "combine " + time(report.lost.combine)},
      ", ", width);
  text += wrapped("Exchanged     ",
                  {bytes_text(report.scale_up_bytes) + " over NVLink",
                   bytes_text(report.network_bytes) + " over the network by a GPU"},
                  ", ", width);
  if (report.dropped_a_step > 0)
    text += wrapped("Dropped       ",
                    {percent(report.dropped_share) + " of all copies",
                     grouped(report.dropped_a_step) + " a step"},
                    ", ", width);
  std::vector<std::string> hot;
  for (const RoutingReport::HotExpert& expert : report.hottest)
    hot.push_back("layer " + grouped(expert.layer) + " expert " + grouped(expert.expert) + " x" +
                  fixed(expert.over_mean, 1));
  text += wrapped("Hottest       ", hot, ", ", width);
  text += wrapped("Looked at     ",
                  {grouped(report.micro_batches) + " of " +
                       grouped(result.scenario.plan.microbatches) + " micro-batches",
                   grouped(report.groups) + " of " +
                       grouped(result.scenario.plan.expert_data_ranks()) + " expert groups",
                   "standard error " + time(report.standard_error)},
                  ", ", width);
  return text + "\n";
}

std::string what_it_rests_on(const Result& result) {
  const System& system = result.scenario.system;
  const auto share = [&](Tag tag) {
    return percent(result.provenance[static_cast<std::size_t>(tag)]);
  };
  return wrapped("Times from    ",
                 {share(Tag::measured) + " measured", share(Tag::interpolated) + " interpolated",
                  share(Tag::default_value) + " default"},
                 ", ", width) +
         (system.calibration
              ? wrapped("Measured by   ", {shown_text(system.calibration->file)}, "", width)
              : "");
}

// "tensor 97.3 %, data 2.7 %": who uses the link, without those who do not.
std::string users(const LinkReport& link) {
  std::string text;
  for (int user = 0; user < link_users; ++user) {
    const Bytes bytes = link.by_user[static_cast<std::size_t>(user)];
    if (bytes == Bytes{}) continue;
    text += (text.empty() ? "" : ", ") + name(LinkUser{user}) + " " + percent(bytes / link.bytes);
  }
  return text;
}

std::string busiest_link(const Result& result) {
  if (result.links.empty()) return "";
  const LinkReport& link = result.links.front();
  return wrapped("Busiest link  ",
                 {link.kind + " " + percent(link.busy_fraction) + " of the step",
                  bytes_text(link.bytes) + " over " + link.name, users(link)},
                 ", ", width);
}

std::string link_table(const Result& result, const Painter& paint) {
  if (result.links.empty()) return "";
  const auto uses = [](int user) {
    return [user](const LinkReport& link) {
      return link.by_user[static_cast<std::size_t>(user)] > Bytes{};
    };
  };
  std::vector<Column> columns{{"", Align::left}, {"busy"}, {"carries"}};
  std::vector<std::size_t> shown;
  for (int user = 0; user < link_users; ++user)
    if (std::any_of(result.links.begin(), result.links.end(), uses(user))) {
      columns.push_back({name(LinkUser{user})});
      shown.push_back(static_cast<std::size_t>(user));
    }
  columns.push_back({"", Align::left});
  Table table{columns};
  for (const LinkReport& link : result.links) {
    std::vector<std::string> row{link.kind, percent(link.busy_fraction), bytes_text(link.bytes)};
    for (const std::size_t user : shown) row.push_back(percent(link.by_user[user] / link.bytes));
    row.push_back(link.name);
    table.add_row(row);
  }
  return paint.head("Links: the busiest of each class, and by whom") + "\n" + table.text() + "\n";
}

std::string how_simulated(const Result& result, const TextStyle& style) {
  const int gpus = result.scenario.plan.gpus();
  const bool folded = result.roles < gpus;
  std::vector<std::string> items{
      grouped(result.tasks) + " tasks on " + grouped(result.roles) +
          (result.roles == 1 ? " rank" : " ranks"),
      folded ? "standing for " + grouped(gpus) : "every rank of the plan"};
  if (!result.contracted) items.push_back("each tensor-parallel collective");
  std::string text = wrapped("Simulated     ", items, ", ", width);
  if (style.wall_time) text += "Took          " + duration_text(result.simulation_wall) + "\n";
  return text;
}

std::vector<std::string> words(const std::string& sentence) {
  std::vector<std::string> list;
  for (std::size_t begin = 0; begin < sentence.size();) {
    const std::size_t end = std::min(sentence.find(' ', begin), sentence.size());
    if (end > begin) list.push_back(sentence.substr(begin, end - begin));
    begin = end + 1;
  }
  return list;
}

std::string warnings(const Result& result, const Painter& paint) {
  std::string text;
  for (const std::string& warning : result.warnings)
    text += wrapped(paint.alarm("Warning") + "       ", words(warning), " ", width);
  return text;
}

}  // namespace

std::string summary_text(const Result& result, const TextStyle& style) {
  const Painter paint{style.colour};
  return title(result, paint) + plan_lines(result) + "\n" +  //
         speed(result, paint) + "\n" +                       //
         memory(result.memory, paint) + "\n" +               //
         breakdown(result, paint) + "\n" +                   //
         (result.bill ? paint.head(bill_head(*result.bill)) + "\n" + bill_text(*result.bill) + "\n"
                      : "") +
         routing(result, paint) +                          //
         (style.links ? link_table(result, paint) : "") +  //
         what_it_rests_on(result) + busiest_link(result) + how_simulated(result, style) +
         warnings(result, paint);
}

}  // namespace orrery
