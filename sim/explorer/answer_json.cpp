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

Json parameters_json(const std::vector<StateParameter>& parameters) {
  Json list = Json::array();
  for (const StateParameter& parameter : parameters) {
    Json values = Json::array();
    for (const ParameterValue& value : parameter.values) {
      Json json{{"word", value.word}};
      if (!value.why_not.empty()) json["why_not"] = value.why_not;
      // Other keys that this value changes.
      StateChanges others = value.changes;
      if (const auto own = others.find(parameter.name);
          own != others.end() && own->second == value.word)
        others.erase(own);
      if (!others.empty()) json["also"] = changes_json(others);
      if (value.memory) json["memory"] = std::round(*value.memory * 1e4) / 1e4;
      values.push_back(std::move(json));
    }
    list.push_back({{"key", parameter.name},
                    {"part", parameter.key ? name(parameter.key->part) : "cluster"},
                    {"help", parameter.help},
                    {"now", parameter.now},
                    {"said", parameter.is_set},
                    {"matters", parameter.matters},
                    {"numbers", parameter.numbers},
                    {"searched", parameter.key && parameter.key->searched},
                    {"form", parameter.key ? parameter.key->access.values : "N"},
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
