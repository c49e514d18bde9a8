#pragma once

#include <string>
#include <vector>

#include "sim/sweep/expression.hpp"

namespace orrery {

/// An expression as a tree in a list: children stand before their parents.
struct Expression::Program {
  enum class Operation {
    number,
    text,
    truth,
    key,  // Leaves.
    either,
    both,
    negation,  // Of truths.
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
    larger  // Of numbers.
  };

  struct Node {
    Operation operation = Operation::number;
    int left = -1, right = -1;  ///< Children, as indices of `nodes`.
    double number = 0.0;        ///< Of a leaf; of a key its index in `keys`.
    std::string text;
    std::size_t begin = 0, end = 0;  ///< Where it stands in `source`.
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
