#include "sim/formats/shell/shell_lexer.hpp"

#include <algorithm>
#include <cctype>

namespace orrery {
namespace {

using PieceKind = ShellPiece::Kind;

constexpr std::size_t longest_expansion = 4'000;  // "${...}" and "$(...)", as they are written.

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool ends_word(char c) {
  return c == '\n' || is_blank(c) || std::string_view{";&|<>()"}.find(c) != std::string_view::npos;
}

}  // namespace

bool is_shell_name(std::string_view text) {
  return !text.empty() && is_name_start(text[0]) && std::all_of(text.begin(), text.end(), is_name);
}

void ShellLexer::skip(std::size_t letters) {
  for (; letters > 0 && at_ < text_.size(); --letters) {
    const std::size_t next = at_ == documents_ ? behind_documents_ : at_ + 1;
    line_ += static_cast<std::size_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                                 text_.begin() + static_cast<std::ptrdiff_t>(next),
                                                 '\n'));
    at_ = next;
  }
}

void ShellLexer::skip_blanks() {
  while (!at_end()) {
    if (is_blank(here()))
      skip();
    else if (here() == '\\' && next() == '\n')
      skip(2);
    else if (starts("\\\r\n"))
      skip(3);
    else
      return;
  }
}

std::string ShellLexer::rest_of_line() {
  const std::size_t begin = at_;
  at_ = std::min(text_.find('\n', at_), text_.size());
  return text_.substr(begin, at_ - begin);
}

std::string ShellLexer::take_document(const std::string& end, bool strips_tabs) {
  if (documents_ == text_.npos || documents_ < at_) {
    documents_ = std::min(text_.find('\n', at_), text_.size());
    behind_documents_ = std::min(documents_ + 1, text_.size());
  }
  std::string document;
  while (behind_documents_ < text_.size()) {
    const std::size_t end_of_line = std::min(text_.find('\n', behind_documents_), text_.size());
    std::string line = text_.substr(behind_documents_, end_of_line - behind_documents_);
    behind_documents_ = std::min(end_of_line + 1, text_.size());
    if (line.ends_with('\r')) line.pop_back();
    if (strips_tabs) line.erase(0, line.find_first_not_of('\t'));
    if (line == end) break;
    document += line + "\n";
  }
  return document;
}

std::string ShellLexer::take_enclosed(const std::string& open, const std::string& close) {
  skip(open.size());
  const std::size_t begin = at_, end = std::min(text_.size(), begin + longest_expansion);
  int depth = static_cast<int>(close.size());
  for (std::size_t i = begin; i < end; ++i) {
    const char c = text_[i];
    if (c == '\\') {
      ++i;
    } else if (c == '\'' && close != "}") {  // Inside ${...} it is mostly an apostrophe.
      i = std::min(text_.find('\'', i + 1), end);
    } else if (c == open.back()) {
      ++depth;
    } else if (c == close[0] && --depth == 0) {
      skip(i + 1 - begin);
      return text_.substr(begin, i + 1 - close.size() - begin);
    }
  }
  return "";
}

void ShellLexer::add(WrittenWord& word, const std::string& text, bool quoted) {
  if (!word.pieces.empty() && word.pieces.back().kind == PieceKind::text &&
      word.pieces.back().quoted == quoted)
    word.pieces.back().text += text;
  else
    word.pieces.push_back({PieceKind::text, text, quoted});
}

WrittenWord ShellLexer::read_word(Mode mode) {
  WrittenWord word;
  word.line = line_;
  const bool quotes = mode != Mode::verbatim;
  while (!at_end()) {
    const char c = here();
    if (mode == Mode::word && ends_word(c)) break;
    if (c == '\\') {
      if (next() == '\n' || starts("\\\r\n")) {
        // skip_blanks() takes it between words, and in files of DOS, which Bash does not read.
        if (mode == Mode::word && (word.pieces.empty() || next() == '\r')) break;
        skip(next() == '\n' ? 2 : 3);
      } else if (quotes || next() == '$' || next() == '`' || next() == '\\') {
        if (next() != '\0') add(word, {next()}, true);
        skip(2);
      } else {
        add(word, "\\", false);
        skip();
      }
    } else if (quotes && c == '\'') {
      read_single_quoted(word);
    } else if (quotes && c == '"') {
      read_double_quoted(word);
    } else if (c == '$') {
      read_dollar(word, !quotes);
    } else if (c == '`') {
      read_backquoted(word, !quotes);
    } else {
      add(word, {c}, false);
      skip();
    }
  }
  return word;
}

void ShellLexer::read_single_quoted(WrittenWord& word) {
  const std::size_t end = std::min(text_.find('\'', at_ + 1), text_.size());
  add(word, text_.substr(at_ + 1, end - at_ - 1), true);
  skip(end + 1 - at_);
}

void ShellLexer::read_double_quoted(WrittenWord& word) {
  skip();
  if (here() == '"') add(word, "", true);
  while (!at_end() && here() != '"') {
    if (here() == '$') {
      read_dollar(word, true);
    } else if (here() == '`') {
      read_backquoted(word, true);
    } else if (here() == '\\' && next() == '\n') {
      skip(2);
    } else {
      if (here() == '\\' && std::string_view{"\"\\$`"}.find(next()) != std::string_view::npos)
        skip();
      add(word, {here()}, true);
      skip();
    }
  }
  skip();
}

// Reads from a '$', which is plain text if it opens nothing.
void ShellLexer::read_dollar(WrittenWord& word, bool quoted) {
  const std::size_t begin = at_;
  const auto take = [&](PieceKind kind, const std::string& open, const std::string& close) {
    const std::string inside = take_enclosed(open, close);
    if (inside.empty())
      add(word, text_.substr(begin, at_ - begin), quoted);
    else
      word.pieces.push_back({kind, inside, quoted});
  };
  if (starts("$((")) return take(PieceKind::arithmetic, "$((", "))");
  if (starts("$(")) return take(PieceKind::command, "$(", ")");
  if (starts("${")) return take(PieceKind::variable, "${", "}");
  skip();
  if (!quoted && here() == '\'') return read_single_quoted(word);  // $'...'
  std::size_t length = 0;
  if (is_name_start(here()))
    while (at_ + length < text_.size() && is_name(text_[at_ + length])) ++length;
  else if (std::isdigit(static_cast<unsigned char>(here())) ||
           (here() != '\0' && std::string_view{"@*#?$!"}.find(here()) != std::string_view::npos))
    length = 1;
  if (length == 0) return add(word, "$", quoted);
  word.pieces.push_back({PieceKind::variable, text_.substr(at_, length), quoted});
  at_ += length;
}

void ShellLexer::read_backquoted(WrittenWord& word, bool quoted) {
  const std::size_t end = text_.find('`', at_ + 1);
  if (end == std::string::npos || end - at_ > longest_expansion) {
    add(word, "`", quoted);
    return skip();
  }
  word.pieces.push_back({PieceKind::command, text_.substr(at_ + 1, end - at_ - 1), quoted});
  skip(end + 1 - at_);
}

}  // namespace orrery
