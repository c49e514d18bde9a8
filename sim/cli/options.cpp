#include "sim/cli/options.hpp"

#include <charconv>
#include <iostream>
#include <utility>

#include "sim/core/nearest.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {

CommandListener::CommandListener(Ears ears)
    : outer_{std::exchange(innermost_, this)}, ears_{std::move(ears)} {}

CommandListener::~CommandListener() { innermost_ = outer_; }

void CommandListener::tell(const OptionTable& table) {
  if (innermost_) innermost_->ears_.table(table);
}

void CommandListener::tell(const std::vector<std::string>& words) {
  if (innermost_) innermost_->ears_.words(words);
}

int parse_count(const std::string& text, const Place& at, int minimum, int maximum) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end || value < minimum || value > maximum)
    fail_input(
        at, "'" + text + "' is not such a number",
        "write a whole number from " + std::to_string(minimum) + " to " + std::to_string(maximum));
  return value;
}

namespace {

// What Megatron-LM, DeepSpeed and Slurm call the same.
std::string other_name(const std::string& word) {
  static const std::map<std::string, std::string> names = [] {
    std::map<std::string, std::string> map{//
                                           {"--fp8", "--dtype fp8"},
                                           {"--bf16", "--dtype bf16"},
                                           {"--world-size", "--gpus"},
                                           {"--num-gpus", "--gpus"},
                                           {"--nodes", "--gpus N (all GPUs of all nodes)"},
                                           {"--nnodes", "--gpus N (all GPUs of all nodes)"},
                                           {"--cluster", "--system"},
                                           {"--config", "--model"},
                                           {"--price", "--economics"}};
    for (const PlanKey& key : plan_keys()) {
      if (!key.megatron.empty()) map.emplace("--" + key.megatron, "--" + key.name);
      for (const std::string& other : key.elsewhere) map.emplace("--" + other, "--" + key.name);
    }
    return map;
  }();
  const auto found = names.find(word);
  return found == names.end() ? std::string{} : found->second;
}

// A paragraph that goes on in lines of `width` behind `indent` blanks. A line may end within a word
// that is longer than half of it.
std::string in_column(const std::string& text, std::size_t indent, std::size_t width) {
  if (text.size() < width) return text;
  std::string lines;
  for (std::size_t begin = 0; begin < text.size();) {
    if (begin > 0 && text[begin] == ' ' && begin + 1 < text.size() && text[begin + 1] != ' ')
      ++begin;
    std::size_t end = std::min(begin + width, text.size());
    if (end < text.size() && text[end - 1] != ' ' && text[end] != ' ') {
      const std::size_t blank = text.rfind(' ', end - 1);
      if (blank != text.npos && blank >= begin && end - 1 - blank < width / 2) end = blank + 1;
    }
    lines += text.substr(begin, end - begin);
    if (end < text.size()) lines += "\n" + std::string(indent, ' ');
    begin = end;
  }
  return lines;
}

std::string left_column(const OptionEntry& option) {
  return "  --" + option.name + " " + option.value;
}

}  // namespace

std::string Options::table_text() const {
  // The first column is narrower where all options stand in groups, and those of the first group do
  // not need the blank behind it.
  constexpr std::size_t width = 100, least = 23, most = 59;
  std::size_t column = least;
  for (const OptionEntry& one : entries_) {
    const std::size_t left = std::clamp(left_column(one).size(), least, most);
    column = std::max(column, left + (one.group == first_ ? 0 : 1));
  }
  column = std::min(column, first_.empty() ? 39 : most) + 1;
  std::string text = first_.empty() ? "" : first_ + ":\n";
  std::string group = first_;
  const auto line = [&](const OptionEntry& one) {
    const std::string left = left_column(one);
    text += left;
    if (!one.help.empty()) {
      text += left.size() >= column ? "\n" + std::string(column, ' ')
                                    : std::string(column - left.size(), ' ');
      text += in_column(one.help, column, width - 1 - column);
    }
    text += "\n";
  };
  for (const OptionEntry& one : entries_)
    if (one.group == first_) line(one);
  for (const OptionEntry& one : entries_) {
    if (one.group == first_) continue;
    if (one.group != group) text += "\n" + (group = one.group) + ":\n";
    line(one);
  }
  return text;
}

// -o is --output, and -j 4 as well as -j4 are --jobs 4, where there are such options; and "--sp
// --json" is "--sp true --json".
Arguments Options::long_names(const Arguments& arguments) const {
  Arguments longer;
  for (const std::string& word : arguments) {
    if (!longer.empty() && word.starts_with("--") && longer.back().starts_with("--")) {
      const OptionEntry* open = find(longer.back().substr(2));
      if (open && open->value_may_lack()) longer.emplace_back("true");
    }
    const bool count =
        word.starts_with("-j") && word.find_first_not_of("0123456789", 2) == word.npos;
    if (word == "-o" && find("output")) {
      longer.emplace_back("--output");
    } else if (count && find("jobs")) {
      longer.emplace_back("--jobs");
      if (word.size() > 2) longer.push_back(word.substr(2));
    } else {
      longer.push_back(word);
    }
  }
  if (!longer.empty() && longer.back().starts_with("--"))
    if (const OptionEntry* open = find(longer.back().substr(2)); open && open->value_may_lack())
      longer.emplace_back("true");
  return longer;
}

// An option, or what a dash makes look like one: with what was probably meant.
void Options::refuse_unknown(const std::string& word) const {
  const std::string typed = word.substr(0, word.find('='));
  const std::string dashed = word.starts_with("--") ? typed : "-" + typed;
  std::string near = other_name(dashed);
  if (near.empty() || !find(near.substr(2, near.find(' ') - 2))) {
    std::vector<std::string> names;
    for (const OptionEntry& one : entries_) names.push_back("--" + one.name);
    near = nearest(dashed, names);
  }
  if (word.starts_with("--") || !near.empty())
    fail_input(command_line, "unknown option '" + word + "'",
               near.empty() ? "see --help" : "did you mean '" + near + "'?");
}

bool Options::parse(const Arguments& arguments, const std::string& usage) {
  OptionTable table{entries_, table_text()};
  CommandListener::tell(table);
  for (const std::string& word : arguments)
    if (word == "--" || word.starts_with("--="))
      fail_input(command_line, "'" + word + "' is no option", "leave it out");
  const Arguments longer = long_names(arguments);
  for (std::size_t i = 0; i < longer.size(); ++i) {
    const std::string& word = longer[i];
    if (!word.starts_with("--")) {
      if (word.size() > 1 && word.front() == '-') refuse_unknown(word);
      words_.push_back(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    const OptionEntry* option = find(word.substr(2, equals - 2));
    if (!option) refuse_unknown(word);
    const auto fail = [&](const std::string& problem, const std::string& remedy) {
      fail_input(command_line, "the option '--" + option->name + "' " + problem, remedy);
    };
    if (has(option->name) && !option->may_repeat) fail("is given twice", "keep one of them");
    std::vector<std::string>& texts = typed_[option->name];
    if (option->value.empty()) {
      if (equals != word.npos) fail("takes no value", "leave '" + word.substr(equals) + "' out");
      continue;
    }
    const std::size_t before = texts.size();
    if (equals != word.npos && equals + 1 < word.size())
      texts.push_back(word.substr(equals + 1));
    else if (equals == word.npos && i + 1 < longer.size())
      texts.push_back(longer[++i]);
    if (texts.size() == before) fail("needs a value", "write it after the option");
    while (option->takes_words && i + 1 < longer.size() && !longer[i + 1].starts_with('-'))
      texts.push_back(longer[++i]);
  }
  if (!has("help") || usage.empty()) return true;
  std::cout << usage << "\n\n" << table.text;
  return false;
}

void Options::fill() const {
  for (const OptionEntry& option : entries_) {
    const auto found = typed_.find(option.name);
    if (found == typed_.end() || !option.take) continue;
    const Place at = command_line / option.name;
    if (option.value.empty()) option.take("", at);
    for (const std::string& text : found->second) option.take(text, at);
  }
}

bool Options::read(const Arguments& arguments, const std::string& usage) {
  if (!parse(arguments, usage)) return false;
  fill();
  return true;
}

void Options::give(const std::string& name, const std::string& text) {
  if (!has(name)) typed_[name] = {text};
}

void Options::give(const std::string& name, const Options& other) {
  if (!has(name) && other.has(name)) typed_[name] = other.typed_.at(name);
}

void Options::give_also(const std::string& name, const std::string& begin,
                        const std::string& text) {
  std::vector<std::string>& all = typed_[name];
  if (std::none_of(all.begin(), all.end(),
                   [&](const std::string& one) { return one.starts_with(begin); }))
    all.push_back(begin + text);
}

const OptionEntry* Options::find(const std::string& name) const {
  for (const OptionEntry& option : entries_)
    if (option.name == name) return &option;
  return nullptr;
}

void Options::refuse_words(const std::string& remedy, const std::string& problem) const {
  if (!words_.empty()) fail_input({}, "'" + words_.front() + "' " + problem, remedy);
}

const std::string& Options::only_word(const std::string& none, const std::string& several,
                                      const std::string& remedy) const {
  if (words_.size() != 1) fail_input({}, words_.empty() ? none : several, remedy);
  return words_.front();
}

void Options::refuse(std::initializer_list<const char*> names, const std::string& problem,
                     const std::string& remedy) const {
  for (const char* name : names)
    if (has(name)) fail_input(command_line / name, problem, remedy);
}

std::string Options::required(const std::string& name, const std::string& remedy) const {
  if (!has(name)) fail_input(command_line, "--" + name + " is missing", remedy);
  return text(name);
}

}  // namespace orrery
