#include "sim/formats/servers/imported_servers.hpp"

#include <algorithm>

#include "sim/formats/servers/server_reader.hpp"
#include "sim/serving/deployment.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

// In the order of docs/SERVING.md.
Json ordered(const Json& keys) {
  Json all = Json::object();
  for (const DeploymentKey& key : deployment_keys())
    if (keys.contains(key.name)) all[key.name] = keys[key.name];
  return all;
}

// Servers of one kind are replicas of each other.
struct Pool {
  std::optional<Json> keys;
  std::int64_t servers = 0;
};

void add(Pool& pool, const ServedPart& part, const ServerCommand& command) {
  ++pool.servers;
  if (pool.keys && *pool.keys != part.keys)
    fail_input(command.words.place(),
               "starts servers that differ: " + pool.keys->dump() + " and " + part.keys.dump(),
               "give a script that starts one of them");
  pool.keys = part.keys;
}

Json finished(const Pool& pool) {
  Json keys = *pool.keys;
  keys["replicas"] = keys.value("replicas", std::int64_t{1}) * pool.servers;
  return ordered(keys);
}

std::int64_t gpus_of(const Json& keys) {
  std::int64_t gpus = 1;
  for (const char* degree : {"tp", "pp", "dp", "replicas"})
    gpus *= keys.value(degree, std::int64_t{1});
  return gpus;
}

std::string answer(const RecipeAnswers& answers, const char* key) {
  const auto found = answers.set.find(key);
  return found == answers.set.end() ? "" : found->second;
}

}  // namespace

ImportedRun import_servers(const std::vector<RecipeFile>& files, const RecipeAnswers& answers) {
  const StartedServers started = find_servers(files, answers);
  ImportedRun run;
  run.notes = started.notes;
  std::optional<ServedPart> first;
  Pool pools[3];
  for (const ServerCommand& command : started.servers) {
    ServedPart part = ServerReader{command, answers}.read();
    for (const std::string& note : part.notes)
      if (std::find(run.notes.begin(), run.notes.end(), note) == run.notes.end())
        run.notes.push_back(note);
    if (part.is_further_node) continue;
    if (first &&
        (first->model.name != part.model.name || first->prefix_cache != part.prefix_cache ||
         started.servers.front().kind != command.kind))
      fail_input(command.words.place(), "starts servers of different models or engines",
                 "give a script that starts one of them");
    add(pools[static_cast<std::size_t>(part.role)], part, command);
    if (!first) first = std::move(part);
  }
  const Place place = started.servers.front().words.place();
  if (!first)
    fail_input(place, "starts further nodes of a server, but not its first",
               "give the command of the first node");
  const Pool& all = pools[0];
  const Pool& prefill = pools[1];
  const Pool& decode = pools[2];
  if (all.keys ? prefill.keys || decode.keys : !prefill.keys || !decode.keys)
    fail_input(place,
               all.keys ? "starts servers of pools beside servers without"
                        : std::string{"starts no server that "} +
                              (prefill.keys ? "goes on with the prompts" : "computes prompts"),
               "give a script that starts both pools, or neither");
  Json file = Json::object();
  file["schema"] = "orrery.deployment/1";
  if (first->catalog_name.empty())
    file["model"] = Json::parse(first->model.document->compact());
  else
    file["model"] = first->catalog_name;
  const std::string engine = answer(answers, "engine");
  file["engine"] = engine.empty() ? name(started.servers.front().kind) : engine;
  if (!answer(answers, "system").empty()) file["system"] = answer(answers, "system");
  if (all.keys) {
    const Json keys = finished(all);
    file["gpus"] = gpus_of(keys);
    file.update(keys);
  } else {
    file["prefill"] = finished(prefill);
    file["decode"] = finished(decode);
  }
  if (!first->prefix_cache) file["prefix_cache"] = false;
  if (!started.router.empty()) file["router"] = started.router;
  run.json = file.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  return run;
}

}  // namespace orrery
