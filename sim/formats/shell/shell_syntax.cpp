#include "sim/formats/shell/shell_syntax.hpp"

#include <algorithm>

namespace orrery {

bool is_command(const ShellNode& node, std::initializer_list<const char*> names) {
  return node.kind == ShellNode::Kind::command && !node.items.empty() &&
         std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return node.items[0].word.is_text(name); });
}

bool ends_script(const ShellNode& node) {
  if (is_command(node, {"exit", "return"})) return true;
  return node.kind == ShellNode::Kind::list &&
         std::any_of(node.parts.begin(), node.parts.end(), ends_script);
}

bool matters(const ShellNode& node) {
  if (is_command(node, {"echo", "printf", "mkdir"})) return false;
  if (is_command(node, {"source", "."})) return true;
  for (const ShellItem& item : node.items) {
    if (!item.name.empty()) return true;
    for (const ShellPiece& piece : item.word.pieces)
      if (piece.text.find("--") != std::string::npos) return true;
  }
  return std::any_of(node.parts.begin(), node.parts.end(), matters);
}

}  // namespace orrery
