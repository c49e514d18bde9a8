#include "sim/sweep/expression.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/json_value.hpp"
#include "sim/sweep/expression_program.hpp"

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

}  // namespace orrery
