#include "sim/formats/megatron/layer_split.hpp"

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

// "([1]*3+[0]*1)*12": sums of lists and brackets, each repeated by a factor behind it. Nothing:
// another form, or more than `most` entries.
class ListReader {
 public:
  ListReader(const std::string& text, std::size_t most) : text_{text}, most_{most} {}

  std::optional<std::string> whole() {
    auto listed = sum(0);
    return at_ == text_.size() ? listed : std::nullopt;
  }

 private:
  static constexpr int deepest = 100;

  bool skip(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::optional<std::string> sum(int depth) {
    std::string all;
    do {
      const auto one = term(depth);
      if (!one || all.size() + one->size() > most_) return std::nullopt;
      all += *one;
    } while (skip('+'));
    return all;
  }

  std::optional<std::string> term(int depth) {
    std::string one;
    if (skip('(')) {
      const auto inside = depth < deepest ? sum(depth + 1) : std::nullopt;
      if (!inside || !skip(')')) return std::nullopt;
      one = *inside;
    } else {
      if (!skip('[')) return std::nullopt;
      while (!skip(']')) {
        if (at_ == text_.size() || std::string_view{"01,"}.find(text_[at_]) == std::string::npos)
          return std::nullopt;
        if (text_[at_] != ',') one += text_[at_];
        ++at_;
      }
    }
    if (!skip('*')) return one;
    std::size_t end = at_;
    while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
    const auto times = plain_integer(text_.substr(at_, end - at_), 10'000);
    at_ = end;
    if (!times || one.size() * static_cast<std::size_t>(*times) > most_) return std::nullopt;
    std::string all;
    for (int i = 0; i < *times; ++i) all += one;
    return all;
  }

  const std::string& text_;
  std::size_t most_;
  std::size_t at_ = 0;
};

std::string without_blanks(const std::string& pattern) {
  std::string text;
  for (const char c : pattern)
    if (std::string_view{" '\""}.find(c) == std::string_view::npos) text += c;
  return text;
}

std::optional<std::string> listed_layers(const std::string& text, std::size_t layers) {
  auto listed = ListReader{text, layers}.whole();
  return listed && listed->size() == layers ? listed : std::nullopt;
}

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
  const std::string text = without_blanks(pattern);
  if (const auto every = plain_integer(text, 10'000); every && *every > 0) {
    std::string listed;
    for (std::size_t i = 0; i < layers; ++i)
      listed += i % static_cast<std::size_t>(*every) == 0 ? '1' : '0';
    return listed;
  }
  return listed_layers(text, layers);
}

std::optional<std::string> linear_layers(const std::string& pattern, std::size_t layers) {
  const std::string text = without_blanks(pattern);
  if (const auto every = plain_integer(text, 10'000); every && *every > 0) {
    std::string listed;
    for (std::size_t i = 1; i <= layers; ++i)
      listed += i % static_cast<std::size_t>(*every) == 0 ? '0' : '1';
    return listed;
  }
  return listed_layers(text, layers);
}

namespace {

constexpr const char* first_key = "decoder_first_pipeline_num_layers";
constexpr const char* last_key = "decoder_last_pipeline_num_layers";

std::int64_t chunks_a_stage(const MegatronArguments& a, std::int64_t layers, std::int64_t stages) {
  const std::int64_t vpp = a.number("num_virtual_stages_per_pipeline_rank",
                                    a.number("virtual_pipeline_model_parallel_size", 1));
  const std::int64_t per_chunk = a.number("num_layers_per_virtual_pipeline_stage", 0);
  if (per_chunk <= 0) return vpp;
  if (layers % (stages * per_chunk) != 0)
    a.fail("num_layers_per_virtual_pipeline_stage",
           std::to_string(per_chunk) + " does not divide the " + std::to_string(layers) +
               " layers on " + std::to_string(stages) + " stages",
           "write a divisor");
  return layers / stages / per_chunk;
}

PipelineSplit of_layout(const MegatronArguments& a, std::int64_t stages,
                        std::vector<std::string>& notes) {
  constexpr const char* key = "pipeline_model_parallel_layout";
  const auto* layout = a.find(key);
  PipelineSplit split;
  split.layers.of = layers_of_layout(layout->text(), layout->place);
  const auto chunks = std::ssize(split.layers.of);
  if (chunks % stages != 0)
    a.fail(key,
           "has " + std::to_string(chunks) + " chunks for " + std::to_string(stages) + " stages",
           "the second must divide the first");
  split.vpp = chunks / stages;
  const std::vector<int>& of = split.layers.of;
  if (chunks > 2 && std::find(of.begin() + 1, of.end() - 1, 0) != of.end() - 1)
    a.fail(key, "has a chunk without layers that is neither the first nor the last",
           "give it a layer; prediction layers stand in the last chunk, with the loss");
  // Its brackets may repeat bars, but prediction layers and the loss are written once, at the end.
  const std::string text = layout->text();
  const std::size_t predicts = text.find('m');
  if (predicts != text.npos && text.find('|', predicts) != text.npos)
    notes.push_back(
        "the layout has prediction layers before its last chunk; they are priced in the last one");
  return split;
}

// Chunks of a stage are equal; the stages between the first and the last share the other layers.
PipelineSplit of_ends(const MegatronArguments& a, std::int64_t layers, std::int64_t stages,
                      std::int64_t vpp) {
  const std::int64_t first = a.number(first_key, -1), last = a.number(last_key, -1);
  const std::int64_t others = stages - (first >= 0) - (last >= 0);
  const std::int64_t left =
      layers - std::max<std::int64_t>(first, 0) - std::max<std::int64_t>(last, 0);
  const char* key = first >= 0 ? first_key : last_key;
  const auto divides = [&](std::int64_t some, std::int64_t by) {
    return some >= 0 && (by > 0 ? some % by == 0 : some == 0);
  };
  if (stages < 2 || !divides(left, others * vpp) ||
      !divides(std::max<std::int64_t>(first, 0), vpp) ||
      !divides(std::max<std::int64_t>(last, 0), vpp))
    a.fail(key,
           "leaves " + std::to_string(left) + " layers for " + std::to_string(others) +
               " stages of " + std::to_string(vpp) + (vpp == 1 ? " chunk" : " chunks"),
           "write a number that leaves a multiple");
  PipelineSplit split{vpp, {}};
  for (std::int64_t chunk = 0; chunk < vpp; ++chunk)
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      const std::int64_t of_stage = stage == 0 && first >= 0           ? first
                                    : stage == stages - 1 && last >= 0 ? last
                                                                       : left / others;
      split.layers.of.push_back(static_cast<int>(of_stage / vpp));
    }
  return split;
}

// The first chunk gives one layer for the embedding, the last one for the loss.
PipelineSplit with_ends_counted(const MegatronArguments& a, std::int64_t layers,
                                std::int64_t stages, std::int64_t vpp, bool embedding, bool loss) {
  const std::int64_t counted = layers + embedding + loss, chunks = stages * vpp;
  if (stages < 2 || counted % chunks != 0)
    a.fail(embedding ? "account_for_embedding_in_pipeline_split"
                     : "account_for_loss_in_pipeline_split",
           "makes " + std::to_string(counted) + " layers, which " + std::to_string(chunks) +
               " chunks do not divide",
           "leave it out, or change the number of layers or stages");
  PipelineSplit split{vpp, {}};
  split.layers.of.assign(static_cast<std::size_t>(chunks), static_cast<int>(counted / chunks));
  if (embedding) --split.layers.of.front();
  if (loss) --split.layers.of.back();
  return split;
}

}  // namespace

PipelineSplit pipeline_split(const MegatronArguments& arguments, std::int64_t layers,
                             std::int64_t stages, std::vector<std::string>& notes) {
  constexpr std::int64_t most = 20'000;  // The limit of layouts.
  const std::int64_t vpp = chunks_a_stage(arguments, layers, stages);
  const bool embedding = arguments.flag("account_for_embedding_in_pipeline_split");
  const bool loss = arguments.flag("account_for_loss_in_pipeline_split");
  if (arguments.has("pipeline_model_parallel_layout")) return of_layout(arguments, stages, notes);
  if (vpp < 1 || stages > most || vpp > most / stages) return {vpp, {}};  // Refused as a plan.
  const bool ends = arguments.number(first_key, -1) >= 0 || arguments.number(last_key, -1) >= 0;
  if (ends) return of_ends(arguments, layers, stages, vpp);
  if (embedding || loss) return with_ends_counted(arguments, layers, stages, vpp, embedding, loss);
  return {vpp, {}};
}

}  // namespace orrery
