#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace orrery {

/// A part of a word as a script writes it.
struct ShellPiece {
  enum class Kind {
    text,        ///< Literal text.
    variable,    ///< NAME, or the text between the braces of ${...}.
    arithmetic,  ///< Text inside $((...)).
    command      ///< Text inside $(...) or between backquotes.
  };
  Kind kind = Kind::text;
  std::string text;
  bool quoted = false;  ///< Is not split into words.
};

struct WrittenWord {
  std::vector<ShellPiece> pieces;
  std::size_t line = 0;  ///< Its first line, from 0.

  bool is_text(const std::string& text) const {
    return pieces.size() == 1 && pieces[0].kind == ShellPiece::Kind::text && !pieces[0].quoted &&
           pieces[0].text == text;
  }
};

/// A word of a command, or an assignment in a place that allows one.
struct ShellItem {
  WrittenWord word;   ///< The whole of it; an array has no such form.
  std::string name;   ///< Variable in NAME=..., NAME+=... and NAME[INDEX]=...; else "".
  std::string index;  ///< Text of the index as it is written.
  bool appends = false;
  bool is_array = false;  ///< NAME=(...)
  std::vector<WrittenWord> values;
};

/// A command of any kind, simple or compound.
struct ShellNode {
  enum class Kind {
    command,     ///< `items`
    test,        ///< [[ `words` ]]
    arithmetic,  ///< (( `name` ))
    list,        ///< `parts`, one after another: also { }, ( ) and pipes
    chain,       ///< `parts` with && and || between them: `name` has an & or a | for each
    negation,    ///< ! `parts[0]`
    branch,      ///< `if` and each `elif`: condition, body; then the body of `else`, if any
    choice,      ///< case `words[0]`: `patterns` and `parts` pair up
    repetition,  ///< while and until: condition, body
    each,        ///< `for`: `name` in `items`, body
    function     ///< `name`, body
  };
  Kind kind = Kind::command;
  std::size_t line = 0;
  std::size_t last_line = 0;
  std::string name;
  std::vector<ShellItem> items;
  std::vector<WrittenWord> words;
  std::vector<std::vector<WrittenWord>> patterns;
  std::vector<ShellNode> parts;
  WrittenWord document;               ///< Text after <<EOF; no pieces: none.
  WrittenWord output;                 ///< The file behind > or >>; no pieces: none is named.
  bool is_condition_negated = false;  ///< until
};

/// It is a simple command of one of these names.
bool is_command(const ShellNode& node, std::initializer_list<const char*> names);

/// It ends with `exit` or `return`, if it is reached.
bool ends_script(const ShellNode& node);

/// It sets a variable, reads a file or has options, and does not only print or look.
bool matters(const ShellNode& node);

}  // namespace orrery
