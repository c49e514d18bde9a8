#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace orrery {

/// Whole tokens that decode steps bring each request, where one brings `a_step` of them on average:
/// after k steps floor(k a_step + what was left over), so that they come as evenly as whole tokens
/// can. In units of 2^-24 tokens, so that k steps bring what one step after the other does.
class StepProgress {
 public:
  /// From 1 to 32.
  explicit StepProgress(double a_step)
      : a_step_{std::llround(a_step * static_cast<double>(token))} {}

  /// `steps`: at most 2^30.
  std::int64_t tokens_of(std::int64_t steps) const {
    return a_step_ == token ? steps : (left_ + steps * a_step_) / token;
  }
  /// The fewest steps that bring so many.
  std::int64_t steps_for(std::int64_t tokens) const {
    if (a_step_ == token || tokens >= many) return tokens;
    return (tokens * token - left_ + a_step_ - 1) / a_step_;
  }
  /// The most steps, at least one, of which each begins with room for `each` tokens, where there is
  /// room for `tokens`.
  std::int64_t steps_within(std::int64_t tokens, std::int64_t each) const {
    if (a_step_ == token || tokens >= many) return tokens;
    // The last of them begins when tokens_of(steps - 1) <= tokens - each.
    const std::int64_t before = (tokens - each + 1) * token - 1 - left_;
    return before < 0 ? 1 : 1 + before / a_step_;
  }
  /// Of the tokens so far, what is below a whole one.
  double left() const { return static_cast<double>(left_) / static_cast<double>(token); }
  void take(std::int64_t steps) {
    if (a_step_ != token) left_ = (left_ + steps * a_step_) % token;
  }

 private:
  static constexpr std::int64_t token = std::int64_t{1} << 24;
  static constexpr std::int64_t many = std::int64_t{1} << 30;

  std::int64_t a_step_;
  std::int64_t left_ = 0;
};

}  // namespace orrery
