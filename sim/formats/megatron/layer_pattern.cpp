#include "sim/formats/megatron/layer_pattern.hpp"

#include <algorithm>

#include "sim/core/json_value.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

constexpr std::size_t longest = 20'000;  // Letters and bars, written out.

class LayoutReader {
 public:
  LayoutReader(const std::string& layout, const Place& place) : layout_{layout}, place_{place} {}

  std::string written_out() {
    const std::string all = sequence(0);
    if (at_ < layout_.size()) fail("closes a bracket that it does not open");
    return all;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    fail_input(place_, "the pipeline layout '" + shown_text(layout_) + "' " + problem,
               "write E, t, m, L and | as in \"Et|tt|tL\", repeated as in (tt|)*4");
  }

  // Up to the end or a bracket that closes.
  std::string sequence(int depth) {
    if (depth > 100) fail("nests too deep");
    std::string all;
    while (at_ < layout_.size() && layout_[at_] != ')') {
      all += repeated(item(depth));
      if (all.size() > longest) fail("has more than 20,000 layers and chunks");
    }
    return all;
  }

  std::string item(int depth) {
    const char c = layout_[at_++];
    if (c == ',' || c == '\'' || c == '"') return "";
    if (c == 'E' || c == 't' || c == 'm' || c == 'L' || c == '|') return {c};
    if (c != '(') fail("has '" + shown_text({c}) + "'");
    std::string inside = sequence(depth + 1);
    if (at_ == layout_.size()) fail("opens a bracket that it does not close");
    ++at_;
    return inside;
  }

  std::string repeated(const std::string& item) {
    if (at_ == layout_.size() || layout_[at_] != '*') return item;
    std::size_t end = ++at_;
    while (end < layout_.size() && layout_[end] >= '0' && layout_[end] <= '9') ++end;
    const auto count = plain_integer(layout_.substr(at_, end - at_), 10'000);
    if (!count) fail("repeats something a number of times that is none");
    at_ = end;
    if (item.size() * static_cast<std::size_t>(*count) > longest)
      fail("has more than 20,000 layers and chunks");
    std::string all;
    for (int i = 0; i < *count; ++i) all += item;
    return all;
  }

  const std::string& layout_;
  const Place& place_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<int> layers_of_layout(const std::string& layout, const Place& place) {
  std::vector<int> layers{0};
  for (const char c : LayoutReader{layout, place}.written_out()) {
    if (c == '|') layers.push_back(0);
    if (c == 't') ++layers.back();
  }
  return layers;
}

std::optional<std::string> expert_layers(const std::string& pattern, std::size_t layers) {
  std::string text;  // Without what may stand around: "([0]*3 + [1]*58)".
  for (const char c : pattern)
    if (std::string_view{" ()'\""}.find(c) == std::string_view::npos) text += c;
  std::string listed;
  if (const auto every = plain_integer(text, 10'000); every && *every > 0) {
    for (std::size_t i = 0; i < layers; ++i)
      listed += i % static_cast<std::size_t>(*every) == 0 ? '1' : '0';
    return listed;
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('+', at), text.size());
    const std::string term = text.substr(at, end - at);
    const std::size_t close = term.find(']');
    if (!term.starts_with('[') || close == term.npos) return std::nullopt;
    std::string group = term.substr(1, close - 1);
    std::erase(group, ',');
    if (group.find_first_not_of("01") != group.npos) return std::nullopt;
    std::optional<int> times = 1;
    if (close + 1 < term.size())
      times = term[close + 1] == '*' ? plain_integer(term.substr(close + 2), 10'000) : std::nullopt;
    if (!times || listed.size() + group.size() * static_cast<std::size_t>(*times) > layers)
      return std::nullopt;
    for (int i = 0; i < *times; ++i) listed += group;
    at = end + 1;
  }
  if (listed.size() != layers) return std::nullopt;
  return listed;
}

}  // namespace orrery
