#include "sim/serving/length_law.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "sim/core/json_value.hpp"
#include "sim/core/portable_math.hpp"
#include "sim/core/text_file.hpp"
#include "sim/serving/request.hpp"

namespace orrery {
namespace {

constexpr const char* length_remedy = "write like 1024, 819..1024 or lognormal:1024,0.8";
constexpr double most_sigma = 4.0;

double length_of(std::string_view word, const std::string& text, const Place& at) {
  const auto length = plain_integer(word, static_cast<int>(most_request_tokens));
  if (!length || *length < 1)
    fail_input(at, "'" + shown_text(text) + "' is not a length in tokens from 1 to 16777216",
               length_remedy);
  return *length;
}

}  // namespace

std::uint32_t LengthLaw::draw(Random& random) const {
  double length = low;
  if (kind == Kind::uniform)
    length = low + static_cast<double>(random.below(static_cast<std::uint64_t>(high - low) + 1));
  if (kind == Kind::lognormal)
    length = std::floor(low * portable_exp(sigma * random.normal()) + 0.5);
  return static_cast<std::uint32_t>(
      std::clamp(length, 1.0, static_cast<double>(most_request_tokens)));
}

double LengthLaw::mean() const {
  if (kind == Kind::uniform) return 0.5 * (low + high);
  return kind == Kind::lognormal ? low * portable_exp(0.5 * sigma * sigma) : low;
}

LengthLaw parse_length_law(const std::string& text, const Place& at) {
  const std::string name = "lognormal:";
  LengthLaw law;
  if (text.starts_with(name)) {
    const std::size_t comma = text.find(',');
    const auto sigma = comma == text.npos ? std::nullopt : plain_number(text.substr(comma + 1));
    if (!sigma || *sigma > most_sigma)
      fail_input(at, "'" + shown_text(text) + "' has no sigma from 0 to 4", length_remedy);
    law.kind = LengthLaw::Kind::lognormal;
    law.low = law.high =
        length_of(std::string_view{text}.substr(name.size(), comma - name.size()), text, at);
    law.sigma = *sigma;
    return law;
  }
  const std::size_t dots = text.find("..");
  law.low = length_of(std::string_view{text}.substr(0, dots), text, at);
  law.high = law.low;
  if (dots == text.npos) return law;
  law.kind = LengthLaw::Kind::uniform;
  law.high = length_of(std::string_view{text}.substr(dots + 2), text, at);
  if (law.high < law.low)
    fail_input(at, "'" + shown_text(text) + "' falls", "write the shorter length first");
  return law;
}

std::string length_law_text(const LengthLaw& law) {
  char text[64];
  if (law.kind == LengthLaw::Kind::lognormal) {
    // As many digits as it takes to read the same number again.
    char sigma[400];
    const auto end =
        std::to_chars(sigma, sigma + sizeof sigma, law.sigma, std::chars_format::fixed);
    std::snprintf(text, sizeof text, "lognormal:%.0f,", law.low);
    return text + std::string{sigma, end.ptr};
  }
  if (law.kind == LengthLaw::Kind::uniform)
    std::snprintf(text, sizeof text, "%.0f..%.0f", law.low, law.high);
  else
    std::snprintf(text, sizeof text, "%.0f", law.low);
  return text;
}

}  // namespace orrery
