#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/units.hpp"

namespace orrery {

enum class Pass { forward, backward, weight_gradient };

/// One pass of one micro-batch through one of the chunks of layers of a rank;
/// Schedule::virtual_stage() gives the part of the model that a chunk is.
struct Slot {
  Pass pass = Pass::forward;
  int chunk = 0;
  int microbatch = 0;
  bool with_next = false;  ///< Runs together with the slot that follows.
  /// A backward pass with the gradients of its inputs alone, which other stages wait for; a later
  /// slot has those of the weights (Qi et al., arXiv 2401.10241: B and W).
  bool inputs_only = false;
  bool operator==(const Slot&) const = default;
};

/// The passes of each rank of a pipeline in order, by stage.
using Orders = std::vector<std::vector<Slot>>;

/// The slot ends a micro-batch's gradients of the chunk's weights.
inline bool completes_gradients(const Slot& slot) {
  return slot.pass != Pass::forward && !slot.inputs_only;
}

/// The passes of `all` micro-batches, of which `once` pass by `orders` before the next ones enter.
Orders repeated(Orders orders, int once, int all);

/// Largest number of micro-batches, over all chunks, whose activations a stage holds at once, in
/// chunk units. They are held until the last gradient that needs them is known.
int peak_in_flight(const std::vector<Slot>& order);

/// The properties of a pipeline that the order of its passes depends on.
struct Pipeline {
  int stages = 1;
  int chunks = 1;  ///< Chunks a rank.
  int microbatches = 1;
  /// Forward and backward passes run together wherever the schedule allows it (Plan::ep_overlap).
  bool paired = false;
};

/// Durations of the passes of a stage.
struct PassLengths {
  Seconds forward;
  Seconds inputs;   ///< Gradients of the inputs.
  Seconds weights;  ///< Gradients of the weights.
};

/// The largest activations that a rank holds at once.
struct Held {
  int chunks = 0;  ///< Micro-batches of all its chunks.
  /// Two passes run together: one takes a layer's memory before the other frees one's.
  bool one_more_layer = false;
  /// The largest number of `chunks` of each copy of the model, if there are two.
  std::array<int, 2> most_of_copy{std::numeric_limits<int>::max(), std::numeric_limits<int>::max()};

  /// `chunks` times the memory that a micro-batch takes per chunk, `copy` by copy of the model,
  /// with as many of the larger as possible.
  template <class Amount>
  Amount of(const std::array<Amount, 2>& copy) const {
    const std::size_t larger = copy[0] < copy[1] ? 1 : 0;
    const int most = std::min(chunks, most_of_copy[larger]);
    return static_cast<double>(most) * copy[larger] +
           static_cast<double>(chunks - most) * copy[1 - larger];
  }
};

/// The rank and chunk of a part of the model.
struct ChunkPlace {
  int stage = 0;
  int chunk = 0;
};

/// The period of an order, for steady-state extrapolation (training/steady_state.hpp).
struct Recurrence {
  int period = 1;     ///< Micro-batches after which the order is at the same place again.
  int filled = 1;     ///< Periods until the pipeline is full.
  int cool_down = 0;  ///< Backward passes of the first stage after its last forward pass.
};

/// The forward and backward passes of two micro-batches that a schedule can run together.
enum class Pairing { none, on_request, by_itself };

/// The parameters of a plan that a schedule may refuse.
struct ScheduleUse {
  int stages = 1;
  int vpp = 1;
  int microbatches = 1;
  std::int64_t sequences = 1;  ///< Sequences of a micro-batch, over all replicas of the model.
};

/// The reason why a schedule cannot run; parameter `key` of the plan is at fault.
struct ScheduleRefusal {
  bool contradiction = false;  ///< Parameters contradict each other; else a size does not divide.
  std::string key, problem, remedy;
};

/// A pipeline schedule. Each has its own file, and nothing else depends on its name: a new one is a
/// class there and a line in built_in_schedules().
///
/// The model is cut into virtual stages, in the order in which a micro-batch passes them. Each of
/// the `stages` ranks of a pipeline holds one chunk or more, and each chunk is one virtual stage.
class Schedule {
 public:
  explicit Schedule(std::string name) : name_{std::move(name)} {}
  virtual ~Schedule() = default;
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  const std::string& name() const { return name_; }  ///< The name in options and files.

  /// The passes of every rank. `lengths`, by stage, and `transfer`, between two stages, are
  /// required if follows_lengths() and ignored otherwise.
  virtual Orders orders(const Pipeline& pipeline, const std::vector<PassLengths>& lengths = {},
                        Seconds transfer = {}) const = 0;
  virtual bool follows_lengths() const { return false; }
  /// Some backward passes leave the gradients of weights to separate passes.
  virtual bool splits_backward() const { return false; }
  /// The peak_in_flight() of a stage's order, usually in closed form.
  virtual Held held(const Pipeline& pipeline, int stage) const = 0;
  virtual Pairing pairing(int stages, int vpp) const;

  /// Copies of the model in one pipeline. Given two, the first half of a rank's chunks is of one
  /// copy and the rest of the other, the first half of the micro-batches passes the one and the
  /// rest the other, and rank s holds the same stages as rank stages - 1 - s.
  virtual int copies() const { return 1; }
  /// Virtual stage v is on rank v mod stages.
  virtual bool wraps() const { return true; }
  virtual int virtual_stage(int stages, int stage, int chunk) const;
  /// The location of a virtual stage in the first (0) or second copy of the model.
  virtual ChunkPlace place(int stages, int virtual_stage, int copy) const;

  /// A stage idles while those before it fill and drain.
  virtual bool idles_at_both_ends() const { return !splits_backward(); }
  /// Empty if the order does not recur, or depends as a whole on the number of micro-batches.
  virtual std::optional<Recurrence> recurrence(int stages, int vpp) const;

  /// Default of --vpp, virtual stages a rank and copy.
  virtual int default_vpp(int stages) const;
  virtual std::optional<ScheduleRefusal> refuses(const ScheduleUse& use) const;
  /// The implementation recomputes for the gradients of weights the same activations as for those
  /// of inputs, so that passes without the former still recompute.
  virtual bool recomputes_for_weights() const { return false; }
  /// Megatron-LM implements it.
  virtual bool in_megatron() const { return false; }
  /// The only pipeline that a schedule from a file is for. Such a schedule is not checked against
  /// the frameworks that have it.
  virtual std::optional<Pipeline> own_pipeline() const { return std::nullopt; }
  /// The text of the file that it was read from; empty if it is built in.
  virtual std::string file_text() const { return ""; }

 private:
  std::string name_;
};

/// All built-in schedules in the order of listings.
const std::vector<const Schedule*>& built_in_schedules();
const std::vector<std::string>& schedule_names();  ///< "gpipe", "1f1b", "interleaved", ...
/// Null if there is none of that name.
const Schedule* find_schedule(const std::string& name);
/// The default schedule.
const Schedule& default_schedule(int vpp);
/// Schedules that need no --vpp, the default first: a search compares these.
std::vector<std::string> schedules_of_one_chunk();

// One function a schedule.
const Schedule& gpipe();
const Schedule& one_f_one_b();
const Schedule& interleaved();
const Schedule& looped_bfs();
const Schedule& zb_h1();
const Schedule& zb_h2();
const Schedule& zb_1p();
const Schedule& zb_2p();
const Schedule& dualpipe();

}  // namespace orrery
