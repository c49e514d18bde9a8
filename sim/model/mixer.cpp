#include "sim/model/mixer.hpp"

#include <numeric>

#include "sim/model/mixers/attention.hpp"
#include "sim/model/mixers/latent_attention.hpp"
#include "sim/model/mixers/linear_attention.hpp"
#include "sim/model/mixers/mamba.hpp"
#include "sim/model/mixers/short_convolution.hpp"
#include "sim/model/mixers/side_by_side.hpp"
#include "sim/model/model.hpp"

namespace orrery {

std::int64_t StateWork::input_width() const {
  return std::accumulate(inputs.begin(), inputs.end(), std::int64_t{0});
}

const std::vector<MixerKind>& mixer_kinds() {
  static const std::vector<MixerKind> kinds{
      {"attention", parse_attention},
      {"latent_attention", parse_latent_attention},
      {"compressed_attention", parse_compressed_attention},
      {"gated_delta_net", parse_gated_delta_net},
      {"kda", parse_kimi_delta},
      {"mamba2", parse_mamba2},
      {"mamba1", parse_mamba1},
      {"lightning", parse_lightning},
      {"short_convolution", parse_short_convolution},
      {"parallel", parse_side_by_side},
  };
  return kinds;
}

KeptBytes& KeptBytes::operator+=(const KeptBytes& other) {
  per_token += other.per_token;
  states += other.states;
  window += other.window;
  return *this;
}

bool Mixer::describe(Model&) const { return false; }

std::optional<AttentionModule> Mixer::module(std::int64_t) const { return std::nullopt; }

std::optional<StateWork> Mixer::work(std::int64_t, std::int64_t) const { return std::nullopt; }

std::int64_t Mixer::parameters(std::int64_t hidden) const {
  std::int64_t count = vectors(hidden);
  for (const WeightMatrix& matrix : matrices(hidden)) count += matrix.in * matrix.out;
  return count;
}

MixerPointer parse_mixer(const JsonValue& json) {
  std::vector<std::string> words;
  for (const MixerKind& kind : mixer_kinds()) words.push_back(kind.word);
  const JsonValue word = json.at("kind");
  const auto index = choice<std::size_t>(word.text(), word.place(), "is no kind of mixer", words);
  return mixer_kinds()[index].parse(json);
}

namespace {

std::vector<std::string> with_kind(std::vector<std::string> known) {
  known.push_back("kind");
  return known;
}

}  // namespace

MixerKeys::MixerKeys(const JsonValue& json, std::vector<std::string> known)
    : reader_{json, with_kind(std::move(known))} {}

std::int64_t MixerKeys::size(const std::string& key) {
  std::int64_t value = 1;
  reader_.required(key, [&](const JsonValue& json) { value = json.integer(1, max_mixer_size); });
  return value;
}

std::int64_t MixerKeys::size(const std::string& key, std::int64_t absent) {
  std::int64_t value = absent;
  const std::int64_t least = absent > 0 ? 1 : 0;  // 0 stands for what is not there.
  reader_.optional(key,
                   [&](const JsonValue& json) { value = json.integer(least, max_mixer_size); });
  return value;
}

std::int64_t MixerKeys::tokens(const std::string& key) {
  std::int64_t value = 0;
  reader_.optional(key, [&](const JsonValue& json) { value = json.integer(0, max_tokens); });
  return value;
}

bool MixerKeys::flag(const std::string& key, bool absent) {
  bool value = absent;
  reader_.optional(key, [&](const JsonValue& json) { value = json.boolean(); });
  return value;
}

void MixerKeys::check_divides(std::int64_t part, std::int64_t whole, const std::string& text) {
  reader_.check([&] {
    if (part == 0 || whole % part != 0)
      reader_.json().fail(std::to_string(whole) + " " + text + " " + std::to_string(part),
                          "the first must be a multiple of the second");
  });
}

}  // namespace orrery
