#include "sim/sweep/expression.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>

#include "sim/core/json_value.hpp"

namespace orrery {
namespace {

using Program = Expression::Program;
using Operation = Program::Operation;

class Evaluation {
 public:
  Evaluation(const Program& program, const std::vector<Operand>& values,
             const std::vector<std::size_t>& slots, const Place& at)
      : program_{program}, values_{values}, slots_{slots}, at_{at} {}

  Operand operator()(int index) const {
    const Program::Node& node = program_.nodes[static_cast<std::size_t>(index)];
    switch (node.operation) {
      case Operation::number:
        return {Operand::Kind::number, node.number, nullptr};
      case Operation::truth:
        return {Operand::Kind::truth, node.number, nullptr};
      case Operation::text:
        return {Operand::Kind::text, 0.0, &node.text};
      case Operation::key:
        return values_[slots_[static_cast<std::size_t>(node.number)]];
      case Operation::either:
        return truth(is_true(node.left) || is_true(node.right));
      case Operation::both:
        return truth(is_true(node.left) && is_true(node.right));
      case Operation::negation:
        return truth(!is_true(node.left));
      case Operation::opposite:
        return {Operand::Kind::number, -number(node.left), nullptr};
      case Operation::equal:
        return truth(are_equal(node));
      case Operation::unequal:
        return truth(!are_equal(node));
      default:
        return of_numbers(node.operation, number(node.left), number(node.right));
    }
  }

  bool is_true(int index) const {
    const Operand value = (*this)(index);
    if (value.kind != Operand::Kind::truth)
      fail(index, "is not a condition", "compare it with something: '... <= 64'");
    return value.number != 0.0;
  }

 private:
  static Operand truth(bool value) { return {Operand::Kind::truth, value ? 1.0 : 0.0, nullptr}; }

  static Operand of_numbers(Operation operation, double left, double right) {
    const auto value = [](double number) {
      return Operand{Operand::Kind::number, number, nullptr};
    };
    switch (operation) {
      case Operation::less:
        return truth(left < right);
      case Operation::less_or_equal:
        return truth(left <= right);
      case Operation::greater:
        return truth(left > right);
      case Operation::greater_or_equal:
        return truth(left >= right);
      case Operation::plus:
        return value(left + right);
      case Operation::minus:
        return value(left - right);
      case Operation::times:
        return value(left * right);
      case Operation::over:
        return value(left / right);
      case Operation::modulo:
        return value(std::fmod(left, right));
      case Operation::smaller:
        return value(std::min(left, right));
      default:
        return value(std::max(left, right));
    }
  }

  double number(int index) const {
    const Operand value = (*this)(index);
    if (value.kind != Operand::Kind::number)
      fail(index, "is not a number", "calculate with numbers; compare words by == or !=");
    return value.number;
  }

  bool are_equal(const Program::Node& node) const {
    const Operand left = (*this)(node.left);
    const Operand right = (*this)(node.right);
    if (left.kind != right.kind)
      fail_input(at_, shown(node.left) + " and " + shown(node.right) + " are of different kinds",
                 "compare numbers with numbers, words in quotes with words");
    return left.kind == Operand::Kind::text ? *left.text == *right.text
                                            : left.number == right.number;
  }

  std::string shown(int index) const { return "'" + shown_text(program_.text_of(index)) + "'"; }

  [[noreturn]] void fail(int index, const std::string& problem, const std::string& remedy) const {
    fail_input(at_, shown(index) + " " + problem, remedy);
  }

  const Program& program_;
  const std::vector<Operand>& values_;
  const std::vector<std::size_t>& slots_;
  const Place& at_;
};

}  // namespace

std::vector<Expression> Expression::parse(const std::string& text, const Place& at) {
  const auto program = std::make_shared<const Program>(parse_program(text, at));
  std::vector<Expression> parts;
  std::vector<int> left{program->root};
  while (!left.empty()) {
    const int index = left.back();
    left.pop_back();
    const Program::Node& node = program->nodes[static_cast<std::size_t>(index)];
    if (node.operation == Operation::both) {
      left.push_back(node.right);
      left.push_back(node.left);
      continue;
    }
    Expression part;
    part.program_ = program;
    part.root_ = index;
    part.text_ = program->text_of(index);
    part.place_ = at;
    parts.push_back(std::move(part));
  }
  return parts;
}

const std::vector<std::string>& Expression::keys() const { return program_->keys; }

bool Expression::holds(const std::vector<Operand>& values,
                       const std::vector<std::size_t>& slots) const {
  return Evaluation{*program_, values, slots, place_}.is_true(root_);
}

// Recursive descent, a function a rank of precedence.
namespace {

using Program = Expression::Program;
using Operation = Program::Operation;

bool starts_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool continues_word(char c) {
  return starts_word(c) || std::isdigit(static_cast<unsigned char>(c));
}

class Parser {
 public:
  Parser(const std::string& text, const Place& at) : at_{at} { program_.source = text; }

  Program parse() {
    program_.root = any();
    skip_blanks();
    if (next_ < source().size()) fail("cannot go on here", "write an operator, or nothing");
    return std::move(program_);
  }

 private:
  struct Sign {
    std::string_view text;
    Operation operation;
  };

  const std::string& source() const { return program_.source; }

  int any() {
    int left = all();
    while (take_word("or")) left = add(Operation::either, left, all());
    return left;
  }

  int all() {
    int left = not_or_comparison();
    while (take_word("and")) left = add(Operation::both, left, not_or_comparison());
    return left;
  }

  int not_or_comparison() {
    const Depth deeper{*this};
    skip_blanks();
    const std::size_t begin = next_;
    if (!take_word("not")) return comparison();
    return add(Operation::negation, not_or_comparison(), -1, begin);
  }

  // a < b < c is a < b and b < c.
  int comparison() {
    static constexpr Sign signs[] = {
        {"==", Operation::equal},         {"!=", Operation::unequal},
        {"<=", Operation::less_or_equal}, {">=", Operation::greater_or_equal},
        {"<", Operation::less},           {">", Operation::greater}};
    int left = sum();
    int chain = -1;
    while (const Sign* sign = take(signs)) {
      const int right = sum();
      const int link = add(sign->operation, left, right);
      chain = chain < 0 ? link : add(Operation::both, chain, link);
      left = right;
    }
    skip_blanks();
    if (next_ < source().size() && source()[next_] == '=')
      fail("has a single '='", "write == to compare");
    return chain < 0 ? left : chain;
  }

  int sum() {
    static constexpr Sign signs[] = {{"+", Operation::plus}, {"-", Operation::minus}};
    int left = product();
    while (const Sign* sign = take(signs)) left = add(sign->operation, left, product());
    return left;
  }

  int product() {
    static constexpr Sign signs[] = {
        {"*", Operation::times}, {"/", Operation::over}, {"%", Operation::modulo}};
    int left = factor();
    while (const Sign* sign = take(signs)) left = add(sign->operation, left, factor());
    return left;
  }

  int factor() {
    static constexpr Sign signs[] = {{"-", Operation::opposite}};
    const Depth deeper{*this};
    skip_blanks();
    const std::size_t begin = next_;
    if (take(signs)) return add(Operation::opposite, factor(), -1, begin);
    return primary();
  }

  int primary() {
    skip_blanks();
    const std::size_t begin = next_;
    if (begin == source().size())
      fail("ends where a value is expected", "write a key, a number or a word in quotes");
    const char c = source()[begin];
    if (c == '(') return parenthesis();
    if (c == '\'' || c == '"') return quoted(c);
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '.') return number();
    if (!starts_word(c)) fail("has no value here", "write a key, a number or a word in quotes");
    const std::string word = read_word();
    if (word == "true" || word == "false") return leaf(Operation::truth, word == "true", begin);
    if (word == "min") return extreme(Operation::smaller, begin);
    if (word == "max") return extreme(Operation::larger, begin);
    if (word == "and" || word == "or" || word == "not") {
      next_ = begin;
      fail("has no value here", "'" + word + "' stands between conditions");
    }
    return key(word, begin);
  }

  int parenthesis() {
    const std::size_t begin = next_++;
    const int inside = any();
    expect(')');
    // Parentheses belong to it, so that a condition is shown as it was written.
    program_.nodes[static_cast<std::size_t>(inside)].begin = begin;
    program_.nodes[static_cast<std::size_t>(inside)].end = next_;
    return inside;
  }

  int quoted(char quote) {
    const std::size_t begin = next_;
    const std::size_t end = source().find(quote, begin + 1);
    if (end == std::string::npos) fail("has a quote that is not closed", "close it");
    next_ = end + 1;
    const int index = leaf(Operation::text, 0.0, begin);
    program_.nodes.back().text = source().substr(begin + 1, end - begin - 1);
    return index;
  }

  int number() {
    const std::size_t begin = next_;
    double value = 0.0;
    const char* end = source().data() + source().size();
    const auto [rest, error] = std::from_chars(source().data() + begin, end, value);
    if (error != std::errc{} || !std::isfinite(value))
      fail("has no number here that can be meant", "write it like 64 or 0.5");
    next_ = static_cast<std::size_t>(rest - source().data());
    if (next_ < source().size() && continues_word(source()[next_])) {
      next_ = begin;
      fail("has a word here that starts with a digit", "write words in quotes: '1f1b'");
    }
    return leaf(Operation::number, value, begin);
  }

  int extreme(Operation operation, std::size_t begin) {
    expect('(');
    int left = sum();
    do {
      skip_blanks();
      if (next_ < source().size() && source()[next_] == ')') break;
      expect(',');
      left = add(operation, left, sum(), begin);
    } while (true);
    expect(')');
    program_.nodes[static_cast<std::size_t>(left)].begin = begin;
    program_.nodes[static_cast<std::size_t>(left)].end = next_;
    return left;
  }

  int key(const std::string& word, std::size_t begin) {
    auto found = std::find(program_.keys.begin(), program_.keys.end(), word);
    if (found == program_.keys.end()) found = program_.keys.insert(found, word);
    return leaf(Operation::key, static_cast<double>(found - program_.keys.begin()), begin);
  }

  int leaf(Operation operation, double value, std::size_t begin) {
    program_.nodes.push_back({operation, -1, -1, value, "", begin, next_});
    return static_cast<int>(program_.nodes.size()) - 1;
  }

  int add(Operation operation, int left, int right, std::size_t begin = std::string::npos) {
    if (begin == std::string::npos) begin = program_.nodes[static_cast<std::size_t>(left)].begin;
    const int last = right < 0 ? left : right;
    const std::size_t end = program_.nodes[static_cast<std::size_t>(last)].end;
    program_.nodes.push_back({operation, left, right, 0.0, "", begin, end});
    return static_cast<int>(program_.nodes.size()) - 1;
  }

  void skip_blanks() {
    while (next_ < source().size() && std::isspace(static_cast<unsigned char>(source()[next_])))
      ++next_;
  }

  std::string read_word() {
    const std::size_t begin = next_;
    while (next_ < source().size() && continues_word(source()[next_])) ++next_;
    return source().substr(begin, next_ - begin);
  }

  bool take_word(std::string_view word) {
    skip_blanks();
    const std::size_t begin = next_;
    if (next_ < source().size() && starts_word(source()[next_]) && read_word() == word) return true;
    next_ = begin;
    return false;
  }

  template <std::size_t count>
  const Sign* take(const Sign (&signs)[count]) {
    skip_blanks();
    for (const Sign& sign : signs)
      if (std::string_view{source()}.substr(next_).starts_with(sign.text)) {
        next_ += sign.text.size();
        return &sign;
      }
    return nullptr;
  }

  void expect(char c) {
    skip_blanks();
    if (next_ == source().size() || source()[next_] != c)
      fail(std::string{"lacks a '"} + c + "' here", "add it");
    ++next_;
  }

  [[noreturn]] void fail(const std::string& problem, const std::string& remedy) const {
    fail_input(at_,
               "the condition '" + shown_text(source()) + "' " + problem + " (column " +
                   std::to_string(next_ + 1) + ")",
               remedy);
  }

  // A limit protects the recursion; it is deeper than any real condition.
  struct Depth {
    explicit Depth(Parser& of) : parser{of} {
      if (++parser.depth_ > 200) parser.fail("nests too deep", "write it without so many brackets");
    }
    ~Depth() { --parser.depth_; }
    Parser& parser;
  };

  const Place& at_;
  Program program_;
  std::size_t next_ = 0;
  int depth_ = 0;
};

}  // namespace

Expression::Program parse_program(const std::string& text, const Place& at) {
  // Evaluation recurses once a term; no real condition has this many.
  constexpr std::size_t longest = 2000;
  if (text.size() > longest)
    fail_input(at, "has a condition of more than 2,000 characters", "write it as several");
  return Parser{text, at}.parse();
}

}  // namespace orrery
