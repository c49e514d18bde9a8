#include "sim/layers/state_ops.hpp"

namespace orrery {
namespace {

StateWork work_of(const LayerSizes& s) { return *s.model.mixer->work(s.hidden, s.plan.tp); }

Linears inputs(const StateWork& work) {
  Linears all;
  for (const std::int64_t width : work.inputs)
    all.push_back({"mixer_in", "mixer_in_dgrad", "mixer_in_wgrad", width});
  return all;
}
Linear output(const StateWork& work) {
  return {"mixer_out", "mixer_out_dgrad", "mixer_out_wgrad", work.output};
}

Ops swap(const LayerSizes& s, std::string_view name, std::int64_t width) {
  if (s.plan.cp == 1) return {};
  return {collective(name, CollectiveKind::all_to_all, s.element * s.of_tokens(width), 0.0,
                     GroupKind::context)};
}

// A product inside the mixer. Between the exchanges of context ranks, where those lie that read
// convolved channels, a rank has all tokens of its sequences and a cp-th of the channels that are
// cut.
struct Inner {
  std::int64_t tokens, in, out;
};
Inner inner_sizes(const LayerSizes& s, const StateWork& work, const WeightMatrix& matrix) {
  if (work.summed == 0) return {s.tokens, matrix.in, matrix.out};
  // The first reads channels that are cut, the others make such.
  const std::int64_t cp = s.plan.cp;
  if (&matrix == &work.inner.front()) return {s.tokens * cp, matrix.in / cp, matrix.out};
  return {s.tokens * cp, matrix.in, matrix.out / cp};
}

Op inner_product(const LayerSizes& s, const StateWork& work, const WeightMatrix& matrix) {
  const Inner own = inner_sizes(s, work, matrix);
  return product(s, "mixer_up", GemmPass::forward, own.tokens, own.out, own.in);
}

// The ranks that have different channels add up what they made of them: every one of them scans
// with all of it.
Ops inner_sum(const LayerSizes& s, const StateWork& work, std::string_view name) {
  Ops ops;
  if (work.summed == 0) return ops;
  const double bytes = s.element * s.plan.cp * s.of_tokens(work.summed);
  const auto add = [&](int ranks, GroupKind group) {
    if (ranks > 1) ops.push_back(collective(name, CollectiveKind::all_reduce, bytes, 0.0, group));
  };
  add(s.plan.tp, GroupKind::tensor);
  add(s.plan.cp, GroupKind::context);
  return ops;
}

// Products that read outputs of the first ones, as every rank has them, or convolved channels.
Ops inner_forward(const LayerSizes& s, const StateWork& work) {
  Ops ops;
  for (const WeightMatrix& matrix : work.inner) {
    ops.push_back(inner_product(s, work, matrix));
    if (&matrix == &work.inner.front()) append(ops, inner_sum(s, work, "state_sum"));
  }
  return ops;
}
Ops inner_backward(const LayerSizes& s, const StateWork& work) {
  Ops ops;
  const auto add = [&](const WeightMatrix& matrix) {
    const Inner own = inner_sizes(s, work, matrix);
    ops.push_back(product(s, "mixer_up_dgrad", GemmPass::dgrad, own.tokens, own.in, own.out));
    append_weight_gradient(
        s, ops, product(s, "mixer_up_wgrad", GemmPass::wgrad, own.out, own.in, own.tokens),
        matrix.out, matrix.in);
  };
  if (work.summed == 0) {
    for (const WeightMatrix& matrix : work.inner) add(matrix);
    return ops;
  }
  for (const WeightMatrix& matrix : work.inner)
    if (&matrix != &work.inner.front()) add(matrix);
  append(ops, inner_sum(s, work, "state_sum_grad"));
  add(work.inner.front());
  return ops;
}

// Channels that a context rank sends to those that scan their heads.
std::int64_t scanned_width(const StateWork& work) {
  std::int64_t width = work.input_width();
  if (work.summed > 0) return width;
  for (const WeightMatrix& matrix : work.inner) width += matrix.out - matrix.in;
  return width;
}

// Share of the rate of plain copies: the convolution moves 2.2 to 2.3 TB/s on H100 and 2.7 to 3.0
// on B200 (NVIDIA aiconfigurator, mamba2_perf, commit 095f58a5), 0.66 and 0.36 of the memory's
// peak, of which copies reach 0.9.
double convolution_efficiency(Architecture architecture) {
  return architecture >= Architecture::blackwell ? 0.40 : 0.73;
}

// Between the exchanges a rank has all tokens of its sequences and a cp-th of the channels: as many
// elements. Forward reads and writes each; backward reads the input and the output's
// gradient and writes the input's. mamba_ssm's operators keep no output of the convolution
// (StateWork::convolves_again).
Op convolution(const LayerSizes& s, const StateWork& work, bool backward) {
  const double again = work.convolves_again ? 2.0 : 0.0;
  Op op = memory(backward ? "convolution_bwd" : "convolution",
                 (backward ? 3.0 + again : 2.0) * s.element * s.of_tokens(work.convolved));
  op.efficiency = convolution_efficiency(s.architecture);
  return op;
}

Op scan(const LayerSizes& s, const StateWork& work, bool backward) {
  Op op;
  op.kind = Op::Kind::scan;
  op.name = backward ? "scan_bwd" : "scan";
  op.scan = work.scan;
  op.scan.heads /= s.plan.cp;
  op.batch = s.plan.mbs;
  op.queries = s.plan.seq;
  op.backward = backward;
  op.kernels = scan_kernels(work.scan.kind, backward);
  return op;
}

// The scan's output times the sigmoid or SiLU of the gate, normed: both are read and the result is
// written; backward reads its gradient as well and writes two. mamba_ssm's backward kernel moves
// 1.2 to 1.3 TB/s on H100, where copies move 2.85 (calibration/data/records/h100-sxm/scans.csv);
// its forward one moves 2.7.
Op gate(const LayerSizes& s, const StateWork& work, bool backward) {
  Op op = memory(backward ? "gated_norm_bwd" : "gated_norm",
                 (backward ? 5.0 : 3.0) * s.element * s.of_tokens(work.gated));
  if (backward && work.scan.kind == ScanKind::state_space) op.efficiency = 0.44;
  return op;
}

}  // namespace

Ops state_mixer_forward(const LayerSizes& s) {
  const StateWork work = work_of(s);
  Ops ops = column_parallel_forward(s, inputs(work));
  if (work.summed == 0) append(ops, inner_forward(s, work));
  append(ops, swap(s, "cp_swap_inputs", scanned_width(work)));
  if (work.taps > 0) ops.push_back(convolution(s, work, false));
  if (work.summed > 0) append(ops, inner_forward(s, work));
  if (work.scan.kind != ScanKind::none) ops.push_back(scan(s, work, false));
  if (work.gated > 0) ops.push_back(gate(s, work, false));
  append(ops, swap(s, "cp_swap_heads", work.output));
  append(ops, row_parallel_forward(s, {output(work)}));
  return ops;
}

Ops state_mixer_backward(const LayerSizes& s) {
  const StateWork work = work_of(s);
  Ops ops = row_parallel_backward(s, {output(work)});
  append(ops, swap(s, "cp_swap_heads", work.output));
  if (work.gated > 0) ops.push_back(gate(s, work, true));
  if (work.gates_again) ops.push_back(inner_product(s, work, work.inner.back()));
  if (work.scan.kind != ScanKind::none) ops.push_back(scan(s, work, true));
  if (work.summed > 0) append(ops, inner_backward(s, work));
  if (work.taps > 0) ops.push_back(convolution(s, work, true));
  append(ops, swap(s, "cp_swap_inputs", scanned_width(work)));
  if (work.summed == 0) append(ops, inner_backward(s, work));
  append(ops, column_parallel_backward(s, inputs(work)));
  return ops;
}

double kept_by_state_mixer(const LayerSizes& s, double own, double element) {
  const StateWork work = work_of(s);
  const double read = work.gates_again ? 0.0 : own * static_cast<double>(work.output);
  return element * static_cast<double>(scanned_width(work) + work.kept_channels) + read +
         work.kept_bytes;
}

}  // namespace orrery
