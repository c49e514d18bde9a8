#include "sim/search/search_text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/core/figures.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/quoting.hpp"
#include "sim/engine/network_model.hpp"
#include "sim/reliability/failure_time.hpp"
#include "sim/training/result_json.hpp"
#include "sim/training/training_text.hpp"

namespace orrery {
namespace {

constexpr int search_width = 78;

const std::string& system_word(const Found& found, const SearchRequest& request,
                               const SearchNames& names) {
  const std::string& name = found.result.scenario.system.name;
  for (std::size_t i = 0; i < request.systems.size(); ++i)
    if (request.systems[i].name == name) return names.systems[i];
  return name;
}

// The plan's own values of the other keys that the user compares.
std::string compared(const Found& found, const SearchRequest& request) {
  std::string text;
  for (const Fixed& fixed : request.fixed) {
    const bool known = is_brief_key(fixed.key);
    const std::string flag = "--" + fixed.key + " ";
    const std::size_t at = (found.flags + " ").find(flag);
    if (known || fixed.values.size() < 2 || at == std::string::npos) continue;
    const std::size_t value = at + flag.size();
    text += fixed.key + "=" + found.flags.substr(value, found.flags.find(' ', value) - value) + " ";
  }
  return text;
}

// The largest part of the step that is not compute.
std::string largest_overhead(const Result& result) {
  const Breakdown& b = result.busiest();
  const std::pair<const char*, Seconds> causes[] = {{"bubble", b.pp_bubble + b.imbalance},
                                                    {"tp", b.tp_exposed},
                                                    {"cp", b.cp_exposed},
                                                    {"ep", b.ep_exposed},
                                                    {"pp", b.pp_exposed},
                                                    {"dp", b.dp_exposed},
                                                    {"optimizer", b.optimizer}};
  const auto* most = std::max_element(std::begin(causes), std::end(causes),
                                      [](auto& x, auto& y) { return x.second < y.second; });
  return std::string{most->first} + " " + percent(most->second / result.step_time);
}

std::string value_text(const Found& found, Goal goal) {
  switch (goal) {
    case Goal::cost_per_token:
      return "$" + fixed(found.score * 1e12, 0);
    case Goal::energy_per_token:
      return fixed(found.score * 1e12 / 1e3, 0) + " MWh";
    default:
      return "";
  }
}

// Time with failures for each second of steps: 1 / ETTR.
double over_steps(const Found& found) {
  const Plan& plan = found.result.scenario.plan;
  return found.score * static_cast<double>(plan.gbs) * static_cast<double>(plan.seq) /
         found.result.step_time.si();
}

// A training with failures by the formula.
struct ExpectedTraining {
  Seconds time;
  int spares = 0;  // Units that are rented with the job.
  Range rent_usd;
};

ExpectedTraining expected_training(const Found& found, const SearchRequest& request) {
  const Scenario& scenario = found.result.scenario;
  const AssumedFailures& failures = *request.failures;
  ExpectedTraining training;
  training.time = found.result.bill->time * over_steps(found);
  training.spares = paid_spares(scenario, failures.profile, failures.spares, training.time);
  const int gpus = scenario.plan.gpus();
  const double rented = gpus + spare_gpus(scenario, failures.profile, training.spares);
  training.rent_usd = found.result.bill->rent_usd * (over_steps(found) * rented / gpus);
  return training;
}

// A plan's ETTR with failures, and the days of the training or the tokens that one day retains.
void show_failures(Figures& row, const Found& found, const SearchRequest& request) {
  row.show({request.failures->elastic ? "goodput" : "ETTR"}, percent(1.0 / over_steps(found)));
  if (!request.tokens) {
    row.show({"lasts a day"}, tokens_text(86400.0 / found.score));
    return;
  }
  const ExpectedTraining training = expected_training(found, request);
  row.show({"with failures"}, span_text(training.time));
  row.show({"spares"}, grouped(training.spares));
  row.show({"rent"}, dollars_text(training.rent_usd));
}

template <class Number>
std::string list_of(const std::vector<Number>& numbers) {
  std::string text;
  for (const Number number : numbers) text += (text.empty() ? "" : " or ") + grouped(number);
  return text;
}

// Plans that the list leaves out by choice.
std::string shown(const SearchRequest& request) {
  std::string text;
  if (request.list.is_per_layout())
    text += "The best plan of each tp x cp x pp x ep; --all-settings lists others as well.\n";
  if (request.max_memory < 1.0)
    text += "Plans above " + percent(request.max_memory) + " of the memory are excluded.\n";
  return text;
}

std::string searched(const SearchResult& result) {
  std::vector<std::string> parts{
      grouped(result.legal) +
          (result.parts_cut_short > 0 ? " plans that were enumerated divide" : " plans divide"),
      grouped(result.fits) + " of them fit",
      grouped(result.simulated) + (result.simulated == 1 ? " was simulated" : " were simulated"),
      grouped(result.bounded_out) + " ruled out by bounds"};
  std::string text = wrapped("", parts, ", ", search_width);
  const std::int64_t left = result.fits - result.simulated - result.bounded_out;
  if (left > 0) {
    text += std::string{"Not proven: "} + (result.interrupted ? "the interruption" : "the budget") +
            " left out " + grouped(left) + " plans";
    if (!result.plans.empty()) {
      const double share = result.best_unexplored / result.plans.front().score;
      text += share < 1.0 ? ", which may score down to " + percent(share) + " of the first"
                          : ", none of which is better than the first";
    }
    text += ".\n";
  }
  if (result.parts_cut_short > 0)
    text += "Not all plans are known: they were enumerated in part only, of " +
            grouped(result.parts_cut_short) + " of " + grouped(result.parts) +
            "\ncombinations of tp and pp; fewer dimensions (--fix) or " +
            (result.interrupted ? "more time help.\n" : "a longer --time-limit help.\n");
  return text;
}

std::string failures_note(const SearchRequest& request) {
  const std::optional<int>& spares = request.failures->spares;
  std::string text = "With failures of " + request.failures->profile.name +
                     " by the formula: checkpoints at their best interval, ";
  text += spares ? plural(*spares, "spare node") : "a spare always at hand";
  if (request.tokens)
    text +=
        spares ? ", which the rent includes" : "; the rent includes spares for 99 % of the time";
  text += ". orrery run walks through them";
  // A closed form of the state that a long run settles in, at the mean rate.
  return text + (spares ? ": it begins with all spares, and rates differ from month to month, so "
                          "that its ETTR may be some points higher or lower."
                        : ".");
}

}  // namespace

std::string command_of(const Found& found, const SearchRequest& request, const SearchNames& names) {
  const Plan& plan = found.result.scenario.plan;
  const std::string measured =
      names.calibration.empty() ? "" : " --calibration " + shell_word(names.calibration);
  return "orrery estimate --model " + names.model + " --system " +
         system_word(found, request, names) + measured + " --gpus " + std::to_string(plan.gpus()) +
         " --gbs " + std::to_string(plan.gbs) + " " + found.flags;
}

std::string search_heading(const SearchResult& result, const SearchRequest& request) {
  std::string systems;
  for (const System& system : request.systems)
    systems += (systems.empty() ? "" : " or ") + system.name;
  std::vector<std::string> items{"global batch " + list_of(request.gbs)};
  const auto is_fixed = [&](const std::string& key) {
    return std::any_of(request.fixed.begin(), request.fixed.end(),
                       [&](const Fixed& fixed) { return fixed.key == key; });
  };
  if (!is_fixed("seq")) items.push_back(usual_sequence_text(request.model));
  if (!result.plans.empty()) {
    const Scenario& first = result.plans.front().result.scenario;
    if (!is_fixed("dtype")) items.push_back(name(first.plan.dtype));
    if (!is_fixed("software") && !is_fixed("dtype"))
      items.push_back("software " + first.software.name);
  }
  for (const Fixed& fixed : request.fixed) {
    std::string values;
    for (const std::string& value : fixed.values) values += (values.empty() ? "" : " or ") + value;
    items.push_back("fixed " + fixed.key + " " + values);
  }
  return run_heading(request.model.name + " on " + systems + ", " + list_of(request.gpus) + " GPUs",
                     items);
}

Table search_table(const SearchResult& result, const SearchRequest& request) {
  std::vector<Figures> rows;
  for (const Found& found : result.plans) {
    const Result& of = found.result;
    const Plan& plan = of.scenario.plan;
    std::string where = compared(found, request) + brief_degrees(plan);
    if (request.gbs.size() > 1) where = "gbs" + std::to_string(plan.gbs) + " " + where;
    if (request.gpus.size() > 1) where = grouped(plan.gpus()) + " GPUs " + where;
    if (request.systems.size() > 1) where = of.scenario.system.name + " " + where;
    Figures& row = rows.emplace_back();
    row.show({""}, std::to_string(rows.size()) + (found.tie && rows.size() > 1 ? "=" : " "));
    row.show({"step (s)"}, fixed(of.step_time.si(), 3));
    if (request.goal == Goal::goodput) {
      show_failures(row, found, request);
    } else if (request.tokens || request.deadline) {
      row.show({"training"}, span_text(of.bill->time));
      row.show({"rent"}, dollars_text(of.bill->rent_usd));
    }
    const bool one_size = request.gpus.size() == 1 && request.systems.size() == 1;
    row.show({"tok/s/GPU", Align::right, one_size}, fixed(of.tokens_per_s_per_gpu, 1));
    if (const std::string value = value_text(found, request.goal); !value.empty())
      row.show({"per 1e12 tokens"}, value);
    const bool has_money = request.goal == Goal::goodput || request.tokens || request.deadline;
    row.show({"MFU", Align::right, true}, percent(of.mfu));
    row.show({"memory"}, percent(of.memory.peak() / of.memory.capacity));
    row.show({"largest loss", Align::left, has_money}, largest_overhead(of));
    row.show({"plan", Align::left}, where + " " + brief_switches(plan));
  }
  return table_of(rows);
}

std::string not_tried(const Model& model, const std::vector<Fixed>& fixed) {
  if (!model.experts ||
      std::ranges::any_of(fixed, [](const Fixed& one) { return one.key == "moe_dispatcher"; }))
    return "";
  return "Not tried: other dispatchers of experts' tokens (--fix moe_dispatcher=alltoall,deepep) "
         "and "
         "parts of layers to recompute.";
}

std::string search_notes(const SearchResult& result, const SearchRequest& request) {
  std::string text = searched(result) + shown(request);
  if (const std::string rest = not_tried(request.model, request.fixed); !rest.empty())
    text += wrapped_words("", rest, search_width);
  const auto ties = std::count_if(result.plans.begin(), result.plans.end(),
                                  [](const Found& found) { return found.tie; });
  if (ties > 1)
    text += "= marks plans that do not differ significantly from the first (90 % confidence).\n";
  if (!result.plans.empty() && !result.plans.front().result.scenario.why_software.empty())
    text += "Note: " + result.plans.front().result.scenario.why_software + ".\n";
  if (request.failures) text += wrapped_words("", failures_note(request), search_width);
  return text;
}

std::string search_text(const SearchResult& result, const SearchRequest& request,
                        const SearchNames& names, TextWidth width) {
  std::string text = search_heading(result, request) + "\n";
  if (!result.plans.empty()) text += search_table(result, request).text(width) + "\n";
  text += search_notes(result, request);
  if (!result.plans.empty()) {
    text += "\nTo estimate the first in full:\n  " +
            command_of(result.plans.front(), request, names) + "\n";
    if (result.plans.front().result.bill)
      text += "\n" + bill_text(*result.plans.front().result.bill);
  }
  return text;
}

std::string search_json(const SearchResult& result, const SearchRequest& request,
                        const SearchNames& names) {
  using Json = nlohmann::ordered_json;
  Json plans = Json::array();
  Json ranking = Json::array();
  Json inputs = Json::object();  // Inputs of all plans together, as most have the same.
  for (const Found& found : result.plans) {
    plans.push_back(
        Json::parse(result_json(found.result, {.about_this_run = false, .inputs = false})));
    inputs.update(inputs_json(found.result.scenario), true);
    ranking.push_back({{"score", found.score},
                       {"tie", found.tie},
                       {"command", command_of(found, request, names)}});
    if (request.failures) {
      const Plan& plan = found.result.scenario.plan;
      const double tokens = static_cast<double>(plan.gbs) * static_cast<double>(plan.seq);
      ranking.back()["ettr_by_formula"] = found.result.step_time.si() / tokens / found.score;
      if (request.tokens) {
        const ExpectedTraining training = expected_training(found, request);
        const Range& usd = training.rent_usd;
        ranking.back()["with_failures"] = {
            {"days", to_nine_digits(training.time.si() / 86400.0)},
            {"spares", training.spares},
            {"rent_usd", usd.known() ? Json{{"low", to_nine_digits(usd.low)},
                                            {"high", to_nine_digits(usd.high)}}
                                     : Json(nullptr)}};
      }
    }
  }
  Json json;
  json["schema"] = "orrery.search/1";
  json["objective"] = goal_names()[static_cast<std::size_t>(request.goal)];
  if (request.failures) json["reliability"] = request.failures->profile.name;
  json["pareto"] = request.list.is_front();
  json["plans"] = std::move(plans);
  json["ranking"] = std::move(ranking);
  json["space"] = {{"legal", result.legal},         {"fits", result.fits},
                   {"simulated", result.simulated}, {"bounded_out", result.bounded_out},
                   {"parts", result.parts},         {"parts_cut_short", result.parts_cut_short}};
  json["optimal"] = result.optimal;
  json["interrupted"] = result.interrupted;
  if (!result.optimal && result.parts_cut_short == 0)
    json["unexplored_score_at_least"] = result.best_unexplored;
  json["simulator"] = name(chosen_simulator());
  json["inputs"] = std::move(inputs);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery
