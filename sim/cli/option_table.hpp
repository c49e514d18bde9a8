#pragma once

#include <functional>
#include <string>
#include <vector>

namespace orrery {

/// An option as the parser of command lines knows it.
struct OptionEntry {
  std::string name;   ///< Without its dashes.
  std::string value;  ///< What stands for the value in the help: "N", "NAME|FILE". "": takes none.
  std::string help;
  std::string group;            ///< The heading that it stands under.
  bool value_may_lack = false;  ///< Then it means true.
  bool may_repeat = false;
};

/// All options of a command, in the order of its help.
struct OptionTable {
  std::vector<OptionEntry> options;
  std::string text;  ///< As the help prints it.
};

/// Hears, while it lives, what the commands say of themselves that run: the tables against which
/// they parse, and the words by which they choose a smaller command. So manual pages and completion
/// cannot differ from what a command takes. The innermost hears where several live.
class CommandListener {
 public:
  struct Ears {
    std::function<void(const OptionTable&)> table;
    std::function<void(const std::vector<std::string>&)> words;
  };
  explicit CommandListener(Ears ears);
  ~CommandListener();
  CommandListener(const CommandListener&) = delete;
  CommandListener& operator=(const CommandListener&) = delete;

  static bool is_there() { return innermost_ != nullptr; }
  static void tell(const OptionTable& table);
  /// `words`: those that may follow the command's name, as "run" and "merge" follow "sweep".
  static void tell(const std::vector<std::string>& words);

 private:
  static inline CommandListener* innermost_ = nullptr;
  CommandListener* outer_;
  Ears ears_;
};

}  // namespace orrery
