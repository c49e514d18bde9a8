#pragma once

#include <cstdint>

#include "sim/cluster/system.hpp"
#include "sim/kernels/kernel_time.hpp"
#include "sim/model/mixer.hpp"

namespace orrery {

/// A scan of `sequences` sequences of `tokens` each, one rank's heads.
struct ScanShape {
  Scan scan;
  std::int64_t sequences = 0, tokens = 0;
};

/// Operations of a chunked scan, h heads with states of k x v, chunks of C tokens: forward a token
///
///     delta rule   h (2 C (3 k + 2 v) + 6 k v + C^2 / 3)   (Yang et al., arXiv 2412.06464)
///     state space  h (2 C v + 4 k v) + 2 C k               (Dao and Gu, arXiv 2405.21060)
///     fixed decay  h (2 C (k + v) + 4 k v)                 (Qin et al., arXiv 2401.04658)
///     selective    9 h k v                                 (MzeroMiko/VMamba, vmamba.py, 2ed52ead)
///
/// Backward does twice that, and the chunks' own products again: three times that if selective.
Flop scan_flop(const ScanShape& shape, bool backward);

/// Least traffic in 16 bits: what each head reads and writes of a token.
Bytes scan_bytes(const ScanShape& shape, bool backward);

/// Kernels that a scan launches.
int scan_kernels(ScanKind kind, bool backward);

/// Time of a chunked scan in training: Triton's kernels of fla and mamba_ssm, which Megatron Core
/// and Hugging Face run. Time follows tokens and heads, not operations: at full occupancy a scan
/// reaches 5 to 10 % of the peak. With t tokens of s sequences and h heads:
///
/// state space  t0 + a s t h, forward within 3 % and backward within 2 % of 12 rows of one H100
///              (docs/notes/h100-measured.md).
/// delta rule   t0 + a s t h + c ceil(t / 64): forward within 11 % of ten rows of that H100; within
///              5 % (median) and 11 % (nine in ten) of 103 rows each of H200 and GB200.
/// KDA          t0 + a s t h: within 1 % of ten rows of that H100, and within 6 % of 13 of 15
///              forward rows of H200, GB200 and GB300 from 4,096 tokens on.
/// fixed decay  the same: within 7 % of the H100's rows from 8,192 tokens on, and within 9 % of 11
///              forward rows of GB200 and GB300.
/// selective    by instructions of mamba_ssm's kernels, which scan each channel of a sequence in a
///              block of threads: t s h (13 k + 40) / (0.53 x 128 a clock and multiprocessor), and
///              39 k + 60 backward, in whole waves of 3 blocks of 128 threads a multiprocessor. No
///              time was measured, and none is published in figures: default.
/// Constants of other Hopper GPUs follow from those two by their memory's bandwidth. A backward
/// pass that was not measured takes as much longer than its forward pass as the measured one. Tag:
/// interpolated for forward passes on Hopper and Blackwell, for backward passes of the delta rule
/// on H200 and Blackwell, and for those of the other kinds on Hopper; else default.
KernelTime scan_time(const Gpu& gpu, const ScanShape& shape, bool backward);

/// Time of a chunked scan of prompts as engines run them. State spaces on Blackwell differ from
/// training: heads of states of 128 x 64, larger ones as several, fill the multiprocessors in
/// waves, t0 + b t ceil(s h / multiprocessors); 34 of 34 rows of B200 from 32,768 tokens on within
/// 4 %. Elsewhere, and of the other kinds, prompts take as long as in training; five rows of an
/// H100 with 128 heads, in which both laws agree, within 14 %.
KernelTime prompt_scan_time(const Gpu& gpu, const ScanShape& shape);

}  // namespace orrery
