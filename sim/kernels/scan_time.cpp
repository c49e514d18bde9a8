#include "sim/kernels/scan_time.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace orrery {
namespace {

constexpr double chunk = 64.0;  // Tokens; Mamba-2's chunks of 128 or 256 share the same law.

double real(std::int64_t n) { return static_cast<double>(n); }

// Constants of a pass with states of 128 x 128 (of a state space 128 x 64), in microseconds.
struct ScanLaw {
  double fixed = 0.0;
  double token_head = 0.0;      // A token and head.
  double chunk_in_order = 0.0;  // A chunk of the longest sequence, as states pass one by one.
};

// fla's rows of FlashQLA's benchmark (QwenLM/FlashQLA, benchmark_results_H200.txt and _GB200.txt,
// commit c18a4860, fla 0.5.2, heads of 128), by relative error. The H100's are of this project's
// record (calibration/data/records/h100-sxm/scans.csv), as all others of an H100: fla 0.5.2,
// mamba_ssm 2.3.2, Triton 3.6.
constexpr ScanLaw delta_forward_h100{23.0, 1.72e-3, 1.03};
constexpr ScanLaw delta_forward_h200{24.0, 1.48e-3, 0.75};
constexpr ScanLaw delta_backward_h200{200.0, 4.8e-3, 2.4};
constexpr ScanLaw delta_forward_blackwell{24.0, 1.21e-3, 1.20};
constexpr ScanLaw delta_backward_blackwell{200.0, 5.1e-3, 2.5};

// KDA and lightning attention by fla's kernels on others (inclusionAI/cuLA, BENCHMARK_H200.md,
// _GB200.md, _GB300.md, commit fa742a23; rows below 4,096 tokens are bound by the host's launches,
// as on no graph).
constexpr ScanLaw kda_forward_h100{42.0, 4.59e-3}, kda_backward_h100{108.0, 18.1e-3};
constexpr ScanLaw kda_forward_h200{45.0, 3.43e-3};
constexpr ScanLaw kda_forward_blackwell{45.0, 2.58e-3};
constexpr ScanLaw lightning_forward_h100{45.0, 1.25e-3}, lightning_backward_h100{60.0, 3.38e-3};
constexpr ScanLaw lightning_forward_blackwell{45.0, 0.57e-3};

constexpr ScanLaw state_space_forward_h100{16.0, 0.683e-3};
constexpr ScanLaw state_space_backward_h100{134.0, 2.56e-3};
// Microseconds of a token of all heads of a wave, states of 128 x 64: mamba_chunk_scan_combined of
// TensorRT-LLM 1.3 on B200 (NVIDIA aiconfigurator, mamba2_perf, commit 095f58a5; 87 to 89 ns).
constexpr double state_space_wave_token = 0.087;
constexpr double state_space_fixed = 22.0;
// Of a full wave of a B200's 148 multiprocessors. On an H100 this quotient is 0.66 ns, and training
// takes 0.68 whatever the heads.
constexpr ScanLaw state_space_forward_blackwell{16.0, 1e-3 * 87.0 / 148.0};

// A law between those of two GPUs of one architecture, by the time that a byte takes.
ScanLaw by_bandwidth(const Gpu& gpu, const ScanLaw& h100, const ScanLaw& h200) {
  constexpr double slow = 1.0 / 3.35e12, fast = 1.0 / 4.8e12;  // Seconds a byte.
  const double share = std::max(0.0, (1.0 / gpu.memory_bandwidth.si() - fast) / (slow - fast));
  const auto between = [&](double a, double b) { return b + share * (a - b); };
  return {between(h100.fixed, h200.fixed), between(h100.token_head, h200.token_head),
          between(h100.chunk_in_order, h200.chunk_in_order)};
}

// What was measured of a kind.
struct KindLaws {
  ScanLaw h100, h200, blackwell;  // Forward passes; the H100's twice where no H200 was measured.
  ScanLaw backward, backward_of;  // A backward pass, and the forward pass on the same GPU.
  bool backward_on_h200 = false;
  std::optional<ScanLaw> backward_blackwell = {};
};

const KindLaws& laws_of(ScanKind kind) {
  static const KindLaws state_space{state_space_forward_h100, state_space_forward_h100,
                                    state_space_forward_blackwell, state_space_backward_h100,
                                    state_space_forward_h100};
  static const KindLaws kda{kda_forward_h100, kda_forward_h200, kda_forward_blackwell,
                            kda_backward_h100, kda_forward_h100};
  static const KindLaws lightning{lightning_forward_h100, lightning_forward_h100,
                                  lightning_forward_blackwell, lightning_backward_h100,
                                  lightning_forward_h100};
  static const KindLaws delta{delta_forward_h100,      delta_forward_h200, delta_forward_blackwell,
                              delta_backward_h200,     delta_forward_h200, true,
                              delta_backward_blackwell};
  switch (kind) {
    case ScanKind::channel_delta_rule:
      return kda;
    case ScanKind::fixed_decay:
      return lightning;
    case ScanKind::delta_rule:
      return delta;
    case ScanKind::none:
    case ScanKind::state_space:
    case ScanKind::selective:
      break;
  }
  return state_space;
}

struct TaggedLaw {
  ScanLaw law;
  bool measured = true;
};

TaggedLaw law_of(const Gpu& gpu, ScanKind kind, bool backward) {
  const bool blackwell = gpu.architecture >= Architecture::blackwell;
  const bool hopper = gpu.architecture == Architecture::hopper;
  const KindLaws& laws = laws_of(kind);
  const ScanLaw forward = blackwell ? laws.blackwell : by_bandwidth(gpu, laws.h100, laws.h200);
  if (!backward) return {forward, hopper || blackwell};
  if (blackwell && laws.backward_blackwell) return {*laws.backward_blackwell, true};
  // As much longer than the forward pass as where both were measured.
  const double ratio = laws.backward.token_head / laws.backward_of.token_head;
  constexpr double least_of_h200 = 4.5e12;  // Bytes a second.
  return {{laws.backward.fixed, ratio * forward.token_head, ratio * forward.chunk_in_order},
          hopper && (!laws.backward_on_h200 || gpu.memory_bandwidth.si() > least_of_h200)};
}

constexpr double hopper_clock = 1.98e9;

// The clock that the peak in fp32 implies, with two operations a lane and clock; 0 where the peak
// is not known. Multiprocessors before Ada have half the lanes.
double clock_of(const Gpu& gpu) {
  const double lanes = gpu.architecture <= Architecture::ampere ? 128.0 : 256.0;
  return gpu.peak_fp32.si() / (lanes * std::max(1, gpu.multiprocessors));
}

// The clock of an H100 over that of an older GPU.
double slower_clock(const Gpu& gpu) {
  if (gpu.architecture >= Architecture::hopper) return 1.0;
  const double clock = clock_of(gpu);
  return clock > 0.0 ? hopper_clock / clock : 1.0;
}

// The kernels of selective scans (state-spaces/mamba, commit e9594ce1, csrc/selective_scan/
// selective_scan_fwd_kernel.cuh and _bwd_kernel.cuh) scan a channel of a sequence in a block of
// threads, 16 tokens each, one state after the other. No tensor core takes part; instructions bound
// them. Counted in that code, for a token and channel, in instructions of one thread:
//
// forward   a state: products with A and B 2, exponential 1, B and C to fp32 2, their way through
//           shared memory 1, the thread's part of the scan 4, its warp's 2, sum with C 1
// backward  a state: what the forward pass does but the sum, 12; the scan of gradients 6; their
//           factors and sums 13; gradients of B and C through shared memory 4, added up in memory 4
// both      softplus, the gate, loads and stores, some 40 and 60
struct SelectiveCount {
  double a_state, a_token;
};
constexpr SelectiveCount selective_forward{13.0, 40.0}, selective_backward{39.0, 60.0};

// A multiprocessor starts four warps' instructions a clock.
constexpr double issued_a_clock = 4.0 * 32.0;
// Share of these slots that is used: no time of a scan is published in figures, but two ratios to
// FlashAttention-2 on A100, with 16 states and twice as many channels as attention has
// (state-spaces/mamba, issue 27, 2023-12-07). The authors' scan is as fast at 2,048 tokens (arXiv
// 2312.00752, section 4.5), a user's half as fast (issue 27, 2024-02-06). Attention of 16 heads of
// 128, causal, 8 sequences of 2,048, takes 1.238 ms there (calibration/data/kernels/
// a100-sxm-80gb.json): 18 and 37 ps a token and channel, shares of 0.75 and 0.37. Their mean in
// ratio:
constexpr double issued_share = 0.53;
// Threads of a multiprocessor: three blocks of 128 (kMinBlocks in the same code).
constexpr double resident_threads = 384.0;

// Threads of a block, and the tokens that they take at once, of which a short sequence wastes some
// (selective_scan_fwd_cuda): 32 threads for up to 512 tokens, 64 for 1,024, else 128 for 2,048.
struct SelectiveBlock {
  double threads, tokens;
};
SelectiveBlock selective_block(double tokens) {
  for (const double most : {128.0, 256.0, 512.0})
    if (tokens <= most) return {32.0, most};
  if (tokens <= 1024.0) return {64.0, 1024.0};
  return {128.0, 2048.0};
}

// Blocks fill the multiprocessors in waves. The blocks of a wave share the slots of their
// multiprocessor, and fewer of them use fewer slots.
double selective_us(const Gpu& gpu, const ScanShape& shape, bool backward) {
  const SelectiveCount& count = backward ? selective_backward : selective_forward;
  const SelectiveBlock block = selective_block(real(shape.tokens));
  const double resident = resident_threads / block.threads;
  const double waves = std::ceil(real(shape.sequences * shape.scan.heads) /
                                 (resident * std::max(1, gpu.multiprocessors)));
  const double tokens = block.tokens * std::ceil(real(shape.tokens) / block.tokens);
  const double clock = clock_of(gpu) > 0.0 ? clock_of(gpu) : hopper_clock;
  const double a_channel =
      count.a_state * real(shape.scan.keys * shape.scan.values) + count.a_token;
  return 1e6 * waves * resident * tokens * a_channel / (issued_share * issued_a_clock * clock);
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
    case ScanKind::selective:
      inside = h * 9.0 * k * v;
      break;
  }
  const double each = backward ? 3.0 * inside + 2.0 * states : inside + states;
  return Flop{real(shape.sequences) * real(shape.tokens) * each};
}

Bytes scan_bytes(const ScanShape& shape, bool backward) {
  const Scan& scan = shape.scan;
  double wide = real(scan.heads * (2 * scan.keys + 2 * scan.values));
  if (scan.kind == ScanKind::state_space) wide = 2.0 * real(scan.heads * scan.values);
  // Input, time step, gate, and the output before and behind the gate; every channel reads the same
  // inputs and outputs of the state.
  if (scan.kind == ScanKind::selective) wide = real(5 * scan.heads + 2 * scan.keys);
  return Bytes{(backward ? 2.0 : 1.0) * 2.0 * real(shape.sequences) * real(shape.tokens) * wide};
}

int scan_kernels(ScanKind kind, bool backward) {
  // fla: cumulated decays, products of keys, their triangular inverse, states, outputs. mamba_ssm:
  // cumulated decays, states of chunks, their passing, products, outputs. Selective scans are one.
  if (kind == ScanKind::none) return 0;
  if (kind == ScanKind::selective) return 1;
  return backward ? 8 : 5;
}

namespace {

// Not less than the traffic takes.
KernelTime bounded(const Gpu& gpu, const ScanShape& shape, bool backward, double us,
                   bool measured) {
  const Seconds law = microseconds(us * slower_clock(gpu));
  return {std::max(law, scan_bytes(shape, backward) / gpu.memory_bandwidth),
          measured ? Tag::interpolated : Tag::default_value};
}

// Size of a head's state over that of the laws.
double state_size(const Scan& scan) {
  return real(scan.keys * scan.values) /
         (scan.kind == ScanKind::state_space ? 128.0 * 64.0 : 128.0 * 128.0);
}

}  // namespace

KernelTime scan_time(const Gpu& gpu, const ScanShape& shape, bool backward) {
  if (shape.scan.kind == ScanKind::none) return {Seconds{}, Tag::interpolated};
  if (shape.scan.kind == ScanKind::selective) {
    const Seconds law = microseconds(selective_us(gpu, shape, backward));
    return {std::max(law, scan_bytes(shape, backward) / gpu.memory_bandwidth), Tag::default_value};
  }
  const TaggedLaw of = law_of(gpu, shape.scan.kind, backward);
  const double tokens = real(shape.tokens);
  const double us = of.law.fixed +
                    of.law.token_head * state_size(shape.scan) * real(shape.sequences) * tokens *
                        real(shape.scan.heads) +
                    of.law.chunk_in_order * std::ceil(tokens / chunk);
  return bounded(gpu, shape, backward, us, of.measured);
}

KernelTime prompt_scan_time(const Gpu& gpu, const ScanShape& shape) {
  if (shape.scan.kind != ScanKind::state_space || gpu.architecture < Architecture::blackwell)
    return scan_time(gpu, shape, false);
  const double heads = real(shape.sequences * shape.scan.heads) * state_size(shape.scan);
  const double waves = std::ceil(heads / std::max(1, gpu.multiprocessors));
  const double us = state_space_fixed + state_space_wave_token * real(shape.tokens) * waves;
  return bounded(gpu, shape, false, us, gpu.architecture >= Architecture::hopper);
}

}  // namespace orrery
