#include "sim/serving/step_times.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

namespace orrery {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

// Indices of a table: 0 .. exact one by one, then 2^octave_bits for each power of two.
template <int exact_bits, int octave_bits>
struct Places {
  static constexpr std::int64_t exact = std::int64_t{1} << exact_bits;
  static_assert(exact_bits >= octave_bits);

  struct Cell {
    std::size_t place;
    std::int64_t low, high;  // Values of this place and the next one.
  };
  static Cell of(std::int64_t value) {
    if (value < exact) return {static_cast<std::size_t>(value), value, value + 1};
    const int octave = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(value))) - 1;
    const int shift = octave - octave_bits;
    const std::int64_t low = value >> shift << shift;
    return {place_of(low, octave, shift), low, low + (std::int64_t{1} << shift)};
  }
  static std::int64_t value_at(std::size_t place) {
    if (place <= static_cast<std::size_t>(exact)) return static_cast<std::int64_t>(place);
    const std::size_t beyond = place - static_cast<std::size_t>(exact);
    const int octave = static_cast<int>(beyond >> octave_bits) + exact_bits;
    const auto part = static_cast<std::int64_t>(beyond & ((std::size_t{1} << octave_bits) - 1));
    return (std::int64_t{1} << octave) + (part << (octave - octave_bits));
  }

 private:
  static std::size_t place_of(std::int64_t low, int octave, int shift) {
    const auto part = static_cast<std::size_t>((low >> shift) - (std::int64_t{1} << octave_bits));
    return static_cast<std::size_t>(exact) +
           (static_cast<std::size_t>(octave - exact_bits) << octave_bits) + part;
  }
};

using TokenPlaces = Places<6, 4>;
using ContextPlaces = Places<3, 3>;
using PromptPlaces = Places<4, 4>;

double between(std::int64_t value, std::int64_t low, std::int64_t high, double at_low,
               double at_high) {
  return at_low +
         (at_high - at_low) * static_cast<double>(value - low) / static_cast<double>(high - low);
}

template <class Cost>
double entry(std::vector<double>& table, std::size_t place, const Cost& cost) {
  if (place >= table.size()) table.resize(place + 1, unknown);
  if (std::isnan(table[place])) table[place] = cost();
  return table[place];
}

template <class Cost>
double by_tokens(std::vector<double>& table, std::int64_t value, const Cost& cost) {
  const auto cell = TokenPlaces::of(value);
  const auto at = [&](std::size_t place, std::int64_t tokens) {
    return entry(table, place, [&] { return cost(static_cast<double>(tokens)).si(); });
  };
  const double low = at(cell.place, cell.low);
  return value == cell.low
             ? low
             : between(value, cell.low, cell.high, low, at(cell.place + 1, cell.high));
}

template <class Cost>
std::vector<TimePoint> points_of(std::vector<double>& table, std::int64_t most, const Cost& cost) {
  std::vector<TimePoint> points;
  for (std::size_t place = 1; points.empty() || points.back().at < most; ++place) {
    const std::int64_t at = TokenPlaces::value_at(place);
    const auto price = [&] { return cost(static_cast<double>(at)).si(); };
    points.push_back({at, Seconds{entry(table, place, price)}});
  }
  return points;
}

}  // namespace

std::int64_t DecodeSteps::until(Seconds span) const {
  if (span <= first) return 1;
  // The root of k first + k (k - 1) / 2 growth = span, in the form that does not cancel.
  const double a = first.si(), d = growth.si(), t = span.si();
  const double b = a - 0.5 * d;
  const double root = std::ceil(2.0 * t / (b + std::sqrt(b * b + 2.0 * d * t)));
  const double most = static_cast<double>(std::numeric_limits<std::int64_t>::max() / 4);
  auto k = static_cast<std::int64_t>(std::clamp(root, 1.0, most));
  // Rounding may have missed by one.
  while (k > 1 && time(k - 1) >= span) --k;
  while (static_cast<double>(k) < most && time(k) < span) ++k;
  return k;
}

StepTimes::StepTimes(StepCosts costs) : costs_{std::move(costs)} {}

double StepTimes::dense(std::int64_t tokens) { return by_tokens(dense_, tokens, costs_.dense); }
Seconds StepTimes::shared(std::int64_t tokens) {
  if (!costs_.shared || tokens == 0) return {};
  return Seconds{by_tokens(shared_, tokens, costs_.shared)};
}
std::vector<TimePoint> StepTimes::dense_points(std::int64_t most) {
  return points_of(dense_, most, costs_.dense);
}
std::vector<TimePoint> StepTimes::shared_points(std::int64_t most) {
  return points_of(shared_, most, costs_.shared);
}
std::vector<TimePoint> StepTimes::head_points(std::int64_t most) {
  return points_of(head_, most, costs_.head);
}
double StepTimes::head(std::int64_t rows) { return by_tokens(head_, rows, costs_.head); }

double StepTimes::draft(std::int64_t requests) const {
  return costs_.draft && requests > 0 ? costs_.draft(static_cast<double>(requests)).si() : 0.0;
}

double StepTimes::attention_entry(std::size_t row, std::size_t column) {
  if (row >= attention_.size()) attention_.resize(row + 1);
  return entry(attention_[row], column, [&] {
    return costs_
        .decode_attention(static_cast<double>(TokenPlaces::value_at(row)),
                          static_cast<double>(ContextPlaces::value_at(column)))
        .si();
  });
}

StepTimes::Line StepTimes::attention(std::int64_t requests, std::int64_t context, double beyond) {
  const auto row = TokenPlaces::of(requests);
  const auto column = ContextPlaces::of(context);
  double low = attention_entry(row.place, column.place);
  double high = attention_entry(row.place, column.place + 1);
  if (requests != row.low) {
    low = between(requests, row.low, row.high, low, attention_entry(row.place + 1, column.place));
    high = between(requests, row.low, row.high, high,
                   attention_entry(row.place + 1, column.place + 1));
  }
  const double slope = std::max(0.0, (high - low) / static_cast<double>(column.high - column.low));
  const double past = static_cast<double>(context - column.low) + beyond;
  return {low + slope * past, slope, column.high};
}

// Seconds a token: the time of a prompt's attention is quadratic in its tokens, and this is linear.
template <class Cost>
double StepTimes::prompt_token(PromptTable& table, std::int64_t tokens, std::int64_t cached,
                               const Cost& cost) {
  const auto at = [&](std::size_t row, std::size_t column) {
    if (row >= table.size()) table.resize(row + 1);
    return entry(table[row], column, [&] {
      const auto of = static_cast<double>(PromptPlaces::value_at(row));
      return cost(of, static_cast<double>(PromptPlaces::value_at(column))).si() / of;
    });
  };
  const auto row = PromptPlaces::of(tokens);
  const auto column = PromptPlaces::of(cached);
  const auto along = [&](std::size_t place) {
    const double low = at(row.place, place);
    return tokens == row.low ? low
                             : between(tokens, row.low, row.high, low, at(row.place + 1, place));
  };
  const double low = along(column.place);
  return cached == column.low
             ? low
             : between(cached, column.low, column.high, low, along(column.place + 1));
}

double StepTimes::prefill(const ChunkShape& chunk) {
  return chunk.tokens *
         prompt_token(prefill_, chunk.tokens, chunk.cached, costs_.prefill_attention);
}

// Lower bound of the GPU's time, and the overhead on top of it.
double StepTimes::least(std::int64_t tokens, bool prompts, double requests) const {
  const double launch =
      costs_.launch ? costs_.launch(static_cast<double>(tokens), prompts).si() : 0.0;
  return costs_.host_hidden ? std::max(launch, costs_.host(requests).si()) : launch;
}

double StepTimes::overhead(double requests) const {
  return costs_.gap(requests).si() + (costs_.host_hidden ? 0.0 : costs_.host(requests).si());
}

// Time to the next stage, if each of the other batches has as many requests.
double StepTimes::handover(std::int64_t tokens, double requests, std::int64_t busy) const {
  const double hop = costs_.hop ? costs_.hop(static_cast<double>(tokens)).si() : 0.0;
  const double all = static_cast<double>(busy) * requests;
  return hop + (costs_.planning ? costs_.planning(all).si() : 0.0);
}

StepTimes::Passage StepTimes::passage(double layers, double head, std::int64_t tokens,
                                      double requests, std::int64_t busy) const {
  constexpr double forever = std::numeric_limits<double>::infinity();
  if (costs_.stages == 1) return {layers + head, 1.0, forever};
  if (busy == 0) busy = costs_.stages;
  const double between = handover(tokens, requests, busy), turns = static_cast<double>(busy);
  // The time is the largest of all stages', of the longest one's turns, and of the last one's.
  struct Linear {
    double fixed, slope;
  };
  const std::array<Linear, 3> bounds{Linear{head + costs_.stages * between, 1.0},
                                     Linear{turns * between, turns * costs_.longest_stage},
                                     Linear{turns * (between + head), turns * costs_.last_stage}};
  const auto time = [&](const Linear& bound) { return bound.fixed + bound.slope * layers; };
  Linear longest = bounds.front();
  for (const Linear& bound : bounds)
    if (time(bound) > time(longest) ||
        (time(bound) == time(longest) && bound.slope > longest.slope))
      longest = bound;
  double most = forever;
  for (const Linear& bound : bounds)
    if (bound.slope > longest.slope)
      most = std::min(most, (longest.fixed - bound.fixed) / (bound.slope - longest.slope));
  return {time(longest), longest.slope, most};
}

const StepTimes::Fixed& StepTimes::fixed(std::int64_t requests) {
  const auto place = static_cast<std::size_t>(requests);
  if (place >= fixed_.size()) fixed_.resize(place + 1);
  Fixed& fixed = fixed_[place];
  if (fixed.layers < 0.0) {
    const auto n = static_cast<double>(requests);
    const std::int64_t computed = costs_.padded ? costs_.padded(requests) : requests;
    const std::int64_t tokens = computed * costs_.step_tokens;
    fixed = {dense(tokens), head(tokens) + draft(requests), least(tokens, false, n), overhead(n)};
  }
  return fixed;
}

DecodeSteps StepTimes::decode(std::int64_t requests, std::int64_t context, double beyond,
                              std::int64_t busy) {
  assert(requests >= 1);
  const Fixed& of = fixed(requests);
  const Line line = attention(requests, context, beyond);
  // Tokens that a step adds to all contexts.
  const double grows = costs_.progress * static_cast<double>(requests);
  auto steps = costs_.step_tokens == 1
                   ? (line.end - context) / requests + 1
                   : static_cast<std::int64_t>(static_cast<double>(line.end - context) / grows) + 1;
  const std::int64_t tokens = requests * costs_.step_tokens;
  const double layers = of.layers + line.at, grow = line.slope * grows;
  const Passage through = passage(layers, of.head, tokens, static_cast<double>(requests), busy);
  const double gpu = through.time, growth = through.slope * grow;
  // The plan ends where another stage is the longest one.
  if (grow > 0.0 && (through.most - layers) / grow < static_cast<double>(steps))
    steps = static_cast<std::int64_t>((through.most - layers) / grow) + 1;
  if (gpu >= of.least) return {Seconds{gpu + of.overhead}, Seconds{growth}, steps};
  // Another bound is slower, until the GPU has caught up with it.
  const double until_equal = growth > 0.0 ? (of.least - gpu) / growth : 1e18;
  if (until_equal < static_cast<double>(steps))
    steps = std::max<std::int64_t>(1, static_cast<std::int64_t>(until_equal) + 1);
  return {Seconds{of.least + of.overhead}, Seconds{}, steps};
}

// Kernels that take all parts of prompts at once, as if these were alike.
double StepTimes::together(const std::vector<ChunkShape>& chunks, std::int64_t tokens,
                           std::int64_t cached) {
  if (!costs_.together || chunks.empty()) return 0.0;
  const auto prompts = static_cast<std::int64_t>(chunks.size());
  const auto n = static_cast<double>(prompts);
  const double a_token =
      prompt_token(together_[prompts], std::max<std::int64_t>(1, tokens / prompts),
                   cached / prompts, [&](double of_each, double behind) {
                     return (1.0 / n) * costs_.together(n, of_each, behind);
                   });
  return a_token * static_cast<double>(tokens);
}

double StepTimes::gpu_of_chunks(const std::vector<ChunkShape>& chunks, std::int64_t& tokens) {
  double gpu = 0.0;
  std::int64_t own = 0, cached = 0;
  for (const ChunkShape& chunk : chunks) {
    own += chunk.tokens;
    cached += chunk.cached;
    gpu += prefill(chunk);
  }
  tokens += own;
  return gpu + together(chunks, own, cached);
}

Seconds StepTimes::mixed(std::int64_t requests, std::int64_t context,
                         const std::vector<ChunkShape>& chunks, std::int64_t finished,
                         double beyond, std::int64_t busy) {
  const std::int64_t decoded = requests * costs_.step_tokens;
  std::int64_t tokens = decoded;
  double layers = gpu_of_chunks(chunks, tokens), last = draft(requests);
  if (requests > 0) layers += attention(requests, context, beyond).at;
  layers += dense(tokens);
  if (requests + finished > 0) last += head(decoded + finished);
  const auto batch = static_cast<double>(requests) + static_cast<double>(chunks.size());
  const double gpu = passage(layers, last, tokens, batch, busy).time;
  return Seconds{std::max(gpu, least(tokens, !chunks.empty(), batch)) + overhead(batch)};
}

Seconds StepTimes::chunk_follows(const std::vector<ChunkShape>& chunks, std::int64_t busy) {
  std::int64_t tokens = 0;
  const double gpu = gpu_of_chunks(chunks, tokens) + dense(tokens);
  const auto batch = static_cast<double>(chunks.size());
  return Seconds{static_cast<double>(busy) *
                 (std::max(costs_.longest_stage * gpu + handover(tokens, batch, busy),
                           least(tokens, !chunks.empty(), batch) / costs_.stages) +
                  overhead(batch) / costs_.stages)};
}

}  // namespace orrery
