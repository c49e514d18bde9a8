#include "sim/reliability/batch_ramp.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

constexpr const char* remedy_of_ramp =
    "write tokens and the batch from there on, as \"0:512 252B:1024\", or start, increment and "
    "sequences, as \"192 16 9765625\"";
constexpr std::int64_t most_sequences = std::int64_t{1} << 40;
// A phase has step times of its own.
constexpr std::int64_t most_phases = 1000;

std::int64_t count_of(std::string_view word, const std::string& text, const Place& at) {
  const auto count = plain_number(word);
  if (!count || *count < 1.0 || *count > static_cast<double>(most_sequences) ||
      *count != std::floor(*count))
    fail_input(at, "'" + shown_text(text) + "' is no batch that grows", remedy_of_ramp);
  return static_cast<std::int64_t>(*count);
}

BatchRamp::Level level_of(const std::string& item, const Place& at) {
  const std::size_t colon = item.find(':');
  if (colon == item.npos)
    fail_input(at, "'" + shown_text(item) + "' does not say from when on", remedy_of_ramp);
  const std::string from = item.substr(0, colon);
  return {from == "0" ? 0.0 : parse_tokens(from, at),
          count_of(std::string_view{item}.substr(colon + 1), item, at)};
}

std::vector<BatchRamp::Level> levels_of(const BatchRamp& ramp, std::int64_t gbs, std::int64_t seq,
                                        const Place& at) {
  if (ramp.empty()) return {{0.0, gbs}};
  if (ramp.start == 0) return ramp.levels;
  const std::int64_t grows = gbs - ramp.start;
  if (grows <= 0 || grows % ramp.increment != 0)
    fail_input(at,
               "no batch grows from " + grouped(ramp.start) + " by " + grouped(ramp.increment) +
                   " to the " + grouped(gbs) + " of --gbs",
               "choose a start and an increment that lead there");
  const std::int64_t phases = grows / ramp.increment;
  if (phases > most_phases)
    fail_input(at,
               "grows in " + grouped(phases) + " phases, more than the " + grouped(most_phases) +
                   " whose steps can be simulated",
               "choose a larger increment");
  std::vector<BatchRamp::Level> levels;
  const double ends = static_cast<double>(ramp.sequences) * static_cast<double>(seq);
  for (std::int64_t i = 0; i <= phases; ++i)
    levels.push_back({ends * (static_cast<double>(i) / static_cast<double>(phases)),
                      ramp.start + i * ramp.increment});
  return levels;
}

}  // namespace

BatchRamp parse_batch_ramp(const std::string& text, const Place& at) {
  BatchRamp ramp;
  const std::vector<std::string> words = items_of(text);
  if (text.find(':') == text.npos) {
    if (words.size() != 3)
      fail_input(at, "'" + shown_text(text) + "' is no batch that grows", remedy_of_ramp);
    ramp.start = count_of(words[0], text, at);
    ramp.increment = count_of(words[1], text, at);
    ramp.sequences = count_of(words[2], text, at);
    return ramp;
  }
  for (const std::string& word : words) {
    const BatchRamp::Level level = level_of(word, at);
    if (ramp.levels.empty() && level.from > 0.0)
      fail_input(at, "does not say which batch the run begins with", "begin with 0:BATCH");
    if (!ramp.levels.empty() &&
        (level.gbs <= ramp.levels.back().gbs || level.from <= ramp.levels.back().from))
      fail_input(at, "'" + shown_text(word) + "' is not above what stands before it",
                 "let tokens and batches rise");
    ramp.levels.push_back(level);
  }
  if (static_cast<std::int64_t>(ramp.levels.size()) > most_phases)
    fail_input(at, "has more than " + grouped(most_phases) + " batches", "write fewer");
  return ramp;
}

std::vector<BatchPhase> batch_phases(const BatchRamp& ramp, std::int64_t gbs, std::int64_t seq,
                                     double tokens, const Place& at) {
  const std::vector<BatchRamp::Level> levels = levels_of(ramp, gbs, seq, at);
  if (levels.back().gbs != gbs)
    fail_input(
        at, "ends with " + grouped(levels.back().gbs) + " sequences, and --gbs is " + grouped(gbs),
        "let it end with the batch of --gbs");
  if (levels.back().from >= tokens)
    fail_input(at, "lasts as long as the run or longer: the batch of --gbs is never reached",
               "train on more --tokens, or let the batch grow sooner");
  std::vector<BatchPhase> phases;
  double done = 0.0;  // Tokens.
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const double until = i + 1 < levels.size() ? levels[i + 1].from : tokens;
    const double of_step = static_cast<double>(levels[i].gbs) * static_cast<double>(seq);
    const double steps = std::ceil((until - done) / of_step);
    if (steps < 1.0) continue;  // The step before went beyond its end.
    phases.push_back({levels[i].gbs, steps});
    done += steps * of_step;
  }
  return phases;
}

}  // namespace orrery
