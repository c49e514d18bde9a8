#include "sim/formats/shell/shell_values.hpp"

#include <algorithm>
#include <cctype>

#include "sim/core/text_file.hpp"

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

namespace {

constexpr int longest_array = 10'000;

}  // namespace

ShellVariables::ShellVariables(std::string file, const std::map<std::string, std::string>& given)
    : files_{std::move(file)}, given_{given} {
  for (const auto& [name, value] : given) {
    values_[name].words = {word(without_marks(value), 0)};
    const auto number = plain_integer(name, 99);
    if (!number || *number == 0) continue;
    if (called_with.size() < static_cast<std::size_t>(*number))
      called_with.resize(static_cast<std::size_t>(*number));
    called_with[static_cast<std::size_t>(*number) - 1].text = without_marks(value);
  }
}

ShellVariables::InFile::InFile(ShellVariables& variables, const std::string& file)
    : variables_{variables}, before_{variables.file_} {
  variables.file_ = variables.files_.size();
  variables.files_.push_back(file);
}

const ShellValue* ShellVariables::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

ShellValue* ShellVariables::to_change(const std::string& name) {
  if (is_given(name)) return nullptr;
  const auto [found, is_new] = values_.try_emplace(name);
  if (is_new) names_.push_back(name);
  return &found->second;
}

void ShellVariables::set(const std::string& name, ShellValue value) {
  if (ShellValue* variable = to_change(name)) *variable = std::move(value);
}

void ShellVariables::append(const std::string& name, const ShellValue& value, bool is_array) {
  ShellValue* variable = to_change(name);
  if (!variable) return;
  if (is_array || variable->words.empty())
    variable->words.insert(variable->words.end(), value.words.begin(), value.words.end());
  else if (!value.words.empty())
    variable->words[0].text += value.words[0].text;
  variable->entries.insert(value.entries.begin(), value.entries.end());
}

void ShellVariables::set_entry(const std::string& name, const std::string& index,
                               const ShellWord& word) {
  ShellValue* variable = to_change(name);
  if (!variable) return;
  const auto number = plain_integer(index, longest_array);
  if (!number) {
    variable->entries[index] = word;
    return;
  }
  const auto place = static_cast<std::size_t>(*number);
  if (variable->words.size() <= place) variable->words.resize(place + 1);
  variable->words[place] = word;
}

void ShellVariables::erase(const std::string& name) {
  if (!is_given(name)) values_.erase(name);
}

}  // namespace orrery
