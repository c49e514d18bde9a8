#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// Unknown parts of a text are marked inside of it, so that marks last through assignments: the
// value of an unset variable, which is empty unless it is set outside, and the output of a program.

std::string unset_mark(const std::string& name);
std::string unknown_mark(const std::string& as_written);

/// It does not depend on the output of a program.
bool is_known(std::string_view text);
/// The text as Bash sees it if nothing is set outside: without the marks of unset variables.
std::string without_unset(std::string_view text);
/// Variables that are marked as unset in it.
std::vector<std::string> unset_names(std::string_view text);
/// The text for people and readers of words: "$NAME", "$(date)".
std::string shown_marks(std::string_view text);
/// Text from outside, which must not bring marks of its own.
std::string without_marks(std::string text);
/// Words between blanks outside of marks; each with the number of line ends before it.
std::vector<std::pair<std::string, std::size_t>> split_words(std::string_view text);

/// A word of a command, with its variables filled in.
struct ShellWord {
  std::string text;
  std::size_t line = 0;  ///< Line of its source, from 0, also if a variable brings it.
  std::size_t file = 0;  ///< Index into ShellVariables::files().
};

struct ShellValue {
  std::vector<ShellWord> words;              ///< One, or those of an array.
  std::map<std::string, ShellWord> entries;  ///< Entries of an array with names as indices.
};

/// The variables of a script and the words of its call.
class ShellVariables {
 public:
  /// `given` wins over what the script assigns; "1", "2", ... are the words of the call.
  ShellVariables(std::string file, const std::map<std::string, std::string>& given);

  const ShellValue* find(const std::string& name) const;  ///< Null: it is unset.
  bool is_given(const std::string& name) const { return given_.contains(name); }
  void set(const std::string& name, ShellValue value);
  void append(const std::string& name, const ShellValue& value, bool is_array);
  void set_entry(const std::string& name, const std::string& index, const ShellWord& word);
  void erase(const std::string& name);

  /// Names in the order in which they were first set.
  const std::vector<std::string>& names() const { return names_; }
  /// The script, and each file that it reads.
  const std::vector<std::string>& files() const { return files_; }
  const std::string& file() const { return files_[file_]; }  ///< The file that is being read.
  ShellWord word(std::string text, std::size_t line) const {
    return {std::move(text), line, file_};
  }

  /// Words that are read during its life come from another file.
  class InFile {
   public:
    InFile(ShellVariables& variables, const std::string& file);
    ~InFile() { variables_.file_ = before_; }
    InFile(const InFile&) = delete;
    InFile& operator=(const InFile&) = delete;

   private:
    ShellVariables& variables_;
    std::size_t before_;
  };

  std::vector<ShellWord> called_with;

 private:
  ShellValue* to_change(const std::string& name);  ///< Null: it is given.

  std::vector<std::string> files_;
  std::size_t file_ = 0;
  std::map<std::string, ShellValue> values_;
  std::map<std::string, std::string> given_;
  std::vector<std::string> names_;
};

}  // namespace orrery
