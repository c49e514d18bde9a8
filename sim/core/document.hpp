#pragma once

#include <string>
#include <vector>

#include "sim/core/table.hpp"

namespace orrery {

/// A command's answer, part by part, so that a terminal and a page say the same. Lines of text end
/// in a newline and are as wide as a terminal has them; on a page a paragraph flows.
class Document {
 public:
  /// The first line names the answer, those below it the request.
  void title(const std::string& lines) { add(Kind::title, lines); }
  void heading(const std::string& line) { add(Kind::heading, line); }  ///< Without newline.
  void paragraph(const std::string& lines) { add(Kind::paragraph, lines); }
  void lines(const std::string& lines) { add(Kind::lines, lines); }  ///< They stay lines.
  void table(const Table& table);
  void command(const std::string& line) { add(Kind::command, line); }  ///< Can be typed.
  void gap() { add(Kind::gap, ""); }  ///< An empty line of a terminal.
  void append(const Document& other);

  std::string text(TextWidth width = TextWidth::terminal) const;
  std::string html() const;  ///< All but the title.
  /// Of the title: its first line, and the others as one.
  std::string name() const;
  std::string about() const;

 private:
  enum class Kind { title, heading, paragraph, lines, table, command, gap };
  struct Part {
    Kind kind = Kind::gap;
    std::string content;
    Table table{{}};
  };
  void add(Kind kind, const std::string& content);

  std::vector<Part> parts_;
};

/// The lines of `text` without the blanks before each; empty ones are left out.
std::vector<std::string> lines_of_text(const std::string& text);

/// The same as HTML: a control character, of which the line's end is one, never passes as itself.
std::string escaped_lines(const std::string& text, const std::string& between = "\n");

}  // namespace orrery
