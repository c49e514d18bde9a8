#pragma once

#include <string>

#include "sim/formats/shell/shell_syntax.hpp"

namespace orrery {

/// Reads words out of a script's text, in the order in which they stand.
class ShellLexer {
 public:
  /// The end of a word, and the signs that mean something in it.
  enum class Mode {
    word,      ///< A blank or one of ;&|<>() ends it; quotes count.
    operand,   ///< Up to the end of the text; quotes count, as in ${NAME:-here}.
    verbatim,  ///< Up to the end of the text; only $, ` and \ count, as in a here-document.
  };

  explicit ShellLexer(const std::string& text, std::size_t line = 0) : text_{text}, line_{line} {}

  bool at_end() const { return at_ >= text_.size(); }
  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }
  bool starts(std::string_view text) const { return text_.compare(at_, text.size(), text) == 0; }
  std::size_t line() const { return line_; }
  std::size_t position() const { return at_; }

  void skip(std::size_t letters = 1);  ///< Counts lines.
  void skip_blanks();                  ///< Also continued lines, not the end of a line.
  std::string rest_of_line();          ///< Up to its end, which stays.
  /// The lines of a here-document, which begin behind this line, up to the line `end`. Reading goes
  /// on in this line; behind it the document is skipped.
  std::string take_document(const std::string& end, bool strips_tabs);
  /// The text up to the sign that closes "(" or "((" or "{" here; both signs are skipped. Without a
  /// closing sign: "", and only the opening is skipped.
  std::string take_enclosed(const std::string& open, const std::string& close);

  WrittenWord read_word(Mode mode = Mode::word);

 private:
  void read_single_quoted(WrittenWord& word);
  void read_double_quoted(WrittenWord& word);
  void read_dollar(WrittenWord& word, bool quoted);
  void read_backquoted(WrittenWord& word, bool quoted);
  static void add(WrittenWord& word, const std::string& text, bool quoted);

  const std::string& text_;
  std::size_t at_ = 0;
  std::size_t line_ = 0;
  // The end of a line with here-documents, and where the text goes on behind them.
  std::size_t documents_ = std::string::npos, behind_documents_ = 0;
};

bool is_shell_name(std::string_view text);

}  // namespace orrery
