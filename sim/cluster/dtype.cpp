#include "sim/cluster/dtype.hpp"

#include <algorithm>

#include "sim/core/field.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/nearest.hpp"

namespace orrery {
namespace {

using enum Dtype;

constexpr std::array of_products{fp16, bf16, fp8, mxfp8, nvfp4, tf32, fp32};
constexpr std::array of_weights{bf16, fp16, fp8,      fp8_block, nvfp4,  mxfp4,   mxfp8,
                                int8, int4, int4_g32, nf4,       nf4_dq, nvfp4a16};
constexpr std::array of_kv_cache{bf16, fp16, fp8, nvfp4};
constexpr std::array of_moments{fp32, bf16, fp16, fp8, int8_block};
constexpr std::array of_states{fp32, bf16, fp16};

// One for each FormatUse, in its order.
constexpr std::array<std::span<const Dtype>, 5> uses{of_products, of_weights, of_kv_cache,
                                                     of_moments, of_states};

constexpr const char* holders[] = {"training's products", "weights", "a KV cache", "Adam's moments",
                                   "states"};

std::vector<std::string> names_of(std::span<const Dtype> formats) {
  std::vector<std::string> names;
  for (const Dtype dtype : formats) names.emplace_back(facts(dtype).name);
  return names;
}

}  // namespace

const std::string& name(Dtype dtype) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const NumberFormat& format : number_formats) all.emplace_back(format.name);
    return all;
  }();
  return names[static_cast<std::size_t>(dtype)];
}

std::span<const Dtype> formats_for(FormatUse use) { return uses[static_cast<std::size_t>(use)]; }

const std::vector<std::string>& format_names(FormatUse use) {
  static const std::array<std::vector<std::string>, 5> names{
      names_of(of_products), names_of(of_weights), names_of(of_kv_cache), names_of(of_moments),
      names_of(of_states)};
  return names[static_cast<std::size_t>(use)];
}

std::optional<Dtype> format_named(std::string_view word, FormatUse use) {
  for (const Dtype dtype : formats_for(use))
    if (facts(dtype).name == word) return dtype;
  return std::nullopt;
}

std::vector<std::string> names_of_products(double bits) {
  std::vector<std::string> names;
  for (const Dtype dtype : of_products)
    if (facts(dtype).bits == bits) names.push_back(name(dtype));
  return names;
}

Dtype read_format(const JsonValue& json, FormatUse use) {
  const std::string word = json.text();
  if (const auto found = format_named(word, use)) return *found;
  for (std::size_t other = 0; other < uses.size(); ++other)
    if (format_named(word, static_cast<FormatUse>(other)))
      json.fail("'" + word + "' is no format of " + holders[static_cast<std::size_t>(use)],
                suggestion("", format_names(use)));
  json.fail("'" + shown_text(word) + "' is unknown", suggestion(word, format_names(use)));
}

Notation<Dtype> format_of(FormatUse use) {
  return {Form::word, joined(format_names(use), "|"), format_names(use),
          [=](const JsonValue& json) { return read_format(json, use); },
          [](const Dtype& dtype) { return FieldValue{name(dtype)}; }};
}

}  // namespace orrery
