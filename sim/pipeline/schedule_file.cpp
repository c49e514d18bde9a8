#include "sim/pipeline/schedule_file.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <memory>
#include <utility>

#include "sim/core/error.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/units.hpp"

namespace orrery {
namespace {

constexpr std::string_view format = "orrery.schedule/1";
constexpr int most_stages = 4096;
constexpr int most_chunks = 256;
constexpr int most_passes = 1'000'000;  // Passes in each direction, over all stages.

class Reader {
 public:
  Reader(const std::string& text, const std::string& file) : file_{file}, lines_{lines_of(text)} {}

  ExplicitOrder read() {
    read_lines();
    check_sizes();
    place_chunks();
    for (const auto& [stage, line] : first_runs_) check_range(line, "rank", stage, order_.stages);
    for (int stage = 0; stage < order_.stages; ++stage)
      if (!first_runs_.contains(stage))
        fail(last(), "rank " + std::to_string(stage) + " runs nothing",
             "add a line 'runs " + std::to_string(stage) + ": F0 B0 ...'");
    order_.orders.resize(at(order_.stages));
    for (const auto& [line, stage, words] : runs_)
      for (const std::string_view word : words) add_passes(line, order_.orders[at(stage)], word);
    for (const auto fault_of : {fault_of_passes, fault_of_waits})
      if (const auto fault = fault_of(order_))
        fail(first_runs_.at(fault->stage), fault->problem, fault->remedy);
    return std::move(order_);
  }

 private:
  struct Runs {
    std::size_t line;
    int stage;
    std::vector<std::string_view> words;
  };

  [[noreturn]] void fail(std::size_t line, const std::string& problem,
                         const std::string& remedy) const {
    fail_input(line_place(file_, line), problem, remedy);
  }
  std::size_t last() const { return lines_.empty() ? 0 : lines_.size() - 1; }

  void read_lines() {
    bool begun = false;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const std::vector<std::string_view> words =
          words_of(lines_[i].substr(0, lines_[i].find('#')));
      if (words.empty()) continue;
      if (!begun && words[0] != format)
        fail(i, "this is not a schedule", "begin with the line " + std::string{format});
      if (begun) read_line(i, words);
      begun = true;
    }
    if (!begun) fail(0, "is empty", "begin with the line " + std::string{format});
  }

  void read_line(std::size_t line, const std::vector<std::string_view>& words) {
    static const std::vector<std::string> known{
        "stages", "chunks", "microbatches", "recomputes_for_weights", "holds", "runs"};
    const std::string word{words[0]};
    if (word == "holds" || word == "runs") {
      const int stage = stage_of(line, words);
      const std::vector<std::string_view> rest{words.begin() + 2, words.end()};
      if (word == "runs") {
        first_runs_.try_emplace(stage, line);
        runs_.push_back({line, stage, rest});
      } else if (!holds_.try_emplace(stage, std::make_pair(line, rest)).second) {
        fail(line, "says a second time what rank " + std::to_string(stage) + " holds",
             "leave one of the two out");
      }
      return;
    }
    if (std::find(known.begin(), known.end(), word) == known.end())
      fail(line, "'" + printable(words[0]) + "' is not a word of a schedule",
           suggestion(word, known));
    if (words.size() != 2) fail(line, word + " is one number", "write it like '" + word + " 4'");
    if (!sizes_.try_emplace(word, line, number(line, words[1], most_passes)).second)
      fail(line, word + " is given twice", "leave one of the two out");
  }

  // Reads the number of a line "runs 3: ...".
  int stage_of(std::size_t line, const std::vector<std::string_view>& words) const {
    if (words.size() < 2 || !words[1].ends_with(':'))
      fail(line, "'" + std::string{words[0]} + "' names no rank",
           "write it like '" + std::string{words[0]} + " 0: ...'");
    return number(line, words[1].substr(0, words[1].size() - 1), most_stages - 1);
  }

  int number(std::size_t line, std::string_view word, int maximum) const {
    const auto value = plain_integer(word, maximum);
    if (!value)
      fail(line, "'" + printable(word) + "' is not a whole number up to " + std::to_string(maximum),
           "write digits");
    return *value;
  }

  // Control characters do not belong in messages.
  static std::string printable(std::string_view word) {
    std::string shown{word.substr(0, 40)};
    for (char& c : shown)
      if (c < 0x20 || c > 0x7e) c = '?';
    return shown;
  }

  int size(const std::string& word, std::optional<int> otherwise, int minimum, int maximum) const {
    const auto found = sizes_.find(word);
    if (found == sizes_.end()) {
      if (!otherwise)
        fail(0, "the line '" + word + " N' is missing", "add it below the first line");
      return *otherwise;
    }
    const auto [line, value] = found->second;
    if (value < minimum || value > maximum)
      fail(line,
           word + " must be from " + std::to_string(minimum) + " to " + std::to_string(maximum),
           "change it");
    return value;
  }

  void check_sizes() {
    order_.stages = size("stages", std::nullopt, 1, most_stages);
    order_.chunks = size("chunks", 1, 1, most_chunks);
    order_.microbatches = size("microbatches", std::nullopt, 1, most_passes);
    order_.recomputes_for_weights = size("recomputes_for_weights", 0, 0, 1) == 1;
    if (std::int64_t{order_.stages} * order_.chunks * order_.microbatches > most_passes)
      fail(0, "more than a million passes in each direction", "spell out fewer micro-batches");
  }

  void check_range(std::size_t line, const std::string& what, int value, int end) const {
    if (value >= end)
      fail(line,
           what + " " + std::to_string(value) + " is not one of 0 to " + std::to_string(end - 1),
           "change it, or the sizes above");
  }

  void place_chunks() {
    order_.holds.resize(at(order_.stages));
    for (int stage = 0; stage < order_.stages; ++stage)
      for (int chunk = 0; chunk < order_.chunks; ++chunk)
        order_.holds[at(stage)].push_back(chunk * order_.stages + stage);
    if (holds_.empty()) return;
    int largest = 0;
    for (const auto& [stage, held] : holds_) {
      const auto& [line, words] = held;
      check_range(line, "rank", stage, order_.stages);
      if (static_cast<int>(words.size()) != order_.chunks)
        fail(line,
             "rank " + std::to_string(stage) + " holds " + std::to_string(words.size()) +
                 " virtual stages, but there are " + std::to_string(order_.chunks) +
                 " chunks a rank",
             "name as many, or change chunks");
      for (int chunk = 0; chunk < order_.chunks; ++chunk) {
        int& virtual_stage = order_.holds[at(stage)][at(chunk)];
        virtual_stage = number(line, words[at(chunk)], most_passes);
        check_range(line, "virtual stage", virtual_stage, order_.stages * order_.chunks);
        largest = std::max(largest, virtual_stage);
      }
    }
    for (int stage = 0; stage < order_.stages; ++stage)
      if (!holds_.contains(stage))
        fail(holds_.begin()->second.first,
             "what rank " + std::to_string(stage) + " holds is not said",
             "write a 'holds' line for every rank or for none");
    // Two copies of the model halve the number of virtual stages.
    if (order_.chunks == 2 && largest < order_.stages) order_.copies = 2;
    if (const auto fault = fault_of_places(order_))
      fail(holds_.at(fault->stage).first, fault->problem, fault->remedy);
  }

  // Reads "F3.1" or "F3.1+B0.0".
  void add_passes(std::size_t line, std::vector<Slot>& order, std::string_view word) const {
    const std::size_t plus = word.find('+');
    order.push_back(pass_of(line, word.substr(0, plus)));
    if (plus == word.npos) return;
    order.back().with_next = true;
    order.push_back(pass_of(line, word.substr(plus + 1)));
  }

  Slot pass_of(std::size_t line, std::string_view word) const {
    const auto refuse = [&] {
      fail(line, "'" + printable(word) + "' is not a pass",
           std::string{"write F (forward), B (backward), I or W (gradients of inputs or of "
                       "weights alone) and a micro-batch, as F3"} +
               (order_.chunks > 1 ? " and a chunk, as F3.1" : ""));
    };
    if (word.empty()) refuse();
    Slot slot;
    switch (word[0]) {
      case 'F':
        break;
      case 'I':
        slot.inputs_only = true;
        [[fallthrough]];
      case 'B':
        slot.pass = Pass::backward;
        break;
      case 'W':
        slot.pass = Pass::weight_gradient;
        break;
      default:
        refuse();
    }
    const std::string_view rest = word.substr(1);
    const std::size_t dot = rest.find('.');
    if ((dot == rest.npos) != (order_.chunks == 1)) refuse();
    const auto microbatch = plain_integer(rest.substr(0, dot), most_passes);
    const auto chunk =
        dot == rest.npos ? std::optional{0} : plain_integer(rest.substr(dot + 1), most_chunks);
    if (!microbatch || !chunk) refuse();
    check_range(line, "micro-batch", *microbatch, order_.microbatches);
    check_range(line, "chunk", *chunk, order_.chunks);
    slot.microbatch = *microbatch;
    slot.chunk = *chunk;
    return slot;
  }

  const std::string& file_;
  const std::vector<std::string_view> lines_;
  std::map<std::string, std::pair<std::size_t, int>> sizes_;  // Line and value.
  std::map<int, std::pair<std::size_t, std::vector<std::string_view>>>
      holds_;                              // Line and words, by rank.
  std::map<int, std::size_t> first_runs_;  // Line, by rank.
  std::vector<Runs> runs_;
  ExplicitOrder order_;
};

}  // namespace

ExplicitOrder read_schedule(const std::string& text, const std::string& file) {
  return Reader{text, file}.read();
}

namespace {

// Rank s holds s, p + s, 2 p + s, ..., the default of files.
bool wraps(const ExplicitOrder& order) {
  for (int stage = 0; stage < order.stages; ++stage)
    for (int chunk = 0; chunk < order.chunks; ++chunk)
      if (order.holds[static_cast<std::size_t>(stage)][static_cast<std::size_t>(chunk)] !=
          chunk * order.stages + stage)
        return false;
  return true;
}

}  // namespace

std::string schedule_text(const ExplicitOrder& order) {
  std::string text = "orrery.schedule/1\nstages " + std::to_string(order.stages) + "\n";
  if (order.chunks > 1) text += "chunks " + std::to_string(order.chunks) + "\n";
  text += "microbatches " + std::to_string(order.microbatches) + "\n";
  if (order.recomputes_for_weights) text += "recomputes_for_weights 1\n";
  if (!wraps(order))
    for (std::size_t stage = 0; stage < order.holds.size(); ++stage) {
      text += "holds " + std::to_string(stage) + ":";
      for (int virtual_stage : order.holds[stage]) text += " " + std::to_string(virtual_stage);
      text += "\n";
    }
  for (std::size_t stage = 0; stage < order.orders.size(); ++stage) {
    text += "runs " + std::to_string(stage) + ":";
    bool together = false;
    for (const Slot& slot : order.orders[stage]) {
      text += (together ? "+" : " ") + pass_name(slot, order.chunks);
      together = slot.with_next;
    }
    text += "\n";
  }
  return text;
}

namespace {

// The peak of a rank. Two passes take as much as they free, layer by layer, if `paired`.
Held peak_of(const std::vector<Slot>& order, const ExplicitOrder& of, bool paired) {
  Held peak;
  peak.most_of_copy = {0, 0};
  std::array<int, 2> held{0, 0};
  int before_pair = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto count = [&](const Slot& slot) {
      int& of_copy = held[static_cast<std::size_t>(of.copy_of(slot.chunk))];
      if (slot.pass == Pass::forward) ++of_copy;
      if (completes_gradients(slot)) --of_copy;
    };
    if (paired && order[i].with_next) {
      before_pair = std::max(before_pair, held[0] + held[1]);
      count(order[i++]);
    }
    count(order[i]);
    peak.chunks = std::max(peak.chunks, held[0] + held[1]);
    for (std::size_t copy : {0u, 1u})
      peak.most_of_copy[copy] = std::max(peak.most_of_copy[copy], held[copy]);
  }
  peak.one_more_layer = paired && (of.copies == 1 || before_pair == peak.chunks);
  return peak;
}

// A schedule from a user's file, for pipelines of that size only.
class UserSchedule final : public Schedule {
 public:
  UserSchedule(const std::string& name, const std::string& text)
      : Schedule{name}, text_{text}, order_{read_schedule(text, name)}, places_{order_} {
    for (const std::vector<Slot>& slots : order_.orders) {
      held_.push_back({peak_of(slots, order_, false), peak_of(slots, order_, true)});
      for (const Slot& slot : slots) {
        splits_ = splits_ || slot.inputs_only;
        pairs_ = pairs_ || slot.with_next;
      }
    }
    for (int stage = 0; stage < order_.stages; ++stage)
      for (int chunk = 0; chunk < order_.chunks; ++chunk)
        wraps_ = wraps_ && holds(stage, chunk) == chunk * order_.stages + stage;
  }

  Orders orders(const Pipeline& pipeline, const std::vector<PassLengths>&, Seconds) const override {
    assert(pipeline.stages == order_.stages && pipeline.microbatches == order_.microbatches);
    Orders orders = order_.orders;
    if (!pipeline.paired)
      for (std::vector<Slot>& slots : orders)
        for (Slot& slot : slots) slot.with_next = false;
    return orders;
  }

  bool splits_backward() const override { return splits_; }
  Pairing pairing(int, int) const override { return pairs_ ? Pairing::by_itself : Pairing::none; }

  Held held(const Pipeline& pipeline, int stage) const override {
    return held_[static_cast<std::size_t>(stage)][pipeline.paired ? 1 : 0];
  }

  int copies() const override { return order_.copies; }
  bool wraps() const override { return wraps_; }
  int virtual_stage(int, int stage, int chunk) const override { return holds(stage, chunk); }
  ChunkPlace place(int, int virtual_stage, int copy) const override {
    return places_(virtual_stage, copy);
  }

  // A file does not say how the pipeline fills and drains.
  bool idles_at_both_ends() const override { return false; }

  int default_vpp(int) const override { return order_.chunks / order_.copies; }

  std::optional<ScheduleRefusal> refuses(const ScheduleUse& use) const override {
    const auto other = [&](const std::string& key, const std::string& what, int own, int actual) {
      return ScheduleRefusal{false, key,
                             "schedule=" + name() + " is for " + std::to_string(own) + " " + what +
                                 ", but there are " + std::to_string(actual),
                             "use " + key + "=" + std::to_string(own) + ", or another schedule"};
    };
    const int vpp = default_vpp(use.stages);
    if (use.stages != order_.stages) return other("pp", "stages", order_.stages, use.stages);
    if (use.vpp != vpp) return other("vpp", "virtual stages a rank", vpp, use.vpp);
    if (use.microbatches == order_.microbatches) return std::nullopt;
    ScheduleRefusal refusal = other("gbs", "micro-batches", order_.microbatches, use.microbatches);
    refusal.remedy =
        "use gbs=" + std::to_string(use.sequences * order_.microbatches) + ", or another schedule";
    return refusal;
  }

  bool recomputes_for_weights() const override { return order_.recomputes_for_weights; }

  std::optional<Pipeline> own_pipeline() const override {
    return Pipeline{order_.stages, order_.chunks, order_.microbatches, false};
  }
  std::string file_text() const override { return text_; }

 private:
  int holds(int stage, int chunk) const {
    return order_.holds[static_cast<std::size_t>(stage)][static_cast<std::size_t>(chunk)];
  }

  const std::string text_;
  const ExplicitOrder order_;
  const Places places_;
  std::vector<std::array<Held, 2>> held_;  // Each stage's peak without and with pairs.
  bool splits_ = false;
  bool pairs_ = false;
  bool wraps_ = true;
};

}  // namespace

bool is_schedule_file(const std::string& word) { return word.find_first_of("/.") != word.npos; }

const Schedule& schedule_of_word(const std::string& word, const Place& at) {
  if (const Schedule* known = find_schedule(word)) return *known;
  if (is_schedule_file(word)) return user_schedule(word, read_text_file(word));
  fail_input(at, "'" + shown_text(word) + "' is unknown", suggestion(word, schedule_names()));
}

const Schedule& user_schedule(const std::string& name, const std::string& text) {
  // Plans compare schedules by address and outlive their readers.
  static std::map<std::pair<std::string, std::string>, std::unique_ptr<UserSchedule>> known;
  std::unique_ptr<UserSchedule>& schedule = known[{name, text}];
  if (!schedule) schedule = std::make_unique<UserSchedule>(name, text);
  return *schedule;
}

}  // namespace orrery
