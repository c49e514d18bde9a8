#include "sim/core/table.hpp"

#include <algorithm>
#include <cassert>

#include "sim/core/quoting.hpp"

namespace orrery {
namespace {

// A last column with less room has lines of its own.
constexpr int least_columns = 24;

std::string blanks(int count) {
  return std::string(static_cast<std::size_t>(std::max(count, 0)), ' ');
}

void end_line(std::string& text) {
  text.erase(text.find_last_not_of(' ') + 1);  // find gives npos, and npos + 1 is 0.
  text += '\n';
}

}  // namespace

int shown_width(std::string_view text) {
  int width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {  // "ESC [ ... letter"
      while (i + 1 < text.size() && text[i] != 'm') ++i;
      continue;
    }
    const bool continues_character = (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
    if (!continues_character) ++width;
  }
  return width;
}

Table::Table(std::vector<Column> columns, int indent)
    : columns_{std::move(columns)}, indent_{indent} {}

void Table::add_row(std::vector<std::string> cells) {
  assert(cells.size() <= columns_.size());
  rows_.push_back(std::move(cells));
}

bool Table::has_headers() const {
  return std::any_of(columns_.begin(), columns_.end(),
                     [](const Column& column) { return !column.header.empty(); });
}

// The lines of cells, headers first, in the columns that `width` shows.
std::vector<std::vector<std::string>> Table::lines(TextWidth width) const {
  std::vector<std::vector<std::string>> lines = rows_;
  if (has_headers()) {
    auto& headers = *lines.emplace(lines.begin());
    for (const Column& column : columns_) headers.push_back(column.header);
  }
  if (width == TextWidth::unlimited) return lines;
  for (auto& line : lines) {
    std::size_t at = 0;
    std::erase_if(line, [&](const std::string&) { return columns_[at++].is_detail; });
  }
  return lines;
}

std::string Table::text(TextWidth width) const {
  std::vector<Column> columns = columns_;
  if (width == TextWidth::terminal) std::erase_if(columns, [](auto& one) { return one.is_detail; });
  const std::vector<std::vector<std::string>> all = lines(width);
  std::vector<int> widths(columns.size(), 0);
  for (const auto& line : all)
    for (std::size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], shown_width(line[i]));

  std::string text;
  for (const auto& line : all) {
    std::string row = blanks(indent_);
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (i > 0) row += "  ";
      const std::string padding = blanks(widths[i] - shown_width(line[i]));
      const bool is_left = columns[i].align == Align::left;
      const bool wraps = width == TextWidth::terminal && is_left && i + 1 == columns.size() &&
                         shown_width(row) + shown_width(line[i]) > text_columns;
      if (wraps) {
        const bool is_narrow = text_columns - shown_width(row) < least_columns;
        if (is_narrow) end_line(row);
        row = is_narrow ? row + wrapped_words(blanks(indent_ + 4), line[i], text_columns)
                        : wrapped_words(row, line[i], text_columns);
        row.pop_back();  // Its newline.
      } else {
        row += is_left ? line[i] + padding : padding + line[i];
      }
    }
    end_line(row);
    text += row;
  }
  return text;
}

std::string Table::html() const {
  const auto cell = [&](const char* tag, std::size_t column, const std::string& text) {
    const char* side = columns_[column].align == Align::left ? " class=\"left\"" : "";
    return std::string{"<"} + tag + side + ">" + escaped(text) + "</" + tag + ">";
  };
  std::string html = "<table>\n";
  if (has_headers()) {
    html += "<tr>";
    for (std::size_t i = 0; i < columns_.size(); ++i) html += cell("th", i, columns_[i].header);
    html += "</tr>\n";
  }
  for (const auto& row : rows_) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) html += cell("td", i, row[i]);
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::string Table::markdown() const {
  std::string heads = "|", rule = "|", lines;
  for (const Column& column : columns_) {
    heads += " " + column.header + " |";
    rule += column.align == Align::left ? "---|" : "---:|";
  }
  for (const auto& row : rows_) {
    lines += "|";
    for (const std::string& cell : row) lines += " " + cell + " |";
    lines += "\n";
  }
  return heads + "\n" + rule + "\n" + lines;
}

std::string wrapped(const std::string& head, const std::vector<std::string>& items,
                    const std::string& separator, int width) {
  std::string text;
  std::string line = head;
  bool line_is_new = true;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item = items[i] + (i + 1 < items.size() ? separator : "");
    const std::string shown = item.substr(0, item.find_last_not_of(' ') + 1);
    if (!line_is_new && shown_width(line) + shown_width(shown) > width) {
      end_line(line);
      text += line;
      line = blanks(shown_width(head));
    }
    line += item;
    line_is_new = false;
  }
  end_line(line);
  return text + line;
}

std::string wrapped_words(const std::string& head, const std::string& sentence, int width) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < sentence.size();) {
    const std::size_t end = std::min(sentence.find(' ', begin), sentence.size());
    if (end > begin) words.push_back(sentence.substr(begin, end - begin));
    begin = end + 1;
  }
  return wrapped(head, words, " ", width);
}

}  // namespace orrery
