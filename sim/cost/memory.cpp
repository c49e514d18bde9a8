#include "sim/cost/memory.hpp"

#include <algorithm>

#include "sim/cost/layer_ops.hpp"

namespace orrery {
namespace {

constexpr double weight_bytes = 2.0;
constexpr double optimizer_bytes = 12.0;  // fp32 weight and Adam's two moments.

// CUDA context, cuBLAS workspaces and NCCL's buffers together take 0.5 to 3.5 GB in published
// measurements (NVIDIA aiconfigurator counts 0.34 to 0.39 GB for NCCL alone); the middle is
// assumed.
constexpr Bytes reserve{1.5e9};

double tokens(const Scenario& s) { return static_cast<double>(s.tokens_per_microbatch()); }

// Chunks of activations that a stage holds at once. The closed forms are those that
// tests/unit/schedule derives from the orders themselves.
int chunks_in_flight(const Plan& plan, int stage) {
  const int passes = plan.microbatches * plan.vpp;
  switch (plan.schedule) {
    case ScheduleKind::gpipe:
      return passes;
    case ScheduleKind::one_f_one_b:
      return std::min(passes, plan.pp - stage);
    case ScheduleKind::interleaved:
      return std::min(passes, 2 * (plan.pp - 1 - stage) + (plan.vpp - 1) * plan.pp + 1);
  }
  return passes;
}

Bytes activations_in_flight(const Scenario& s, int stage) {
  int layers = 0;
  for (int chunk = 0; chunk < s.plan.vpp; ++chunk)
    layers = std::max(layers, s.layers_of[static_cast<std::size_t>(chunk * s.plan.pp + stage)]);
  const Bytes layer = layer_activations(s, s.plan.recompute);
  Bytes sum = static_cast<double>(layers * chunks_in_flight(s.plan, stage)) * layer;
  if (s.plan.recompute == Recompute::full) sum += layer_activations(s, Recompute::none);
  return sum;
}

Bytes other_bytes(const Scenario& s, int stage) {
  const double share = s.plan.sp ? 1.0 / s.plan.tp : 1.0;
  const double tensor = 2.0 * tokens(s) * static_cast<double>(s.model.hidden) * share;
  Bytes sum = reserve;
  if (s.plan.pp > 1) sum += Bytes{4.0 * tensor};  // Received and to be sent, in both directions.
  // Final norm's and head's inputs; logits in 16 bits and their fp32 softmax.
  if (stage == s.plan.pp - 1)
    sum += Bytes{2.0 * tensor +
                 (2.0 + 4.0) * tokens(s) * static_cast<double>(s.padded_vocab / s.plan.tp)};
  return sum;
}

}  // namespace

int MemoryReport::fullest_stage() const {
  const auto fullest = std::max_element(
      stages.begin(), stages.end(),
      [](const StageMemory& a, const StageMemory& b) { return a.peak() < b.peak(); });
  return static_cast<int>(fullest - stages.begin());
}

Bytes MemoryReport::peak() const {
  return stages[static_cast<std::size_t>(fullest_stage())].peak();
}

Bytes layer_activations(const Scenario& s, Recompute recompute) {
  const auto t = static_cast<double>(s.plan.tp);
  const double hidden = tokens(s) * static_cast<double>(s.model.hidden);  // s b h
  const double own = s.plan.sp ? hidden / t : hidden;
  if (recompute == Recompute::full) return Bytes{2.0 * own};

  const double dropout = s.software.dropout ? 1.0 : 0.0;
  const double head_width = static_cast<double>(s.model.heads * s.model.head_dim);
  const double kv_width =
      static_cast<double>(std::max<std::int64_t>(s.model.kv_heads, s.plan.tp) * s.model.head_dim);
  const double ffn = static_cast<double>(s.model.ffn);

  // Inputs and outputs of both norms, and a mask byte for each residual dropout.
  double sum = own * (8.0 + 2.0 * dropout);
  // Queries, keys, values; the attention's output, which is the projection's input.
  sum += 2.0 * tokens(s) * (2.0 * head_width + 2.0 * kv_width) / t;
  // The MLP's activation input (both halves where it is gated) and output.
  sum += 2.0 * tokens(s) * ((s.model.gated ? 2.0 : 1.0) + 1.0) * ffn / t;
  const double rows = tokens(s) * static_cast<double>(s.model.heads) / t;
  if (s.plan.fused_attention)
    sum += 4.0 * rows;                    // One fp32 log-sum-exp a query and head.
  else if (recompute == Recompute::none)  // Softmax output; its dropout's mask and output.
    sum += rows * static_cast<double>(s.plan.seq) * (2.0 + 3.0 * dropout);
  return Bytes{sum};
}

MemoryReport memory_of(const Scenario& s) {
  MemoryReport report;
  report.capacity = s.system.gpu.memory;
  for (int stage = 0; stage < s.plan.pp; ++stage) {
    double parameters = 0.0;
    for (int chunk = 0; chunk < s.plan.vpp; ++chunk)
      parameters += static_cast<double>(parameters_on_rank(s, chunk * s.plan.pp + stage));
    StageMemory memory;
    memory.weights = Bytes{weight_bytes * parameters};
    memory.gradients = Bytes{s.software.main_gradient_bytes * parameters};
    memory.optimizer =
        Bytes{optimizer_bytes * parameters / (s.plan.zero >= 1 ? s.plan.data_ranks() : 1)};
    memory.activations = activations_in_flight(s, stage);
    memory.other = other_bytes(s, stage);
    report.stages.push_back(memory);
  }
  return report;
}

}  // namespace orrery
