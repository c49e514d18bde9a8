#pragma once

#include <string>

#include "sim/formats/recipe/recipe.hpp"
#include "sim/model/model.hpp"

namespace orrery {

/// Keys of an imported plan but for its model, as "cp=1 dp_overlap=true", in the order of the
/// alphabet.
inline std::string plan_text(const ImportedRun& run) {
  const JsonValue plan = JsonValue::parse(run.json, "plan");
  std::string text;
  for (const std::string& key : plan.keys())
    if (key != "model") text += (text.empty() ? "" : " ") + key + "=" + plan.at(key).compact();
  return text;
}

inline Model model_of_run(const ImportedRun& run) {
  return parse_model(JsonValue::parse(run.json, "plan").at("model"));
}

}  // namespace orrery
