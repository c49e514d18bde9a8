// Recursive descent, a function a rank of precedence.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>

#include "sim/core/json_value.hpp"
#include "sim/sweep/expression_program.hpp"

namespace orrery {
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
    // With its parentheses, so that a condition is shown as it was written.
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

  // Nobody nests this deep, and recursion cannot bear any depth.
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
  // Evaluation recurses once a term; nobody writes this many.
  constexpr std::size_t longest = 2000;
  if (text.size() > longest)
    fail_input(at, "has a condition of more than 2,000 characters", "write it as several");
  return Parser{text, at}.parse();
}

}  // namespace orrery
