#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/json_value.hpp"

namespace orrery {

/// Lengths of documents that are packed into sequences, each of which attends to itself alone
/// (cu_seqlens of variable-length attention). None: a sequence is one document.
struct Documents {
  std::string text = "none";  ///< As it was written.
  /// Lengths in tokens, each as likely; null without documents. Of a distribution its quantiles.
  std::shared_ptr<const std::vector<double>> lengths = nullptr;
  /// Sequences are bins of whole documents: packing cut none at their ends.
  bool whole = false;

  bool given() const { return lengths != nullptr; }
  bool operator==(const Documents& other) const {
    return text == other.text && whole == other.whole;
  }
};

/// Reads "none", "fixed:1024", "uniform:200,2000", "lognormal:1024,0.8" (median and sigma), or the
/// path of a file with a length a line. Errors (bad_input): a length below 1 or
/// beyond 2^30, a range that falls, a sigma outside [0, 4]; a file that is not there, holds no
/// length, or anything else than lengths (its line).
Documents read_documents(const JsonValue& value);

/// What attention has of documents in sequences of so many tokens. Longer documents are cut at the
/// ends of sequences, as packing does; of bins of whole documents the squares are the given ones'.
struct PackedLengths {
  /// Sum of squares over sum of lengths: equal documents of this length have as many tokens and as
  /// many pairs. Mean times 1 + c^2 with the coefficient of variation c.
  double attended = 0.0;
  /// Coefficient of variation of a sequence's sum of squares: documents follow each other as they
  /// come (renewal theory: the variance of the sum of l^2 - attended l, with a document each mean
  /// length).
  double variation = 0.0;
};
PackedLengths packed(const Documents& documents, std::int64_t sequence);

/// Expected largest of n independent standard normal values; 0 for one.
double largest_of_normals(int n);

}  // namespace orrery
