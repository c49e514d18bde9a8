#pragma once

#include <cstdint>
#include <string>

#include "sim/core/error.hpp"
#include "sim/core/random.hpp"

namespace orrery {

/// How long prompts or answers are, in tokens.
struct LengthLaw {
  enum class Kind {
    fixed,     ///< low
    uniform,   ///< low .. high, each as likely
    lognormal  ///< e^N(log low, sigma^2): low is the median
  };

  Kind kind = Kind::fixed;
  double low = 1.0;
  double high = 1.0;
  double sigma = 0.0;

  bool operator==(const LengthLaw&) const = default;
  /// At least 1, at most most_request_tokens.
  std::uint32_t draw(Random& random) const;
  double mean() const;  ///< Of the law, before what is drawn is rounded to whole tokens.
};

/// "1024", "819..1024", "lognormal:1024,0.8" (median and sigma). Errors (bad_input): a length below
/// 1 or beyond most_request_tokens, a range that falls, a sigma outside [0, 4].
LengthLaw parse_length_law(const std::string& text, const Place& at);
/// The other way round.
std::string length_law_text(const LengthLaw& law);

}  // namespace orrery
