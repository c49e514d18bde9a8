#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/base/core/error.hpp"

namespace orrery {

/// Arguments of Megatron-LM's pretrain_*.py, under the names that arguments.py gives their values:
/// "num_layers", "add_bias_linear". Asking for one marks it as read.
class MegatronArguments {
 public:
  /// What follows a flag, or stands behind the dots of a printed list. A flag without a word is on.
  struct Value {
    std::vector<std::string> words;
    std::string name;  ///< As the file writes it: "--num-layers", "num_layers".
    Place place;
    std::string text() const;  ///< The words with blanks between them.
  };

  /// Reads the list of arguments that Megatron-LM prints when it starts (also inside a whole log),
  /// a launch script, or bare flags. `given`: shell variables that the script gets from outside.
  /// Errors (bad_input): no argument of Megatron-LM in it; see also read_shell_script.
  static MegatronArguments read(const std::string& text, const std::string& file,
                                const std::map<std::string, std::string>& given);

  const Place& place() const { return place_; }
  /// A printed list holds every argument, also those that nobody gave.
  bool is_complete() const { return is_complete_; }

  const Value* find(const std::string& name) const;  ///< Null: absent, or None.
  bool has(const std::string& name) const { return find(name) != nullptr; }
  bool flag(const std::string& name, bool absent = false) const;
  /// Errors (bad_input): no whole number, or a shell variable that nobody sets.
  std::int64_t number(const std::string& name, std::int64_t absent) const;
  std::int64_t required(const std::string& name) const;  ///< Absent: an error too.
  std::string word(const std::string& name, const std::string& absent) const;
  /// What the word means, by a list of all words and meanings; absent: the first of them.
  std::string choice(const std::string& name,
                     const std::vector<std::pair<std::string, std::string>>& meanings) const;
  [[noreturn]] void fail(const std::string& name, const std::string& problem,
                         const std::string& remedy) const;

  std::vector<std::string> unread() const;  ///< Flags that nobody asked for, as they are written.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void read_list(const std::vector<std::string_view>& lines);
  void read_script(const std::string& text, const std::map<std::string, std::string>& given);

  Place place_;
  std::map<std::string, Value> values_;
  mutable std::set<std::string> read_;
  std::vector<std::string> notes_;
  bool is_complete_ = false;
};

}  // namespace orrery
