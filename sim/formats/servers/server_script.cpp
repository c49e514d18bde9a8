#include "sim/formats/servers/server_script.hpp"

#include <algorithm>

#include "sim/core/number_text.hpp"
#include "sim/formats/servers/server_flags.hpp"
#include "sim/model/named_model.hpp"

namespace orrery {
namespace {

constexpr std::size_t widest = 88;

// Words in lines that end with a backslash.
std::string broken_over_lines(const std::vector<std::string>& words, const std::string& indent) {
  std::string text = indent;
  std::size_t used = indent.size();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool pairs = words[i].starts_with("-") && i + 1 < words.size() && words[i + 1][0] != '-';
    const std::size_t next = words[i].size() + (pairs ? 1 + words[i + 1].size() : 0);
    if (i > 0 && used + 1 + next > widest && (words[i][0] == '-' || i == 1)) {
      text += " \\\n" + indent + "    ";
      used = indent.size() + 4;
    } else if (i > 0) {
      text += " ";
      ++used;
    }
    text += words[i];
    used += words[i].size();
  }
  return text;
}

std::string gpu_list(std::int64_t first, std::int64_t count) {
  std::string list;
  for (std::int64_t gpu = first; gpu < first + count; ++gpu)
    list += (gpu > first ? "," : "") + std::to_string(gpu);
  return list;
}

// Replicas of a pool that lie in one node, as a command or a loop of it.
std::string started(const std::vector<std::string>& command, const std::vector<std::int64_t>& first,
                    std::int64_t gpus, std::int64_t per_node, bool beside_others) {
  // A replica over several nodes, or one that has its node to itself, sees all GPUs.
  if (gpus > per_node || (gpus == per_node && !beside_others))
    return broken_over_lines(command, "") + "\n";
  std::vector<std::string> words = command;
  if (first.size() == 1) {
    words.front() = "CUDA_VISIBLE_DEVICES=" + gpu_list(first.front(), gpus) + " " + words.front();
    if (beside_others) {
      words.push_back("--port");
      words.push_back(std::to_string(8000 + first.front()));
    }
    return broken_over_lines(words, "") + (beside_others ? " &\n" : "\n");
  }
  std::string text = "for gpus in";
  for (const std::int64_t one : first) text += " " + gpu_list(one, gpus);
  words.front() = "CUDA_VISIBLE_DEVICES=$gpus " + words.front();
  words.push_back("--port");
  words.push_back("$((8000 + ${gpus%%,*}))");
  return text + "; do\n" + broken_over_lines(words, "  ") + " &\ndone\n";
}

const char* name_of(ServerRole role) {
  return role == ServerRole::prefill ? "prefill" : role == ServerRole::decode ? "decode" : "server";
}

}  // namespace

ServerScript server_script(const Model& model, const System& system, const ServingEngine& engine,
                           const std::vector<ScriptedPool>& pools, bool prefix_cache,
                           const Place& at) {
  ServerScript script;
  std::size_t servers = 0;
  for (const ScriptedPool& pool : pools) servers += pool.first_gpus.size();
  const std::int64_t per_node = system.gpus_per_node;
  for (const ScriptedPool& pool : pools) {
    const std::string options = std::string{name_of(pool.role)} + ".yaml";
    const ServerFlags flags =
        server_flags({model, system, engine, pool.plan, pool.role, prefix_cache, options}, at);
    for (const std::string& what : flags.left_out)
      if (std::find(script.left_out.begin(), script.left_out.end(), what) == script.left_out.end())
        script.left_out.push_back(what);
    if (!flags.settings.empty())
      script.text += "cat > " + options + " <<'END'\n" + flags.settings + "END\n";
    const std::int64_t gpus = pool.plan.replica_gpus();
    // Replicas by node, in the order of their GPUs.
    for (std::size_t i = 0; i < pool.first_gpus.size();) {
      const std::int64_t node = pool.first_gpus[i] / per_node;
      std::vector<std::int64_t> first;
      for (; i < pool.first_gpus.size() && pool.first_gpus[i] / per_node == node; ++i)
        first.push_back(pool.first_gpus[i] % per_node);
      if (gpus > per_node)
        script.text += "# nodes " + std::to_string(node) + " to " +
                       std::to_string(node + (gpus + per_node - 1) / per_node - 1) + "\n";
      else if (servers > 1)
        script.text += "# node " + std::to_string(node) + "\n";
      script.text += started(flags.command, first, gpus, per_node, servers > 1);
    }
  }
  return script;
}

}  // namespace orrery
