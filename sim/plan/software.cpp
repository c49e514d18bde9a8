#include "sim/plan/software.hpp"

#include "sim/core/catalog.hpp"
#include "sim/core/choice.hpp"
#include "sim/plan/software_keys.hpp"

namespace orrery {

Software read_software(const std::string& word, const Place& at) {
  return parse_software(JsonValue::read_file(find_in_catalog("workloads/software", word, at)));
}

Software parse_software(const JsonValue& json) {
  require_schema(json, "orrery.software/1");
  std::vector<std::string> known{"schema", "name", "title", "source"};
  for (const SoftwareKey& key : software_keys()) known.push_back(key.name);
  json.allow_only(known);
  Software software;
  software.name = required_text(json, "name");
  software.title = required_text(json, "title");
  required_text(json, "source");
  for (const SoftwareKey& key : software_keys()) {
    if (key.applies && !key.applies(json, software)) continue;
    if (key.required || json.has(key.name)) key.read(software, json.at(key.name));
  }
  software.document = json;
  return software;
}

Software captured(CudaGraphs graphs, Software software) {
  const bool both = graphs == CudaGraphs::attention_router;
  if (both || graphs == CudaGraphs::router) software.expert_layer_host.router = Seconds{};
  if (both || graphs == CudaGraphs::attention) software.expert_layer_host.attention = Seconds{};
  if (graphs == CudaGraphs::step) {
    software.expert_layer_host = {};
    software.host_launch = Seconds{};
  }
  return software;
}

}  // namespace orrery
