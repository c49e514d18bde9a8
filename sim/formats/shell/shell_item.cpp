#include "sim/formats/shell/shell_item.hpp"

#include <utility>

#include "sim/formats/shell/shell_lexer.hpp"

namespace orrery {
namespace {

using PieceKind = ShellPiece::Kind;

// What stands left of the '=', and where the value begins.
struct LeftSide {
  std::string text;
  std::size_t piece = 0;  ///< That has the '='.
  std::string value;      ///< What of this piece stands behind it.
};

// The index of NAME[$I]=value is made of several pieces.
bool find_left_side(const std::vector<ShellPiece>& pieces, LeftSide& left) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const ShellPiece& piece = pieces[i];
    const bool in_index = left.text.find('[') != std::string::npos;
    if ((piece.kind != PieceKind::text || piece.quoted) && !in_index) return false;
    if (piece.kind == PieceKind::text && !piece.quoted) {
      const std::size_t equals = piece.text.find('=');
      left.text += piece.text.substr(0, equals);
      if (equals == std::string::npos) continue;
      left.piece = i;
      left.value = piece.text.substr(equals + 1);
      return true;
    }
    left.text += piece.kind == PieceKind::variable ? "${" + piece.text + "}" : piece.text;
  }
  return false;
}

}  // namespace

ShellItem shell_item(WrittenWord word) {
  ShellItem item;
  LeftSide left;
  const bool has_equals = find_left_side(word.pieces, left);
  item.word = std::move(word);
  if (!has_equals) return item;
  const bool appends = left.text.ends_with('+');
  if (appends) left.text.pop_back();
  const std::size_t bracket = left.text.find('[');
  if (!is_shell_name(left.text.substr(0, bracket))) return item;
  if (bracket != std::string::npos && !left.text.ends_with(']')) return item;
  item.name = left.text.substr(0, bracket);
  if (bracket != std::string::npos)
    item.index = left.text.substr(bracket + 1, left.text.size() - bracket - 2);
  item.appends = appends;
  WrittenWord value;
  value.line = item.word.line;
  if (!left.value.empty()) value.pieces.push_back({PieceKind::text, left.value, false});
  value.pieces.insert(value.pieces.end(),
                      item.word.pieces.begin() + static_cast<std::ptrdiff_t>(left.piece) + 1,
                      item.word.pieces.end());
  if (!value.pieces.empty()) item.values.push_back(std::move(value));
  return item;
}

}  // namespace orrery
