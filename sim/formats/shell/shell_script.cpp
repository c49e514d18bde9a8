#include "sim/formats/shell/shell_script.hpp"

#include <algorithm>
#include <filesystem>
#include <list>
#include <set>
#include <utility>

#include "sim/core/text_file.hpp"
#include "sim/formats/shell/launched_program.hpp"
#include "sim/formats/shell/shell_expansion.hpp"
#include "sim/formats/shell/shell_expression.hpp"
#include "sim/formats/shell/shell_lexer.hpp"
#include "sim/formats/shell/shell_parser.hpp"
#include "sim/formats/shell/shell_syntax.hpp"
#include "sim/formats/shell/shell_values.hpp"

namespace orrery {
namespace {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.find_last_not_of('/') == path.npos
                                ? path.npos
                                : path.rfind('/', path.find_last_not_of('/'));
  if (slash == path.npos) return path.starts_with('/') ? "/" : ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) {
  const std::size_t end = path.find_last_not_of('/');
  if (end == path.npos) return path;
  return path.substr(0, end + 1).substr(path.rfind('/', end) + 1);
}

}  // namespace

std::optional<std::string> printed_by(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  const std::string& program = words[0];
  std::vector<std::string> rest;
  std::string joined;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!is_known(words[i])) return std::nullopt;
    const bool is_option = words[i].size() > 1 && words[i][0] == '-' && rest.empty();
    // echo has few options of its own, and prints all others.
    const bool of_echo = words[i].find_first_not_of("neE", 1) == words[i].npos;
    if (is_option && program != "expr" && (program != "echo" || of_echo)) continue;
    rest.push_back(words[i]);
    joined += (joined.empty() ? "" : " ") + words[i];
  }
  if (program == "pwd") return ".";
  if (program == "echo") return joined;
  if (program == "expr") {
    if (!unset_names(joined).empty()) return std::nullopt;
    const auto value =
        shell_arithmetic(joined, [](const std::string&) { return std::optional<std::string>{}; });
    return value ? std::optional{std::to_string(*value)} : std::nullopt;
  }
  if (rest.size() != 1 || !unset_names(rest[0]).empty()) return std::nullopt;
  if (program == "dirname") return folder_of(rest[0]);
  if (program == "basename") return name_of(rest[0]);
  if (program == "readlink" || program == "realpath" || program == "cd") return rest[0];
  return std::nullopt;
}

namespace {

using NodeKind = ShellNode::Kind;
using Words = std::vector<ShellWord>;

constexpr int deepest_call = 40;       // Functions and files in one another.
constexpr int most_commands = 50'000;  // Limit of commands that loops repeat, in all.
constexpr int most_rounds = 200;
constexpr std::size_t most_texts = 200;  // Limit of parsed files, documents and words.

// Parts of names that variables with further arguments have.
constexpr const char* argument_names[] = {"ARG", "OPT", "FLAG", "EXTRA", "PARAM",
                                          "arg", "opt", "flag", "extra", "param"};

/// The result of a command. A program is taken to succeed, but decides nothing.
enum class Status { yes, no, program, unknown };

Status status_of(std::optional<bool> truth) {
  return !truth ? Status::unknown : *truth ? Status::yes : Status::no;
}

bool is_one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string name_of_path(const std::string& path) { return path.substr(path.rfind('/') + 1); }

class Interpreter {
 public:
  Interpreter(const std::string& file, const std::map<std::string, std::string>& given,
              const ShellFiles& files)
      : variables_{file, given},
        expander_{variables_, [this](const std::string& text) { return printed(text); }},
        files_{files} {}

  ShellScript read(const std::string& text) {
    run(keep(parse_shell(without_marks(text))));
    ShellScript script;
    script.commands = std::move(commands_);
    for (Words& command : script.commands)
      for (ShellWord& word : command) word.text = shown_marks(word.text);
    for (const std::string& name : variables_.names())
      if (const ShellValue* value = variables_.find(name)) {
        script.variables.emplace_back(name, value->words);
        for (ShellWord& word : script.variables.back().second) word.text = shown_marks(word.text);
      }
    script.files = variables_.files();
    script.written = std::move(written_);
    tell_unset();
    script.notes = std::move(notes_);
    return script;
  }

 private:
  // Functions outlive the text that defined them.
  const ShellNode& keep(ShellNode tree) {
    trees_.push_back(std::move(tree));
    return trees_.back();
  }

  Status run(const ShellNode& node) {
    if (ended_ || flow_ != Flow::on || depth_ >= deepest_call || ++executed_ > most_commands)
      return Status::unknown;
    switch (node.kind) {
      case NodeKind::command:
        return command(node);
      case NodeKind::test: {
        std::vector<std::string> words;
        for (const WrittenWord& word : node.words) words.push_back(expander_.text(word));
        return tested(words);
      }
      case NodeKind::arithmetic:
        return calculated(node.name, node.line);
      case NodeKind::list:
        return list(node);
      case NodeKind::chain:
        return chain(node);
      case NodeKind::negation:
        return negated(run(node.parts[0]));
      case NodeKind::branch:
        return branch(node);
      case NodeKind::choice:
        return choice(node);
      case NodeKind::repetition:
        return repetition(node);
      case NodeKind::each:
        return each(node);
      case NodeKind::function:
        functions_[node.name] = &node.parts[0];
        return Status::yes;
    }
    return Status::unknown;
  }

  Status inside(const ShellNode& node) {
    ++depth_;
    const Status status = run(node);
    --depth_;
    return status;
  }

  static Status negated(Status status) {
    if (status == Status::yes) return Status::no;
    return status == Status::no ? Status::yes : Status::unknown;
  }

  // ((...)) and let: a value, or an assignment: N=..., N+=..., N++.
  Status calculated(const std::string& text, std::size_t line) {
    const auto [name, expression] = shell_assignment(text);
    const std::string value = expander_.arithmetic(expression, line);
    if (!name.empty()) variables_.set(name, {{variables_.word(value, line)}, {}});
    if (!is_known(value) || !unset_names(value).empty()) return Status::unknown;
    return value == "0" ? Status::no : Status::yes;
  }

  Status list(const ShellNode& node) {
    Status status = Status::yes;
    for (const ShellNode& part : node.parts) {
      if (is_command(part, {"exit"}) && depth_ == 0) ended_ = true;
      if (ended_) break;
      status = run(part);
      if (flow_ != Flow::on) break;
    }
    return status;
  }

  Status chain(const ShellNode& node) {
    Status status = run(node.parts[0]);
    for (std::size_t i = 1; i < node.parts.size(); ++i) {
      const bool if_it_fails = node.name[i - 1] == '|';
      if (status == Status::unknown && !ends_script(node.parts[i])) tell_left_out(node.parts[i]);
      if (status == Status::unknown) continue;
      if ((status == Status::no) == if_it_fails) status = inside(node.parts[i]);
    }
    return status;
  }

  Status tested(const std::vector<std::string>& words) {
    return status_of(shell_test(
        words, [this](const std::string& name) { return variables_.find(name) != nullptr; },
        unset_));
  }

  Status branch(const ShellNode& node) {
    const std::size_t pairs = node.parts.size() / 2;
    const ShellNode* otherwise = node.parts.size() % 2 == 1 ? &node.parts.back() : nullptr;
    for (std::size_t i = 0; i < pairs; ++i) {
      const ShellNode& body = node.parts[2 * i + 1];
      const Status status = run(node.parts[2 * i]);
      const bool is_open = status == Status::unknown || status == Status::program;
      const bool other_ends = i + 1 == pairs && otherwise && ends_script(*otherwise);
      if (status == Status::yes || (is_open && other_ends)) return taken(body);
      if (is_open && !ends_script(body)) tell_left_out(body);
    }
    return otherwise ? taken(*otherwise) : Status::yes;
  }

  Status taken(const ShellNode& body) {
    if (ends_script(body))
      tell(body.line, "by what is known the script ends here; it is read on all the same");
    return inside(body);
  }

  Status choice(const ShellNode& node) {
    const std::string subject = expander_.text(node.words[0]);
    for (std::size_t i = 0; i < node.parts.size(); ++i) {
      std::vector<std::string> patterns;
      for (const WrittenWord& pattern : node.patterns[i])
        patterns.push_back(expander_.text(pattern));
      const auto fits = shell_choice(subject, patterns);
      if (!fits) tell_left_out(node.parts[i]);
      if (!fits || !*fits) continue;
      for (std::string& name : unset_names(subject)) unset_.push_back(std::move(name));
      return taken(node.parts[i]);
    }
    return Status::yes;
  }

  Status repetition(const ShellNode& node) {
    for (int round = 0; round < most_rounds; ++round) {
      Status status = run(node.parts[0]);
      if (node.is_condition_negated) status = negated(status);
      if (status == Status::no) return Status::yes;
      if (status != Status::yes) break;
      inside(node.parts[1]);
      if (leaves_loop() || ended_) return Status::yes;
    }
    tell_left_out(node.parts[1]);
    return Status::unknown;
  }

  Status each(const ShellNode& node) {
    Words items;
    for (const ShellItem& item : node.items)
      for (ShellWord& word : expander_.words(item.word)) items.push_back(std::move(word));
    if (node.name.empty()) items.resize(1);
    if (items.size() > 1 && matters(node.parts[0]))
      tell(node.line, "a loop of " + std::to_string(items.size()) + " rounds; the last one counts");
    for (std::size_t i = 0; i < items.size() && i < most_rounds; ++i) {
      if (!node.name.empty()) variables_.set(node.name, {{items[i]}, {}});
      inside(node.parts[0]);
      if (leaves_loop()) break;
    }
    return Status::yes;
  }

  // Ends `break` and `continue` of a loop's body. True: the loop ends as well.
  bool leaves_loop() { return std::exchange(flow_, Flow::on) == Flow::breaks; }

  Status command(const ShellNode& node) {
    std::size_t first = 0;
    for (; first < node.items.size() && !node.items[first].name.empty(); ++first)
      assign(node.items[first]);  // Bash undoes those before a command, which rarely matters.
    if (first == node.items.size()) return Status::yes;
    if (is_command(node, {"export", "local", "declare", "typeset", "readonly"})) {
      const bool is_local = !locals_.empty() && !is_command(node, {"export", "readonly"});
      for (const ShellItem& item : node.items) {
        if (is_local) keep_outer(item.name.empty() ? plain_text(item.word) : item.name);
        if (!item.name.empty()) assign(item);
      }
      return Status::yes;
    }
    Words words;
    for (std::size_t i = first; i < node.items.size(); ++i)
      for (ShellWord& word : expander_.words(node.items[i].word)) words.push_back(std::move(word));
    return words.empty() ? Status::yes : start(words, node);
  }

  static std::string plain_text(const WrittenWord& word) {
    return word.pieces.size() == 1 ? word.pieces[0].text : "";
  }

  // A function's own variable: the one of that name outside comes back behind it.
  void keep_outer(const std::string& name) {
    if (!is_shell_name(name) || locals_.back().contains(name)) return;
    const ShellValue* outer = variables_.find(name);
    locals_.back()[name] = outer ? std::optional{*outer} : std::nullopt;
  }

  void call(const ShellNode& function) {
    locals_.emplace_back();
    inside(function);
    const auto own = std::move(locals_.back());
    locals_.pop_back();
    for (const auto& [name, outer] : own)
      outer ? variables_.set(name, *outer) : variables_.erase(name);
  }

  void assign(const ShellItem& item) {
    ShellValue value;
    if (item.is_array) {
      for (const WrittenWord& written : item.values)
        for (ShellWord& word : expander_.words(written)) add_element(value, std::move(word));
    } else {
      std::string text;
      for (const WrittenWord& written : item.values) text += expander_.text(written);
      // The output of an unknown program is shown as the variable's name.
      const bool is_printed = item.values.size() == 1 && item.values[0].pieces.size() == 1 &&
                              item.values[0].pieces[0].kind != ShellPiece::Kind::text;
      if (is_printed && !is_known(text)) text = unknown_mark("$" + item.name);
      value.words = {variables_.word(text, item.word.line)};
    }
    if (!item.index.empty())
      variables_.set_entry(item.name, expander_.text(shell_operand(item.index, item.word.line)),
                           value.words[0]);
    else if (item.appends)
      variables_.append(item.name, value, item.is_array);
    else
      variables_.set(item.name, std::move(value));
  }

  // [NAME]=value, or a word.
  static void add_element(ShellValue& value, ShellWord word) {
    const std::size_t close = word.text.find("]=");
    if (!word.text.starts_with('[') || close == std::string::npos)
      return value.words.push_back(std::move(word));
    const std::string index = word.text.substr(1, close - 1);
    word.text.erase(0, close + 2);
    value.entries[index] = std::move(word);
  }

  Status start(const Words& words, const ShellNode& node) {
    const std::string name = name_of_path(words[0].text);
    if (name == "[" || name == "test") {
      std::vector<std::string> texts;
      for (std::size_t i = 1; i < words.size(); ++i) texts.push_back(words[i].text);
      if (name == "[" && !texts.empty() && texts.back() == "]") texts.pop_back();
      return tested(texts);
    }
    if (name == "break") flow_ = Flow::breaks;
    if (name == "continue") flow_ = Flow::continues;
    if (flow_ != Flow::on || is_one_of(name, {"true", ":"})) return Status::yes;
    if (name == "false") return Status::no;
    if (is_one_of(name, {"echo", "printf", "exit", "return", "cd", "mkdir"}) &&
        node.document.pieces.empty())
      return Status::program;
    if (name == "let") {
      Status status = Status::yes;
      for (std::size_t i = 1; i < words.size(); ++i)
        status = calculated(words[i].text, words[i].line);
      return status;
    }
    if (name == "read" && !node.document.pieces.empty()) return read_document(words, node);
    if (built_in(name, words)) return Status::yes;
    if (const auto found = functions_.find(name); found != functions_.end())
      return with_words({words.begin() + 1, words.end()}, [&] { call(*found->second); });
    if (is_one_of(name, {"source", "."})) return read_file(words, true);
    if (is_slurm_command(name)) ask_slurm(name, words);
    if (!node.document.pieces.empty()) {
      const std::string text = expander_.text(node.document);
      const bool writes = is_one_of(name, {"cat", "tee"});
      if (writes ? keep_written(words, node, text)
                 : is_one_of(name, {"sbatch", "bash", "sh", "srun", "ssh"}))
        start_text(text, node.document.line);
    }
    if (name == "eval") {
      std::string all;
      for (std::size_t i = 1; i < words.size(); ++i) all += words[i].text + " ";
      start_text(all, words[0].line);
      return Status::program;
    }
    if (const std::size_t text = text_of_shell(words); text > 0) {
      commands_.emplace_back(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(text));
      start_text(words[text].text, words[text].line);
      return Status::program;
    }
    tell_unknown(words);
    commands_.push_back(words);
    if (is_one_of(name, {"sbatch", "bash", "sh"})) read_file(words, false);
    return Status::program;
  }

  // cat > FILE <<EOF, tee FILE <<EOF. Whether the file is a script, which is started later.
  bool keep_written(const Words& words, const ShellNode& node, const std::string& text) {
    std::string path = expander_.text(node.output);
    for (std::size_t i = 1; path.empty() && i < words.size(); ++i)
      if (!words[i].text.starts_with('-')) path = words[i].text;
    if (path.empty()) return false;
    if (written_.size() < most_texts) written_[shown_marks(path)] = shown_marks(text);
    const std::string first_line = text.substr(0, text.find('\n'));
    if (first_line.starts_with("#!")) return first_line.find("sh") != first_line.npos;
    constexpr const char* scripts[] = {".sh", ".bash", ".sbatch", ".slurm", ".job"};
    return std::any_of(std::begin(scripts), std::end(scripts),
                       [&](const char* end) { return path.ends_with(end); });
  }

  // read -d '' NAME <<EOF takes the whole document, else its first line.
  Status read_document(const Words& words, const ShellNode& node) {
    std::string text = expander_.text(node.document);
    const bool whole = std::any_of(words.begin(), words.end(), [](const ShellWord& word) {
      return word.text.starts_with('-') && word.text.ends_with('d');
    });
    if (!whole) text = text.substr(0, text.find('\n'));
    if (is_shell_name(words.back().text))
      variables_.set(words.back().text, {{variables_.word(text, node.document.line)}, {}});
    return Status::program;
  }

  bool built_in(const std::string& name, const Words& words) {
    if (name == "unset") {
      for (const ShellWord& word : words) variables_.erase(word.text);
    } else if (name == "shift") {
      if (!variables_.called_with.empty())
        variables_.called_with.erase(variables_.called_with.begin());
    } else if (name == "set" && words.size() > 1 && words[1].text == "--") {
      variables_.called_with.assign(words.begin() + 2, words.end());
    } else if (name == "read" || name == "mapfile" || name == "readarray") {
      for (std::size_t i = 1; i < words.size(); ++i)
        if (is_shell_name(words[i].text))
          variables_.set(words[i].text,
                         {{variables_.word(unknown_mark("$" + words[i].text), words[i].line)}, {}});
    } else {
      return name == "set";
    }
    return true;
  }

  // Sets the variables that Slurm would set for this request. A step of a job (srun) changes none
  // of the job's own.
  void ask_slurm(const std::string& name, const Words& words) {
    SlurmOptions step = slurm_;
    SlurmOptions& options = name == "srun" ? step : slurm_;
    options.read(words);
    for (const auto& [variable, value] : options.variables()) {
      if (name != "srun") of_job_.insert(variable);
      if (name == "srun" && of_job_.contains(variable)) continue;
      variables_.set(variable, {{variables_.word(std::to_string(value), words[0].line)}, {}});
    }
  }

  // The word behind `bash -c`, wherever in the command that stands, or the command that another
  // host runs, `ssh node1 "..."`; 0: none.
  static std::size_t text_of_shell(const Words& words) {
    const bool is_remote = is_one_of(name_of_path(words[0].text), {"ssh", "pdsh", "clush"});
    if (is_remote && words.size() > 2 && words.back().text.find(' ') != std::string::npos)
      return words.size() - 1;
    bool behind_shell = false;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      const std::string& word = words[i].text;
      const bool is_option = word.starts_with('-');
      if (behind_shell && is_option && !word.starts_with("--") && word.ends_with('c')) return i + 1;
      if (!is_option) behind_shell = is_one_of(name_of_path(word), {"bash", "sh", "zsh"});
    }
    return 0;
  }

  void start_text(const std::string& text, std::size_t line) {
    if (depth_ + 1 < deepest_call && trees_.size() < most_texts)
      inside(keep(parse_shell(shown_marks(text), line)));
  }

  template <class Run>
  Status with_words(Words words, const Run& run_it) {
    std::swap(variables_.called_with, words);
    run_it();
    std::swap(variables_.called_with, words);
    return Status::program;
  }

  Status read_file(const Words& words, bool is_wanted) {
    for (std::size_t i = 1; i < words.size() && files_ && trees_.size() < most_texts; ++i) {
      const std::string& path = words[i].text;
      if (path.starts_with('-') || path.find_first_of("*$\n") != path.npos || !is_known(path))
        continue;
      std::string found = path;
      auto text = files_(found);
      if (!text && !path.starts_with('/')) {  // It is mostly started where it lies.
        found = variables_.file().substr(0, variables_.file().rfind('/') + 1) + path;
        found = std::filesystem::path{found}.lexically_normal().string();
        text = files_(found);
      }
      if (!text) continue;
      const ShellNode& tree = keep(parse_shell(without_marks(*text)));
      const ShellVariables::InFile in_file{variables_, found};
      const Words rest{words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end()};
      if (is_wanted && rest.empty()) return inside(tree);
      return with_words(rest, [&] { inside(tree); });
    }
    if (is_wanted && words.size() > 1)
      tell(words[0].line, "not read: " + shown_marks(words[1].text));
    return Status::program;
  }

  std::optional<std::string> printed(const std::string& text) {
    const ShellNode tree = parse_shell(text);
    if (tree.parts.size() != 1) return std::nullopt;
    const ShellNode* node = &tree.parts[0];
    if (node->kind == NodeKind::chain) {  // cd FOLDER && pwd
      const bool goes = is_command(node->parts[0], {"cd"}) && is_command(node->parts[1], {"pwd"});
      if (!goes || node->name != "&") return std::nullopt;
      node = &node->parts[0];
    }
    if (node->kind != NodeKind::command) return std::nullopt;
    std::vector<std::string> words;
    for (const ShellItem& item : node->items)
      for (const ShellWord& word : expander_.words(item.word)) words.push_back(word.text);
    if (words == std::vector<std::string>{"cat"} && !node->document.pieces.empty())
      return document_of(*node);
    if (words.size() > 2 && words[0] == "scontrol" && words[2].starts_with("hostname"))
      return names_of_nodes();
    return printed_by(words);
  }

  // $(cat <<EOF): without the empty lines at its end.
  std::string document_of(const ShellNode& node) {
    std::string text = expander_.text(node.document);
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }

  // Names in place of those of the job's nodes: scripts count them.
  std::optional<std::string> names_of_nodes() {
    const ShellValue* nodes = variables_.find("SLURM_NNODES");
    const auto count =
        nodes && !nodes->words.empty() ? plain_integer(nodes->words[0].text, 4096) : std::nullopt;
    if (!count) return std::nullopt;
    std::string names;
    for (std::int64_t i = 0; i < *count; ++i)
      names += (i > 0 ? " node" : "node") + std::to_string(i);
    return names;
  }

  void tell(std::size_t line, const std::string& what) {
    const std::string note =
        name_of_path(variables_.file()) + ": line " + std::to_string(line + 1) + ": " + what;
    if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
  }

  // Words of a long command that stand for arguments, and that nothing says: an unset variable, the
  // output of a program, a file's text. Behind a flag such a word is mostly its value.
  void tell_unknown(const Words& words) {
    constexpr std::size_t least_words = 6;
    if (words.size() < least_words) return;
    std::string all;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::string& text = words[i].text;
      if (is_known(text) && unset_names(text).empty()) continue;
      const std::string shown = shown_marks(text);
      if (!shown.starts_with('$')) continue;
      const bool is_value = words[i - 1].text.starts_with('-');
      const bool holds_arguments =
          shown.starts_with("$(cat") || shown.starts_with("$(<") ||
          std::any_of(std::begin(argument_names), std::end(argument_names),
                      [&](const char* name) { return shown.find(name) != shown.npos; });
      const bool is_whole = unset_mark(shown.substr(1)) == text || unknown_mark(shown) == text;
      if (is_whole && (!is_value || holds_arguments)) all += " " + shown;
    }
    if (!all.empty()) tell(words[0].line, "left out, as nothing says what it is:" + all);
  }

  void tell_left_out(const ShellNode& node) {
    if (!matters(node)) return;
    const std::size_t last = std::max(node.last_line, node.line);
    tell(node.line, (last > node.line ? "up to line " + std::to_string(last + 1) + ": " : "") +
                        std::string{"left out, as only a program or a file could say whether it "
                                    "is reached"});
  }

  void tell_unset() {
    std::sort(unset_.begin(), unset_.end());
    unset_.erase(std::unique(unset_.begin(), unset_.end()), unset_.end());
    if (unset_.empty()) return;
    std::string all;
    for (const std::string& name : unset_) all += " $" + name;
    notes_.push_back("not set, so empty in conditions (--set NAME=VALUE sets one):" + all);
  }

  ShellVariables variables_;
  ShellExpander expander_;
  const ShellFiles& files_;
  std::list<ShellNode> trees_;
  std::map<std::string, const ShellNode*> functions_;
  std::vector<Words> commands_;
  std::vector<std::string> unset_;
  std::vector<std::string> notes_;
  std::map<std::string, std::string> written_;
  SlurmOptions slurm_;
  enum class Flow { on, breaks, continues };
  Flow flow_ = Flow::on;
  std::vector<std::map<std::string, std::optional<ShellValue>>> locals_;  // Of each call.
  std::set<std::string> of_job_;  // Variables that the job's own options set.
  int depth_ = 0;
  int executed_ = 0;
  bool ended_ = false;
};

}  // namespace

ShellScript read_shell_script(const std::string& text, const std::string& file,
                              const std::map<std::string, std::string>& given,
                              const ShellFiles& files) {
  return Interpreter{file, given, files}.read(text);
}

bool is_unset_variable(const std::string& word) {
  return word.starts_with('$') && is_shell_name(std::string_view{word}.substr(1));
}

}  // namespace orrery
