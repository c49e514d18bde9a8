#include "sim/output/report/result_items.hpp"

#include <algorithm>

#include "sim/base/text/number_text.hpp"
#include "sim/cost/kernels/tag.hpp"

namespace orrery {

std::vector<TimeItem> time_items(const Breakdown& b) {
  return {{"compute", b.compute, true},
          {"tensor parallel, exposed", b.tp_exposed, false},
          {"context parallel, exposed", b.cp_exposed, false},
          {"expert parallel, exposed", b.ep_exposed, false},
          {"pipeline bubble", b.pp_bubble, false},
          {"pipeline transfers, exposed", b.pp_exposed, false},
          {"data parallel, exposed", b.dp_exposed, false},
          {"optimizer", b.optimizer, true},
          {"imbalance", b.imbalance, false},
          {"other", b.other, false}};
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
      {"Lost to imbalance",
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
