#include "sim/formats/shell/shell_expansion.hpp"

#include <algorithm>
#include <cctype>

#include "sim/core/text_file.hpp"
#include "sim/formats/shell/shell_expression.hpp"
#include "sim/formats/shell/shell_lexer.hpp"
#include "sim/formats/shell/shell_parser.hpp"
#include "sim/formats/shell/shell_values.hpp"

namespace orrery {
namespace {

using Words = std::vector<ShellWord>;
using PieceKind = ShellPiece::Kind;

// Limit of expanded text in all, as each line can double the text of the one before it.
constexpr std::size_t most_filled_in = 4 << 20;
constexpr int deepest_expansion = 30;  // Expansions inside of expansions.

bool is_all(const std::string& index) { return index == "@" || index == "*"; }

// "$*", "${A[*]}": one word where it is quoted; "$@", "${A[@]}": words of their own.
bool joins(const std::string& parameter) {
  return parameter.starts_with('*') || parameter.find("[*]") != parameter.npos;
}

std::string with_spaces(const Words& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) text += (i > 0 ? " " : "") + words[i].text;
  return text;
}

std::string with_case(std::string text, bool upper, bool all) {
  for (std::size_t i = 0; i < (all ? text.size() : std::min<std::size_t>(text.size(), 1)); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    text[i] = static_cast<char>(upper ? std::toupper(c) : std::tolower(c));
  }
  return text;
}

}  // namespace

// The text between the braces of ${...}: [!|#] name [index] change.
struct ShellExpander::Parameter {
  std::string name, index, change;
  bool is_length = false, is_indirect = false;

  explicit Parameter(std::string text) {
    if (text.size() > 1 && (text[0] == '#' || text[0] == '!') && text[1] != ':' && text[1] != '-') {
      is_length = text[0] == '#';
      is_indirect = text[0] == '!';
      text.erase(0, 1);
    }
    std::size_t end = 0;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
      ++end;
    if (end == 0 && !text.empty() && std::string_view{"@*#?$!"}.find(text[0]) != text.npos) end = 1;
    name = text.substr(0, end);
    if (end < text.size() && text[end] == '[') {
      const std::size_t close = std::min(text.find(']', end), text.size());
      index = text.substr(end + 1, close - end - 1);
      end = std::min(close + 1, text.size());
    }
    change = text.substr(end);
  }
};

void ShellExpander::count(const std::string& text, std::size_t line) {
  filled_in_ += text.size() + 1;
  if (filled_in_ > most_filled_in)
    fail_input(line_place(variables_.file(), line), "its variables hold one another without end",
               "give the list of arguments that Megatron-LM prints instead");
}

std::string ShellExpander::text(const WrittenWord& word) {
  std::string all;
  for (const ShellPiece& part : word.pieces)
    all += part.kind == PieceKind::text ? part.text : with_spaces(piece(part, word.line));
  return all;
}

Words ShellExpander::words(const WrittenWord& word) {
  Words all;
  bool open = false;  // The last word is joined with the text that follows.
  const auto add = [&](const std::string& text, const ShellWord& from) {
    if (!open) all.push_back({"", from.line, from.file});
    all.back().text += text;
    open = true;
  };
  for (const ShellPiece& part : word.pieces) {
    if (part.kind == PieceKind::text) {
      add(part.text, variables_.word("", word.line));
      continue;
    }
    Words brought = piece(part, word.line);
    if (part.quoted && brought.size() > 1 && joins(part.text))
      brought = {variables_.word(with_spaces(brought), brought.front().line)};
    for (std::size_t i = 0; i < brought.size(); ++i) {
      if (i > 0) open = false;
      if (part.quoted) {
        add(brought[i].text, brought[i]);
        continue;
      }
      const std::string& text = brought[i].text;
      if (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) open = false;
      bool is_first = true;
      for (const auto& [split, lines] : split_words(text)) {
        if (!is_first) open = false;
        is_first = false;
        add(split, {"", brought[i].line + lines, brought[i].file});
      }
      if (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) open = false;
    }
    if (part.quoted && brought.empty() && part.text.find('@') == std::string::npos)
      add("", variables_.word("", word.line));
  }
  return all;
}

Words ShellExpander::piece(const ShellPiece& piece, std::size_t line) {
  if (depth_ >= deepest_expansion) return {variables_.word(unknown_mark("$" + piece.text), line)};
  ++depth_;
  Words made;
  switch (piece.kind) {
    case PieceKind::text:
      made = {variables_.word(piece.text, line)};
      break;
    case PieceKind::variable:
      made = variable(piece.text, line);
      break;
    case PieceKind::arithmetic:
      made = {variables_.word(arithmetic(piece.text, line), line)};
      break;
    case PieceKind::command: {
      const auto printed = printed_(piece.text);
      made = {variables_.word(printed ? *printed : unknown_mark("$(" + piece.text + ")"), line)};
    }
  }
  --depth_;
  for (const ShellWord& word : made) count(word.text, line);
  return made;
}

std::string ShellExpander::arithmetic(const std::string& expression, std::size_t line) {
  const std::string filled = text(shell_document(expression, line));
  std::string missing = unknown_mark("$((" + expression + "))");
  const auto names = unset_names(filled);
  if (!names.empty()) return unset_mark(names.front());
  if (!is_known(filled)) return missing;
  const auto value = shell_arithmetic(filled, [&](const std::string& name) {
    const ShellValue* found = variables_.find(name);
    const std::string held = found && !found->words.empty() ? found->words[0].text : "";
    if (found && is_known(held) && unset_names(held).empty()) return std::optional{held};
    const auto inside = unset_names(held);
    missing = found && inside.empty() ? held : unset_mark(inside.empty() ? name : inside.front());
    return std::optional<std::string>{};
  });
  return value ? std::to_string(*value) : missing;
}

std::string ShellExpander::operand(const std::string& text, std::size_t line) {
  return this->text(shell_operand(text, line));
}

// The words that a parameter has; none where it is not set.
Words ShellExpander::value_of(const Parameter& p, std::size_t line, bool& is_set) {
  is_set = true;
  if (p.name == "#") return {variables_.word(std::to_string(variables_.called_with.size()), line)};
  if (p.name == "?") return {variables_.word("0", line)};
  if (p.name == "PWD") return {variables_.word(".", line)};
  const auto number = plain_integer(p.name, 99);  // bash: ${00} is $0, ${01} is $1.
  if (number == 0 || p.name == "BASH_SOURCE") return {variables_.word(variables_.file(), line)};
  if (p.name == "@" || p.name == "*") {
    is_set = !variables_.called_with.empty();
    return variables_.called_with;
  }
  if (number && static_cast<std::size_t>(*number) <= variables_.called_with.size())
    return {variables_.called_with[static_cast<std::size_t>(*number) - 1]};
  const ShellValue* found = variables_.find(p.name);
  is_set = found != nullptr;
  if (!found) return {};
  if (is_all(p.index)) {
    Words all = found->words;
    for (const auto& [unused, word] : found->entries) all.push_back(word);
    return all;
  }
  if (!p.index.empty()) {
    const std::string index = operand(p.index, line);
    if (const auto entry = found->entries.find(index); entry != found->entries.end())
      return {entry->second};
    const std::string place = arithmetic(p.index, line);
    if (!is_known(place) || !unset_names(place).empty()) return {variables_.word(place, line)};
    const auto at = plain_integer(place, 1 << 20);
    is_set = at && static_cast<std::size_t>(*at) < found->words.size();
    return is_set ? Words{found->words[static_cast<std::size_t>(*at)]} : Words{};
  }
  is_set = !found->words.empty();
  return is_set ? Words{found->words.front()} : Words{};
}

Words ShellExpander::variable(const std::string& inside, std::size_t line) {
  const Parameter p{inside};
  if (p.name.empty()) return {variables_.word(unknown_mark("${" + inside + "}"), line)};
  bool is_set = false;
  Words found = value_of(p, line, is_set);
  if (p.is_indirect && is_set && !found.empty())
    return is_shell_name(found[0].text) ? variable(found[0].text, line) : found;
  if (p.is_length) {
    const bool counts = is_all(p.index) || p.name == "@";
    if (!is_set && !counts) return {variables_.word(unset_mark(p.name), line)};
    if (counts && std::any_of(found.begin(), found.end(),
                              [](const ShellWord& word) { return !is_known(word.text); }))
      return {variables_.word(unknown_mark("${" + inside + "}"), line)};
    return {
        variables_.word(std::to_string(counts ? found.size() : with_spaces(found).size()), line)};
  }
  std::string change = p.change;
  const bool minds_empty = change.starts_with(':') && change.size() > 1 &&
                           std::string_view{"-=+?"}.find(change[1]) != change.npos;
  if (minds_empty) change.erase(0, 1);
  const char sign = change.empty() ? '\0' : change[0];
  const bool is_empty = !is_set || (minds_empty && without_unset(with_spaces(found)).empty() &&
                                    is_known(with_spaces(found)));
  if (sign == '+')
    return is_empty ? Words{} : Words{variables_.word(operand(change.substr(1), line), line)};
  if (sign == '-' || sign == '=') {
    if (!is_empty) return found;
    const std::string text = operand(change.substr(1), line);
    if (sign == '=') variables_.set(p.name, {{variables_.word(text, line)}, {}});
    return {variables_.word(text, line)};
  }
  const bool may_be_none = is_all(p.index) || p.name == "@" || p.name == "*";
  if (!is_set) return may_be_none ? Words{} : Words{variables_.word(unset_mark(p.name), line)};
  if (sign == '\0' || sign == '?') return found;
  if (may_be_none && sign == ':') return slice(found, p.change, p.index.empty(), line);
  for (ShellWord& word : found) word.text = changed(word.text, change, line);
  return found;
}

// :from:count of the words of an array; the parameters of a call begin with the name of the file.
Words ShellExpander::slice(Words words, const std::string& change, bool of_call, std::size_t line) {
  if (of_call) words.insert(words.begin(), variables_.word(variables_.file(), line));
  const std::string rest = change.substr(1);
  const std::size_t colon = std::min(rest.find(':'), rest.size());
  const std::string first = rest.substr(0, colon);
  const auto from = plain_integer(first.empty() ? "0" : arithmetic(first, line), 1 << 20);
  const auto count = colon < rest.size()
                         ? plain_integer(arithmetic(rest.substr(colon + 1), line), 1 << 20)
                         : std::optional{1 << 20};
  if (!from || !count) return {variables_.word(unknown_mark("${..." + change + "}"), line)};
  const auto begin = std::min(static_cast<std::size_t>(*from), words.size());
  const auto end = std::min(begin + static_cast<std::size_t>(*count), words.size());
  return {words.begin() + static_cast<std::ptrdiff_t>(begin),
          words.begin() + static_cast<std::ptrdiff_t>(end)};
}

// #a ##a %a %%a /a/b //a/b ^ ^^ , ,, :from:count
std::string ShellExpander::changed(const std::string& text, const std::string& change,
                                   std::size_t line) {
  const bool twice = change.size() > 1 && change[1] == change[0];
  const std::string rest = change.substr(twice ? 2 : 1);
  switch (change[0]) {
    case '#':
    case '%':
      return without_pattern(text, operand(rest, line), change[0] == '%', twice);
    case '/': {
      const std::size_t slash = std::min(rest.find('/'), rest.size());
      const std::string by = slash < rest.size() ? operand(rest.substr(slash + 1), line) : "";
      return with_replaced_pattern(text, operand(rest.substr(0, slash), line), by, twice);
    }
    case '^':
    case ',':
      return with_case(text, change[0] == '^', twice);
    case ':': {
      const std::size_t colon = std::min(rest.find(':'), rest.size());
      const auto from = plain_integer(arithmetic(rest.substr(0, colon), line), 1 << 20);
      const auto length = colon < rest.size()
                              ? plain_integer(arithmetic(rest.substr(colon + 1), line), 1 << 20)
                              : std::optional{1 << 20};
      if (!from || !length) break;
      return text.substr(std::min(static_cast<std::size_t>(*from), text.size()),
                         static_cast<std::size_t>(*length));
    }
    default:
      break;
  }
  return unknown_mark("${..." + change + "}");
}

}  // namespace orrery
