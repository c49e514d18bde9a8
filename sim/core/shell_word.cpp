#include "sim/core/shell_word.hpp"

namespace orrery {

std::string shell_word(const std::string& text) {
  constexpr char plain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (!text.empty() && text.find_first_not_of(plain) == text.npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return quoted + "'";
}

std::string typed_command(const std::string& name, const std::vector<std::string>& arguments) {
  std::string command = "orrery " + name;
  for (const std::string& word : arguments) command += " " + shell_word(word);
  return command;
}

}  // namespace orrery
