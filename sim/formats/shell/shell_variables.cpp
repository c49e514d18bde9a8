#include "sim/formats/shell/shell_variables.hpp"

#include "sim/core/text_file.hpp"
#include "sim/formats/shell/shell_marks.hpp"

namespace orrery {
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
