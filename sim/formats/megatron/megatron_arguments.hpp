#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/core/units.hpp"
#include "sim/formats/shell/shell_script.hpp"

namespace orrery {

/// Iteration times of a training log.
struct MeasuredSteps {
  Seconds median;
  int counted = 0;  ///< Lines, without those that were left out.
};

/// Parses lines such as "iteration 20/ 500 | ... | elapsed time per iteration (ms): 12110.4 | ...",
/// with any prefix of a launcher. The first of several lines is left out, as it includes warm-up.
/// Nothing: there is no such line.
std::optional<MeasuredSteps> measured_steps(const std::string& log);

/// Arguments of Megatron-LM's pretrain_*.py, under the names that arguments.py gives their values:
/// "num_layers", "add_bias_linear". Asking for one marks it as read.
class MegatronArguments {
 public:
  /// The words after a flag, or behind the dots of a printed list. A flag without a word is on.
  struct Value {
    std::vector<std::string> words;
    std::string name;  ///< Name in the file: "--num-layers", "num_layers".
    Place place;
    bool is_implied = false;      ///< The flag has no word: its name is the value.
    std::string text() const;     ///< The words with blanks between them.
    std::string written() const;  ///< The flag and its words, quoted for a shell.
  };

  /// Reads the list of arguments that Megatron-LM prints when it starts (also inside a whole log),
  /// a launch script, or bare flags. `given`: shell variables that the script gets from outside;
  /// `files`: those that it reads. Errors (bad_input): no argument of Megatron-LM in it; see also
  /// read_shell_script.
  static MegatronArguments read(const std::string& text, const std::string& file,
                                const std::map<std::string, std::string>& given,
                                const ShellFiles& files = {});

  /// Arguments of a recipe in another format: values by the names of arguments.py, each with its
  /// place and the recipe's name for it. `spelling`: its names for others; `nccl`: variables of
  /// NCCL. Errors (bad_input): see refuse_unpriced.
  static MegatronArguments of_recipe(const std::string& file, std::map<std::string, Value> values,
                                     std::map<std::string, std::string> spelling,
                                     std::map<std::string, std::string> nccl = {});

  const Place& place() const { return place_; }
  /// "pretrain_gpt.py"; "": the file does not say.
  const std::string& program() const { return program_; }
  /// GPUs that the launcher starts; nothing: the file does not say.
  std::optional<int> gpus() const { return gpus_; }
  void set_gpus(int gpus) { gpus_ = gpus; }  ///< In place of the launcher's.
  /// The model whose sizes no argument gives: a launcher of ms-swift names it. Empty: none.
  const std::string& model_name() const { return model_name_; }
  /// Variables of NCCL that the script sets.
  const std::map<std::string, std::string>& nccl() const { return nccl_; }
  /// The iterations of a log; nothing: it is no log, or has none.
  const std::optional<MeasuredSteps>& measured() const { return measured_; }
  /// The text of a file that an argument names; nothing: it is not there.
  std::optional<std::string> other_file(const std::string& path) const;
  /// A printed list, or a recipe of another program, holds every argument, defaults included.
  bool is_complete() const { return is_complete_; }
  bool is_recipe() const { return !spelling_.empty(); }  ///< The file is of another program.

  const Value* find(const std::string& name) const;  ///< Null: absent, or None.
  bool has(const std::string& name) const { return find(name) != nullptr; }
  /// The arguments that are there and whose names begin so.
  std::vector<std::string> names_from(const std::string& begin) const;
  bool flag(const std::string& name, bool absent = false) const;
  /// Errors (bad_input): no whole number, or an unset shell variable.
  std::int64_t number(const std::string& name, std::int64_t absent) const;
  std::int64_t required(const std::string& name) const;  ///< Absent: an error too.
  std::string word(const std::string& name, const std::string& absent) const;
  /// The meaning of the word, by a list of all words and meanings; absent: the first of them.
  std::string choice(const std::string& name,
                     const std::vector<std::pair<std::string, std::string>>& meanings) const;
  /// "--num-layers" of "num_layers", or the recipe's name for it.
  std::string spelled(const std::string& name) const;
  /// "add --num-layers N to the file"
  std::string how_to_add(const std::string& name) const;
  [[noreturn]] void fail(const std::string& name, const std::string& problem,
                         const std::string& remedy) const;

  /// The name in arguments.py of a flag's variable: "add_bias_linear" of "--disable-bias-linear".
  static std::string name_of_flag(const std::string& flag);
  /// Names in the order in which the script gives them, each where it is given last.
  const std::vector<std::string>& order() const { return order_; }
  /// All of them as a shell takes them, one flag with its words each, in their order.
  std::vector<std::string> written() const;
  /// Names of arguments that no code has read, in their order.
  std::vector<std::string> unread() const;
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void read_list(const std::vector<std::string_view>& lines);
  [[noreturn]] void fail_without_model() const;
  void read_script(const ShellScript& script);
  void leave_out(const std::string& name);  ///< An argument that need not be there.

  Place place_;
  std::string program_;
  std::string model_name_;
  std::optional<int> gpus_;
  ShellFiles files_;
  std::map<std::string, std::string> nccl_;
  std::optional<MeasuredSteps> measured_;
  std::map<std::string, Value> values_;
  std::vector<std::string> order_;
  mutable std::set<std::string> read_;
  std::vector<std::string> notes_;
  std::map<std::string, std::string> spelling_;  ///< Only a recipe has it.
  bool is_complete_ = false;
};

}  // namespace orrery
