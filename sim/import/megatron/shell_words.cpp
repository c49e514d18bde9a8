#include "sim/import/megatron/shell_words.hpp"

#include <algorithm>
#include <cctype>

#include "sim/base/text/text_file.hpp"

namespace orrery {
namespace {

using Words = std::vector<ShellWord>;

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// A line can double what the one before it made: text that variables may put in, in all.
constexpr std::size_t most_filled_in = 4 << 20;
constexpr std::size_t longest_expansion = 1'000;  // "${...}" and "$(...)", as they are written.

class Reader {
 public:
  Reader(const std::string& text, const std::string& file,
         const std::map<std::string, std::string>& given)
      : text_{text}, file_{file} {
    for (const auto& [name, value] : given) {
      variables_[name] = {{value, 0}};
      fixed_.push_back(name);
    }
  }

  ShellScript read() {
    while (at_ < text_.size()) read_piece();
    end_command();
    return std::move(script_);
  }

 private:
  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }

  // One character of the script, or what it opens.
  void read_piece() {
    const char c = here();
    if (c == '\\' && (next() == '\n' || next() == '\r')) {
      at_ += next() == '\r' ? 3 : 2;
      ++line_;
      end_word();
    } else if (c == '\\') {
      add(next());
      at_ += 2;
    } else if (c == '\n') {
      end_word();
      if (!in_array_) end_command();
      ++line_;
      ++at_;
    } else if (c == '#' && !in_word_) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      end_word();
      ++at_;
    } else if (c == '\'') {
      read_quoted();
    } else if (c == '"') {
      read_double_quoted();
    } else if (c == '$') {
      read_variable();
    } else if (c == '(' && !in_array_ && ends_with_assignment()) {
      begin_array();
    } else if (c == ')' && in_array_) {
      end_array();
    } else if ((c == ';' || c == '|' || c == '&') && !in_array_) {
      end_word();
      end_command();
      ++at_;
    } else {
      add(c);
      ++at_;
    }
  }

  void add(char c) {
    in_word_ = true;
    if (c != '\0') word_ += c;
  }
  void add(const std::string& text) {
    in_word_ = true;
    word_ += text;
  }

  void read_quoted() {
    in_word_ = true;
    for (++at_; at_ < text_.size() && here() != '\''; ++at_) {
      if (here() == '\n') ++line_;
      add(here());
    }
    ++at_;
  }

  void read_double_quoted() {
    in_word_ = true;
    ++at_;
    while (at_ < text_.size() && here() != '"') {
      if (here() == '$') {
        read_variable();
        continue;
      }
      if (here() == '\\' && next() == '\n') {
        at_ += 2;
        ++line_;
        add(' ');
        continue;
      }
      if (here() == '\\' && (next() == '"' || next() == '\\' || next() == '$')) ++at_;
      if (here() == '\n') ++line_;
      add(here());
      ++at_;
    }
    ++at_;
  }

  // At a '$'. What is no variable stays as it is written.
  void read_variable() {
    std::size_t begin = at_ + 1;
    if (begin < text_.size() && text_[begin] == '{') {
      const std::size_t length = text_.substr(begin, longest_expansion).find('}');
      if (length == std::string::npos) return take_as_written(at_ + 1);
      const std::string inside = text_.substr(begin + 1, length - 1);
      at_ = begin + length + 1;
      return expand(inside);
    }
    if (begin < text_.size() && text_[begin] == '(') return take_as_written(closing(begin));
    std::size_t end = begin;
    while (end < text_.size() && is_name(text_[end])) ++end;
    if (end == begin) return take_as_written(at_ + 1);
    const std::string name = text_.substr(begin, end - begin);
    at_ = end;
    expand(name);
  }

  // Behind the ')' that closes the '(' at `begin`.
  std::size_t closing(std::size_t begin) const {
    int depth = 0;
    const std::size_t end = std::min(text_.size(), begin + longest_expansion);
    for (std::size_t i = begin; i < end && text_[i] != '\n'; ++i) {
      if (text_[i] == '(') ++depth;
      if (text_[i] == ')' && --depth == 0) return i + 1;
    }
    return begin;
  }

  void take_as_written(std::size_t end) {
    add(text_.substr(at_, end - at_));
    at_ = end;
  }

  // `inside`: what stands between the braces, or a name.
  void expand(const std::string& inside) {
    std::size_t end = 0;
    while (end < inside.size() && is_name(inside[end])) ++end;
    const std::string name = inside.substr(0, end), rest = inside.substr(end);
    const auto found = variables_.find(name);
    const bool is_default = rest.starts_with(":-") || rest.starts_with("-");
    const bool is_all = rest == "[@]" || rest == "[*]";
    if (name.empty() || !(rest.empty() || is_default || is_all)) return add("${" + inside + "}");
    if (found != variables_.end()) return insert(found->second);
    if (is_default) return add(rest.substr(rest.find('-') + 1));
    add("$" + name);
  }

  // Words of a variable: the first joins what stands before it, the last what follows.
  void insert(const Words& words) {
    in_word_ = in_word_ || !words.empty();
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (i > 0) end_word();
      filled_in_ += words[i].text.size() + 1;
      if (filled_in_ > most_filled_in)
        fail_input(line_place(file_, line_), "its variables hold one another without end",
                   "give the list of arguments that Megatron-LM prints instead");
      add(words[i].text);
    }
  }

  bool ends_with_assignment() const {
    return word_.size() > 1 && word_.back() == '=' &&
           !variable_of(word_.substr(0, word_.size() - 1)).empty();
  }

  // "NAME" or "NAME+" as the left side of an assignment; "" where it is none.
  static std::string variable_of(std::string left) {
    if (left.ends_with('+')) left.pop_back();
    const bool good =
        !left.empty() && is_name_start(left[0]) && std::all_of(left.begin(), left.end(), is_name);
    return good ? left : "";
  }

  void begin_array() {
    array_name_ = word_.substr(0, word_.size() - 1);
    word_.clear();
    in_word_ = false;
    in_array_ = true;
    array_.clear();
    ++at_;
  }

  void end_array() {
    end_word();
    in_array_ = false;
    ++at_;
    assign(array_name_, array_);
  }

  void assign(const std::string& left, Words value) {
    const std::string name = variable_of(left);
    if (std::find(fixed_.begin(), fixed_.end(), name) != fixed_.end()) return;
    Words& variable = variables_[name];
    const auto same = [](const ShellWord& a, const ShellWord& b) { return a.text == b.text; };
    if (left.ends_with('+')) {
      variable.insert(variable.end(), value.begin(), value.end());
    } else {
      const bool differs = !variable.empty() && !std::equal(variable.begin(), variable.end(),
                                                            value.begin(), value.end(), same);
      std::vector<std::string>& twice = script_.set_twice;
      if (differs && std::find(twice.begin(), twice.end(), name) == twice.end())
        twice.push_back(name);
      variable = std::move(value);
    }
  }

  void end_word() {
    if (!in_word_) return;
    in_word_ = false;
    ShellWord word{std::move(word_), line_};
    word_.clear();
    if (in_array_) {
      array_.push_back(std::move(word));
      return;
    }
    const std::size_t equals = word.text.find('=');
    const bool starts = std::all_of(command_.begin(), command_.end(), [](const ShellWord& w) {
      return w.text == "export" || w.text == "local" || w.text == "declare";
    });
    if (starts && equals != std::string::npos &&
        !variable_of(word.text.substr(0, equals)).empty()) {
      assign(word.text.substr(0, equals), {{word.text.substr(equals + 1), word.line}});
      command_.clear();
      return;
    }
    command_.push_back(std::move(word));
  }

  void end_command() {
    end_word();
    if (!command_.empty()) script_.commands.push_back(std::move(command_));
    command_.clear();
  }

  const std::string& text_;
  const std::string& file_;
  std::size_t filled_in_ = 0;
  std::map<std::string, Words> variables_;
  std::vector<std::string> fixed_;
  ShellScript script_;
  Words command_;
  Words array_;
  std::string array_name_;
  std::string word_;
  std::size_t at_ = 0;
  std::size_t line_ = 0;
  bool in_word_ = false;
  bool in_array_ = false;
};

}  // namespace

ShellScript read_shell_script(const std::string& text, const std::string& file,
                              const std::map<std::string, std::string>& given) {
  return Reader{text, file, given}.read();
}

}  // namespace orrery
