#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/core/error.hpp"

namespace orrery {

/// The value of a key of a point or of a part of an expression.
struct Operand {
  enum class Kind { number, text, truth };
  Kind kind = Kind::number;
  double number = 0.0;  ///< A truth is 1 or 0.
  const std::string* text = nullptr;
};

/// A condition over the keys of a point: "tp*pp <= 64", "schedule == 'interleaved' or vpp == 1".
///
///     or  and  not   == != < <= > >= (may be chained: 1 < tp <= 8)   + -   * / %   -x
///     numbers, 'texts', true, false, keys, min(a, b, ...), max(a, b, ...), ( )
///
/// each binding stronger than those before it. Numbers are doubles: whole ones are exact to 2^53.
/// Texts and truths can be compared by == and != only. A division by zero fulfils no comparison but
/// !=, as in IEEE 754.
class Expression {
 public:
  /// The conditions that `text` joins by "and" at its top, in order; each must hold. Errors
  /// (bad_input): what cannot be read, with its column; no condition: "tp * pp".
  static std::vector<Expression> parse(const std::string& text, const Place& at);

  const std::string& text() const { return text_; }
  const Place& place() const { return place_; }
  /// Keys of the whole text, in the order in which they appear in it first.
  const std::vector<std::string>& keys() const;

  /// The value of keys()[i] is values[slots[i]]. Errors (bad_input): kinds that do not go together.
  bool holds(const std::vector<Operand>& values, const std::vector<std::size_t>& slots) const;

  struct Program;  ///< Defined in expression.cpp.

 private:
  std::shared_ptr<const Program> program_;
  int root_ = 0;
  std::string text_;
  Place place_;
};

/// An expression as a tree in a list: children stand before their parents.
struct Expression::Program {
  enum class Operation {
    number,
    text,
    truth,
    key,  // Leaves.
    either,
    both,
    negation,  // Takes truths.
    equal,
    unequal,
    less,
    less_or_equal,
    greater,
    greater_or_equal,
    plus,
    minus,
    times,
    over,
    modulo,
    opposite,
    smaller,
    larger  // Takes numbers.
  };

  struct Node {
    Operation operation = Operation::number;
    int left = -1, right = -1;  ///< Children, as indices of `nodes`.
    double number = 0.0;        ///< A leaf's value; a key's index in `keys`.
    std::string text;
    std::size_t begin = 0, end = 0;  ///< Its range in `source`.
  };

  std::string source;
  std::vector<Node> nodes;
  std::vector<std::string> keys;
  int root = 0;

  std::string text_of(int node) const {
    const Node& at = nodes[static_cast<std::size_t>(node)];
    return source.substr(at.begin, at.end - at.begin);
  }
};

/// Reads `text`. Errors (bad_input) name the column.
Expression::Program parse_program(const std::string& text, const Place& at);

}  // namespace orrery
