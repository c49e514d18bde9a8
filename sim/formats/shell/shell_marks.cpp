#include "sim/formats/shell/shell_marks.hpp"

#include <algorithm>
#include <cctype>

namespace orrery {
namespace {

constexpr char unset_begins = '\x01', unset_ends = '\x02';
constexpr char unknown_begins = '\x05', unknown_ends = '\x06';

bool is_mark(char c) {
  return c == unset_begins || c == unset_ends || c == unknown_begins || c == unknown_ends;
}

}  // namespace

std::string unset_mark(const std::string& name) { return unset_begins + name + unset_ends; }
std::string unknown_mark(const std::string& as_written) {
  return unknown_begins + without_marks(as_written) + unknown_ends;
}

bool is_known(std::string_view text) { return text.find(unknown_begins) == text.npos; }

std::string without_unset(std::string_view text) {
  std::string left;
  bool inside = false;
  for (const char c : text) {
    inside = c == unset_begins || inside;
    if (!inside) left += c;
    inside = inside && c != unset_ends;
  }
  return left;
}

std::vector<std::string> unset_names(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t at = text.find(unset_begins); at < text.size();
       at = text.find(unset_begins, at + 1)) {
    const std::size_t end = std::min(text.find(unset_ends, at), text.size());
    names.emplace_back(text.substr(at + 1, end - at - 1));
  }
  return names;
}

std::string shown_marks(std::string_view text) {
  std::string shown;
  for (const char c : text)
    if (c == unset_begins)
      shown += '$';
    else if (!is_mark(c))
      shown += c;
  return shown;
}

std::string without_marks(std::string text) {
  std::replace_if(text.begin(), text.end(), is_mark, ' ');
  return text;
}

std::vector<std::pair<std::string, std::size_t>> split_words(std::string_view text) {
  std::vector<std::pair<std::string, std::size_t>> words;
  std::size_t lines = 0;
  bool in_mark = false, in_word = false;
  for (const char c : text) {
    if (c == '\n') ++lines;
    if (!in_mark && std::isspace(static_cast<unsigned char>(c))) {
      in_word = false;
      continue;
    }
    if (!in_word) words.push_back({"", lines});
    in_word = true;
    in_mark = c == unknown_begins || (in_mark && c != unknown_ends);
    words.back().first += c;
  }
  return words;
}

}  // namespace orrery
