#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/formats/shell/shell_syntax.hpp"
#include "sim/formats/shell/shell_values.hpp"

namespace orrery {

/// Expands variables and arithmetic in words, and the output of programs as far as it is known.
class ShellExpander {
 public:
  /// The output of $(...); nothing: only running the program would tell.
  using Printed = std::function<std::optional<std::string>(const std::string& command)>;

  ShellExpander(ShellVariables& variables, Printed printed)
      : variables_{variables}, printed_{std::move(printed)} {}

  /// The words that a written one becomes: none, one or more. Marks stay (shell_values.hpp).
  /// Errors (bad_input): variables that hold one another until they fill the memory.
  std::vector<ShellWord> words(const WrittenWord& word);
  /// One word, as in an assignment, a pattern or a condition.
  std::string text(const WrittenWord& word);
  /// The value of the text inside $((...)), marked if it is unknown.
  std::string arithmetic(const std::string& expression, std::size_t line);

 private:
  struct Parameter;
  std::vector<ShellWord> piece(const ShellPiece& piece, std::size_t line);
  std::vector<ShellWord> variable(const std::string& inside, std::size_t line);
  std::vector<ShellWord> value_of(const Parameter& parameter, std::size_t line, bool& is_set);
  std::vector<ShellWord> slice(std::vector<ShellWord> words, const std::string& change,
                               bool of_call, std::size_t line);
  std::string changed(const std::string& text, const std::string& change, std::size_t line);
  std::string operand(const std::string& text, std::size_t line);
  void count(const std::string& text, std::size_t line);

  ShellVariables& variables_;
  Printed printed_;
  std::size_t filled_in_ = 0;
  int depth_ = 0;
};

}  // namespace orrery
