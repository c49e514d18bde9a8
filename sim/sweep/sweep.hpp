#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/sweep/axis.hpp"

namespace orrery {

/// Axes that move together, each with the same number of values.
struct Dimension {
  std::vector<Axis> axes;
  std::int64_t size() const { return static_cast<std::int64_t>(axes.front().values.size()); }
};

/// What a user wants to know: every combination of the dimensions' values that fulfils all
/// conditions. Dimensions stand in the order of axis_keys() by their first axis, so that a sweep
/// has the same points with the same numbers however it was written down.
struct Sweep {
  std::vector<Dimension> dimensions;
  std::vector<Expression> conditions;
  bool memory_only = false;  ///< What a GPU holds, without simulating how long a step takes.
  /// What training on so many tokens costs is added to each point.
  std::optional<double> tokens;
  std::string economics;  ///< A file over the catalog's prices; "" for none.
};

/// Collects axes and conditions from a file and from flags, which win over it key by key.
class SweepBuilder {
 public:
  /// Ranges may have as many values as they like. Before anything else.
  void allow_long_ranges() { most_ = most_with_yes; }
  /// A document of schema "orrery.sweep/1" (docs/SWEEPS.md), before axes and conditions. Errors:
  /// unknown keys with the nearest, lists of a zip that differ in length, a key that stands twice.
  void read(const JsonValue& json);
  /// "gbs=256..8192*2 mbs=1,2,4": an axis a word.
  void add_axes(const std::string& text, const Place& at);
  /// The same, but these axes move together.
  void add_zip(const std::string& text, const Place& at);
  /// One axis, from a flag of its own: "--gbs 256,512".
  void add_axis(const std::string& key, const std::string& values, const Place& at);
  /// "tp*pp <= 64 and mbs <= 4", beside those that are there.
  void add_conditions(const std::string& text, const Place& at);
  void set_memory_only() { sweep_.memory_only = true; }
  void set_tokens(double tokens) { sweep_.tokens = tokens; }
  void set_economics(const std::string& path) { sweep_.economics = path; }

  /// How many files the rows are spread over, if the document says so.
  std::optional<int> shards() const { return shards_; }

  /// Errors: no model, system or gbs; neither gpus nor dp; prices without tokens, or tokens of
  /// points that are not simulated.
  Sweep sweep() const;

 private:
  void add(Dimension dimension, const Place& at);

  Sweep sweep_;
  std::optional<int> shards_;
  std::int64_t most_ = RangeRule{}.most;
  std::set<std::string> from_file_;  ///< Keys that a flag may still replace.
};

/// `sweep` as a document that SweepBuilder::read() takes, always the same text for the same sweep;
/// `more` stands behind "schema": `"shards": 10,`.
std::string sweep_json(const Sweep& sweep, const std::string& more = "");

}  // namespace orrery
