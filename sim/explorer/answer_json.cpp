#include "sim/explorer/answer_json.hpp"

#include <cmath>

#include "sim/core/number_text.hpp"
#include "sim/training/result_json.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Json state_json(const ExploredState& state) {
  Json json = Json::object();
  for (const auto& [key, word] : state.words()) json[key] = word;
  return json;
}

Json changes_json(const StateChanges& changes) {
  Json json = Json::object();
  for (const auto& [key, word] : changes) json[key] = word;
  return json;
}

Json knobs_json(const std::vector<Knob>& knobs) {
  Json list = Json::array();
  for (const Knob& knob : knobs) {
    Json values = Json::array();
    for (const KnobValue& value : knob.values) {
      Json json{{"word", value.word}};
      if (!value.why_not.empty()) json["why_not"] = value.why_not;
      // What turning does beside the key itself.
      StateChanges beside = value.changes;
      if (const auto own = beside.find(knob.name); own != beside.end() && own->second == value.word)
        beside.erase(own);
      if (!beside.empty()) json["also"] = changes_json(beside);
      if (value.memory) json["memory"] = std::round(*value.memory * 1e4) / 1e4;
      values.push_back(std::move(json));
    }
    list.push_back({{"key", knob.name},
                    {"part", knob.key ? name(knob.key->part) : "cluster"},
                    {"help", knob.help},
                    {"now", knob.now},
                    {"said", knob.said},
                    {"matters", knob.matters},
                    {"numbers", knob.numbers},
                    {"searched", knob.key && knob.key->searched},
                    {"form", knob.key ? knob.key->access.values : "N"},
                    {"values", std::move(values)}});
  }
  return list;
}

Json refusal_json(const PlanRefused& refused) {
  Json remedies = Json::array();
  for (const Remedy& remedy : refused.remedies)
    remedies.push_back({{"words", remedy.words},
                        {"changes", changes_json(remedy.changes)},
                        {"runs", remedy.runs}});
  Json json{{"message", refused.message}, {"remedies", std::move(remedies)}};
  if (refused.memory) json["memory"] = memory_json(*refused.memory);
  return json;
}

Json catalog_json(WarmInputs& inputs) {
  const NamesAllowed& names = inputs.names();
  const auto given = [&](const char* key) {
    const auto found = names.given.find(key);
    return found == names.given.end() ? std::set<std::string>{} : found->second;
  };
  Json models = Json::array(), systems = Json::array();
  const auto add_model = [&](const std::string& word) {
    const Model& model = inputs.model(word);
    models.push_back(
        {{"word", word},
         {"title",
          fixed(static_cast<double>(count_parameters(model).total) * 1e-9, 1) + " B parameters"},
         {"experts", model.experts.has_value()}});
  };
  const auto add_system = [&](const std::string& word) {
    const System system = read_system(word, {"--system", ""});
    systems.push_back({{"word", word},
                       {"title", system.title},
                       {"gpu", system.gpu.title},
                       {"most_gpus", system.max_gpus}});
  };
  for (const std::string& word : given("model")) add_model(word);
  for (const std::string& word : names.models) add_model(word);
  for (const std::string& word : given("system")) add_system(word);
  for (const std::string& word : names.systems) add_system(word);
  return {{"schema", "orrery.explorer/1"},
          {"models", std::move(models)},
          {"systems", std::move(systems)},
          {"calibrations", given("calibration")},
          {"economics", given("economics")}};
}

}  // namespace orrery
