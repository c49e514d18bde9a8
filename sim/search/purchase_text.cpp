#include "sim/search/purchase_text.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/core/number_text.hpp"
#include "sim/core/value_list.hpp"
#include "sim/engine/network_model.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/search/search_text.hpp"
#include "sim/training/training_text.hpp"

namespace orrery {
namespace {

constexpr int width = text_columns;

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 < words.size() ? "; " : "; or ") + words[i];
  return text;
}

const char* pay_word(PayBy pay) { return pay == PayBy::rent ? "of rent" : "to own"; }

std::string row_name(const PurchaseRow& row, const PurchaseRequest& request) {
  return request.systems[row.system].name + ", " + grouped(row.gpus) + " GPUs";
}

// limited_cost() with the word for how it is paid.
std::string cost_text(const PurchaseRow& row, const PurchaseRequest& request) {
  const std::string dollars = dollars_text(limited_cost(row, request));
  if (dollars.empty()) return "";
  return dollars + " " + (request.capital_usd ? "to buy" : pay_word(request.pay));
}

std::string limits_text(const PurchaseRequest& request, const std::optional<Seconds>& deadline) {
  std::string text;
  if (deadline) text = span_text(*deadline);
  const auto add = [&](const std::optional<double>& usd, const std::string& what) {
    if (usd) text += (text.empty() ? "" : " and ") + dollars_text({*usd, *usd}) + " " + what;
  };
  add(request.budget_usd, pay_word(request.pay));
  add(request.capital_usd, "to buy");
  return text;
}

bool has_limits(const PurchaseRequest& request) {
  return request.deadline || request.budget_usd || request.capital_usd;
}

std::string row_with_figures(const PurchaseRow& row, const PurchaseRequest& request) {
  const std::string cost = cost_text(row, request);
  return row_name(row, request) + ": " + days_text(row.time_days()) + " days" +
         (cost.empty() ? "" : ", " + cost);
}

// Rows of a list that do not differ significantly from its first: in cost if prices are known.
std::vector<std::string> ties_of(const std::vector<std::size_t>& list, const Purchase& purchase,
                                 const PurchaseRequest& request) {
  std::vector<std::string> names;
  const PurchaseRow& first = purchase.rows[list.front()];
  for (std::size_t i = 1; i < list.size(); ++i) {
    const PurchaseRow& other = purchase.rows[list[i]];
    if (cost_of(other, request.pay).known() && !is_dearer(first, other, request.pay))
      names.push_back(row_name(other, request));
  }
  return names;
}

void add_verdict(std::vector<std::string>& lines, const Purchase& purchase,
                 const PurchaseRequest& request, const PurchaseChoice& choice) {
  const std::string limits = limits_text(request, request.deadline);
  const auto row = [&](std::size_t i) -> const PurchaseRow& { return purchase.rows[i]; };
  if (choice.within.empty()) {
    lines.push_back("No row keeps to " + limits + " at the midpoints of its ranges.");
    if (choice.nearest)
      lines.push_back("Nearest: " + row_with_figures(row(*choice.nearest), request) + ".");
    for (const std::size_t i : choice.perhaps)
      lines.push_back("With the best prices and luck: " + row_with_figures(row(i), request) + ".");
    return;
  }
  const std::size_t first = choice.within.front();
  const auto surely = [&](std::size_t i) {
    const RowChoice& of = choice.rows[i];
    return (!of.deadline || *of.deadline == Meets::surely) &&
           (!of.budget || *of.budget == Meets::surely) &&
           (!of.capital || *of.capital == Meets::surely);
  };
  const bool only_capital = request.capital_usd && !request.budget_usd && !request.deadline;
  const bool priced = !only_capital && limited_cost(row(first), request).known();
  lines.push_back("Within " + limits + ", the " + (priced ? "cheapest" : "fastest") + " is " +
                  row_with_figures(row(first), request) +
                  (surely(first) ? ", also at the worst of its ranges."
                                 : ", at the midpoints of its ranges, but not at the worst."));
  if (!surely(first)) {
    const auto safe = std::find_if(choice.within.begin(), choice.within.end(), surely);
    lines.push_back(safe == choice.within.end()
                        ? "No row keeps to it at the worst of its ranges."
                        : "Also at the worst: " + row_with_figures(row(*safe), request) + ".");
  }
  if (request.capital_usd) return;
  if (const auto ties = ties_of(choice.within, purchase, request); !ties.empty())
    lines.push_back("It is not significantly cheaper than " + listed(ties) + ".");
}

// "13 NVLink domains (936 GPUs) at the highest prices and 17 (1,224 GPUs) at the lowest"
std::string affordable_text(const Affordable& most) {
  const auto with_gpus = [](const Hardware& hardware, const std::string& units) {
    return units + " (" + grouped(hardware.gpus()) + " GPUs)";
  };
  const std::string surely = with_gpus(most.surely, most.surely.units_text());
  if (most.perhaps.units == most.surely.units) return surely;
  return surely + " at the highest prices and " +
         with_gpus(most.perhaps, grouped(most.perhaps.units)) + " at the lowest";
}

std::vector<std::string> answer_lines(const Purchase& purchase, const PurchaseRequest& request,
                                      const PurchaseChoice& choice) {
  std::vector<std::string> lines;
  const std::vector<PurchaseRow>& rows = purchase.rows;
  if (has_limits(request)) add_verdict(lines, purchase, request, choice);
  for (std::size_t s = 0; s < purchase.affordable.size(); ++s)
    if (const auto& most = purchase.affordable[s])
      lines.push_back("Of " + request.systems[s].name + ", " +
                      dollars_text({*request.capital_usd, *request.capital_usd}) + " buys " +
                      affordable_text(*most) + ".");
  if (!choice.front.empty() && !has_limits(request)) {
    const std::size_t cheapest = choice.front.back(), fastest = choice.front.front();
    lines.push_back("Cheapest: " + row_with_figures(rows[cheapest], request) + ".");
    if (fastest != cheapest)
      lines.push_back("Fastest: " + row_with_figures(rows[fastest], request) + ".");
  }
  const std::size_t shown = !choice.within.empty() ? choice.within.front()
                            : choice.nearest       ? *choice.nearest
                            : choice.front.empty() ? rows.size()
                                                   : choice.front.back();
  if (shown < rows.size() && rows[shown].break_even_days.known()) {
    const Range& days = rows[shown].break_even_days;
    lines.push_back("To rent " + row_name(rows[shown], request) +
                    ", costs as much as to buy them and pay their electricity after " +
                    range_text(days.low, days.high) + " days.");
  }
  return lines;
}

std::vector<std::string> caveat_lines(const Purchase& purchase, const PurchaseRequest& request) {
  std::vector<std::string> lines;
  lines.push_back(request.reliability
                      ? "Days, rent and energy with failures are those that orrery run samples for "
                        "the profile '" +
                            request.reliability->name +
                            "', with spares for 99 % of the time: they are paid for."
                      : "Nothing fails in these days: --reliability PROFILE says what failures "
                        "take.");
  lines.push_back(
      (request.usual_batch ? "Batches go up to what Llama 3 405B was trained with; "
                             "--max-batch-tokens says what your training can use. "
                           : std::string{}) +
      "The token count is held constant: the loss penalty of larger batches is not modelled.");
  lines.push_back(
      "Rent is that of the GPUs used. To own is a share of the cluster's life with electricity: no "
      "building, staff or storage.");
  lines.push_back(
      "Prices are ranges, and out of date: give the quotes that you have with --economics FILE.");
  std::map<std::string, bool> providers;  // Whether all their rents are the user's.
  for (const PurchaseRow& row : purchase.rows)
    if (row.has_plan() && !row.result->bill->provider.empty())
      providers.try_emplace(row.result->bill->provider, true).first->second &=
          row.result->bill->has_own_rent;
  for (const auto& [provider, has_own_rent] : providers)
    lines.push_back(provider_note(provider, has_own_rent));
  std::map<std::string, std::set<std::string>> unknown;  // Keyed by GPU.
  for (const PurchaseRow& row : purchase.rows) {
    if (!row.has_plan()) continue;
    for (const std::string& key : row.unknown_prices)
      unknown[request.systems[row.system].gpu.name].insert(key);
    const int spares = row.failing ? row.failing->spare_gpus : 0;
    if (row.hardware.gpus() > row.gpus)
      lines.push_back(
          row_name(row, request) +
          (spares > 0 ? ", and " + grouped(spares) + " spare ones: " : std::string{": "}) +
          whole_units_text(row.hardware, row.gpus + spares, row.result->bill->domains));
  }
  for (const auto& [gpu, keys] : unknown) {
    std::string text;
    for (const std::string& key : keys) text += (text.empty() ? "" : ", ") + key;
    lines.push_back("Not known of " + gpu + ": " + text +
                    "; nothing is assumed, and --economics FILE with these keys fills the gaps.");
  }
  return lines;
}

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
  if (request.capital_usd)
    items.push_back("at most " + dollars_text({*request.capital_usd, *request.capital_usd}) +
                    " to buy");
  return run_heading(request.model.name + ", " + tokens_text(request.tokens) + " tokens", items);
}

Table plan_table(const Purchase& purchase, const PurchaseRequest& request) {
  Table table{{{"system", Align::left},
               {"GPUs"},
               {"batch"},
               {"step (s)"},
               {"tok/s/GPU", Align::right, true},
               {"MFU"},
               {"memory"},
               {"runs", Align::left, true},
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
  std::map<std::int64_t, bool> levels;  // True: beyond the largest useful batch.
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
    const std::optional<std::size_t> shown = of.row ? of.row : of.nearest;
    if (!shown) continue;
    const PurchaseRow& row = purchase.rows[*shown];
    table.add_row({fixed(of.days, 0) + " days",
                   (of.row ? "" : "nearest: ") + row_name(row, request),
                   days_text(row.time_days()) + " days", dollars_text(limited_cost(row, request))});
  }
  return table;
}

std::string paragraph(const std::string& line) { return wrapped_words("", line, width); }

std::string proof(const Purchase& purchase, const PurchaseRequest& request) {
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
  const std::string rest = not_tried(request.model, request.fixed);
  return rest.empty() ? text : text + " " + rest;
}

}  // namespace

std::string command_of(const PurchaseRow& row, const PurchaseRequest& request,
                       const PurchaseNames& names) {
  std::string text = request.reliability ? "orrery run" : "orrery estimate";
  text += " --model " + names.model + " --system " + names.systems[row.system] + " --gpus " +
          std::to_string(row.gpus) + " --gbs " + std::to_string(row.result->scenario.plan.gbs) +
          " " + row.flags;
  text += " --tokens " + names.tokens;
  if (request.reliability) text += " --reliability " + names.reliability;
  if (chosen_simulator() != Simulator::own) text += " --simulator " + name(chosen_simulator());
  const std::vector<std::string> files =
      price_files(request.systems[row.system], request.economics);
  return files.empty() ? text : text + " --economics " + joined(files, ",");
}

Document purchase_document(const Purchase& purchase, const PurchaseRequest& request,
                           const PurchaseNames& names) {
  const PurchaseChoice choice = choose(purchase, request);
  const bool any = std::any_of(purchase.rows.begin(), purchase.rows.end(),
                               [](const PurchaseRow& row) { return row.has_plan(); });
  Document document;
  document.title(heading(purchase, request));
  document.gap();
  document.table(table_of(figures_of(purchase, request, choice), 0));
  const auto has = [&](ParetoStatus status) {
    return std::any_of(choice.rows.begin(), choice.rows.end(),
                       [&](const RowChoice& row) { return row.status == status; });
  };
  if (has(ParetoStatus::front))
    document.paragraph(std::string{"* Pareto-optimal at the midpoints of the ranges"} +
                       (has(ParetoStatus::perhaps) ? "; = possibly (90 % confidence).\n" : ".\n"));
  if (purchase.interrupted)
    document.paragraph(
        "Incomplete: interrupted after " +
        grouped(std::count_if(purchase.rows.begin(), purchase.rows.end(),
                              [](const PurchaseRow& row) { return !row.unfinished; })) +
        " of " + plural(std::ssize(purchase.rows), "row") + ".\n");
  if (any)
    document.paragraph(paragraph(
        "Bottleneck: by how much the days would fall if every plan fitted (memory) or with the "
        "next larger batch (batch), or how much of the step is waiting for NVLink or PCIe, the "
        "network or the experts' exchange; compute where none of them is 5 %."));
  for (const PurchaseRow& row : purchase.rows)
    if (!row.has_plan())
      document.paragraph(paragraph(row_name(row, request) + ": " + why_no_plan(row)));
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
  if (!choice.front.empty()) {
    const std::string limits = limits_text(request, {});
    section("The cheapest within " + (limits.empty() ? "" : limits + " and ") + "a deadline of",
            strip(purchase, request, choice));
  }
  section("The best plan of each", plan_table(purchase, request));
  document.paragraph(paragraph(proof(purchase, request)));
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
