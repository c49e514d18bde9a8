#include "sim/formats/shell/shell_arithmetic.hpp"

#include <array>
#include <cctype>

namespace orrery {
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

Number joined(const std::string& sign, std::int64_t a, std::int64_t b) {
  std::int64_t value = 0;
  if (sign == "**") return power(a, b);
  if (sign == "*") return __builtin_mul_overflow(a, b, &value) ? Number{} : value;
  if (sign == "+") return __builtin_add_overflow(a, b, &value) ? Number{} : value;
  if (sign == "-") return __builtin_sub_overflow(a, b, &value) ? Number{} : value;
  if (sign == "/" || sign == "%") {
    if (b == 0 || b == -1) return b == 0 ? Number{} : joined("*", a, sign == "/" ? -1 : 0);
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
      const Number right = level(number + 1);
      value = value && right ? joined(found, *value, *right) : std::nullopt;
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
      return c == '-' ? joined("-", 0, *inside) : c == '!' ? Number{*inside == 0} : inside;
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

}  // namespace orrery
