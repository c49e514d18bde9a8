#include "sim/training/result_items.hpp"

#include <algorithm>
#include <array>

#include "sim/core/number_text.hpp"
#include "sim/kernels/kernel_time.hpp"

namespace orrery {

std::string title(StepPart part) {
  static const std::array<std::string, step_part_count> titles{
      "matrix products",      "experts' products",     "attention",       "memory-bound kernels",
      "waiting for the host", "collective contention", "tensor parallel", "context parallel",
      "expert parallel",      "pipeline transfers",    "data parallel",   "optimizer",
      "gradient norm",        "waiting for others"};
  return titles[static_cast<std::size_t>(part)];
}

bool is_useful(StepPart part) {
  switch (part) {
    case StepPart::products:
    case StepPart::expert_products:
    case StepPart::attention:
    case StepPart::streaming:
    case StepPart::optimizer:
      return true;
    default:
      return false;
  }
}

std::string critical_head(const Result& result) {
  return "What the step waits for: its critical path, " +
         std::string{time_unit(result.step_time).name};
}

Table critical_table(const Result& result, const PaintBar& paint) {
  constexpr StepPhase phases[] = {StepPhase::forward, StepPhase::backward, StepPhase::recomputed};
  const TimeByPart& parts = result.critical.parts;
  const DisplayUnit unit = time_unit(result.step_time);
  const auto amount = [&](Seconds time) { return fixed(time.si() / unit.si, 3); };
  const auto shown = [&](Seconds time) { return amount(time) != amount({}); };
  std::vector<Column> columns{{"", Align::left}};
  std::vector<StepPhase> used;
  for (const StepPhase phase : phases) {
    Seconds sum;
    for (std::size_t part = 0; part < step_part_count; ++part)
      sum += parts.at(static_cast<StepPart>(part), phase);
    if (!shown(sum)) continue;
    used.push_back(phase);
    columns.push_back({name(phase)});
  }
  columns.insert(columns.end(), {{"sum"}, {"share"}, {"", Align::left}});
  Table table{columns};
  const auto add = [&](const std::string& what, const auto& of_phase, Seconds sum,
                       const std::string& marks) {
    std::vector<std::string> row{what};
    for (const StepPhase phase : used) {
      const Seconds time = of_phase(phase);
      row.push_back(shown(time) ? amount(time) : "");
    }
    row.insert(row.end(), {amount(sum), percent(sum / result.step_time), marks});
    table.add_row(row);
  };
  for (std::size_t i = 0; i < step_part_count; ++i) {
    const auto part = static_cast<StepPart>(i);
    const Seconds sum = parts.sum(part);
    if (!shown(sum)) continue;
    const std::string marks = bar(sum / result.step_time, 12);
    add(
        title(part), [&](StepPhase phase) { return parts.at(part, phase); }, sum,
        paint ? paint(marks, is_useful(part)) : marks);
  }
  add(
      "step", [](StepPhase) { return Seconds{}; }, parts.total(), "");
  return table;
}

std::string stage_head(const Result& result) {
  const std::string head = "Where the time of a GPU goes, ";
  const std::string unit{time_unit(result.step_time).name};
  return result.stages.size() == 1 ? head + unit
                                   : head + "on its busiest and idlest stage, " + unit;
}

Table kinds_table(const Result& result) {
  const auto bytes = [](double amount) { return amount > 0.0 ? bytes_text(Bytes{amount}) : ""; };
  Table table{{{"", Align::left},
               {"layers"},
               {"forward"},
               {"backward"},
               {"share"},
               {"MB kept by one"},
               {"parameters of one", Align::right, true},
               {"keys and values of a token", Align::right, true},
               {"of a window", Align::right, true},
               {"states of a sequence", Align::right, true},
               {"", Align::left},
               {"which", Align::left, true}}};
  Seconds all;
  for (const LayersOfKind& of : result.kinds) all += of.forward + of.backward;
  for (const LayersOfKind& of : result.kinds) {
    const double share = (of.forward + of.backward) / all;
    table.add_row({of.name, grouped(of.layers), fixed(of.forward.si() * 1e3, 2),
                   fixed(of.backward.si() * 1e3, 2), percent(share), fixed(of.kept.si() / 1e6, 1),
                   grouped(of.parameters), bytes(of.sequence.per_token), bytes(of.sequence.window),
                   bytes(static_cast<double>(of.sequence.states)), bar(share, 10),
                   runs_text(of.runs)});
  }
  return table;
}

std::string kinds_head() { return "Layers by kind, all of a model, ms of a micro-batch"; }

Table stage_table(const Result& result) {
  std::vector<int> stages{result.busiest_stage};
  if (result.idlest_stage != result.busiest_stage) stages.push_back(result.idlest_stage);
  const DisplayUnit unit = time_unit(result.step_time);
  const auto amount = [&](Seconds time) { return fixed(time.si() / unit.si, 3); };
  std::vector<Column> columns{{"", Align::left}};
  std::vector<std::vector<TimeItem>> items;
  for (const int stage : stages) {
    const bool alone = result.stages.size() == 1;
    columns.push_back({alone ? "" : "stage " + grouped(stage)});
    columns.push_back({"share"});
    const Breakdown& breakdown = result.stages[static_cast<std::size_t>(stage)];
    items.push_back({{"compute", breakdown.compute}});
    for (const TimeItem& item : other_items(breakdown)) items.back().push_back(item);
  }
  Table table{columns};
  const auto add = [&](const std::string& what, const auto& time_of) {
    std::vector<std::string> row{what};
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const Seconds time = time_of(i);
      row.push_back(amount(time));
      row.push_back(percent(time / result.step_time));
    }
    table.add_row(row);
  };
  for (std::size_t line = 0; line < items.front().size(); ++line) {
    const auto time_of = [&](std::size_t i) { return items[i][line].second; };
    bool any = false;
    for (std::size_t i = 0; i < stages.size(); ++i) any = any || amount(time_of(i)) != amount({});
    if (any) add(items.front()[line].first, time_of);
  }
  const auto stage = [&](std::size_t i) -> const Breakdown& {
    return result.stages[static_cast<std::size_t>(stages[i])];
  };
  add("busy", [&](std::size_t i) { return stage(i).busy(); });
  return table;
}

std::vector<TimeItem> compute_items(const Breakdown& breakdown) {
  std::vector<TimeItem> items;
  for (std::size_t kind = 0; kind < kinds_of_work; ++kind)
    items.emplace_back(title(static_cast<StepPart>(kind)),
                       breakdown.work.at(static_cast<Work>(kind)));
  return items;
}

std::vector<TimeItem> other_items(const Breakdown& b) {
  return {{"tensor parallel, exposed", b.tp_exposed},
          {"context parallel, exposed", b.cp_exposed},
          {"expert parallel, exposed", b.ep_exposed},
          {"pipeline bubble", b.pp_bubble},
          {"pipeline transfers, exposed", b.pp_exposed},
          {"data parallel, exposed", b.dp_exposed},
          {"optimizer", b.optimizer},
          {"imbalance", b.imbalance},
          {"other", b.other},
          {"waiting for others", b.waiting}};
}

std::vector<LabelledItems> routing_items(const Result& result) {
  if (!result.routing || result.routing->even) return {};
  const RoutingReport& report = *result.routing;
  const DisplayUnit unit = time_unit(result.step_time);
  const auto time = [&](Seconds seconds) {
    return fixed(seconds.si() / unit.si, 3) + " " + std::string{unit.name};
  };
  std::vector<LabelledItems> lines;
  lines.push_back({"Rows of ranks",
                   {"mean " + fixed(report.mean_rows, 0) + " a layer and micro-batch",
                    "fullest " + fixed(report.max_over_mean, 2) + " times as many (at worst " +
                        fixed(report.worst_over_mean, 2) + ")",
                    "Gini " + fixed(report.gini, 3)}});
  lines.push_back(
      {"Imbalance",
       {"dispatch " + time(report.lost.dispatch), "slower experts " + time(report.lost.compute),
        "combine " + time(report.lost.combine)}});
  lines.push_back({"Exchanged",
                   {bytes_text(report.scale_up_bytes) + " over NVLink",
                    bytes_text(report.network_bytes) + " over the network by a GPU"}});
  if (report.dropped_a_step > 0)
    lines.push_back({"Dropped",
                     {percent(report.dropped_share) + " of all copies",
                      grouped(report.dropped_a_step) + " a step"}});
  std::vector<std::string> hot;
  for (const RoutingReport::HotExpert& expert : report.hottest)
    hot.push_back("layer " + grouped(expert.layer) + " expert " + grouped(expert.expert) + " x" +
                  fixed(expert.over_mean, 1));
  lines.push_back({"Hottest", hot});
  lines.push_back({"Sampled",
                   {grouped(report.micro_batches) + " of " +
                        grouped(result.scenario.plan.microbatches) + " micro-batches",
                    grouped(report.groups) + " of " +
                        grouped(result.scenario.plan.expert_data_ranks()) + " expert groups",
                    "standard error " + time(report.standard_error)}});
  return lines;
}

std::vector<std::string> basis_items(const Result& result) {
  const auto share = [&](Tag tag) {
    return percent(result.provenance[static_cast<std::size_t>(tag)]);
  };
  return {share(Tag::measured) + " measured", share(Tag::interpolated) + " interpolated",
          share(Tag::default_value) + " default"};
}

std::string users_text(const LinkReport& link) {
  std::string text;
  for (int user = 0; user < link_users; ++user) {
    const Bytes bytes = link.by_user[static_cast<std::size_t>(user)];
    if (bytes == Bytes{}) continue;
    text += (text.empty() ? "" : ", ") + name(LinkUser{user}) + " " + percent(bytes / link.bytes);
  }
  return text;
}

Table link_table(const Result& result) {
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
  return table;
}

}  // namespace orrery
