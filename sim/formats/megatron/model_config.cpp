#include "sim/formats/megatron/model_config.hpp"

#include "sim/core/text_file.hpp"
#include "sim/formats/settings/yaml_tree.hpp"
#include "sim/formats/shell/shell_lexer.hpp"

namespace orrery {
namespace {

// Variables in it are left to the reader of the script.
std::string quoted(const std::string& text) {
  std::string made;
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '`') made += '\\';
    made += c == '\n' ? ' ' : c;
  }
  return "\"" + made + "\"";
}

// "[core_attn mlp]", in quotes or not, is several words; "[0]*3+[1]*58" is one.
bool is_list(const std::string& text) {
  return text.size() > 2 && text.find(']') + 1 == text.size() && text.starts_with('[');
}

std::string words_of_value(const SettingsTree& value) {
  std::string words;
  if (value.kind == SettingsTree::Kind::list) {
    for (const SettingsTree& item : value.items) words += " " + quoted(item.text);
    return words;
  }
  const std::string text{trimmed(value.text)};
  if (text == "true" || text == "True") return "";
  if (!is_list(text)) return " " + quoted(text);
  const std::string inside = text.substr(1, text.size() - 2);
  for (const std::string_view word : words_of(inside)) words += " " + quoted(std::string{word});
  return words;
}

bool is_off(const SettingsTree& value) {
  return value.is_null() || (!value.is_quoted && (value.text == "false" || value.text == "False"));
}

}  // namespace

bool is_model_config(const std::string& text) {
  return text.starts_with("MODEL_ARGS:") || text.find("\nMODEL_ARGS:") != std::string::npos;
}

ConfigScript script_of_config(const std::string& text, const std::string& file) {
  const SettingsTree config = read_yaml(text, file);
  ConfigScript script;
  const auto add = [&](const std::string& line, std::size_t of) {
    script.text += line;
    script.lines.push_back(of);
  };
  if (const SettingsTree* variables = config.find("ENV_VARS"))
    for (const auto& [name, value] : variables->entries)
      if (is_shell_name(name)) add("export " + name + "=" + quoted(value.text) + "\n", value.line);
  const SettingsTree* arguments = config.find("MODEL_ARGS");
  if (!arguments || arguments->kind != SettingsTree::Kind::map)
    fail_input({file, "MODEL_ARGS"}, "has no arguments", "write --num-layers: 32 and the like");
  const SettingsTree* mode = config.find("MODE");
  const bool generates = mode && mode->text == "inference";
  add(generates ? "inference.py" : "pretrain_gpt.py", arguments->line);
  for (const auto& [flag, value] : arguments->entries) {
    if (!flag.starts_with("--"))
      fail_input(line_place(file, value.line), "'" + flag + "' is no argument of Megatron-LM",
                 "import a recipe whose arguments begin with --");
    if (!is_off(value)) add(" \\\n" + flag + words_of_value(value), value.line);
  }
  script.text += "\n";
  return script;
}

}  // namespace orrery
