#include "sim/formats/servers/server_commands.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

#include "sim/core/json_value.hpp"
#include "sim/core/text_file.hpp"
#include "sim/formats/recipe/other_launchers.hpp"
#include "sim/formats/settings/settings_files.hpp"
#include "sim/formats/shell/shell_script.hpp"

namespace orrery {
namespace {

using Words = std::vector<ShellWord>;

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_settings_file(const std::string& path) {
  return path.ends_with(".yaml") || path.ends_with(".yml") || path.ends_with(".json");
}

// The questions of import_servers() itself are no settings of a server.
bool is_server_setting(const std::string& name) {
  return name != "accepted" && name != "engine" && name != "system" && is_setting(name);
}

bool is_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && !std::isdigit(static_cast<unsigned char>(word[1])) &&
         word[1] != '.';
}

// Flags that take no value, so that a word behind one is the model.
bool is_switch(const std::string& name) {
  for (const char* begin :
       {"enable_", "disable_", "no_", "trust_", "skip_", "is_", "enforce_", "use_", "headless",
        "async_scheduling", "multi_modal_prefill", "language_model_only", "log_requests"})
    if (name.starts_with(begin)) return true;
  return false;
}

struct Started {
  ServerKind kind;
  std::string program;
  std::size_t arguments;  ///< Index of the first word behind the program.
};

std::optional<Started> module_started(const std::string& module, std::size_t behind) {
  if (module.starts_with("vllm.entrypoints.")) return Started{ServerKind::vllm, module, behind};
  if (module == "sglang.launch_server") return Started{ServerKind::sglang, module, behind};
  if (module.starts_with("dynamo.vllm")) return Started{ServerKind::vllm, module, behind};
  if (module.starts_with("dynamo.sglang")) return Started{ServerKind::sglang, module, behind};
  if (module.starts_with("dynamo.trtllm")) return Started{ServerKind::trtllm, module, behind};
  return std::nullopt;
}

std::optional<Started> server_started(const Words& words, const std::string& file) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string program = base_name(words[i].text);
    const std::string next = i + 1 < words.size() ? words[i + 1].text : "";
    if (program == "vllm" && next == "serve") return Started{ServerKind::vllm, "vllm serve", i + 2};
    if (program == "sglang" && next == "serve")
      return Started{ServerKind::sglang, "sglang serve", i + 2};
    if (words[i].text == "-m")
      if (const auto started = module_started(next, i + 2)) return started;
    if (program == "trtllm-serve") {
      if (next.starts_with("disaggregated"))
        fail_input(line_place(file, words[i].line), "starts pools by a file of their own",
                   "give the commands that start the servers of each pool");
      return Started{ServerKind::trtllm, program, i + (next == "serve" ? 2 : 1)};
    }
    // Its entry point is the server.
    if (words[i].text.starts_with("vllm/vllm-openai"))
      return Started{ServerKind::vllm, "vllm/vllm-openai", i + 1};
  }
  return std::nullopt;
}

// The router in front of a server: Dynamo's frontend, SGLang's router.
std::string router_started(const Words& words) {
  const auto has = [&](const char* text) {
    return std::any_of(words.begin(), words.end(),
                       [&](const ShellWord& word) { return base_name(word.text) == text; });
  };
  const bool dynamo = has("dynamo.frontend");
  if (!dynamo && !has("sglang_router.launch_router") && !has("sglang-router")) return "";
  // components/src/dynamo/frontend/main.py; sgl-router/src/policies.
  constexpr std::array<std::pair<const char*, const char*>, 7> policies{
      {{"kv", "prefix"},
       {"cache_aware", "prefix"},
       {"round-robin", "round-robin"},
       {"round_robin", "round-robin"},
       {"random", "random"},
       {"power_of_two", "power-of-two"},
       {"least-loaded", "least-tokens"}}};
  std::string stated = dynamo ? "round-robin" : "cache_aware";
  for (std::size_t i = 0; i < words.size(); ++i)
    for (const std::string flag : {"--router-mode", "--policy"}) {
      if (words[i].text == flag && i + 1 < words.size()) stated = words[i + 1].text;
      if (words[i].text.starts_with(flag + "=")) stated = words[i].text.substr(flag.size() + 1);
    }
  for (const auto& [word, ours] : policies)
    if (stated == word) return ours;
  return "";
}

// "vllm/vllm-openai:v0.6.3", "vllm==0.6.3".
std::optional<std::pair<int, int>> vllm_release_of(const std::string& word) {
  for (const std::string_view mark : {"vllm/vllm-openai:v", "vllm=="}) {
    const std::size_t at = word.find(mark);
    int major = 0, minor = 0;
    if (at != word.npos &&
        std::sscanf(word.c_str() + at + mark.size(), "%4d.%4d", &major, &minor) == 2 && minor >= 0)
      return std::pair{major, minor};
  }
  return std::nullopt;
}

void underscore(std::string& name) { std::replace(name.begin(), name.end(), '-', '_'); }

void underscore_keys(SettingsTree& tree) {
  for (auto& [key, value] : tree.entries) underscore(key);
}

void put_line(SettingsTree& tree, std::size_t line) {
  tree.line = line;
  for (SettingsTree& item : tree.items) put_line(item, line);
  for (auto& [key, value] : tree.entries) put_line(value, line);
}

// A word, or the JSON that it holds.
SettingsTree value_of(const ShellWord& word, const std::string& file) {
  const std::string_view text = trimmed(word.text);
  if (text.starts_with('{') || text.starts_with('[')) {
    SettingsTree tree = read_yaml(std::string{text}, file);
    put_line(tree, word.line);
    return tree;
  }
  SettingsTree value;
  value.text = word.text;
  value.line = word.line;
  return value;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == text.npos;
}

void lengthen(SettingsTree& value, SettingsTree by) {
  if (value.kind != SettingsTree::Kind::list) {
    SettingsTree list;
    list.kind = SettingsTree::Kind::list;
    list.line = value.line;
    list.items.push_back(std::move(value));
    value = std::move(list);
  }
  value.items.push_back(std::move(by));
}

// Flags as argparse and click read them.
SettingsTree tree_of_words(const Words& words, const std::string& file) {
  SettingsTree tree;
  tree.kind = SettingsTree::Kind::map;
  const auto add = [&](const std::string& path, SettingsTree value) {
    tree.entries.push_back({path, std::move(value)});
  };
  std::string open;  // The flag that waits for its value.
  std::size_t open_line = 0;
  bool has_positional = false;
  bool behind_value = false;  // Of a flag, which may have several.
  const bool names_model = std::any_of(words.begin(), words.end(), [](const ShellWord& word) {
    const std::string name = word.text.substr(0, word.text.find('='));
    return name == "--model" || name == "--model-path" || name == "--model_path";
  });
  const auto close = [&] {
    if (open.empty()) return;
    SettingsTree value;
    value.text = open.starts_with("no_") ? "false" : "true";
    value.line = open_line;
    add(open.starts_with("no_") ? open.substr(3) : open, std::move(value));
    open.clear();
  };
  for (const ShellWord& word : words) {
    if (is_flag(word.text)) {
      close();
      behind_value = false;
      const std::size_t equals = word.text.find('=');
      std::string name = word.text.substr(0, equals);
      name.erase(0, name.find_first_not_of('-'));
      underscore(name);
      if (name.empty()) continue;
      if (equals != word.text.npos)
        add(name, value_of({word.text.substr(equals + 1), word.line, word.file}, file));
      else
        open = name, open_line = word.line;
      continue;
    }
    const bool is_truth = word.text == "true" || word.text == "false" || word.text == "True" ||
                          word.text == "False" || word.text == "1" || word.text == "0";
    if (!open.empty() && (!is_switch(open) || is_truth)) {
      add(open, value_of(word, file));
      behind_value = true;
      open.clear();
      continue;
    }
    close();
    if (behind_value && is_number(word.text)) {  // "--cuda-graph-bs 1 2 4".
      lengthen(tree.entries.back().value, value_of(word, file));
      continue;
    }
    if (!has_positional && !names_model) add("model", value_of(word, file));
    has_positional = true;
  }
  close();
  return tree;
}

// "--speculative-config.method mtp" is a key below another.
Settings settings_of(SettingsTree tree, const std::string& file) {
  SettingsTree flat;
  flat.kind = SettingsTree::Kind::map;
  for (SettingsTree::Entry& entry : tree.entries) {
    const std::size_t dot = entry.key.find('.');
    if (dot == entry.key.npos || dot + 1 == entry.key.size() || dot == 0) {
      flat.entries.push_back(std::move(entry));
      continue;
    }
    const std::string first = entry.key.substr(0, dot);
    auto outer = std::find_if(flat.entries.begin(), flat.entries.end(),
                              [&](const auto& other) { return other.key == first; });
    if (outer == flat.entries.end()) {
      SettingsTree map;
      map.kind = SettingsTree::Kind::map;
      map.line = entry.value.line;
      flat.entries.push_back({first, std::move(map)});
      outer = flat.entries.end() - 1;
    }
    if (outer->value.kind == SettingsTree::Kind::map)
      outer->value.entries.push_back({entry.key.substr(dot + 1), std::move(entry.value)});
  }
  return {std::move(flat), file};
}

class ServerFinder {
 public:
  ServerFinder(const std::vector<RecipeFile>& files, const RecipeAnswers& answers)
      : files_{files}, answers_{answers} {}

  StartedServers find() {
    const RecipeFile* script = nullptr;
    for (const RecipeFile& file : files_) {
      require_text(file.text, file.path, "a script that starts servers, or a file of settings");
      if (is_settings_file(file.path)) continue;
      if (script)
        fail_input({file.path, ""}, "is a second script, after " + script->path,
                   "name one script and the files of settings that it names");
      script = &file;
    }
    if (script)
      read_script(*script);
    else
      read_settings_alone(files_.front());
    for (ServerCommand& server : found_.servers)
      for (const auto& [name, value] : answers_.set)
        if (is_server_setting(name))
          (server.file.has(name) ? server.file : server.words).set(name, value);
    return std::move(found_);
  }

 private:
  void read_script(const RecipeFile& file) {
    const ShellScript script =
        read_shell_script(file.text, file.path, answers_.set, answers_.other_file);
    // Each round of a loop starts a server.
    for (const std::string& note : script.notes)
      if (!note.ends_with("rounds; the last one counts")) found_.notes.push_back(note);
    written_ = &script.written;
    for (const Words& command : script.commands) {
      if (const std::string router = router_started(command); !router.empty())
        found_.router = router;
      for (const ShellWord& word : command)
        if (const auto release = vllm_release_of(word.text)) found_.vllm_release = release;
      const std::string& path = script.files[command.front().file];
      if (const auto started = server_started(command, path)) add(*started, command, path);
    }
    written_ = nullptr;
    if (found_.servers.empty()) refuse_other_launcher(script);
    if (found_.servers.empty())
      fail_input({file.path, ""}, "starts no server",
                 "give a script with vllm serve, sglang.launch_server, trtllm-serve or Dynamo's "
                 "workers");
  }

  void add(const Started& started, const Words& command, const std::string& path) {
    Words words;
    for (std::size_t i = started.arguments; i < command.size(); ++i) {
      const ShellWord& word = command[i];
      const bool several = is_flag(word.text) && word.text.find('{') == word.text.npos &&
                           word.text.find_first_of(" \t\n") != word.text.npos;
      if (!several) {
        words.push_back(word);
        continue;
      }
      for (const std::string_view part : words_of(word.text))
        words.push_back({std::string{part}, word.line, word.file});
    }
    ServerCommand server{started.kind, started.program,
                         settings_of(tree_of_words(words, path), path), Settings{{}, ""}};
    const std::string named =
        server.words.word("extra_llm_api_options|extra_engine_args|config", "");
    if (!named.empty()) server.file = settings_file(named, path);
    found_.servers.push_back(std::move(server));
  }

  // A file that a command names: one that the user named, one that the script writes, one that is
  // there.
  Settings settings_file(const std::string& named, const std::string& script) {
    std::optional<std::string> text;
    std::string path = named;
    for (const RecipeFile& file : files_)
      if (!text && is_settings_file(file.path) && base_name(file.path) == base_name(named)) {
        text = file.text;
        path = file.path;
      }
    if (!text && written_)
      if (const auto found = written_->find(named); found != written_->end()) {
        text = found->second;
        path = script + ": " + named;
      }
    if (auto found = text ? std::nullopt : named_file(named, script, answers_)) {
      text = std::move(found->text);
      path = std::move(found->path);
    }
    if (!text)
      fail_input({script, ""}, "names " + shown_text(named) + ", which is not there",
                 "name it too: orrery import server " + shown_text(script) + " " +
                     shown_text(base_name(named)));
    SettingsTree tree = read_yaml(*text, path);
    underscore_keys(tree);
    return {std::move(tree), path};
  }

  void read_settings_alone(const RecipeFile& file) {
    refuse_other_file(file.text, file.path, "server");
    SettingsTree tree = read_yaml(file.text, file.path);
    underscore_keys(tree);
    if (tree.kind != SettingsTree::Kind::map)
      fail_input({file.path, ""}, "has no settings",
                 "give a script that starts servers, or a file of settings");
    const auto has = [&](const char* key) { return tree.find(key) != nullptr; };
    const ServerKind kind =
        has("tp_size") || has("model_path") || has("mem_fraction_static") ? ServerKind::sglang
        : has("kv_cache_config") || has("moe_config") || has("cuda_graph_config") ||
                has("enable_attention_dp") || has("max_batch_size") || has("max_num_tokens")
            ? ServerKind::trtllm
            : ServerKind::vllm;
    SettingsTree none;
    none.kind = SettingsTree::Kind::map;
    found_.servers.push_back(
        {kind, base_name(file.path), Settings{none, file.path}, Settings{tree, file.path}});
    found_.notes.push_back(base_name(file.path) + " is read as settings of " + name(kind));
  }

  const std::vector<RecipeFile>& files_;
  const RecipeAnswers& answers_;
  StartedServers found_;
  const std::map<std::string, std::string>* written_ = nullptr;
};

}  // namespace

StartedServers find_servers(const std::vector<RecipeFile>& files, const RecipeAnswers& answers) {
  return ServerFinder{files, answers}.find();
}

}  // namespace orrery
