#include "sim/profile/kernel_ops.hpp"

#include <cassert>

#include "sim/layers/eager_kernels.hpp"
#include "sim/layers/op_work.hpp"
#include "sim/layers/stage_prices.hpp"

namespace orrery {

using Of = KernelKind::Of;

bool is_exchange(const KernelQuestion& question) {
  return question.kind->of == Of::dispatch || question.kind->of == Of::combine;
}

namespace {

std::int64_t or_else(std::int64_t value, std::int64_t usual) { return value > 0 ? value : usual; }

std::string by(std::initializer_list<std::int64_t> sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

}  // namespace

std::string sizes_text(const KernelQuestion& question) {
  std::string text;
  if (question.kind->of == Of::gemm)
    return by({question.at("m"), question.at("n"), question.at("k")});
  for (const SizeKey& key : question.kind->sizes) {
    const std::int64_t value = question.at(key.name);
    if (value == 0) continue;
    text += (text.empty() ? "" : ", ") + key.name + " " + std::to_string(value);
  }
  return text;
}

std::string family_of(const KernelQuestion& question) {
  switch (question.kind->of) {
    case Of::gemm:
      return "gemm";
    case Of::experts:
      return "experts";
    case Of::attention:
    case Of::decode:
      return "attention";
    case Of::dispatch:
    case Of::combine:
      return "network";
    default:
      return "vector";
  }
}

Scenario bare_scenario(const System& system, const Software& software, Dtype dtype) {
  Scenario scenario;
  scenario.system = system;
  scenario.software = software;
  scenario.plan.dtype = dtype;
  scenario.plan.seq = 1;
  scenario.model.hidden = scenario.model.heads = scenario.model.kv_heads = 1;
  scenario.model.gated = true;
  return scenario;
}

std::array<std::int64_t, 6> decode_sizes(const KernelQuestion& q) {
  return {q.at("batch"),    q.at("heads"),  or_else(q.at("kv-heads"), q.at("heads")),
          q.at("head-dim"), q.at("window"), q.at("context")};
}

namespace {

AttentionShape attention_shape(const KernelQuestion& q) {
  AttentionShape shape{q.at("batch"),
                       q.at("seq"),
                       q.at("seq"),
                       q.at("heads"),
                       or_else(q.at("kv-heads"), q.at("heads")),
                       q.at("head-dim")};
  const std::int64_t window = q.at("window");
  shape.window = window < shape.seq_kv ? window : 0;
  return shape;
}

Op attention_op(const KernelQuestion& q, const Software& software) {
  const AttentionShape shape = attention_shape(q);
  Op op;
  op.kind = Op::Kind::attention;
  op.name = "attention";
  op.batch = shape.batch;
  op.queries = op.keys = shape.seq_q;
  op.heads = shape.heads;
  op.kv_heads = shape.kv_heads;
  op.head_dim = shape.head_dim;
  op.window = shape.window;
  op.backward = q.is_backward();
  if (software.attention_library)
    op.attention_kernel = attention_kernel_of(*software.attention_library, Dtype::bf16);
  return op;
}

}  // namespace

Op op_of(const KernelQuestion& q, const LayerSizes& s) {
  const bool backward = q.is_backward();
  const auto elements = [&] {
    return static_cast<double>(q.at("tokens")) * static_cast<double>(q.at("hidden"));
  };
  switch (q.kind->of) {
    case Of::gemm:
      return product(s, "gemm", q.gemm_pass(), q.at("m"), q.at("n"), q.at("k"));
    case Of::experts:
      return grouped_gemm("experts", q.gemm_pass(), even_tokens(q.at("tokens"), q.at("experts")),
                          q.at("n"), q.at("k"),
                          q.gemm_pass() == GemmPass::wgrad ? s.software.accumulate_bytes : 0.0);
    case Of::attention:
      return attention_op(q, s.software);
    case Of::norm:
      return norm_op(s, backward ? "norm_bwd" : "norm", elements(), backward);
    case Of::activation:
      return activation_op(s, backward ? "activation_bwd" : "activation", elements(), backward);
    case Of::rope:
      return rotary_op(s, backward ? "rope_bwd" : "rope", elements(), backward);
    case Of::cast:
      return quantise(s, elements()).front();
    case Of::cross_entropy: {
      const double each =
          backward ? s.software.logit_backward_bytes : s.software.logit_forward_bytes;
      return memory(
          backward ? "cross_entropy_bwd" : "cross_entropy",
          each * static_cast<double>(q.at("tokens")) * static_cast<double>(q.at("vocab")));
    }
    case Of::adam: {
      const auto parameters = static_cast<double>(q.at("parameters"));
      return memory("optimizer",
                    optimizer_traffic(s.software, q.dtype, parameters, parameters).si());
    }
    case Of::copy:
      return memory("copy", 2.0 * static_cast<double>(q.at("bytes")));
    case Of::decode:
    case Of::dispatch:
    case Of::combine:
      break;
  }
  assert(false);
  return {};
}

Flop flop_of(const KernelQuestion& q, const Op& op, const LayerSizes& s) {
  if (q.kind->of == Of::adam) return Flop{adam_flop * static_cast<double>(q.at("parameters"))};
  if (op.kind != Op::Kind::memory) return op.flop();
  return vector_flop(op, s).value_or(Flop{});
}

std::vector<TrafficPart> parts_of(const Op& op, Dtype dtype) {
  const auto part = [](const char* name, double bytes) { return TrafficPart{name, Bytes{bytes}}; };
  if (op.kind == Op::Kind::gemm) {
    const Dtype format = *multiplies_in(op, dtype);
    const auto bytes = [&](std::int64_t m, std::int64_t n, std::int64_t k, bool results) {
      const GemmProduct product{m, n, k};
      return gemm_bytes({&product, 1}, format, results);
    };
    // Of a product without rows, and of one without columns, the other operand is left.
    const double a = bytes(op.m, 0, op.k, false), b = bytes(0, op.n, op.k, false);
    return {part("A", a), part("B", b), part("C", bytes(op.m, op.n, op.k, true) - a - b)};
  }
  if (op.kind == Op::Kind::attention) {
    const double times = (op.backward ? 2.0 : 1.0) * unquantised_bytes(dtype) / 2.0;
    return {part(op.backward ? "Q, O and their gradients" : "Q and O",
                 times * attention_bytes(op.attention(), 1.0, 0.0)),
            part(op.backward ? "K, V and their gradients" : "K and V",
                 times * attention_bytes(op.attention(), 0.0, 1.0))};
  }
  return {};
}

}  // namespace orrery
