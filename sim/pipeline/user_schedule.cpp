#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <memory>
#include <utility>

#include "sim/core/json_value.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/text_file.hpp"
#include "sim/pipeline/schedule_file.hpp"

namespace orrery {
namespace {

// Two passes that run `paired`: the one takes as much as the other gives back, layer by layer.
Held peak_of(const std::vector<Slot>& order, const SpeltOrder& of, bool paired) {
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

// What a user has spelt out, for pipelines of that size alone.
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

  // Nothing is known of how it fills and drains.
  bool idles_at_both_ends() const override { return false; }

  int usual_vpp(int) const override { return order_.chunks / order_.copies; }

  std::optional<ScheduleRefusal> refuses(const ScheduleUse& use) const override {
    const auto other = [&](const std::string& key, const std::string& what, int own, int asked) {
      return ScheduleRefusal{false, key,
                             "schedule=" + name() + " is for " + std::to_string(own) + " " + what +
                                 ", but there are " + std::to_string(asked),
                             "use " + key + "=" + std::to_string(own) + ", or another schedule"};
    };
    const int vpp = usual_vpp(use.stages);
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
  const SpeltOrder order_;
  const Places places_;
  std::vector<std::array<Held, 2>> held_;  // By stage: one by one, in pairs.
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
  // Plans are compared by the schedule that they point to, and outlive what read them.
  static std::map<std::pair<std::string, std::string>, std::unique_ptr<UserSchedule>> known;
  std::unique_ptr<UserSchedule>& schedule = known[{name, text}];
  if (!schedule) schedule = std::make_unique<UserSchedule>(name, text);
  return *schedule;
}

}  // namespace orrery
