#include "sim/search/purchase_text.hpp"

#include <algorithm>
#include <map>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/search/purchase_words.hpp"
#include "sim/training/bill_text.hpp"
#include "sim/training/brief_plan.hpp"
#include "sim/training/run_heading.hpp"

namespace orrery {
namespace {

constexpr int width = 92;

std::int64_t sequence_of(const Purchase& purchase) {
  for (const PurchaseRow& row : purchase.rows)
    if (row.has_plan()) return row.result->scenario.plan.seq;
  return 0;
}

std::string heading(const Purchase& purchase, const PurchaseRequest& request) {
  std::vector<std::string> items;
  const auto is_fixed = [&](const std::string& key) {
    return std::any_of(request.fixed.begin(), request.fixed.end(),
                       [&](const Fixed& fixed) { return fixed.key == key; });
  };
  if (!is_fixed("seq")) items.push_back(usual_sequence_text(request.model));
  const std::int64_t seq = sequence_of(purchase);
  if (request.batches.empty()) {
    items.push_back(
        "batches up to " + grouped(request.most_batch) + " sequences" +
        (seq > 0 ? " (" + million_tokens_text(request.most_batch * seq) + " million tokens)" : ""));
  } else {
    std::string list;
    for (const std::int64_t batch : request.batches)
      list += (list.empty() ? "" : " or ") + grouped(batch);
    items.push_back("a batch of " + list + " sequences");
  }
  for (const Fixed& fixed : request.fixed) {
    std::string values;
    for (const std::string& value : fixed.values) values += (values.empty() ? "" : " or ") + value;
    items.push_back("fixed " + fixed.key + " " + values);
  }
  if (request.reliability) items.push_back("failures as in " + request.reliability->name);
  if (request.deadline) items.push_back("at most " + span_text(*request.deadline));
  if (request.budget_usd)
    items.push_back("at most " + dollars_text({*request.budget_usd, *request.budget_usd}) +
                    (request.pay == PayBy::rent ? " of rent" : " to own"));
  return run_heading(request.model.name + ", " + tokens_text(request.tokens) + " tokens", items);
}

const char* mark(Standing standing) {
  switch (standing) {
    case Standing::front:
      return "*";
    case Standing::perhaps:
      return "=";
    default:
      return "";
  }
}

std::string binds_text(const PurchaseRow& row, const System& system) {
  const Binding binding = what_binds(row.shares);
  const std::string word = binding != Binding::scale_up        ? name(binding)
                           : system.wiring == NodeWiring::pcie ? "PCIe"
                                                               : "NVLink";
  return word + " " + percent(row.shares[static_cast<std::size_t>(binding)]);
}

std::string meets_text(const std::optional<Meets>& meets) { return meets ? name(*meets) : "?"; }

Table money_table(const Purchase& purchase, const PurchaseRequest& request,
                  const PurchaseChoice& choice) {
  const auto rent_of = [](const PurchaseRow& row) { return cost_of(row, PayBy::rent); };
  const auto own_of = [](const PurchaseRow& row) { return row.own_usd; };
  const auto price_of = [](const PurchaseRow& row) { return row.to_buy_usd; };
  const ColumnUnit rent = money_unit(purchase, rent_of), own = money_unit(purchase, own_of),
                   price = money_unit(purchase, price_of), energy = energy_unit(purchase);
  std::vector<Column> columns{
      {"", Align::left}, {"system", Align::left}, {"GPUs"}, {"days"}, {"9 in 10"}};
  if (request.reliability) columns.push_back({"undisturbed"});
  for (const std::string& header : {"rent, " + rent.name, "to own, " + own.name,
                                    "to buy, " + price.name, energy.name, std::string{"tokens/$"}})
    columns.push_back({header});
  columns.push_back({"what binds", Align::left});
  if (request.deadline) columns.push_back({"in time", Align::left});
  if (request.budget_usd) columns.push_back({"in budget", Align::left});
  Table table{columns, 0};
  for (std::size_t i = 0; i < purchase.rows.size(); ++i) {
    const PurchaseRow& row = purchase.rows[i];
    const RowChoice& of = choice.rows[i];
    std::vector<std::string> cells{mark(of.standing), request.systems[row.system].name,
                                   grouped(row.gpus)};
    if (!row.has_plan()) {
      cells.push_back("none");
      table.add_row(cells);
      continue;
    }
    cells.push_back(days_text(row.time_days()));
    cells.push_back(range_text(row.time_range().low, row.time_range().high));
    if (request.reliability) cells.push_back(days_text(row.days_middle));
    cells.push_back(range_text(rent_of(row), rent.size));
    cells.push_back(range_text(own_of(row), own.size));
    cells.push_back(range_text(price_of(row), price.size));
    cells.push_back(range_text(energy_kwh(row), energy.size));
    const Range usd = cost_of(row, request.pay);
    cells.push_back(
        usd.known()
            ? range_text(request.tokens / usd.high / 1e6, request.tokens / usd.low / 1e6) + "M"
            : "?");
    cells.push_back(binds_text(row, request.systems[row.system]));
    if (request.deadline) cells.push_back(meets_text(of.deadline));
    if (request.budget_usd) cells.push_back(meets_text(of.budget));
    table.add_row(cells);
  }
  return table;
}

Table plan_table(const Purchase& purchase, const PurchaseRequest& request) {
  Table table{{{"system", Align::left},
               {"GPUs"},
               {"batch"},
               {"step (s)"},
               {"tok/s/GPU"},
               {"MFU"},
               {"memory"},
               {"runs", Align::left},
               {"plan", Align::left}},
              0};
  for (const PurchaseRow& row : purchase.rows) {
    if (!row.has_plan()) continue;
    const Result& result = *row.result;
    const Plan& plan = result.scenario.plan;
    const std::string switches = brief_switches(plan);
    table.add_row({request.systems[row.system].name, grouped(row.gpus),
                   million_tokens_text(plan.gbs * plan.seq) + "M", fixed(result.step_time.si(), 3),
                   fixed(result.tokens_per_s_per_gpu, 0), percent(result.mfu),
                   percent(result.memory.peak() / result.memory.capacity),
                   name(plan.dtype) + " " + result.scenario.software.name,
                   brief_degrees(plan) + (switches.empty() ? "" : " " + switches)});
  }
  return table;
}

// A column a level, the largest last; a batch that is not the level's own stands behind the days.
Table batch_table(const Purchase& purchase, const PurchaseRequest& request) {
  std::map<std::int64_t, bool> levels;  // Whether they are beyond.
  for (const PurchaseRow& row : purchase.rows)
    for (const BatchChoice& batch : row.batches) levels[batch.level] = batch.beyond;
  const std::int64_t seq = sequence_of(purchase);
  std::vector<Column> columns{{"system", Align::left}, {"GPUs"}};
  for (const auto& [level, beyond] : levels)
    columns.push_back({(beyond ? "beyond: " : "") + million_tokens_text(level * seq) + "M"});
  Table table{columns, 0};
  for (const PurchaseRow& row : purchase.rows) {
    if (!row.has_plan()) continue;
    std::vector<std::string> cells{request.systems[row.system].name, grouped(row.gpus)};
    for (const auto& [level, beyond] : levels) {
      const std::int64_t size = level;
      const auto found =
          std::find_if(row.batches.begin(), row.batches.end(),
                       [&](const BatchChoice& batch) { return batch.level == size; });
      if (found == row.batches.end()) {
        cells.push_back("none");
        continue;
      }
      const std::string own =
          found->gbs == level ? "" : " (" + million_tokens_text(found->gbs * seq) + "M)";
      cells.push_back(days_text(found->time.si() / 86400.0) + own);
    }
    table.add_row(cells);
  }
  return table;
}

Table front_table(const Purchase& purchase, const PurchaseRequest& request,
                  const PurchaseChoice& choice) {
  const auto cost = [&](const PurchaseRow& row) { return cost_of(row, request.pay); };
  const ColumnUnit unit = money_unit(purchase, cost);
  const std::string money = (request.pay == PayBy::rent ? "rent, " : "to own, ") + unit.name;
  Table table{{{"days"}, {money}, {"system", Align::left}, {"GPUs"}}};
  for (const std::size_t i : choice.front) {
    const PurchaseRow& row = purchase.rows[i];
    table.add_row({days_text(row.time_days()), range_text(cost(row), unit.size),
                   request.systems[row.system].name, grouped(row.gpus)});
  }
  return table;
}

Table strip(const Purchase& purchase, const PurchaseRequest& request,
            const PurchaseChoice& choice) {
  Table table{{{""}, {"", Align::left}, {"", Align::left}, {"", Align::left}}};
  for (const DeadlineChoice& of : choice.strip) {
    if (!of.row) {
      table.add_row({fixed(of.days, 0) + " days", "none is fast enough"});
      continue;
    }
    const PurchaseRow& row = purchase.rows[*of.row];
    table.add_row({fixed(of.days, 0) + " days", row_name(row, request),
                   days_text(row.time_days()) + " days", cost_text(row, request)});
  }
  return table;
}

std::string paragraph(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  for (const char letter : line + " ") {
    if (letter != ' ') {
      word += letter;
      continue;
    }
    words.push_back(word);
    word.clear();
  }
  return wrapped("", words, " ", width);
}

std::string proof(const Purchase& purchase) {
  std::int64_t groups = 0, uneven = 0, simulated = 0;
  for (const PurchaseRow& row : purchase.rows) {
    groups += row.groups;
    uneven += row.uneven;
    simulated += row.simulated;
  }
  std::string text = "Of " + grouped(groups) + " groups of plans that divide, " +
                     grouped(simulated) +
                     " plans were simulated; bounds prove that all others are slower.";
  if (uneven > 0)
    text += " Left out are " + grouped(uneven) +
            " groups of plans that lie unevenly in NVLink domains, as tp 16 in domains of 72.";
  return text;
}

}  // namespace

std::string command_of(const PurchaseRow& row, const PurchaseRequest& request,
                       const PurchaseNames& names) {
  std::string text = "orrery estimate --model " + names.model + " --system " +
                     names.systems[row.system] + " --gpus " + std::to_string(row.gpus) + " --gbs " +
                     std::to_string(row.result->scenario.plan.gbs) + " " + row.flags;
  text += " --tokens " + names.tokens;
  // An estimate takes one file.
  const std::vector<std::string> files =
      files_for(request.systems[row.system].gpu.name, request.economics);
  return files.size() == 1 ? text + " --economics " + files.front() : text;
}

Document purchase_document(const Purchase& purchase, const PurchaseRequest& request,
                           const PurchaseNames& names) {
  const PurchaseChoice choice = choose(purchase, request);
  const bool any = std::any_of(purchase.rows.begin(), purchase.rows.end(),
                               [](const PurchaseRow& row) { return row.has_plan(); });
  Document document;
  document.title(heading(purchase, request));
  document.gap();
  document.table(money_table(purchase, request, choice));
  const auto stands = [&](Standing standing) {
    return std::any_of(choice.rows.begin(), choice.rows.end(),
                       [&](const RowChoice& row) { return row.standing == standing; });
  };
  if (stands(Standing::front))
    document.paragraph(
        std::string{"* no other row is both faster and cheaper, by the middles of the ranges"} +
        (stands(Standing::perhaps) ? "; = it may be so (9 in 10).\n" : ".\n"));
  if (any)
    document.paragraph(paragraph(
        "What binds: by how much the days would fall if every plan fitted (memory) or with the "
        "next larger batch (batch), or how much of the step is waiting for NVLink or PCIe, the "
        "network or the experts' exchange; compute where none of them is 5 %."));
  for (const PurchaseRow& row : purchase.rows)
    if (!row.has_plan())
      document.paragraph(
          paragraph(row_name(row, request) + ": " +
                    (row.unfinished ? "not searched before the interruption" : row.refused)));
  if (!any) return document;
  const auto section = [&](const std::string& heading, const Table& table) {
    document.gap();
    document.heading(heading);
    document.table(table);
  };
  if (choice.front.size() > 1) section("The front", front_table(purchase, request, choice));
  document.gap();
  for (const std::string& line : answer_lines(purchase, request, choice))
    document.paragraph(paragraph(line));
  if (!choice.front.empty())
    section("The cheapest within a deadline of", strip(purchase, request, choice));
  section("The best plan of each", plan_table(purchase, request));
  document.paragraph(paragraph(proof(purchase)));
  section("Days by the batch, tokens a step", batch_table(purchase, request));
  document.gap();
  for (const std::string& line : caveat_lines(purchase, request))
    document.paragraph(paragraph(line));
  const auto first = std::find_if(purchase.rows.begin(), purchase.rows.end(),
                                  [](const PurchaseRow& row) { return row.has_plan(); });
  const PurchaseRow& shown = !choice.within.empty()  ? purchase.rows[choice.within.front()]
                             : choice.nearest        ? purchase.rows[*choice.nearest]
                             : !choice.front.empty() ? purchase.rows[choice.front.back()]
                                                     : *first;
  document.gap();
  document.paragraph("To see " + row_name(shown, request) + " in full:\n");
  document.command(command_of(shown, request, names));
  return document;
}

}  // namespace orrery
