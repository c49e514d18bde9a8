#include "sim/posttraining/rl_text.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/serving/serving_json.hpp"
#include "sim/training/training_text.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

std::string seconds(Seconds time) { return fixed(time.si(), 1); }

std::string heading(const RlJob& job) {
  std::string text = job.model.name + " on " + plural(job.gpus, "GPU") + " of " + job.system.name +
                     ", " + name(job.request.algorithm) + ", " + job.framework.name + "\n";
  text += job.colocated ? "All GPUs generate and train by turns\n"
                        : plural(job.rollout_gpus, "GPU") + " generate, " +
                              std::to_string(job.train_gpus) + " train\n";
  const SampleStatistics& all = job.statistics;
  text += wrapped_words(
      "",
      plural(job.request.prompts, "prompt") + " x " + plural(job.request.samples, "sample") +
          ": answers of " + fixed(all.mean_response, 0) + " tokens on average, the longest " +
          grouped(all.longest_response) +
          (all.cut > 0.0 && all.cut < 1.0
               ? ", " + percent(all.cut) + " cut" +
                     (job.request.max_response ? " at " + grouped(job.max_response) : std::string{})
               : "") +
          "; prompts of " + fixed(all.mean_prompt, 0),
      text_columns);
  return text;
}

// Without the plan's one sequence of a micro-batch, which is several samples.
std::string degrees_of(const Plan& plan) {
  std::string text = brief_degrees(plan);
  const std::size_t mbs = text.find(" mbs1");
  return mbs == text.npos ? text : text.erase(mbs, 5);
}

std::string plan_text(const RlJob& job) {
  const Deployment& rollout = job.rollout.deployment;
  return wrapped_words("Rollout   ",
                       job.rollout.engine.name + ", tp " + std::to_string(rollout.tp) +
                           (rollout.pp > 1 ? ", pp " + std::to_string(rollout.pp) : "") +
                           (rollout.dp > 1 ? ", dp " + std::to_string(rollout.dp) : "") +
                           (rollout.ep > 1 ? ", ep " + std::to_string(rollout.ep) : "") + ", " +
                           plural(rollout.replicas, "replica") + ", " + percent(rollout.kv_share) +
                           " of memory",
                       text_columns) +
         wrapped_words("Training  ",
                       job.training.software.name + ", " + degrees_of(job.training.plan) + ", " +
                           plural(job.optimizer_steps, "optimizer step") + " of " +
                           grouped(job.batches.count) +
                           (job.batches.count > 1 ? " micro-batches" : " micro-batch") +
                           " a rank with " + grouped(job.training.plan.seq) + " tokens, " +
                           percent(job.batches.useful) + " of the work on samples",
                       text_columns);
}

std::string phases_text(const RlStep& step) {
  Table table{{{"phase", Align::left}, {"seconds"}, {"share"}, {"busy"}}};
  for (const RlPhaseTime& phase : step.phases)
    table.add_row({phase_text(phase.phase), seconds(phase.time), percent(phase.time / step.time),
                   phase.busy > 0.0 ? percent(phase.busy) : ""});
  table.add_row({"step", seconds(step.time)});
  return table.text();
}

std::string range_text(Range range, int decimals) {
  const std::string low = fixed(range.low, decimals), high = fixed(range.high, decimals);
  return low == high ? low : low + " .. " + high;
}

Json range_json(Range range) {
  if (!range.known()) return nullptr;
  return {{"low", rounded(range.low)}, {"high", rounded(range.high)}};
}

std::string bill_text(const RlBill& bill) {
  std::string text;
  if (bill.usd_per_thousand.known())
    text = "$" + range_text(bill.usd_per_thousand, 2) + " a thousand samples";
  if (bill.kwh_per_thousand.known())
    text += (text.empty() ? "" : ", ") + range_text(bill.kwh_per_thousand, 2) + " kWh";
  if (!text.empty()) text += "\n";
  if (bill.steps > 0)
    text += plural(bill.steps, "step") + ": " + span_text(bill.run) +
            (bill.run_usd.known() ? ", $" + range_text(bill.run_usd, 0) : "") + "\n";
  return text;
}

std::string memory_text(const RlStep& step) {
  const RlMemory& memory = step.memory;
  return wrapped_words(
      "",
      "Memory of a GPU with " + gigabytes_text(memory.capacity) + ": training " +
          gigabytes_text(memory.training) +
          (memory.training > memory.capacity
               ? " (which may not fit: predicted peaks are up to a tenth too high)"
               : "") +
          ", rollout " + gigabytes_text(memory.rollout) +
          (memory.left_by_trainer > Bytes{}
               ? " (of which the trainer leaves " + gigabytes_text(memory.left_by_trainer) + ")"
               : "") +
          "; a KV cache of " +
          (step.overlap
               ? grouped(step.overlap->generation.kv_tokens) + " tokens, " +
                     percent(step.overlap->generation.kv_share) + " of it in use on average"
               : grouped(step.rollout.run.kv.tokens) + " tokens, " +
                     percent(step.rollout.run.replay.counts.totals.kv_peak) +
                     " of it in use at the peak"),
      text_columns);
}

}  // namespace

std::string rl_step_text(const RlStep& step, const RlBill& bill) {
  const RlJob& job = step.job;
  std::string text = heading(job) + plan_text(job) + "\n" + phases_text(step) + "\n";
  text += "Range " + fixed(step.time.si() * std::exp(-rl_step_error), 1) + " .. " +
          fixed(step.time.si() * std::exp(rl_step_error), 1) +
          " s, in which 87 % of published steps lie\n";
  text += fixed(step.samples_per_s(), 2) + " samples a second, " +
          fixed(step.tokens_per_s_per_gpu(), 0) +
          " tokens a second and GPU (prompts and answers)\n";
  if (step.overlap) {
    const RlOverlap& both = *step.overlap;
    text += wrapped_words(
        "",
        "The pools need " + seconds(both.engine) + " s to generate" +
            (both.engine > both.generation.time ? " and take new weights" : "") + " and " +
            seconds(both.trainer) + " s to train a step: the " +
            (both.engine > both.trainer ? "trainer waits" : "engine waits") + ". " +
            fixed(both.generation.running, 0) + " samples run at a time" +
            (both.generation.waiting > 0.5
                 ? " and " + fixed(both.generation.waiting, 0) + " wait for a place"
                 : "") +
            ", of " + plural(both.generation.prompts_in_flight, "prompt") + " under way" +
            (both.generation.preempted > 0.5
                 ? "; " + grouped(std::llround(both.generation.preempted)) +
                       " a step lose their place in the cache and are computed again"
                 : "") +
            "; answers are " + fixed(both.mean_age, 1) + " steps old on average",
        text_columns);
    return text + memory_text(step) + bill_text(bill);
  }
  text += wrapped_words("",
                        "Half of the answers have ended after " + seconds(step.rollout.half) +
                            " s of the rollout, nine tenths after " +
                            seconds(step.rollout.nine_tenths) + " s: the last tenth takes " +
                            percent(step.rollout.tail()) + " of it",
                        text_columns);
  return text + memory_text(step) + bill_text(bill);
}

namespace {

Json step_json(const RlStep& step, const RlBill& bill) {
  const RlJob& job = step.job;
  Json phases = Json::array();
  for (const RlPhaseTime& phase : step.phases)
    phases.push_back({{"phase", name(phase.phase)},
                      {"seconds", rounded(phase.time.si())},
                      {"busy_share", rounded(phase.busy)}});
  const SampleStatistics& all = job.statistics;
  // These figures describe a rollout that begins and ends with the step; others have null.
  const ReplayTotals& totals = step.rollout.run.replay.counts.totals;
  const auto of_burst = [&](double value) {
    return step.overlap ? Json(nullptr) : Json(rounded(value));
  };
  Json json{{"schema", "orrery.post-result/1"},
            {"model", job.model.name},
            {"system", job.system.name},
            {"gpus", job.gpus},
            {"framework", job.framework.name},
            {"algorithm", name(job.request.algorithm)},
            {"placement", job.colocated ? "colocated" : "disaggregated"},
            {"train_gpus", job.train_gpus},
            {"rollout_gpus", job.rollout_gpus},
            {"step_s", rounded(step.time.si())},
            {"range_s",
             {{"low", rounded(step.time.si() * std::exp(-rl_step_error))},
              {"high", rounded(step.time.si() * std::exp(rl_step_error))}}},
            {"samples_per_s", rounded(step.samples_per_s())},
            {"tokens_per_s_per_gpu", rounded(step.tokens_per_s_per_gpu())},
            {"phases", phases},
            {"samples",
             {{"count", job.samples.size()},
              {"prompt_mean", rounded(all.mean_prompt)},
              {"response_mean", rounded(all.mean_response)},
              {"response_longest", all.longest_response},
              {"cut_share", rounded(all.cut)}}},
            {"rollout",
             {{"engine", job.rollout.engine.name},
              {"half_ended_s", of_burst(step.rollout.half.si())},
              {"nine_tenths_ended_s", of_burst(step.rollout.nine_tenths.si())},
              {"tail_share", of_burst(step.rollout.tail())},
              {"preemptions", step.overlap ? Json(nullptr) : Json(totals.preemptions)},
              {"kv_peak_share", of_burst(totals.kv_peak)},
              {"deployment", deployment_json(job.rollout.deployment, job.model)}}},
            {"training",
             {{"optimizer_steps", job.optimizer_steps},
              {"micro_batches", job.batches.count},
              {"micro_batch_tokens", job.training.plan.seq},
              {"useful_share", rounded(job.batches.useful)},
              {"optimizer_step_s", rounded(step.training.step_time.si())}}},
            {"memory",
             {{"capacity_bytes", whole(step.memory.capacity)},
              {"training_bytes", whole(step.memory.training)},
              {"rollout_bytes", whole(step.memory.rollout)},
              {"left_by_trainer_bytes", whole(step.memory.left_by_trainer)}}},
            {"weights_bytes", whole(step.weights)},
            {"cost",
             {{"usd_per_thousand_samples", range_json(bill.usd_per_thousand)},
              {"kwh_per_thousand_samples", range_json(bill.kwh_per_thousand)},
              {"run_days", bill.steps > 0 ? Json(rounded(bill.run.si() / 86400.0)) : Json(nullptr)},
              {"run_usd", bill.steps > 0 ? range_json(bill.run_usd) : Json(nullptr)}}}};
  if (step.overlap) {
    const RlOverlap& both = *step.overlap;
    json["overlap"] = {{"generation_s", rounded(both.generation.time.si())},
                       {"engine_s", rounded(both.engine.si())},
                       {"trainer_s", rounded(both.trainer.si())},
                       {"prompts_in_flight", both.generation.prompts_in_flight},
                       {"running_samples", rounded(both.generation.running)},
                       {"waiting_samples", rounded(both.generation.waiting)},
                       {"preemptions", rounded(both.generation.preempted)},
                       {"kv_mean_share", rounded(both.generation.kv_share)},
                       {"mean_age_steps", rounded(both.mean_age)}};
  }
  return json;
}

}  // namespace

std::string rl_step_json(const RlStep& step, const RlBill& bill,
                         const std::vector<RlChange>& changes) {
  Json json = step_json(step, bill);
  for (const RlChange& change : changes) {
    const bool possible = change.refused.empty();
    json["changes"].push_back(
        {{"options", change.options},
         {"step_s", possible ? Json(rounded(change.step.si())) : Json(nullptr)},
         {"refused", possible ? Json(nullptr) : Json(change.refused)}});
  }
  return json.dump(2) + "\n";
}

RlBill rl_bill(const RlStep& step, const Economics& economics, std::int64_t steps) {
  constexpr double hour = 3600.0;
  const double gpu_hours = static_cast<double>(step.job.gpus) * step.time.si() / hour;
  const double of_a_thousand = gpu_hours * 1000.0 / static_cast<double>(step.job.samples.size());
  RlBill bill;
  bill.usd_per_thousand = economics.rent_usd_per_gpu_hour * of_a_thousand;
  bill.kwh_per_thousand = economics.server_watts_per_gpu * economics.pue * (of_a_thousand / 1e3);
  bill.steps = steps;
  bill.run = static_cast<double>(steps) * step.time;
  bill.run_usd = economics.rent_usd_per_gpu_hour * (gpu_hours * static_cast<double>(steps));
  return bill;
}

std::string rl_changes_text(const RlStep& step, const std::vector<RlChange>& changes) {
  Table table{{{"one change", Align::left}, {"seconds"}, {"shorter by"}, {"option", Align::left}}};
  std::string refused;
  for (const RlChange& change : changes) {
    if (change.refused.empty())
      table.add_row({change.words, seconds(change.step),
                     signed_percent(1.0 - change.step / step.time), change.options});
    else
      refused += wrapped_words("", "Not possible: " + change.options + ": " + change.refused,
                               text_columns);
  }
  return table.text() + (refused.empty() ? "" : "\n" + refused);
}

namespace {

// The keys of a step's plans that a search chooses.
std::string options_of(const RlStep& step) {
  const Plan& plan = step.job.training.plan;
  std::string training = "tp=" + std::to_string(plan.tp) + ",pp=" + std::to_string(plan.pp);
  if (plan.cp > 1) training += ",cp=" + std::to_string(plan.cp);
  if (plan.ep > 1) training += ",ep=" + std::to_string(plan.ep);
  if (step.job.request.training.zero) training += ",zero=" + std::to_string(plan.zero);
  training += plan.recompute.kind == Recompute::full ? ",recompute=full" : ",recompute=none";
  return (step.job.colocated ? std::string{}
                             : "--rollout_gpus " + std::to_string(step.job.rollout_gpus) + " ") +
         "--rollout tp=" + std::to_string(step.job.rollout.deployment.tp) + " --training " +
         training;
}

}  // namespace

std::string rl_search_text(const RlSearchRequest& request, const RlSearchResult& result) {
  std::string text = request.model.name + " on " + plural(request.gpus, "GPU") + " of " +
                     request.system.name + ", " + name(request.job.algorithm) + ", " +
                     request.framework.name + "\n\n";
  Table table{{{"seconds"}, {"generate"}, {"train"}, {"trainer waits"}, {"plan", Align::left}}};
  for (const RlStep& step : result.best) {
    const Seconds generation =
        step.overlap ? step.overlap->engine : step.time_of(RlPhase::generation);
    const Seconds trainer = step.overlap ? step.overlap->trainer : step.time - generation;
    table.add_row({seconds(step.time), seconds(generation), seconds(trainer),
                   step.overlap ? percent(step.time_of(RlPhase::generation) / step.time) : "",
                   options_of(step)});
  }
  text += table.text() + "\n";
  return text +
         wrapped_words("",
                       grouped(result.jobs) + " plans of the trainer: " + grouped(result.fits) +
                           " fit and were simulated, " + grouped(result.bounded_out) +
                           " are proven slower by a bound, " + grouped(result.too_large) +
                           " do not fit in memory, " + grouped(result.undivided) +
                           " do not divide or are not what the software does. The first is the "
                           "shortest step of them all",
                       text_columns);
}

std::string rl_search_json(const RlSearchResult& result, const Economics& economics) {
  Json steps = Json::array();
  for (const RlStep& step : result.best)
    steps.push_back(step_json(step, rl_bill(step, economics, 0)));
  const Json json{{"schema", "orrery.post-search/1"},
                  {"steps", steps},
                  {"space",
                   {{"jobs", result.jobs},
                    {"fits", result.fits},
                    {"bounded_out", result.bounded_out},
                    {"too_large", result.too_large},
                    {"undivided", result.undivided}}}};
  return json.dump(2) + "\n";
}

namespace {

// No other offer is both faster and cheaper at the midpoint of its range.
bool is_best(std::size_t of, const std::vector<RlOffer>& offers, const std::vector<RlBill>& bills) {
  const auto money = [&](std::size_t i) { return bills[i].usd_per_thousand.midpoint(); };
  if (!offers[of].best || !bills[of].usd_per_thousand.known()) return false;
  for (std::size_t other = 0; other < offers.size(); ++other)
    if (other != of && offers[other].best && bills[other].usd_per_thousand.known() &&
        offers[other].best->time <= offers[of].best->time && money(other) <= money(of) &&
        (offers[other].best->time < offers[of].best->time || money(other) < money(of)))
      return false;
  return true;
}

std::string known_range(Range range, int decimals) {
  return range.known() ? range_text(range, decimals) : "";
}

}  // namespace

std::string rl_offers_text(const RlSearchRequest& request, const std::vector<RlOffer>& offers,
                           const std::vector<RlBill>& bills) {
  const bool has_run =
      std::any_of(bills.begin(), bills.end(), [](const RlBill& bill) { return bill.steps > 0; });
  std::vector<Column> columns{{"", Align::left}, {"system", Align::left}, {"GPUs"},
                              {"step, s"},       {"samples/s"},           {"$ a thousand"},
                              {"kWh a thousand"}};
  if (has_run) columns.insert(columns.end(), {{"run"}, {"rent of it, $"}});
  Table table{columns};
  std::string plans, refused;
  for (std::size_t i = 0; i < offers.size(); ++i) {
    const RlOffer& offer = offers[i];
    const std::string name = offer.system.name + ", " + plural(offer.gpus, "GPU");
    if (!offer.best) {
      refused += wrapped_words("", "Not possible: " + name + ": " + offer.refusal, text_columns);
      continue;
    }
    const RlStep& step = *offer.best;
    const RlBill& bill = bills[i];
    std::vector<std::string> row{is_best(i, offers, bills) ? "*" : "",
                                 offer.system.name,
                                 grouped(offer.gpus),
                                 seconds(step.time),
                                 fixed(step.samples_per_s(), 1),
                                 known_range(bill.usd_per_thousand, 2),
                                 known_range(bill.kwh_per_thousand, 2)};
    if (has_run) {
      row.push_back(span_text(bill.run));
      row.push_back(known_range(bill.run_usd, 0));
    }
    table.add_row(row);
    plans += wrapped_words("  ", name + ": " + options_of(step), text_columns);
  }
  return request.model.name + ", " + name(request.job.algorithm) + ", " + request.framework.name +
         ", " + plural(request.job.prompts, "prompt") + " x " +
         plural(request.job.samples, "sample") + "\n\n" + table.text() +
         "* no other is both faster and cheaper, at the midpoints of the ranges\n\n" +
         (plans.empty() ? ""
                        : "The best plans, with --gpus and --system of orrery post\n" + plans) +
         (refused.empty() ? "" : "\n" + refused);
}

std::string rl_offers_json(const std::vector<RlOffer>& offers, const std::vector<RlBill>& bills) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < offers.size(); ++i) {
    const RlOffer& offer = offers[i];
    Json row{{"system", offer.system.name}, {"gpus", offer.gpus}};
    row["best"] = is_best(i, offers, bills);
    row["step"] = offer.best ? step_json(*offer.best, bills[i]) : Json(nullptr);
    row["refused"] = offer.best ? Json(nullptr) : Json(offer.refusal);
    rows.push_back(std::move(row));
  }
  return Json{{"schema", "orrery.post-purchase/1"}, {"rows", rows}}.dump(2) + "\n";
}

}  // namespace orrery
