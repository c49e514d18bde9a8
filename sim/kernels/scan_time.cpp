#include "sim/kernels/scan_time.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

constexpr double chunk = 64.0;  // Tokens; Mamba-2's chunks of 128 or 256 share the same law.

double real(std::int64_t n) { return static_cast<double>(n); }

// Constants of a pass of the delta rule with states of 128 x 128, in microseconds.
struct DeltaLaw {
  double fixed = 0.0;
  double token_head = 0.0;      // A token and head.
  double chunk_in_order = 0.0;  // A chunk of the longest sequence, as states pass one by one.
};

// Fitted to fla's rows of FlashQLA's benchmark (QwenLM/FlashQLA, benchmark_results_H200.txt and
// _GB200.txt, commit c18a4860, fla 0.5.2, heads of 128), by relative error.
DeltaLaw delta_law(bool blackwell, bool backward) {
  if (backward) return blackwell ? DeltaLaw{200.0, 5.1e-3, 2.5} : DeltaLaw{200.0, 4.8e-3, 2.4};
  return blackwell ? DeltaLaw{24.0, 1.21e-3, 1.20} : DeltaLaw{24.0, 1.48e-3, 0.75};
}

// Constants of a pass of a law without order, states of 128 x 128, in microseconds: KDA and
// lightning attention by fla's kernels (inclusionAI/cuLA, BENCHMARK_H200.md, _GB200.md, _GB300.md,
// commit fa742a23; rows below 4,096 tokens are bound by the host's launches, as on no graph).
constexpr double unordered_fixed = 45.0;
constexpr double kda_token_head_hopper = 3.43e-3, kda_token_head_blackwell = 2.58e-3;
constexpr double lightning_token_head_blackwell = 0.57e-3;
// (forward + backward) / forward of chunk_kda on RTX 5090, less one (MoonshotAI/FlashKDA, pull
// request 28).
constexpr double kda_backward = 3.33;

// Microseconds of a token of all heads of a wave, states of 128 x 64: mamba_chunk_scan_combined of
// TensorRT-LLM 1.3 on B200 (NVIDIA aiconfigurator, mamba2_perf, commit 095f58a5; 87 to 89 ns) and
// five Triton kernels on H100 (vLLM pull request 27299; 79 to 90 ns).
constexpr double state_space_wave_token = 0.087;
constexpr double state_space_fixed = 22.0;
// Backward over forward: fla's Triton kernels of the delta rule take 3.0 to 3.8 times as long
// backward (FlashQLA's benchmark). Nobody published a state space's.
constexpr double state_space_backward = 3.4;

// The clock of an H100 over that of an older GPU, whose multiprocessors have half the lanes.
double slower_clock(const Gpu& gpu) {
  if (gpu.architecture >= Architecture::hopper) return 1.0;
  constexpr double hopper_clock = 1.98e9;
  const double lanes = gpu.architecture <= Architecture::ampere ? 128.0 : 256.0;
  const double clock = gpu.peak_fp32.si() / (lanes * std::max(1, gpu.multiprocessors));
  return clock > 0.0 ? hopper_clock / clock : 1.0;
}

}  // namespace

Flop scan_flop(const ScanShape& shape, bool backward) {
  const double k = real(shape.scan.keys), v = real(shape.scan.values), h = real(shape.scan.heads);
  double inside = 0.0, states = 0.0;  // Within chunks; by states.
  switch (shape.scan.kind) {
    case ScanKind::none:
      return Flop{};
    case ScanKind::state_space:
      inside = h * 2.0 * chunk * v + 2.0 * chunk * k;
      states = h * 4.0 * k * v;
      break;
    case ScanKind::fixed_decay:
      inside = h * 2.0 * chunk * (k + v);
      states = h * 4.0 * k * v;
      break;
    case ScanKind::delta_rule:
    case ScanKind::channel_delta_rule:
      inside = h * (2.0 * chunk * (3.0 * k + 2.0 * v) + chunk * chunk / 3.0);
      states = h * 6.0 * k * v;
      break;
  }
  const double each = backward ? 3.0 * inside + 2.0 * states : inside + states;
  return Flop{real(shape.sequences) * real(shape.tokens) * each};
}

Bytes scan_bytes(const ScanShape& shape, bool backward) {
  const double wide = shape.scan.kind == ScanKind::state_space
                          ? 2.0 * real(shape.scan.heads * shape.scan.values)
                          : real(shape.scan.heads * (2 * shape.scan.keys + 2 * shape.scan.values));
  return Bytes{(backward ? 2.0 : 1.0) * 2.0 * real(shape.sequences) * real(shape.tokens) * wide};
}

int scan_kernels(ScanKind kind, bool backward) {
  // fla: cumulated decays, products of keys, their triangular inverse, states, outputs. mamba_ssm:
  // cumulated decays, states of chunks, their passing, products, outputs.
  if (kind == ScanKind::none) return 0;
  return backward ? 8 : 5;
}

KernelTime scan_time(const Gpu& gpu, const ScanShape& shape, bool backward) {
  const double heads = real(shape.scan.heads), tokens = real(shape.tokens);
  const bool known = gpu.architecture >= Architecture::hopper;
  const double size = real(shape.scan.keys * shape.scan.values);
  double us = 0.0;
  bool measured = known;
  switch (shape.scan.kind) {
    case ScanKind::none:
      return {Seconds{}, Tag::interpolated};
    case ScanKind::state_space: {
      const double waves =
          std::ceil(real(shape.sequences) * heads / std::max(1, gpu.multiprocessors));
      us = state_space_fixed + state_space_wave_token * (size / (128.0 * 64.0)) * tokens * waves;
      if (backward) {
        us *= state_space_backward;
        measured = false;
      }
      break;
    }
    case ScanKind::channel_delta_rule:
    case ScanKind::fixed_decay: {
      const bool blackwell = gpu.architecture >= Architecture::blackwell;
      const bool kda = shape.scan.kind == ScanKind::channel_delta_rule;
      double each = blackwell ? kda_token_head_blackwell : kda_token_head_hopper;
      if (!kda) each *= lightning_token_head_blackwell / kda_token_head_blackwell;
      us = unordered_fixed +
           each * (size / (128.0 * 128.0)) * real(shape.sequences) * tokens * heads;
      if (backward) us *= kda_backward;
      measured = known && (kda || (blackwell && !backward));
      break;
    }
    case ScanKind::delta_rule: {
      const DeltaLaw law = delta_law(gpu.architecture >= Architecture::blackwell, backward);
      us = law.fixed +
           law.token_head * (size / (128.0 * 128.0)) * real(shape.sequences) * tokens * heads +
           law.chunk_in_order * std::ceil(tokens / chunk);
      break;
    }
  }
  const Seconds law = microseconds(us * slower_clock(gpu));
  return {std::max(law, scan_bytes(shape, backward) / gpu.memory_bandwidth),
          measured ? Tag::interpolated : Tag::default_value};
}

}  // namespace orrery
