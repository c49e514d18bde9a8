#include "sim/core/quoting.hpp"

#include <cstdio>
#include <string_view>

namespace orrery {
namespace {

// Marks of direction (Unicode 15.1, annex 9): U+200E, U+200F, U+202A .. E and U+2066 .. 9, which
// would turn around the text next to a name. 0: `text` begins with none.
unsigned direction_mark(std::string_view text) {
  if (text.size() < 3 || text[0] != '\xe2' || (text[1] != '\x80' && text[1] != '\x81')) return 0;
  const unsigned code =
      0x2000u + ((static_cast<unsigned char>(text[1]) & 1u) << 6) + (text[2] & 0x3fu);
  const bool one = code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
                   (code >= 0x2066 && code <= 0x2069);
  return one ? code : 0;
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string safe;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (const unsigned mark = direction_mark(std::string_view{text}.substr(at))) {
      char shown[8];
      std::snprintf(shown, sizeof shown, "\\u%04X", mark);
      safe += shown;
      at += 2;
    } else if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return safe;
}

std::string shell_word(const std::string& text) {
  constexpr char plain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (!text.empty() && text.find_first_not_of(plain) == text.npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return quoted + "'";
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? "\"\"" : std::string{letter};
  return quoted + "\"";
}

std::string csv_text(const std::string& text) {
  const bool formula = !text.empty() && std::string_view{"=+-@\t\r"}.find(text[0]) < 6;
  return csv_cell(formula ? "'" + text : text);
}

std::string typed_command(const std::string& name, const std::vector<std::string>& arguments) {
  std::string command = "orrery " + name;
  for (const std::string& word : arguments) command += " " + shell_word(word);
  return command;
}

}  // namespace orrery
