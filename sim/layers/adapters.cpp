#include "sim/layers/adapters.hpp"

namespace orrery {
namespace {

// The tensors of an adapter for one micro-batch, in bytes.
struct AdapterTraffic {
  AdapterTraffic(const LayerSizes& s, double rows, std::int64_t in, std::int64_t out)
      : x{s.element * rows * static_cast<double>(in)},
        y{s.element * rows * static_cast<double>(out)},
        inner{s.element * rows * s.plan.lora_rank},
        weights{s.element * static_cast<double>(s.plan.lora_rank * (in + out))},
        // Read and written, with a mask of a byte.
        dropped{s.plan.lora_dropout ? 2.0 * x + x / s.element : 0.0},
        mask{s.plan.lora_dropout ? x / s.element : 0.0} {}

  double x, y, inner, weights, dropped, mask;
};

Op kernels(std::string_view name, double bytes, int count) {
  Op op = memory(name, bytes);
  op.kernels = count;
  return op;
}

// Tensor ranks each have a part of the sum over a width that is cut.
Ops sum_inner(const LayerSizes& s, std::string_view name, double rows, bool cut) {
  if (s.plan.tp == 1 || !cut) return {};
  return {collective(name, CollectiveKind::all_reduce, s.element * rows * s.plan.lora_rank)};
}

}  // namespace

LoraTarget lora_target(std::string_view product) {
  for (std::string_view before : {"experts_", "shared_"})
    if (product.starts_with(before)) product.remove_prefix(before.size());
  if (product.starts_with("fc1")) return LoraTarget::fc1;
  if (product.starts_with("fc2")) return LoraTarget::fc2;
  return product == "proj" || product == "mixer_out" ? LoraTarget::proj : LoraTarget::qkv;
}

bool has_adapter(const LayerSizes& s, std::string_view product) {
  return product != "head" && s.plan.adapts(lora_target(product));
}

Ops adapter_forward(const LayerSizes& s, std::string_view product, double rows, std::int64_t in,
                    std::int64_t out, bool sums) {
  if (!has_adapter(s, product)) return {};
  const AdapterTraffic t{s, rows, in, out};
  Ops ops;
  if (s.software.fused_adapters) {
    ops.push_back(kernels("lora", t.x + t.mask + t.weights + t.inner + t.y, 1));
  } else {
    const double products = t.x + t.weights + 2.0 * t.inner + t.y;
    const int scaled = 3;  // Both products and the scale.
    ops.push_back(
        kernels("lora", t.dropped + products + 2.0 * t.y, scaled + (s.plan.lora_dropout ? 1 : 0)));
  }
  append(ops, sum_inner(s, "lora_reduce", rows, sums));
  ops.push_back(memory("lora_sum", 3.0 * t.y));
  if (s.software.adapter_wait > Seconds{})
    ops.push_back(wait_for_host("lora_wait", s.host_slowdown * s.software.adapter_wait));
  return ops;
}

Ops adapter_backward(const LayerSizes& s, std::string_view product, double rows, std::int64_t in,
                     std::int64_t out, bool sums) {
  if (!has_adapter(s, product)) return {};
  const AdapterTraffic t{s, rows, in, out};
  // Gradients of both matrices are added to main gradients.
  const double gradients = t.weights + s.software.accumulate_bytes / s.element * t.weights;
  Ops ops;
  if (s.software.fused_adapters) {
    ops.push_back(kernels("lora_bwd", 2.0 * t.y + 2.0 * t.x + t.mask + t.x + gradients, 2));
  } else {
    // The scale; the gradients of B and of what A gave; those of A and of the input.
    const double products = 2.0 * (t.y + t.inner) + 2.0 * (t.x + t.inner) + t.weights + gradients;
    ops.push_back(
        kernels("lora_bwd", 2.0 * t.y + products + t.dropped, 5 + (s.plan.lora_dropout ? 1 : 0)));
  }
  append(ops, sum_inner(s, "lora_reduce_grad", rows, !sums));
  ops.push_back(memory("lora_grad_sum", 3.0 * t.x));
  return ops;
}

Ops dequantise(const LayerSizes& s, double weights) {
  if (s.plan.trains_weights() || !is_dequantised(s.plan.base_format)) return {};
  return {memory("dequantise", (stored_bytes(s.plan.base_format) + s.element) * weights,
                 s.software.dequantise_efficiency)};
}

AdapterParameters adapter_parameters(const LayerSizes& s, bool has_experts) {
  AdapterParameters sum;
  const auto add = [&](std::string_view product, std::int64_t in, std::int64_t out,
                       std::int64_t& of) {
    if (has_adapter(s, product)) of += s.plan.lora_rank * (in + out);
  };
  const std::int64_t hidden = s.hidden;
  if (s.model.mixer) {
    const StateWork work = *s.model.mixer->work(hidden, s.plan.tp);
    for (const std::int64_t width : work.inputs) add("mixer_in", hidden, width, sum.dense);
    add("mixer_out", work.output, hidden, sum.dense);
  }
  if (const auto& latent = s.model.latent; latent && s.model.heads > 0) {
    const std::int64_t queries = s.heads * s.model.head_dim;
    if (latent->q_rank > 0) {
      add("q_down", hidden, latent->q_rank, sum.dense);
      add("q_up", latent->q_rank, queries, sum.dense);
    } else {
      add("q", hidden, queries, sum.dense);
    }
    add("kv_down", hidden, latent->kv_rank + latent->rope_dim, sum.dense);
    add("kv_up", latent->kv_rank, s.heads * (latent->nope_dim + latent->v_dim), sum.dense);
    if (s.model.output_gate) add("gate", hidden, s.head_width, sum.dense);
    add("proj", s.head_width, hidden, sum.dense);
  } else if (s.model.heads > 0) {
    for (const std::int64_t width : s.qkv_products()) add("qkv", hidden, width, sum.dense);
    add("proj", s.head_width, hidden, sum.dense);
  }
  const std::int64_t into = s.model.gated ? 2 : 1;
  if (!has_experts) {
    if (s.ffn == 0) return sum;
    for (const std::int64_t width : s.fc1_products()) add("fc1", hidden, width, sum.dense);
    add("fc2", s.ffn, hidden, sum.dense);
    return sum;
  }
  const Experts& experts = *s.model.experts;
  if (const std::int64_t shared = experts.shared_ffn / s.plan.tp; shared > 0) {
    add("shared_fc1", hidden, into * shared, sum.dense);
    add("shared_fc2", shared, hidden, sum.dense);
  }
  const std::int64_t row = experts.channels(hidden), ffn = experts.ffn / s.plan.etp;
  add("experts_fc1", row, into * ffn, sum.experts);
  add("experts_fc2", ffn, row, sum.experts);
  return sum;
}

}  // namespace orrery
