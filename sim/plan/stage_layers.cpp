#include "sim/plan/stage_layers.hpp"

#include <algorithm>
#include <cassert>

#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {
namespace {

constexpr int most = 20'000;  // Limit of stages, and of layers of one.

[[noreturn]] void fail(const JsonValue& value, const std::string& item) {
  value.fail("'" + shown_text(item) + "' is no number of layers",
             "write those of each virtual stage in order, 11+12x14+11, or even");
}

}  // namespace

std::string stage_layers_text(const StageLayers& layers) {
  if (!layers.chosen()) return "even";
  std::string text;
  for (auto at = layers.of.begin(); at != layers.of.end();) {
    const auto other = std::find_if(at, layers.of.end(), [&](int next) { return next != *at; });
    text += (text.empty() ? "" : "+") + std::to_string(*at);
    if (other - at > 1) text += "x" + std::to_string(other - at);
    at = other;
  }
  return text;
}

StageLayers read_stage_layers(const JsonValue& value) {
  // The list of one stage is a number.
  const std::string text =
      value.is_number() ? std::to_string(value.integer(0, most)) : value.text();
  if (text == "even") return {};
  StageLayers layers;
  for (const std::string& item : split(text, ",+")) {
    const std::size_t times = std::min(item.find_first_of("x*"), item.size());
    const auto each = plain_integer(item.substr(0, times), most);
    const auto count =
        times == item.size() ? std::optional{1} : plain_integer(item.substr(times + 1), most);
    if (!each || !count || *count < 1) fail(value, item);
    if (layers.of.size() + static_cast<std::size_t>(*count) > most) fail(value, text);
    layers.of.insert(layers.of.end(), static_cast<std::size_t>(*count), *each);
  }
  return layers;
}

std::vector<int> nanotron_stages(const Model& model, int stages) {
  assert(!model.experts && stages >= 1 && stages <= model.layers);
  const double head_width = static_cast<double>(model.hidden / model.heads);
  const double layer = (4.0 * static_cast<double>(model.heads) * head_width +
                        (model.gated ? 3.0 : 2.0) * static_cast<double>(model.ffn)) *
                       static_cast<double>(model.hidden);
  const double head = static_cast<double>(model.vocab) * static_cast<double>(model.hidden);
  const double all = layer * model.layers + head;
  std::vector<int> of(static_cast<std::size_t>(stages), 0);
  std::size_t stage = 0;
  for (int done = 1; done <= model.layers; ++done) {
    ++of[stage];
    const double share = static_cast<double>(stage + 1) / static_cast<double>(stages);
    if (layer * done > all * share) ++stage;
  }
  return of;
}

}  // namespace orrery
