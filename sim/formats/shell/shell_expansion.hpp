#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/formats/shell/shell_syntax.hpp"
#include "sim/formats/shell/shell_values.hpp"

namespace orrery {

/// Fills in what words say with $: variables and arithmetic, and what programs would print, where
/// that is known.
class ShellExpander {
 public:
  /// What $(...) prints; nothing: a program would have to say it.
  using Printed = std::function<std::optional<std::string>(const std::string& command)>;

  ShellExpander(ShellVariables& variables, Printed printed)
      : variables_{variables}, printed_{std::move(printed)} {}

  /// The words that a written one becomes: none, one or more. Marks stay (shell_marks.hpp).
  /// Errors (bad_input): variables that hold one another until they fill the memory.
  std::vector<ShellWord> words(const WrittenWord& word);
  /// As one word: what an assignment, a pattern or a condition makes of it.
  std::string text(const WrittenWord& word);
  /// The value of what stands inside $((...)), marked where it is not known.
  std::string arithmetic(const std::string& expression, std::size_t line);

 private:
  struct Parameter;
  std::vector<ShellWord> piece(const ShellPiece& piece, std::size_t line);
  std::vector<ShellWord> variable(const std::string& inside, std::size_t line);
  std::vector<ShellWord> value_of(const Parameter& parameter, std::size_t line, bool& is_set);
  std::string changed(const std::string& text, const std::string& change, std::size_t line);
  std::string operand(const std::string& text, std::size_t line);
  void count(const std::string& text, std::size_t line);

  ShellVariables& variables_;
  Printed printed_;
  std::size_t filled_in_ = 0;
  int depth_ = 0;
};

}  // namespace orrery
