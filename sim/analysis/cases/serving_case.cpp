#include "sim/analysis/cases/serving_case.hpp"

namespace orrery {
namespace {

constexpr int most_gpus = 1 << 20;
constexpr double most = 1e15;

// Of peers {"simulator": {"quantity": predicted}}.
void read_peers(const JsonValue& json, ServingCase& one) {
  for (const std::string& peer : json.keys()) {
    const JsonValue said = json.at(peer);
    for (const std::string& quantity : said.keys())
      if (const JsonValue value = said.at(quantity); value.is_number())
        one.peers[peer][quantity] = value.number(-most, most);
  }
}

}  // namespace

bool is_serving_case(const JsonValue& entry) {
  return entry.is_object() && entry.has("deployment") && entry.has("engine");
}

ServingCase read_serving_case(const JsonValue& entry) {
  entry.allow_only({"id", "source", "system", "gpus", "model", "engine", "deployment", "workload",
                    "serving", "measured", "peers", "notes"});
  ServingCase one;
  one.place = entry.place();
  one.id = entry.at("id").text();
  one.system = entry.at("system").text();
  one.model = entry.at("model").text();
  one.engine = entry.at("engine").text();
  one.gpus = static_cast<int>(entry.at("gpus").integer(1, most_gpus));
  read_deployment(one.deployment, entry.at("deployment"));
  one.workload = entry.find("workload");
  one.serving = entry.find("serving");
  const JsonValue measured = entry.at("measured");
  for (const std::string& quantity : measured.keys())
    one.measured[quantity] = measured.at(quantity).number(0.0, most);
  if (const auto peers = entry.find("peers")) read_peers(*peers, one);
  return one;
}

ServingSetup setup_of(const ServingCase& one) {
  return make_serving_setup(one.model, one.system, one.engine, one.deployment, one.gpus, one.place);
}

}  // namespace orrery
