#include "sim/formats/shell/shell_expression.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "sim/core/text_file.hpp"
#include "sim/formats/shell/shell_lexer.hpp"
#include "sim/formats/shell/shell_values.hpp"

namespace orrery {
namespace {

// Every beginning and end of a text is tried: longer texts stay as they are.
constexpr std::size_t longest_tried = 2'000;

// Matches `c` with the set at the '[' and moves `at` to its end. An unclosed '[' is a letter.
bool set_fits(std::string_view pattern, std::size_t& at, char c) {
  std::size_t i = at + 1;
  const bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated) ++i;
  bool has = false;
  for (const std::size_t first = i; i < pattern.size() && (pattern[i] != ']' || i == first); ++i) {
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      has = has || (pattern[i] <= c && c <= pattern[i + 2]);
      i += 2;
    } else {
      has = has || pattern[i] == c;
    }
  }
  if (i >= pattern.size()) {
    ++at;
    return c == '[';
  }
  at = i + 1;
  return has != negated;
}

}  // namespace

bool shell_pattern_fits(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = pattern.npos, after_star = 0;
  while (t < text.size()) {
    std::size_t next = p;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = t;
      continue;
    }
    bool fits = false;
    if (p < pattern.size()) {
      if (pattern[p] == '[')
        fits = set_fits(pattern, next, text[t]);
      else
        fits = pattern[next++] == '?' || pattern[p] == text[t];
    }
    if (fits) {
      p = next;
      ++t;
    } else if (star != pattern.npos) {  // The star takes one letter more.
      p = star + 1;
      t = ++after_star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string without_pattern(const std::string& text, const std::string& pattern, bool at_end,
                            bool longest) {
  if (text.size() > longest_tried) return text;
  const std::string_view all{text};
  for (std::size_t i = 0; i <= all.size(); ++i) {
    const std::size_t size = longest ? all.size() - i : i;
    const std::size_t cut = at_end ? all.size() - size : size;
    if (shell_pattern_fits(pattern, at_end ? all.substr(cut) : all.substr(0, cut)))
      return std::string{at_end ? all.substr(0, cut) : all.substr(cut)};
  }
  return text;
}

std::string with_replaced_pattern(const std::string& text, const std::string& pattern,
                                  const std::string& by, bool all) {
  if (pattern.empty() || text.size() > longest_tried) return text;
  const std::string_view whole{text};
  std::string made;
  for (std::size_t at = 0; at < whole.size();) {
    std::size_t size = whole.size() - at;
    while (size > 0 && !shell_pattern_fits(pattern, whole.substr(at, size))) --size;
    if (size == 0) {
      made += whole[at++];
      continue;
    }
    made += by;
    at += size;
    if (!all) return made + std::string{whole.substr(at)};
  }
  return made;
}

namespace {

using Number = std::optional<std::int64_t>;
using ValueOf = std::function<std::optional<std::string>(const std::string&)>;

constexpr int deepest_expression = 50;  // Parentheses and names that stand for expressions.

Number power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0 || exponent > 64) return std::nullopt;
  std::int64_t value = 1;
  for (; exponent > 0; --exponent)
    if (__builtin_mul_overflow(value, base, &value)) return std::nullopt;
  return value;
}

Number result_of(const std::string& sign, std::int64_t a, std::int64_t b) {
  std::int64_t value = 0;
  if (sign == "**") return power(a, b);
  if (sign == "*") return __builtin_mul_overflow(a, b, &value) ? Number{} : value;
  if (sign == "+") return __builtin_add_overflow(a, b, &value) ? Number{} : value;
  if (sign == "-") return __builtin_sub_overflow(a, b, &value) ? Number{} : value;
  if (sign == "/" || sign == "%") {
    if (b == 0 || b == -1) return b == 0 ? Number{} : result_of("*", a, sign == "/" ? -1 : 0);
    return sign == "/" ? a / b : a % b;
  }
  if (sign == "<=") return a <= b;
  if (sign == ">=") return a >= b;
  if (sign == "<") return a < b;
  if (sign == ">") return a > b;
  if (sign == "==") return a == b;
  if (sign == "!=") return a != b;
  if (sign == "&&") return a != 0 && b != 0;
  return a != 0 || b != 0;
}

class ArithmeticReader {
 public:
  ArithmeticReader(const std::string& text, const ValueOf& value_of, int depth)
      : text_{text}, value_of_{value_of}, depth_{depth} {}

  Number read() {
    const Number value = choice();
    skip_blanks();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(const std::string& sign) {
    skip_blanks();
    if (text_.compare(at_, sign.size(), sign) != 0) return false;
    if (sign == "*" && text_.compare(at_, 2, "**") == 0) return false;
    at_ += sign.size();
    return true;
  }

  Number choice() {
    if (depth_ > deepest_expression) return std::nullopt;
    const Number condition = level(0);
    if (!take("?")) return condition;
    ++depth_;
    const Number yes = choice();
    if (!take(":")) return std::nullopt;
    const Number no = choice();
    --depth_;
    if (!condition) return std::nullopt;
    return *condition != 0 ? yes : no;
  }

  // Signs from those that bind least to those that bind most; longer ones before their beginnings.
  Number level(std::size_t number) {
    static const std::array<std::array<const char*, 4>, 7> signs{{{"||"},
                                                                  {"&&"},
                                                                  {"==", "!="},
                                                                  {"<=", ">=", "<", ">"},
                                                                  {"+", "-"},
                                                                  {"*", "/", "%"},
                                                                  {"**"}}};
    if (number == signs.size()) return operand();
    Number value = level(number + 1);
    for (;;) {
      const char* found = nullptr;
      for (const char* sign : signs[number])
        if (!found && sign && take(sign)) found = sign;
      if (!found) return value;
      // Powers bind from the right.
      const Number right = level(number + 1 < signs.size() ? number + 1 : number);
      value = value && right ? result_of(found, *value, *right) : std::nullopt;
    }
  }

  Number operand() {
    skip_blanks();
    if (at_ == text_.size() || depth_ > deepest_expression) return std::nullopt;
    const char c = text_[at_];
    if (c == '(' || c == '-' || c == '+' || c == '!') {
      ++at_;
      ++depth_;
      const Number inside = c == '(' ? choice() : operand();
      --depth_;
      if (c == '(' && !take(")")) return std::nullopt;
      if (!inside) return std::nullopt;
      return c == '-' ? result_of("-", 0, *inside) : c == '!' ? Number{*inside == 0} : inside;
    }
    std::size_t end = at_;
    while (end < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_'))
      ++end;
    const std::string word = text_.substr(at_, end - at_);
    at_ = end;
    if (word.empty()) return std::nullopt;
    return std::isdigit(static_cast<unsigned char>(word[0])) ? number(word) : named(word);
  }

  static Number number(const std::string& word) {
    std::int64_t value = 0;
    for (const char c : word)
      if (c < '0' || c > '9' || __builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, c - '0', &value))
        return std::nullopt;
    if (word.size() > 1 && word[0] == '0') return std::nullopt;  // Octal, or hexadecimal.
    return value;
  }

  Number named(const std::string& name) const {
    const auto text = value_of_(name);
    if (!text || depth_ > deepest_expression) return std::nullopt;
    if (text->empty()) return 0;
    return ArithmeticReader{*text, value_of_, depth_ + 10}.read();
  }

  const std::string& text_;
  const ValueOf& value_of_;
  int depth_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::int64_t> shell_arithmetic(const std::string& text, const ValueOf& value_of) {
  return ArithmeticReader{text, value_of, 0}.read();
}

namespace {

using Truth = std::optional<bool>;  // Nothing: not known.

constexpr int deepest_condition = 50;

Truth negated(Truth truth) { return truth ? Truth{!*truth} : truth; }
Truth both(Truth a, Truth b) {
  if ((a && !*a) || (b && !*b)) return false;
  return a && b ? Truth{true} : std::nullopt;
}
Truth either(Truth a, Truth b) { return negated(both(negated(a), negated(b))); }

class ConditionReader {
 public:
  ConditionReader(const std::vector<std::string>& words,
                  const std::function<bool(const std::string&)>& is_set,
                  std::vector<std::string>& unset)
      : words_{words}, is_set_{is_set}, unset_{unset} {}

  Truth read() {
    if (words_.empty()) return false;
    const Truth truth = any();
    return at_ < words_.size() ? std::nullopt : truth;
  }

 private:
  std::size_t left() const { return words_.size() - at_; }
  bool take(const char* word) {
    if (left() == 0 || words_[at_] != word) return false;
    ++at_;
    return true;
  }

  Truth any() {
    Truth truth = all();
    while (take("||") || take("-o")) truth = either(truth, all());
    return truth;
  }
  Truth all() {
    Truth truth = one();
    while (take("&&") || take("-a")) truth = both(truth, one());
    return truth;
  }

  Truth one() {
    if (left() == 0 || depth_ > deepest_condition) return std::nullopt;
    if (left() > 1 && words_[at_] == "!") {
      ++at_;
      ++depth_;
      const Truth truth = one();
      --depth_;
      return negated(truth);
    }
    if (left() > 2 && words_[at_] == "(") {
      ++at_;
      ++depth_;
      const Truth truth = any();
      --depth_;
      return take(")") ? truth : std::nullopt;
    }
    if (left() > 2 && is_comparison(words_[at_ + 1])) {
      at_ += 3;
      return compared(words_[at_ - 3], words_[at_ - 2], words_[at_ - 1]);
    }
    if (left() > 1 && words_[at_].size() == 2 && words_[at_][0] == '-' && !ends_one(at_ + 1)) {
      at_ += 2;
      return of_one(words_[at_ - 2][1], words_[at_ - 1]);
    }
    const std::string& word = words_[at_++];
    if (!is_known(word)) return std::nullopt;
    return !without_unset(word).empty();
  }

  bool ends_one(std::size_t at) const {
    static const char* const ends[] = {"&&", "||", "-a", "-o", ")"};
    return std::find(std::begin(ends), std::end(ends), words_[at]) != std::end(ends);
  }

  static bool is_comparison(const std::string& word) {
    static const char* const signs[] = {"=",   "==",  "!=",  "=~",  "<",   ">",
                                        "-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
    return std::find(std::begin(signs), std::end(signs), word) != std::end(signs);
  }

  // The word without unset variables, which are collected.
  std::string counted(const std::string& word) {
    for (std::string& name : unset_names(word)) unset_.push_back(std::move(name));
    return without_unset(word);
  }

  Truth of_one(char sign, const std::string& word) {
    if (sign == 'v') return is_known(word) ? Truth{is_set_(word)} : std::nullopt;
    if (sign != 'z' && sign != 'n') return std::nullopt;  // A file decides.
    if (!is_known(word)) return std::nullopt;
    return without_unset(word).empty() == (sign == 'z');
  }

  Truth compared(const std::string& a, const std::string& sign, const std::string& b) {
    if (!is_known(a) || !is_known(b) || sign == "=~") return std::nullopt;
    const std::string left = counted(a), right = counted(b);
    if (sign == "=" || sign == "==") return shell_pattern_fits(right, left);
    if (sign == "!=") return !shell_pattern_fits(right, left);
    if (sign == "<" || sign == ">") return sign == "<" ? left < right : left > right;
    const auto none = [](const std::string&) { return std::optional<std::string>{}; };
    const auto x = left.empty() ? std::optional<std::int64_t>{0} : shell_arithmetic(left, none);
    const auto y = right.empty() ? std::optional<std::int64_t>{0} : shell_arithmetic(right, none);
    if (!x || !y) return std::nullopt;
    if (sign == "-eq") return *x == *y;
    if (sign == "-ne") return *x != *y;
    if (sign == "-lt") return *x < *y;
    if (sign == "-le") return *x <= *y;
    return sign == "-gt" ? *x > *y : *x >= *y;
  }

  const std::vector<std::string>& words_;
  const std::function<bool(const std::string&)>& is_set_;
  std::vector<std::string>& unset_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::pair<std::string, std::string> shell_assignment(const std::string& text) {
  const auto trimmed = [](const std::string& part) { return std::string{orrery::trimmed(part)}; };
  const std::string whole = trimmed(text);
  for (const auto& [step, by] : {std::pair{"++", " + 1"}, {"--", " - 1"}}) {
    std::string name;
    if (whole.ends_with(step)) name = trimmed(whole.substr(0, whole.size() - 2));
    if (whole.starts_with(step)) name = trimmed(whole.substr(2));
    if (is_shell_name(name)) return {name, name + by};
  }
  const std::size_t equals = whole.find('=');
  if (equals == whole.npos || equals == 0 || whole.substr(equals, 2) == "==") return {"", text};
  const bool changes = std::string_view{"+-*/%"}.find(whole[equals - 1]) != std::string_view::npos;
  const std::string name = trimmed(whole.substr(0, equals - (changes ? 1 : 0)));
  if (!is_shell_name(name)) return {"", text};
  const std::string value = whole.substr(equals + 1);
  return {name, changes ? name + " " + whole[equals - 1] + " (" + value + ")" : value};
}

std::optional<bool> shell_test(const std::vector<std::string>& words,
                               const std::function<bool(const std::string&)>& is_set,
                               std::vector<std::string>& unset) {
  return ConditionReader{words, is_set, unset}.read();
}

std::optional<bool> shell_choice(const std::string& subject,
                                 const std::vector<std::string>& patterns) {
  if (!is_known(subject)) return std::nullopt;
  const std::string text = without_unset(subject);
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return shell_pattern_fits(without_unset(pattern), text);
  });
}

}  // namespace orrery
