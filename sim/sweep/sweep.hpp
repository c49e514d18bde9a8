#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/core/value_list.hpp"
#include "sim/sweep/expression.hpp"
#include "sim/training/result.hpp"

namespace orrery {

/// Columns of a sweep's results in their order, called and rounded as in `orrery estimate --json`,
/// where docs/reference/output.md defines them; parts of an object are joined: "memory.peak_bytes"
/// is memory_peak_bytes. A price or power that is not known has no value.
using SweepFigures = std::vector<std::pair<std::string, std::optional<double>>>;
SweepFigures sweep_figures(const Result& result);
/// Those that need no simulation.
SweepFigures sweep_figures(const MemoryReport& memory);

/// Times are whole nanoseconds; other numbers have 9 significant digits, whole ones below 2^53
/// all of theirs.
std::string figure_text(const std::string& name, double value);

/// One value of a key, as a plan reads it, as a person writes it and as a condition sees it.
struct AxisValue {
  JsonValue json;
  std::string text;  ///< A flag's value: 256, true, interleaved.
  Operand::Kind kind = Operand::Kind::number;
  double number = 0.0;         ///< A truth is 1 or 0.
  bool if_it_divides = false;  ///< A range of degrees: stays if it divides the GPUs of a point.

  Operand operand() const { return {kind, number, &text}; }
};

/// A key and the values that it takes, in the order in which they were written.
struct Axis {
  std::string key;
  std::vector<AxisValue> values;
};

/// Keys that a sweep can vary: model, system, gpus and every key of a plan, in this order, which is
/// also the order of columns.
const std::vector<std::string>& axis_keys();

/// "256..8192*2", "8..64+8", "256..1024", "1,2,4", "none,full": values and ranges of whole numbers
/// with commas between them. A range ends at the last value that it hits; without a step it goes on
/// as open_range_of() says.
/// Errors (bad_input): an unknown key, a value that the key cannot take, a range without end or of
/// more than `most` values, a value that is there twice; `at` is what the message names.
Axis parse_axis(const std::string& key, const std::string& text, const Place& at,
                std::int64_t most = RangeRule{}.most);

/// The same from a JSON scalar, a text as above, or a list of scalars and ranges.
Axis read_axis(const std::string& key, const JsonValue& json, std::int64_t most = RangeRule{}.most);

/// Axes that move together, each with the same number of values.
struct Dimension {
  std::vector<Axis> axes;
  std::int64_t size() const { return static_cast<std::int64_t>(axes.front().values.size()); }
};

/// The part of a plan file that a sweep does not vary.
struct PlanInSweep {
  std::string file;            ///< As the user named it; "": there is none.
  std::set<std::string> keys;  ///< The axes that it gives, each of one value.
  /// Inputs that the file holds itself, by the key that names them: the text of a "schedule", the
  /// document of a "model", "system", "calibration" or "software".
  std::map<std::string, JsonValue> held;

  const JsonValue* find_held(const std::string& key) const {
    const auto found = held.find(key);
    return found == held.end() ? nullptr : &found->second;
  }
};

/// A sweep: every combination of the dimensions' values that fulfils all conditions. Dimensions
/// stand in the order of axis_keys() by their first axis, so that a sweep has the same points with
/// the same numbers however it was written down.
struct Sweep {
  std::vector<Dimension> dimensions;
  std::vector<Expression> conditions;
  bool memory_only = false;  ///< Checks a GPU's memory without simulating a step.
  /// The cost of training on so many tokens is added to each point.
  std::optional<double> tokens;
  std::string economics;  ///< A file over the catalog's prices; "" for none.
  PlanInSweep plan;
};

/// Collects axes and conditions from a file and from flags, which win over it key by key.
class SweepBuilder {
 public:
  /// Ranges may have as many values as they like. Before anything else.
  void allow_long_ranges() { most_ = most_with_yes; }
  /// A document of schema "orrery.sweep/1" (docs/guides/sweep.md), before axes and conditions.
  /// Errors: unknown keys with the nearest, lists of a zip that differ in length, a key that stands
  /// twice.
  void read(const JsonValue& json);
  /// A plan file, before all else, and a key of it: what a document or a flag says of the key
  /// replaces it. `held`: the input that the value names, where the file holds it.
  void set_plan(const std::string& file) { sweep_.plan.file = file; }
  void add_plan_key(const std::string& key, const JsonValue& value,
                    const std::optional<JsonValue>& held = {});
  /// "gbs=256..8192*2 mbs=1,2,4": an axis a word.
  void add_axes(const std::string& text, const Place& at);
  /// The same, but these axes move together.
  void add_zip(const std::string& text, const Place& at);
  /// One axis, from a flag of its own: "--gbs 256,512".
  void add_axis(const std::string& key, const std::string& values, const Place& at);
  /// "tp*pp <= 64 and mbs <= 4", in addition to those that are there.
  void add_conditions(const std::string& text, const Place& at);
  void set_memory_only() { sweep_.memory_only = true; }
  void set_tokens(double tokens) { sweep_.tokens = tokens; }
  void set_economics(const std::string& path) { sweep_.economics = path; }

  /// Number of files that the rows are spread over, if the document gives it.
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
