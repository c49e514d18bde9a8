#include "sim/serving/pooled_step_text.hpp"

#include <nlohmann/json.hpp>

#include "sim/serving/pools_text.hpp"
#include "sim/serving/serving_setup_json.hpp"
#include "sim/serving/serving_step_text.hpp"

namespace orrery {

std::string pooled_step_text(const PooledStep& step) {
  std::string text;
  const auto section = [&](const std::string& title, const std::string& body) {
    text += (text.empty() ? "" : "\n") + title + "\n" + body;
  };
  if (step.prefill) section("Prefill pool", serving_step_text(*step.prefill, {}));
  if (step.decode) section("Decode pool", serving_step_text(*step.decode, step.cost));
  for (const LoneTransfer& transfer : step.transfers)
    text += "\n" + lone_transfer_text(transfer, step.sending);
  return text;
}

std::string pooled_step_json(const PooledStep& step) {
  using Json = nlohmann::ordered_json;
  const auto pool = [](const std::string& role, const ServingStep& of) {
    Json json = Json::parse(serving_step_json(of, {}));
    Json entry{{"role", role}};
    for (const char* key : {"gpus", "deployment", "memory", "step"}) entry[key] = json[key];
    return entry;
  };
  const ServingStep& one = step.prefill ? *step.prefill : *step.decode;
  Json json = serving_head_json(one.setup, one.kv);
  json["deployment"] = json["memory"] = json["gpus"] = nullptr;
  json["pools"] = Json::array();
  if (step.prefill) json["pools"].push_back(pool("prefill", *step.prefill));
  if (step.decode) json["pools"].push_back(pool("decode", *step.decode));
  json["transfers"] = Json::array();
  for (const LoneTransfer& transfer : step.transfers)
    json["transfers"].push_back(lone_transfer_json(transfer, step.sending));
  return json.dump(2) + "\n";
}

}  // namespace orrery
