#include "sim/core/document.hpp"

#include "sim/core/quoting.hpp"

namespace orrery {

std::vector<std::string> lines_of_text(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::size_t from = std::min(text.find_first_not_of(' ', begin), end);
    if (end > from) lines.push_back(text.substr(from, end - from));
    begin = end + 1;
  }
  return lines;
}

std::string escaped_lines(const std::string& text, const std::string& between) {
  std::string html;
  for (const std::string& line : lines_of_text(text))
    html += (html.empty() ? "" : between) + escaped(line);
  return html;
}

void Document::table(const Table& table) { parts_.push_back({Kind::table, "", table}); }

void Document::add(Kind kind, const std::string& content) { parts_.push_back({kind, content}); }

void Document::append(const Document& other) {
  parts_.insert(parts_.end(), other.parts_.begin(), other.parts_.end());
}

std::string Document::text(TextWidth width) const {
  std::string text;
  for (const auto& [kind, content, table] : parts_) {
    if (kind == Kind::table) text += table.text(width);
    if (kind == Kind::command) text += "  ";
    text += content;
    if (kind == Kind::heading || kind == Kind::command || kind == Kind::gap) text += "\n";
  }
  return text;
}

std::string Document::html() const {
  std::string html;
  for (const auto& [kind, content, table] : parts_) {
    if (kind == Kind::table) html += table.html();
    if (kind == Kind::heading) html += "<h2>" + escaped(content) + "</h2>\n";
    if (kind == Kind::command) html += "<pre>" + escaped(content) + "</pre>\n";
    if (kind == Kind::paragraph || kind == Kind::lines) {
      const bool flows = kind == Kind::paragraph;
      html += (flows ? "<p class=\"note\">" : "<p class=\"note lines\">") +
              escaped_lines(content, flows ? " " : "\n") + "</p>\n";
    }
  }
  return html;
}

std::string Document::name() const {
  for (const Part& part : parts_)
    if (part.kind == Kind::title) return lines_of_text(part.content).front();
  return "";
}

std::string Document::about() const {
  std::string text;
  for (const Part& part : parts_) {
    if (part.kind != Kind::title) continue;
    const std::vector<std::string> lines = lines_of_text(part.content);
    for (std::size_t i = 1; i < lines.size(); ++i) text += (i > 1 ? " " : "") + lines[i];
  }
  return text;
}

}  // namespace orrery
