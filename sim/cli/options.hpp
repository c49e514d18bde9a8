#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/cli/command.hpp"
#include "sim/core/error.hpp"
#include "sim/core/field.hpp"
#include "sim/core/table.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {

/// Reads an option's text, which stands at `at`. Errors (bad_input): no legal value.
using Take = std::function<void(const std::string& text, const Place& at)>;

/// An option as the parser of command lines knows it.
struct OptionEntry {
  std::string name;   ///< Without its dashes.
  std::string value;  ///< Its value in the help: "N", "NAME|FILE". "": takes none.
  std::string help;
  std::string group = {};  ///< The heading that it stands under.
  Take take = nullptr;
  bool may_repeat = false;
  bool takes_words = false;  ///< All words that follow.

  bool value_may_lack() const { return value == "true|false"; }  ///< Then it means true.
};

/// All options of a command, in the order of its help.
struct OptionTable {
  std::vector<OptionEntry> options;
  std::string text;  ///< The lines of --help, which may leave options out.
};

/// Receives, while it lives, the descriptions of commands that run: the tables against which they
/// parse, and the words by which they choose a smaller command. So manual pages and completion
/// cannot differ from what a command takes. Only the innermost of several does.
class CommandListener {
 public:
  struct Callbacks {
    std::function<void(const OptionTable&)> table;
    std::function<void(const std::vector<std::string>&)> words;
  };
  explicit CommandListener(Callbacks listen);
  ~CommandListener();
  CommandListener(const CommandListener&) = delete;
  CommandListener& operator=(const CommandListener&) = delete;

  static void report(const OptionTable& table);
  /// `words`: those that may follow the command's name, as "run" and "merge" follow "sweep".
  static void report(const std::vector<std::string>& words);

 private:
  static inline CommandListener* innermost_ = nullptr;
  CommandListener* outer_;
  Callbacks listen_;
};

/// A command of a command, as "run" of `orrery sweep`.
struct Subcommand {
  std::string name;
  std::function<int(const Arguments&)> run;
};
/// Runs the one that the first argument names, with the others; --help prints `usage`. Errors
/// (bad_input): there is none, which is the problem `nothing`, or no such, "'x' " + `unknown`.
int run_subcommand(const Arguments& arguments, const std::vector<Subcommand>& all,
                   const std::string& usage, const std::string& nothing,
                   const std::string& unknown);

/// The place of options: `command_line / "gpus"` is --gpus.
inline const Place command_line{};

/// A whole number in [minimum, maximum].
int parse_count(const std::string& text, const Place& at, int minimum, int maximum);

// Ways to read an option's text. Others are a function of the text and its place, and a Notation,
// which reads the text as a value of a file.

struct AsTyped {};
struct Counted {
  int minimum = 0, maximum = 0;
};
/// The names of enumerators. Errors: another word, "'x' " + `problem`.
struct OneOf {
  std::vector<std::string> names;
  std::string problem = "is unknown";
};

template <class T>
T read_as(const Counted& how, const std::string& text, const Place& at) {
  return static_cast<T>(parse_count(text, at, how.minimum, how.maximum));
}
template <class T>
T read_as(const OneOf& how, const std::string& text, const Place& at) {
  return choice<T>(text, at, how.problem, how.names);
}
template <class T, class Value>
T read_as(const Notation<Value>& how, const std::string& text, const Place& at) {
  return static_cast<T>(how.read(value_of_text(text, at.pointer)));
}
template <class T, class Parse>
requires std::is_invocable_v<Parse, const std::string&, const Place&> T
read_as(const Parse& parse, const std::string& text, const Place& at) {
  return parse(text, at);
}

/// The options of a command, each with the variable that it fills, and what was typed of them: long
/// options only, none abbreviated, each at most once.
class Options {
 public:
  /// `heading`: of the first options; "": they have none.
  explicit Options(const std::string& heading = "Options") : group_{heading}, first_{heading} {}

  /// Begins a group: options that are added stand under this heading. The first is printed first.
  void group(const std::string& heading) { group_ = heading; }
  /// An option without a value.
  void add(const std::string& name, const std::string& help) { add({name, "", help}); }
  void add(const std::string& name, const std::string& help, bool& into) {
    add(name, "", help, [&into](const std::string&, const Place&) { into = true; });
  }
  /// --quiet and --help.
  void help();
  /// --wide, of a command whose tables have columns that do not fit a terminal.
  void wide(TextWidth& into);
  /// What --help shows of a long table; --help all shows the rest, too.
  void basic(std::set<std::string> names) { basic_ = std::move(names); }
  /// An option with a value, which may be left out where it is "true|false".
  void add(const std::string& name, const std::string& value, const std::string& help,
           const Take& take = nullptr) {
    add({name, value, help, "", take});
  }
  /// The same, which fills a T or an optional one. As typed, a list of texts has one of each time
  /// that the option is given, and a map has the text by the option's name.
  template <class T, class How = AsTyped>
  requires(!std::is_convertible_v<T&, Take>) void add(const std::string& name,
                                                      const std::string& value,
                                                      const std::string& help, T& into,
                                                      How how = {}) {
    constexpr bool repeats = std::is_same_v<T, std::vector<std::string>>;
    const auto take = [=, &into](const std::string& text, const Place& at) {
      if constexpr (!std::is_same_v<How, AsTyped>)
        into = read_as<T>(how, text, at);
      else if constexpr (repeats)
        into.push_back(text);
      else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>)
        into[name] = text;
      else
        into = text;
    };
    add({name, value, help, "", take, repeats && std::is_same_v<How, AsTyped>});
  }
  void add(OptionEntry entry) {
    entry.group = group_;
    entries_.push_back(std::move(entry));
  }

  /// Parses `arguments`; -o is --output, -j 4 and -j4 are --jobs 4. --help and --help all print
  /// help after `usage`, and the answer is false. Errors: an unknown option (with what was probably
  /// meant), a missing value, an option given twice.
  bool parse(const Arguments& arguments, const std::string& usage = "");
  /// Fills the variables of the options that were typed, in the order of the help.
  void fill() const;
  /// Both.
  bool read(const Arguments& arguments, const std::string& usage = "");

  bool has(const std::string& name) const { return typed_.contains(name); }
  std::string text(const std::string& name) const { return typed_.at(name).front(); }
  /// Gives an option a value, unless it was typed.
  void give(const std::string& name, const std::string& text);
  /// Gives an option the values that it has in `other`, if any, unless it was typed here. Returns
  /// whether it did.
  bool give(const std::string& name, const Options& other);
  /// The same of an option that may be repeated: `begin` + `text`, unless one begins so.
  void give_also(const std::string& name, const std::string& begin, const std::string& text);
  /// The typed values by name; an option without a value has none.
  const std::map<std::string, std::vector<std::string>>& typed() const { return typed_; }
  const std::vector<OptionEntry>& entries() const { return entries_; }
  const OptionEntry* find(const std::string& name) const;

  const std::vector<std::string>& words() const { return words_; }  ///< Without options.
  /// Errors: there are words that belong to no option.
  void refuse_words(const std::string& remedy,
                    const std::string& problem = "belongs to no option") const;
  /// The one word that is no option. Errors: none, or several.
  const std::string& only_word(const std::string& none, const std::string& several,
                               const std::string& remedy) const;
  /// Refuses each of these options.
  void refuse(std::initializer_list<const char*> names, const std::string& problem,
              const std::string& remedy) const;
  /// Refuses what was typed of a group and is not `used` by what the command does; what a file gave
  /// may stay.
  void refuse_rest(const std::string& group, std::initializer_list<const char*> used,
                   const std::string& problem, const std::string& remedy) const;
  /// The value of an option that must be there; `remedy` is what to write where it is not.
  std::string required(const std::string& name, const std::string& remedy) const;

 private:
  /// The long name of a short option and the value written with it; none has two empty texts.
  std::pair<std::string, std::string> long_name(const std::string& word) const;
  /// Errors: an option that is none, or a word that a dash makes look like one.
  void refuse_unknown(const std::string& word) const;

  std::vector<OptionEntry> entries_;
  std::string group_, first_;
  std::set<std::string> basic_;  ///< Empty: all.
  std::map<std::string, std::vector<std::string>> typed_;
  std::set<std::string> from_file_;  ///< Those of them that give() added.
  std::vector<std::string> words_;
};

}  // namespace orrery
