#include "sim/core/object_reader.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

using Json = nlohmann::json;

// Returns true if it wrote anything out.
bool write_out(Json& json, const std::vector<std::string>& keys) {
  bool changed = false;
  for (auto& [key, value] : json.items()) {
    if (value.is_structured()) {
      changed = write_out(value, keys) || changed;
    } else if (json.is_object() && (value.is_number() || value.is_string()) &&
               std::find(keys.begin(), keys.end(), key) != keys.end()) {
      value = Json{{"value", value}, {"source", own_source}};
      changed = true;
    }
  }
  return changed;
}

void find_own(const Json& json, const std::string& where, std::vector<std::string>& found) {
  if (json.is_object() && json.contains("value") && json.contains("source") &&
      json["source"] == own_source) {
    found.push_back(where);
    return;
  }
  for (const auto& [key, value] : json.items())
    if (value.is_structured()) find_own(value, where.empty() ? key : where + "/" + key, found);
}

}  // namespace

JsonValue with_own_sources(const JsonValue& json, const std::vector<std::string>& keys) {
  if (!json.is_object()) return json;
  Json document = Json::parse(json.compact());
  // An unchanged document keeps its place, also inside of another file.
  return write_out(document, keys) ? JsonValue::parse(document.dump(), json.place().file) : json;
}

std::vector<std::string> own_figures(const JsonValue& json) {
  std::vector<std::string> found;
  find_own(Json::parse(json.compact()), "", found);
  return found;
}

}  // namespace orrery
