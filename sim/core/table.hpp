#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

enum class Align { left, right };

/// The columns that a table of text shows: those that fit a terminal of 80 characters, or all.
enum class TextWidth { terminal, unlimited };
constexpr int text_columns = 80;

struct Column {
  std::string header;
  Align align = Align::right;
  bool is_detail = false;  ///< Left out in a terminal's width.
};

/// Lines of cells under each other, as every command prints them: two blanks between columns, no
/// rules, nothing behind the last character of a line. In a terminal's width the words of the last
/// column continue on further lines where it is aligned to the left.
class Table {
 public:
  /// `indent`: blanks before the first column.
  explicit Table(std::vector<Column> columns, int indent = 2);

  /// A row may have fewer cells than there are columns, but not more.
  void add_row(std::vector<std::string> cells);

  /// Every line ends in a newline. The line of headers is left out if all of them are empty.
  std::string text(TextWidth width = TextWidth::terminal) const;
  /// All columns as an HTML table.
  std::string html() const;
  /// The same as a table of Markdown, which always has a line of headers.
  std::string markdown() const;

 private:
  bool has_headers() const;
  std::vector<std::vector<std::string>> lines(TextWidth width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  int indent_;
};

/// Columns of a terminal that `text` takes: UTF-8 characters, without colour sequences. Characters
/// of double width count once; no name in a catalog has any.
int shown_width(std::string_view text);

/// `items` joined by `separator` in lines of at most `width`, the first behind `head` and the
/// others under it. An item is never cut.
std::string wrapped(const std::string& head, const std::vector<std::string>& items,
                    const std::string& separator, int width);
/// A sentence in lines of at most `width`, broken between words.
std::string wrapped_words(const std::string& head, const std::string& sentence, int width);

}  // namespace orrery
