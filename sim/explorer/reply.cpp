#include "sim/explorer/reply.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/explorer/answer_json.hpp"
#include "sim/explorer/cluster_view.hpp"
#include "sim/explorer/replies.hpp"
#include "sim/explorer/reports.hpp"
#include "sim/explorer/timeline_bytes.hpp"
#include "sim/explorer/views.hpp"
#include "sim/formats/megatron/megatron_parts.hpp"
#include "sim/layers/memory.hpp"
#include "sim/profile/profile_text.hpp"
#include "sim/profile/step_operations.hpp"
#include "sim/search/compare_text.hpp"
#include "sim/search/single_changes.hpp"
#include "sim/training/chrome_trace.hpp"
#include "sim/training/result_json.hpp"
#include "sim/training/training_text.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;
using Parts = ReplyManner::Parts;

constexpr int http_bad_request = 400;
constexpr int http_unprocessable = 422;

struct Kind {
  std::string_view name;
  const char* media_type;
  ReplyManner manner = {};
};
constexpr std::array<Kind, 16> kinds{{{"catalog", "application/json"},
                                      {"answer", "application/octet-stream", {Parts::any, false}},
                                      {"compare", "application/json"},
                                      {"changes", "application/json"},
                                      {"search", "application/x-ndjson", {Parts::lines, true}},
                                      {"batches", "application/x-ndjson", {Parts::lines, false}},
                                      {"sweep", "application/x-ndjson", {Parts::lines, true}},
                                      {"report", "text/html"},
                                      {"trace", "application/json"},
                                      {"result", "application/json"},
                                      {"megatron", "text/plain"},
                                      {"memory", "application/json"},
                                      {"cluster", "application/json"},
                                      {"links", "application/json"},
                                      {"roofline", "application/json"},
                                      {"experts", "application/json"}}};

StateChanges changes_between(const ExploredState& from, const ExploredState& to) {
  StateChanges changes;
  for (const auto& [key, word] : from.words())
    if (!to.says(key)) changes[key] = "";
  for (const auto& [key, word] : to.words())
    if (from.word(key) != word) changes[key] = word;
  return changes;
}

std::string words_of(const StateChanges& changes) {
  std::string words;
  for (const auto& [key, word] : changes)
    if (!word.empty()) words += (words.empty() ? "--" : " --") + key + " " + word;
  return words;
}

PlanRefused refused(const std::string& message, const ExploredState& state,
                    const StateInputs& read) {
  PlanRefused refused{message, remedies_in(message, state, read), std::nullopt};
  try {
    const Scenario scenario = read.scenario(state);
    const MemoryReport memory = memory_of(scenario, *read.context.loads(scenario));
    if (!memory.fits()) refused.memory = memory;
  } catch (const Error&) {
    // No plan, no memory.
  }
  const bool has_remedy = std::any_of(refused.remedies.begin(), refused.remedies.end(),
                                      [](const Remedy& remedy) { return remedy.runs; });
  if (has_remedy) return refused;
  if (const auto usual = repaired(state, read.inputs)) {
    const StateChanges changes = changes_between(state, *usual);
    if (changes.empty()) return refused;  // The plan is not the cause.
    refused.remedies.push_back({words_of(changes), changes, true});
  }
  return refused;
}

void answer(ExploredState state, bool repair, WarmInputs& inputs, const SendPart& send) {
  require_inputs(state);
  if (repair)
    if (const auto usual = repaired(state, inputs)) state = *usual;
  Json json{{"schema", "orrery.explorer/1"},
            {"state", state_json(state)},
            {"command", "orrery " + state.command()},
            {"result", nullptr},
            {"refused", nullptr}};
  const StateInputs read{state, inputs};
  std::optional<Estimate> found;
  try {
    found = estimate_of(state, inputs);
    json["heading"] = plan_items(found->result.scenario.plan);
    json["result"] =
        Json::parse(result_json(found->result, {.about_this_run = false, .inputs = false}));
  } catch (const Error& error) {
    json["refused"] = refusal_json(refused(error.what(), state, read));
  }
  send(http_ok, line_of(json));
  send(http_ok, line_of({{"knobs", parameters_json(state_parameters(state, read))}}));
  if (found) send(http_ok, timeline_bytes(*found));
}

std::string compare(const std::string& body, WarmInputs& inputs) {
  const JsonValue pair = JsonValue::parse(body, "states");
  pair.allow_only({"from", "to"});
  std::vector<PricedPlan> plans;
  for (const char* key : {"from", "to"}) {
    const ExploredState state = ExploredState::read(pair.at(key).compact(), inputs.names());
    require_inputs(state);
    const Estimate estimate = estimate_of(state, inputs);
    const JsonValue result = JsonValue::parse(result_json(estimate.result), key);
    plans.push_back({read_compared_plan(result, key), std::nullopt});
  }
  require_one_model({plans[0].plan, plans[1].plan});
  return compare_json(plans);
}

// The rows of `orrery estimate --changes`.
std::string changes(const ExploredState& state, WarmInputs& inputs) {
  require_inputs(state);
  const StateInputs read{state, inputs};
  const Result result = estimate_of(state, inputs).result;
  Json list = Json::array();
  for (const SingleChange& change : single_changes(result, read.context, inputs.detail()))
    list.push_back({{"flags", change.flags},
                    {"changes", changes_json(changes_of(change.flags, state))},
                    {"step_time_s", change.step.si()},
                    {"share", change.difference.mean / result.step_time},
                    {"tie", change.difference.is_tie()}});
  return line_of(Json{{"changes", std::move(list)}});
}

std::string download(QuestionKind kind, const ExploredState& state, WarmInputs& inputs) {
  require_inputs(state);
  if (kind == QuestionKind::megatron) {
    const MegatronFlags flags = megatron_flags(StateInputs{state, inputs}.scenario(state));
    std::string text = megatron_text(flags);
    for (const std::string& what : flags.left_out) text += "# no flag for " + what + "\n";
    return text;
  }
  const Estimate found = estimate_of(state, inputs);
  if (kind == QuestionKind::report)
    return estimate_report(found, StateInputs{state, inputs}.context,
                           {"orrery " + state.command() + " --html report.html"});
  if (kind == QuestionKind::trace)
    return chrome_trace(found.step, found.timeline, found.result.scenario,
                        {.warnings = found.result.warnings});
  return result_json(found.result);
}

// Data of a drawing; pages ask for it when they open the drawing.
std::string view(QuestionKind kind, const ExploredState& state, WarmInputs& inputs) {
  require_inputs(state);
  const StateInputs read{state, inputs};
  if (kind == QuestionKind::roofline || kind == QuestionKind::experts) {  // Without a simulation.
    const Scenario scenario = read.scenario(state);
    if (kind == QuestionKind::experts) return experts_view(scenario, *read.context.loads(scenario));
    return operations_json(
        step_operations(scenario, read.context),
        {scenario.model.name, scenario.system.name, scenario.plan.gpus(), "training step"});
  }
  const Estimate found = estimate_of(state, inputs);
  if (kind == QuestionKind::cluster) return cluster_view(found);
  return memory_view(found, *read.context.loads(found.result.scenario));
}

// Loads of links as a timeline zooms into the step.
std::string links(const std::string& body, WarmInputs& inputs) {
  const JsonValue question = JsonValue::parse(body, "question");
  question.allow_only({"state", "from_ns", "to_ns"});
  const ExploredState state = ExploredState::read(question.at("state").compact(), inputs.names());
  require_inputs(state);
  const Estimate found = estimate_of(state, inputs);
  const auto step = std::llround(found.timeline.makespan.seconds().si() * 1e9);
  const std::int64_t from = question.at("from_ns").integer(0, step - 1);
  const std::int64_t to = question.at("to_ns").integer(from + 1, step);
  return cluster_view(found, TimeSlice{Seconds{static_cast<double>(from) * 1e-9},
                                       Seconds{static_cast<double>(to) * 1e-9}});
}

bool is_view(QuestionKind kind) { return kind >= QuestionKind::memory; }

}  // namespace

std::optional<QuestionKind> question_kind(std::string_view name) {
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (kinds[i].name == name) return static_cast<QuestionKind>(i);
  return std::nullopt;
}

const char* media_type(QuestionKind kind) {
  return kinds[static_cast<std::size_t>(kind)].media_type;
}

bool supersedes(QuestionKind newer, QuestionKind older) {
  if (newer == QuestionKind::answer) return older == newer || is_view(older);
  const bool alone = is_view(newer) || newer == QuestionKind::search ||
                     newer == QuestionKind::batches || newer == QuestionKind::sweep;
  return newer == older && alone;
}

ReplyManner manner_of(QuestionKind kind) { return kinds[static_cast<std::size_t>(kind)].manner; }

void reply(QuestionKind kind, const std::string& body, bool repair, WarmInputs& inputs,
           const SendPart& send) {
  try {
    if (kind == QuestionKind::catalog) {
      send(http_ok, line_of(catalog_json(inputs)));
    } else if (kind == QuestionKind::compare) {
      send(http_ok, compare(body, inputs));
    } else if (kind == QuestionKind::links) {
      send(http_ok, links(body, inputs));
    } else if (kind == QuestionKind::changes) {
      send(http_ok, changes(ExploredState::read(body, inputs.names()), inputs));
    } else if (kind == QuestionKind::search) {
      search_reply(ExploredSearch::read(body, inputs.names()), inputs, send);
    } else if (kind == QuestionKind::sweep) {
      sweep_reply(ExploredSweep::read(body, inputs.names()), inputs, send);
    } else if (kind == QuestionKind::batches) {
      batches_reply(ExploredState::read(body, inputs.names()), inputs, send);
    } else if (kind == QuestionKind::answer) {
      answer(ExploredState::read(body, inputs.names()), repair, inputs, send);
    } else if (is_view(kind)) {
      send(http_ok, view(kind, ExploredState::read(body, inputs.names()), inputs));
    } else {
      send(http_ok, download(kind, ExploredState::read(body, inputs.names()), inputs));
    }
  } catch (const Error& error) {
    const bool infeasible = error.kind() == Error::Kind::infeasible;
    send(infeasible ? http_unprocessable : http_bad_request,
         line_of(Json{{"error", error.what()}}));
  }
}

}  // namespace orrery
