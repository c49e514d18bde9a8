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

/// One pass of one micro-batch through one of the chunks of layers that a rank of the pipeline
/// holds; Schedule::virtual_stage says which part of the model a chunk is.
struct Slot {
  Pass pass = Pass::forward;
  int chunk = 0;
  int microbatch = 0;
  bool with_next = false;  ///< Runs together with the slot that follows.
  /// Of a backward pass: it computes gradients of its inputs alone, which other stages wait for; a
  /// later slot has the weights' (Qi et al., arXiv 2401.10241: B and W).
  bool inputs_only = false;
  bool operator==(const Slot&) const = default;
};

/// What each rank of a pipeline runs, stage by stage.
using Orders = std::vector<std::vector<Slot>>;

/// Whether a micro-batch's gradients of the chunk's weights are complete with it.
inline bool completes_gradients(const Slot& slot) {
  return slot.pass != Pass::forward && !slot.inputs_only;
}

/// Most micro-batches of all chunks that a stage holds activations of at once, in chunk units.
/// They are held until the last gradient that needs them is known.
int peak_in_flight(const std::vector<Slot>& order);

/// A pipeline as far as the order of its passes depends on it.
struct Pipeline {
  int stages = 1;
  int chunks = 1;  ///< That a rank holds.
  int microbatches = 1;
  /// Where a schedule lets a forward and a backward pass run together, they do (Plan::ep_overlap).
  bool paired = false;
};

/// How long the passes of a stage are.
struct PassLengths {
  Seconds forward;
  Seconds inputs;   ///< Gradients of the inputs.
  Seconds weights;  ///< Gradients of the weights.
};

/// Most activations that a rank holds at once.
struct Held {
  int chunks = 0;  ///< Micro-batches of all its chunks.
  /// Two passes that run together: one takes a layer's memory before the other gives one back.
  bool one_more_layer = false;
  /// Of two copies of the model: so many of `chunks` can be of each at once, the first's first.
  std::array<int, 2> most_of_copy{std::numeric_limits<int>::max(), std::numeric_limits<int>::max()};

  /// `chunks` times what a micro-batch keeps of a chunk, as many of the larger as there can be.
  template <class Amount>
  Amount of(const std::array<Amount, 2>& copy) const {
    const std::size_t larger = copy[0] < copy[1] ? 1 : 0;
    const int most = std::min(chunks, most_of_copy[larger]);
    return static_cast<double>(most) * copy[larger] +
           static_cast<double>(chunks - most) * copy[1 - larger];
  }
};

/// Where a part of the model lies.
struct ChunkPlace {
  int stage = 0;
  int chunk = 0;
};

/// How an order repeats itself, for excerpts of a step (training/steady_state.hpp).
struct Recurrence {
  int period = 1;     ///< Micro-batches after which the order is at the same place again.
  int filled = 1;     ///< Periods until the pipeline is full.
  int cool_down = 0;  ///< Backward passes of the first stage after its last forward pass.
};

/// Which forward and backward passes of two micro-batches a schedule can run together.
enum class Pairing { none, on_request, by_itself };

/// What a plan asks of a schedule.
struct ScheduleUse {
  int stages = 1;
  int vpp = 1;
  int microbatches = 1;
  std::int64_t sequences = 1;  ///< Of a micro-batch, in all replicas of the model.
};

/// Why a schedule cannot do it: `key` of the plan is at fault.
struct ScheduleRefusal {
  bool contradiction = false;  ///< The plan's words contradict each other; else it does not divide.
  std::string key, problem, remedy;
};

/// Everything that there is to know of a pipeline schedule. Each has its own file, and nothing else
/// asks for its name: a new one is a class there and a line in built_in_schedules().
///
/// The model is cut into virtual stages, in the order in which a micro-batch passes them. A
/// pipeline has `stages` ranks that hold one chunk or more each, and each chunk is one virtual
/// stage.
class Schedule {
 public:
  explicit Schedule(std::string name) : name_{std::move(name)} {}
  virtual ~Schedule() = default;
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  const std::string& name() const { return name_; }  ///< What users write.

  /// What every rank runs. `lengths`, by stage, and `transfer`, between two stages, are needed
  /// where follows_lengths() and may be left out elsewhere.
  virtual Orders orders(const Pipeline& pipeline, const std::vector<PassLengths>& lengths = {},
                        Seconds transfer = {}) const = 0;
  virtual bool follows_lengths() const { return false; }
  /// Whether some backward passes leave the gradients of weights to a pass of their own.
  virtual bool splits_backward() const { return false; }
  /// peak_in_flight() of a stage's order, as a closed form where there is one.
  virtual Held held(const Pipeline& pipeline, int stage) const = 0;
  virtual Pairing pairing(int stages, int vpp) const;

  /// Copies of the model in one pipeline. With two, a rank holds chunks of both, the first half of
  /// its chunks of one and the others of the other; the first half of the micro-batches goes
  /// through the one and the rest through the other; and rank s holds what rank stages - 1 - s
  /// does.
  virtual int copies() const { return 1; }
  /// Whether virtual stage v is on rank v mod stages.
  virtual bool wraps() const { return true; }
  virtual int virtual_stage(int stages, int stage, int chunk) const;
  /// Where a virtual stage lies; of two copies the first (0) or the second.
  virtual ChunkPlace place(int stages, int virtual_stage, int copy) const;

  /// Whether a stage idles while those before it fill and drain, with nothing to do meanwhile.
  virtual bool idles_at_both_ends() const { return !splits_backward(); }
  /// Nothing where it does not, or where the whole order depends on the number of micro-batches.
  virtual std::optional<Recurrence> recurrence(int stages, int vpp) const;

  /// Virtual stages a rank and copy (--vpp) where the user does not say.
  virtual int usual_vpp(int stages) const;
  virtual std::optional<ScheduleRefusal> refuses(const ScheduleUse& use) const;
  /// Whether its software computes again for gradients of weights what it did for those of inputs,
  /// so that passes that leave these out go with recomputation.
  virtual bool recomputes_for_weights() const { return false; }
  /// Whether Megatron-LM has it.
  virtual bool in_megatron() const { return false; }
  /// The only pipeline that it is for, where a user has spelt it out. No software is asked whether
  /// it has such a one.
  virtual std::optional<Pipeline> own_pipeline() const { return std::nullopt; }
  /// The text of the file that it was read from; "": it is built in.
  virtual std::string file_text() const { return ""; }

 private:
  std::string name_;
};

/// In the order in which they are listed.
const std::vector<const Schedule*>& built_in_schedules();
const std::vector<std::string>& schedule_names();  ///< "gpipe", "1f1b", "interleaved", ...
/// Null: none of that name.
const Schedule* find_schedule(const std::string& name);
/// What is run where the user names none.
const Schedule& usual_schedule(int vpp);
/// Those that need no --vpp, the usual one first: what a search compares.
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
