#include "sim/sweep/grid.hpp"

#include <algorithm>
#include <numeric>

#include "sim/core/nearest.hpp"

namespace orrery {
namespace {

constexpr std::int64_t most_combinations = 100'000'000;

// Degrees that a plan takes as 1 where they are left out.
bool defaults_to_one(const std::string& key) {
  static const std::vector<std::string> keys{"tp", "pp", "vpp", "cp", "ep", "etp", "mbs"};
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// "'a', 'b' and 'c'"
std::string listed(const std::vector<std::string>& texts) {
  std::string list;
  for (std::size_t i = 0; i < texts.size(); ++i)
    list += (i == 0 ? "'" : i + 1 == texts.size() ? " and '" : ", '") + texts[i] + "'";
  return list;
}

}  // namespace

Grid::Grid(const Sweep& sweep) : sweep_{sweep} {
  for (const Dimension& dimension : sweep.dimensions) {
    const std::int64_t size = dimension.size();
    if (combinations_ > most_combinations / size)
      fail_input({}, "the sweep has more than 100 million combinations",
                 "shorten an axis, or use larger steps");
    combinations_ *= size;
    for (const Axis& axis : dimension.axes) axes_.push_back(&axis);
  }
  for (const Expression& condition : sweep.conditions) {
    std::vector<std::size_t>& slots = slots_of_keys_.emplace_back();
    for (const std::string& key : condition.keys())
      slots.push_back(slot_of(key, condition.place()));
  }
}

std::size_t Grid::slot_of(const std::string& key, const Place& at) {
  for (std::size_t i = 0; i < axes_.size(); ++i)
    if (axes_[i]->key == key) return i;
  choice<std::size_t>(key, at, "in the condition is not a key of a sweep", axis_keys());

  const std::size_t slot = axes_.size() + defaults_.size();
  const bool has_gpus =
      std::any_of(axes_.begin(), axes_.end(), [](const Axis* axis) { return axis->key == "gpus"; });
  if (key == "dp" && has_gpus) {
    if (dp_) return dp_slot_;
    defaults_.push_back({});
    dp_slot_ = slot;
    dp_ = {slot_of("gpus", at), slot_of("tp", at), slot_of("pp", at), slot_of("cp", at)};
    return slot;
  }
  if (!defaults_to_one(key))
    fail_input(at, "the condition needs '" + key + "', which the sweep leaves open",
               "add --" + key + ", or an axis");
  defaults_.push_back({Operand::Kind::number, 1.0, nullptr});
  return slot;
}

std::vector<const AxisValue*> Grid::values(std::int64_t number) const {
  std::vector<const AxisValue*> values(axes_.size());
  std::size_t axis = axes_.size();
  for (std::size_t i = sweep_.dimensions.size(); i-- > 0;) {
    const Dimension& dimension = sweep_.dimensions[i];
    const auto at = static_cast<std::size_t>(number % dimension.size());
    number /= dimension.size();
    for (std::size_t j = dimension.axes.size(); j-- > 0;)
      values[--axis] = &dimension.axes[j].values[at];
  }
  return values;
}

Grid::Slots Grid::slots_at(std::int64_t number) const {
  Slots slots;
  slots.reserve(axes_.size() + defaults_.size());
  for (const AxisValue* value : values(number)) slots.push_back(value->operand());
  slots.insert(slots.end(), defaults_.begin(), defaults_.end());
  if (dp_) {
    const auto [gpus, tp, pp, cp] = *dp_;
    slots[dp_slot_].number =
        slots[gpus].number / (slots[tp].number * slots[pp].number * slots[cp].number);
  }
  return slots;
}

bool Grid::is_point(std::int64_t number) const {
  if (sweep_.conditions.empty()) return true;
  const Slots slots = slots_at(number);
  for (std::size_t i = 0; i < sweep_.conditions.size(); ++i)
    if (!sweep_.conditions[i].holds(slots, slots_of_keys_[i])) return false;
  return true;
}

std::int64_t Grid::count_points() const {
  std::vector<std::size_t> all(sweep_.conditions.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const std::int64_t points = fulfilling(all, combinations_);
  if (points == 0) explain_emptiness();
  return points;
}

// Combinations that fulfil all of `conditions`, at most `enough`.
std::int64_t Grid::fulfilling(const std::vector<std::size_t>& conditions,
                              std::int64_t enough) const {
  if (conditions.empty()) return std::min(enough, combinations_);
  std::int64_t count = 0;
  for (std::int64_t number = 0; number < combinations_ && count < enough; ++number) {
    const Slots slots = slots_at(number);
    count += std::all_of(conditions.begin(), conditions.end(), [&](std::size_t i) {
      return sweep_.conditions[i].holds(slots, slots_of_keys_[i]);
    });
  }
  return count;
}

// Leaves out each condition, from the last to the first, without which the space is still empty: a
// smallest set stays, of which each is necessary.
void Grid::explain_emptiness() const {
  std::vector<std::size_t> conflicting(sweep_.conditions.size());
  std::iota(conflicting.begin(), conflicting.end(), std::size_t{0});
  for (std::size_t i = conflicting.size(); i-- > 0;) {
    std::vector<std::size_t> others = conflicting;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    if (fulfilling(others, 1) == 0) conflicting = std::move(others);
  }
  std::vector<std::string> texts;
  for (std::size_t i : conflicting) texts.push_back(shown_text(sweep_.conditions[i].text()));
  const Place& at = sweep_.conditions[conflicting.front()].place();
  const std::string all = "all " + std::to_string(combinations_) + " combinations";
  if (texts.size() == 1)
    fail_input(at, "the condition " + listed(texts) + " excludes " + all,
               "change it, or the axes' values");
  fail_input(
      at,
      "the conditions " + listed(texts) + " contradict each other: together they exclude " + all,
      "change one of them, or the axes' values");
}

}  // namespace orrery
