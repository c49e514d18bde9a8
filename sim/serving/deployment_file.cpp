#include "sim/serving/deployment_file.hpp"

namespace orrery {
namespace {

std::string text_of(const JsonValue& value) {
  return value.is_string() ? value.text() : value.compact();
}

// "tp=4,replicas=2"
std::string pool_text(const JsonValue& pool) {
  DeploymentRequest checked;
  read_deployment(checked, pool);
  std::string text;
  for (const DeploymentKey& key : deployment_keys())
    if (pool.has(key.name))
      text += (text.empty() ? "" : ",") + key.name + "=" + text_of(pool.at(key.name));
  if (text.empty()) pool.fail("has no keys", "write tp, replicas or others");
  return text;
}

// In the order in which a deployment is told.
std::vector<std::string> known_words() {
  std::vector<std::string> words{"schema", "model", "engine", "system", "gpus"};
  for (const DeploymentKey& key : deployment_keys()) words.push_back(key.name);
  for (const char* word : {"prefill", "decode", "prefix_cache", "router"}) words.emplace_back(word);
  return words;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> deployment_options_of(const JsonValue& file) {
  if (!file.is_object() || !file.has("schema") || file.at("schema").text() != "orrery.deployment/1")
    file.fail("is no deployment",
              "give a file of schema orrery.deployment/1, as orrery import "
              "server writes it");
  file.allow_only(known_words());
  if (file.has("prefill") != file.has("decode"))
    file.fail(file.has("prefill") ? "has prefill, but no decode" : "has decode, but no prefill",
              "say both pools");
  std::vector<std::pair<std::string, std::string>> options;
  for (const std::string& key : known_words()) {
    if (key == "schema" || !file.has(key)) continue;
    const JsonValue value = file.at(key);
    if (key == "model" && value.is_object())
      options.emplace_back(key, file.place().file);
    else if (key == "gpus")
      options.emplace_back(key, std::to_string(value.integer(1, 1 << 16)));
    else if (key == "prefill" || key == "decode")
      options.emplace_back(key, pool_text(value));
    else if (key == "prefix_cache")
      options.emplace_back("prefix-cache", value.boolean() ? "on" : "off");
    else
      options.emplace_back(key, text_of(value));
  }
  DeploymentRequest checked;
  for (const DeploymentKey& key : deployment_keys())
    if (file.has(key.name)) key.ask(checked, file.at(key.name));
  return options;
}

std::vector<std::pair<std::string, std::string>> read_deployment_file(const std::string& path) {
  return deployment_options_of(JsonValue::read_file(path));
}

}  // namespace orrery
