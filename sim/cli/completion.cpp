#include "sim/cli/completion.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include "sim/cli/command.hpp"
#include "sim/cli/manual.hpp"
#include "sim/cli/options.hpp"
#include "sim/core/catalog.hpp"
#include "sim/core/error.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/value_list.hpp"
#include "sim/measurements/collective_curves.hpp"
#include "sim/pipeline/schedule.hpp"

namespace orrery {
namespace {

using Words = std::vector<std::string>;

// The words of the catalog that an option or a place of this name takes.
Words names_for(const std::string& name) {
  static const std::map<std::string, std::string> folders_by_name{
      {"model", "workloads/models"},   {"system", "topologies/systems"},
      {"gpu", "topologies/gpus"},      {"software", "workloads/software"},
      {"engine", "workloads/engines"}, {"reliability", "workloads/reliability"},
      {"routing", "workloads/routing"}};
  if (name == "schedule") return schedule_names();
  if (name == "collective") return collective_names();
  const auto folder = folders_by_name.find(name);
  return folder == folders_by_name.end() ? Words{} : list_catalog(folder->second);
}

bool is_placeholder(const std::string& part) {
  return part.empty() ||
         std::any_of(part.begin(), part.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

bool is_one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* one) { return word == one; });
}

// Possible texts of what the help calls `value`: its words mean themselves, FILE a file, NAME a
// name of the catalog.
Candidates of_value(const std::string& name, const std::string& value) {
  Candidates found;
  for (std::string part : split(value, "|")) {
    part = part.substr(0, part.find_first_of(".[:"));
    if (is_one_of(part, {"FILE", "LOG", "RECORD", "TRACE", "PLAN"}))
      found.files = true;
    else if (part == "DIR")
      found.folders = true;
    else if (!is_placeholder(part))
      found.words.push_back({part, ""});
    else if (is_one_of(part, {"NAME", "LIST", "GPU", "KIND", "COMMAND"}))
      for (const std::string& known : names_for(name)) found.words.push_back({known, ""});
  }
  std::set<std::string> seen;
  std::erase_if(found.words, [&](const auto& word) { return !seen.insert(word.text).second; });
  return found;
}

// Only what begins with `typed`; `before` stands before each.
Candidates that_begin(Candidates found, const std::string& typed, const std::string& before) {
  std::erase_if(found.words, [&](const auto& word) { return !word.text.starts_with(typed); });
  for (auto& word : found.words) word.text = before + word.text;
  return found;
}

// Completes the last entry of a list.
Candidates of_option(const OptionEntry& option, const std::string& typed,
                     const std::string& before) {
  std::string value = option.value;
  if (value == "LIST" && names_for(option.name).empty())
    for (const OptionEntry& same : describe(*find_command("estimate")).table.options)
      if (same.name == option.name) value = same.value;
  const std::size_t comma = option.value == "LIST" ? typed.rfind(',') : typed.npos;
  if (comma == typed.npos) {
    Candidates found = of_value(option.name, value);
    found.files |= option.value == "LIST" && value == "LIST" && !found.words.empty();
    return that_begin(std::move(found), typed, before);
  }
  return that_begin(of_value(option.name, value), typed.substr(comma + 1),
                    before + typed.substr(0, comma + 1));
}

// Candidates for a place without option: "NAME|FILE" of "orrery schedule NAME|FILE --pp N".
Candidates of_place(const CommandPage& page) {
  static const std::map<std::string, std::string> what{{"KIND", "collective"}, {"GPU", "gpu"}};
  Candidates found;
  for (const std::string& line : page.synopsis) {
    const std::string begins = "orrery " + page.name + " ";
    if (!line.starts_with(begins)) continue;
    for (const std::string& word : split(line.substr(begins.size()), " ")) {
      if (word.starts_with('-') || word.starts_with("[-") || word == "[options]") break;
      const std::string place = word.substr(word.starts_with('[') ? 1 : 0);
      for (const std::string& part : split(place, "|")) {
        const auto named = what.find(part.substr(0, part.find_first_of("]")));
        const Candidates of = of_value(named == what.end() ? page.name : named->second,
                                       part.substr(0, part.find(']')));
        found.files |= of.files;
        found.folders |= of.folders;
        found.words.insert(found.words.end(), of.words.begin(), of.words.end());
      }
    }
  }
  return found;
}

// -o is --output, and -j --jobs.
std::string long_name(const std::string& word) {
  if (word == "-o") return "output";
  if (word == "-j") return "jobs";
  return word.starts_with("--") ? word.substr(2) : "";
}

const OptionEntry* find_option(const CommandPage& page, const std::string& word) {
  for (const OptionEntry& option : page.table.options)
    if (option.name == long_name(word)) return &option;
  return nullptr;
}

// Most options are given once.
Candidates unused_options(const CommandPage& page, const Words& before) {
  Candidates found;
  for (const OptionEntry& option : page.table.options)
    if (option.may_repeat ||
        std::find(before.begin(), before.end(), "--" + option.name) == before.end())
      found.words.push_back({"--" + option.name, option.help});
  return found;
}

Candidates of_commands(const std::string& typed) {
  Candidates found;
  for (const Command& command : commands()) found.words.push_back({command.name, command.summary});
  found.words.push_back({"help", "the options of a command"});
  if (typed.starts_with('-')) found.words = {{"--help", "the commands"}, {"--version", ""}};
  return that_begin(std::move(found), typed, "");
}

Candidates of_words(const CommandPage& page, const std::string& typed) {
  Candidates found;
  for (const std::string& word : page.words) found.words.push_back({word, ""});
  if (typed.starts_with('-')) found.words = {{"--help", "what it takes"}};
  return that_begin(std::move(found), typed, "");
}

Candidates within(const CommandPage& page, const Words& words) {
  const std::string& typed = words.back();
  const Words before{words.begin(), words.end() - 1};
  const OptionEntry* open = before.empty() ? nullptr : find_option(page, before.back());
  if (open && !open->value.empty() && !(open->value_may_lack() && typed.starts_with('-')))
    return of_option(*open, typed, "");
  const std::size_t equals = typed.find('=');
  if (typed.starts_with("--") && equals != typed.npos) {
    const OptionEntry* option = find_option(page, typed.substr(0, equals));
    return option ? of_option(*option, typed.substr(equals + 1), typed.substr(0, equals + 1))
                  : Candidates{};
  }
  if (typed.starts_with('-')) return that_begin(unused_options(page, before), typed, "");
  Candidates places = of_place(page);
  const bool takes_only_options = places.words.empty() && !places.files && !places.folders;
  return that_begin(takes_only_options ? unused_options(page, before) : std::move(places), typed,
                    "");
}

}  // namespace

Candidates candidates(const Words& words) {
  if (words.empty()) return {};
  if (words.size() == 1) return of_commands(words.front());
  if (words.front() == "help") return candidates({words.begin() + 1, words.end()});
  const Command* command = find_command(words.front());
  if (!command) return {};
  if (command->name == "manual" && words.size() == 2 && !words.back().starts_with('-'))
    return of_commands(words.back());
  const CommandPage page = describe(*command);
  const Words rest{words.begin() + 1, words.end()};
  const bool has_options = !page.table.options.empty();
  if (page.words.empty() || (has_options && rest.front().starts_with('-')))
    return within(page, rest);
  if (rest.size() == 1) return of_words(page, rest.front());
  if (std::find(page.words.begin(), page.words.end(), rest.front()) == page.words.end())
    return has_options ? within(page, rest) : Candidates{};
  return within(describe(*command, rest.front()), {rest.begin() + 1, rest.end()});
}

namespace {

// Every shell prints a line a candidate, a tab between it and its meaning. ":files" and ":folders"
// leave these to the shell, which knows how to quote them.

// Bash takes '=' and ':' for words of their own: they are joined again, and what Bash will keep is
// taken off what it is given.
constexpr std::string_view bash = R"(# Bash completion of orrery.
_orrery() {
  local program=${1/#\~/$HOME} words=() last i line prefix found=() IFS=$'\n'
  for ((i = 1; i <= COMP_CWORD; i++)); do
    last=${COMP_WORDS[i]}
    if ((${#words[@]})) && [[ $last == [=:]* || ${COMP_WORDS[i - 1]} == *[=:] ]]; then
      words[${#words[@]}-1]+=$last
    else
      words+=("$last")
    fi
  done
  local typed=${words[${#words[@]}-1]}
  case $last in
    = | :) prefix=$typed ;;
    *) prefix=${typed%"$last"} ;;
  esac
  typed=${typed#"$prefix"}
  while read -r line; do
    case $line in
      :files)
        compopt -o filenames
        found+=($(compgen -f -- "$typed"))
        ;;
      :folders)
        compopt -o filenames
        found+=($(compgen -d -- "$typed"))
        ;;
      *)
        line=${line%%$'\t'*}
        found+=("${line#"$prefix"}")
        ;;
    esac
  done < <("$program" completion words "${words[@]}" 2>/dev/null)
  COMPREPLY=("${found[@]}")
}
complete -F _orrery orrery
)";

constexpr std::string_view zsh = R"(#compdef orrery
_orrery() {
  local line word
  local -a found meanings
  local files= folders=
  while IFS= read -r line; do
    case $line in
      :files) files=yes ;;
      :folders) folders=yes ;;
      *)
        word=${line%%$'\t'*}
        found+=("$word")
        if [[ $line == *$'\t'* ]]; then
          meanings+=("$word  -- ${line#*$'\t'}")
        else
          meanings+=("$word")
        fi
        ;;
    esac
  done < <(${~words[1]} completion words "${(@)words[2,CURRENT]}" 2>/dev/null)
  (( ${#found} )) && compadd -l -d meanings -a found
  [[ -n $files ]] && _files
  [[ -n $folders ]] && _files -/
  return 0
}
if [[ $funcstack[1] == _orrery ]]; then
  _orrery "$@"
else
  compdef _orrery orrery
fi
)";

constexpr std::string_view fish = R"(# Fish completion of orrery.
# A command without completions of its own takes files, in whatever quotes.
function __orrery_candidates
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] completion words $words[2..-1] 2>/dev/null)
        switch $line
            case :files
                complete -C "__orrery_files "(commandline -ct)
            case :folders
                __fish_complete_directories (commandline -ct)
            case '*'
                echo $line
        end
    end
end
complete -c orrery -f -a '(__orrery_candidates)'
)";

}  // namespace

std::string_view completion_script(std::string_view shell) {
  if (shell == "bash") return bash;
  if (shell == "zsh") return zsh;
  if (shell == "fish") return fish;
  return {};
}

namespace {

void print(const Candidates& found) {
  for (const auto& word : found.words)
    std::cout << word.text << (word.meaning.empty() ? "" : "\t" + word.meaning) << "\n";
  if (found.files) std::cout << ":files\n";
  if (found.folders) std::cout << ":folders\n";
}

}  // namespace

int run_completion(const Arguments& arguments) {
  static const std::vector<std::string> words{"bash", "zsh", "fish", "words"};
  CommandListener::report(words);
  const std::string word = arguments.empty() ? "" : arguments[0];
  if (word == "words") {  // The user's line follows, which may hold any option.
    print(candidates({arguments.begin() + 1, arguments.end()}));
    return exit_ok;
  }
  if (word == "--help" || (arguments.size() == 2 && arguments[1] == "--help")) {
    std::cout << "usage: orrery completion bash|zsh|fish\n"
                 "       orrery completion words WORD...\n\n"
                 "Prints what a shell reads to complete commands, options and names of orrery:\n\n"
                 "  bash  source <(orrery completion bash)\n"
                 "  zsh   source <(orrery completion zsh)\n"
                 "  fish  orrery completion fish | source\n\n"
                 "The shell then asks for each word what it may be: completion words.\n";
    return exit_ok;
  }
  const std::string_view script = completion_script(word);
  if (script.empty())
    fail_input({}, word.empty() ? "for which shell?" : "'" + word + "' cannot complete",
               suggestion(word, words));
  if (arguments.size() > 1)
    fail_input({}, "'" + arguments[1] + "' is one word too many", "orrery completion " + word);
  std::cout << script;
  return exit_ok;
}

}  // namespace orrery
