#include "calibration/gpu/training_step.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "calibration/kernels/random_value.hpp"

namespace orrery::calibration {
namespace {

using Bits = DeviceArray<std::uint16_t>;
using Floats = DeviceArray<float>;
using Pass = MatmulShape::Pass;

double us_since(std::chrono::steady_clock::time_point began) {
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - began;
  return spent.count();
}

void require_possible(const StepModel& m) {
  const auto refuse = [](const std::string& what) { throw Unsupported{what}; };
  if (m.hidden % m.heads != 0 || (m.head_dim() != 64 && m.head_dim() != 128))
    refuse("hidden / heads must be 64 or 128, for which there is an attention kernel");
  if (m.heads % m.kv_heads != 0) refuse("kv-heads must divide heads");
  if (m.sequence % 128 != 0) refuse("the attention kernel has sequences of multiples of 128");
  if (m.ffn % 8 != 0 || m.vocab % 8 != 0) refuse("ffn and vocab must be multiples of 8");
}

// Weights and activations that one layer's backward pass needs.
struct Layer {
  explicit Layer(const StepModel& m)
      : x{m.tokens() * m.hidden},
        norm1{m.tokens() * m.hidden},
        qkv{m.tokens() * m.qkv_width()},
        q{m.tokens() * m.q_width()},
        k{m.tokens() * m.k_width()},
        o{m.tokens() * m.q_width()},
        middle{m.tokens() * m.hidden},
        norm2{m.tokens() * m.hidden},
        up{m.tokens() * 2 * m.ffn},
        activated{m.tokens() * m.ffn},
        lse{m.tokens() * m.heads} {}
  Bits x, norm1, qkv, q, k, o, middle, norm2, up, activated;
  Floats lse;
};

}  // namespace

struct TrainingStep::State {
  State(const StepModel& model, const Lab& lab)
      : m{model},
        tensors{m.tensors()},
        cublas{lab.cublas},
        weight{m.parameters()},
        master{m.parameters()},
        first{m.parameters()},
        second{m.parameters()},
        gradient{m.parameters()},
        last{m.tokens() * m.hidden},
        normed{m.tokens() * m.hidden},
        logits{m.tokens() * m.vocab},
        dlogits{m.tokens() * m.vocab},
        wide{m.tokens() * std::max<std::int64_t>(2 * m.ffn, m.qkv_width())},
        narrow{m.tokens() * std::max(m.ffn, m.hidden)},
        dx{m.tokens() * m.hidden},
        dmiddle{m.tokens() * m.hidden},
        dbranch{m.tokens() * m.hidden},
        dq{m.tokens() * m.q_width()},
        dk{m.tokens() * m.k_width()},
        delta{m.tokens() * m.heads},
        dq_sum{m.tokens() * m.q_width()},
        partial{std::int64_t{rms_norm_partials} * m.hidden},
        loss{m.tokens()},
        turns{rotation_table(m.sequence, m.head_dim())} {
    for (int i = 0; i < m.layers; ++i) layers.emplace_back(m);
    // The GPU samples them, as a host would need seconds. Masters begin as what products read.
    for (const StepModel::Tensor& tensor : tensors) {
      const bool gain = tensor.rows == 1;
      const float scale =
          tensor.name == "embedding" ? 1.0f : 1.0f / std::sqrt(static_cast<float>(tensor.columns));
      if (gain)
        set_gain(tensor);
      else
        CUDA_CHECK(launch_fill(weight.data() + tensor.at, Format::bf16, tensor.count(), ++seed,
                               scale, nullptr));
    }
    CUDA_CHECK(launch_widen(weight.data(), master.data(), m.parameters(), nullptr));
    CUDA_CHECK(cudaDeviceSynchronize());
    first.set_zero();
    second.set_zero();
    for (std::int64_t t = 0; t < m.tokens(); ++t) {
      token.push_back(static_cast<int>((t * 7919 + t * t % 31) % m.vocab));
      target.push_back(static_cast<int>((t * 104729 + 17) % m.vocab));
    }
    tokens = DeviceArray<int>{token};
    targets = DeviceArray<int>{target};
  }

  void set_gain(const StepModel::Tensor& tensor) {
    std::vector<std::uint16_t> bits;
    for (std::int64_t i = 0; i < tensor.count(); ++i)
      bits.push_back(to_bf16(1.0 + 0.1 * random_value(30, static_cast<std::uint64_t>(i))));
    CUDA_CHECK(cudaMemcpy(weight.data() + tensor.at, bits.data(), bits.size() * sizeof bits[0],
                          cudaMemcpyHostToDevice));
  }
  const StepModel::Tensor& tensor(int layer, int which) const {
    return tensors[static_cast<std::size_t>(1 + 6 * layer + which)];
  }
  const std::uint16_t* weight_of(const StepModel::Tensor& t) const { return weight.data() + t.at; }
  float* gradient_of(const StepModel::Tensor& t) const { return gradient.data() + t.at; }

  void product(Pass pass, std::int64_t rows, std::int64_t columns, std::int64_t depth,
               const void* a, const void* b, void* c, cudaStream_t stream) {
    std::unique_ptr<Matmul>& one = products[{static_cast<int>(pass), rows, columns, depth}];
    if (!one)
      one = std::make_unique<Matmul>(cublas, MatmulShape{pass, rows, columns, depth, "bf16"});
    one->run(a, b, c, stream);
  }
  /// y = x W^T
  void linear(const StepModel::Tensor& w, const Bits& x, Bits& y, cudaStream_t stream) {
    product(Pass::forward, m.tokens(), w.rows, w.columns, x.data(), weight_of(w), y.data(), stream);
  }
  /// dx = dy W, and dW += dy^T x
  void linear_backward(const StepModel::Tensor& w, const Bits& x, const Bits& dy, Bits& dx_out,
                       cudaStream_t stream) {
    product(Pass::dgrad, m.tokens(), w.columns, w.rows, dy.data(), weight_of(w), dx_out.data(),
            stream);
    product(Pass::wgrad, w.rows, w.columns, m.tokens(), dy.data(), x.data(), gradient_of(w),
            stream);
  }
  void norm(const StepModel::Tensor& gain, const Bits& x, Bits& y, cudaStream_t stream) {
    CUDA_CHECK(launch_rms_norm(x.data(), weight_of(gain), y.data(), m.tokens(), m.hidden, stream));
  }
  void norm_backward(const StepModel::Tensor& gain, const Bits& x, const Bits& dy, Bits& dx_out,
                     cudaStream_t stream) {
    CUDA_CHECK(launch_rms_norm_backward(x.data(), weight_of(gain), dy.data(), dx_out.data(),
                                        gradient_of(gain), partial.data(), m.tokens(), m.hidden,
                                        stream));
  }
  void sum(const Bits& a, const Bits& b, Bits& to, cudaStream_t stream) {
    CUDA_CHECK(launch_add(a.data(), b.data(), to.data(), m.tokens() * m.hidden, stream));
  }
  /// Queries and keys out of the fused projection, turned; or their gradients back into it.
  void turn(const std::uint16_t* from, std::int64_t from_stride, std::uint16_t* to,
            std::int64_t to_stride, int width, float direction, cudaStream_t stream) {
    CUDA_CHECK(launch_rotate(from, from_stride, to, to_stride, m.tokens(), width,
                             {turns.data(), m.sequence, m.head_dim(), direction}, stream));
  }
  AttentionSizes sizes() const {
    return {m.batch, m.sequence, m.heads, m.kv_heads, m.head_dim(), m.qkv_width()};
  }
  AttentionArrays arrays(const Layer& layer) {
    const int values = m.q_width() + m.k_width();
    return {layer.q.data(), layer.k.data(),      layer.qkv.data() + values,
            layer.o.data(), layer.lse.data(),    dbranch.data(),
            delta.data(),   dq_sum.data(),       dq.data(),
            dk.data(),      wide.data() + values};
  }

  StepModel m;
  std::vector<StepModel::Tensor> tensors;
  const Cublas& cublas;
  Bits weight;
  Floats master, first, second, gradient;
  std::vector<Layer> layers;
  Bits last, normed, logits, dlogits;
  // Gradients on their way: of the MLP's input or of the fused projection, of the MLP's output or a
  // hidden state, of the residual stream.
  Bits wide, narrow, dx, dmiddle, dbranch, dq, dk;
  Floats delta, dq_sum, partial, loss, turns;
  DeviceArray<int> tokens, targets;
  std::vector<int> token, target;
  std::uint64_t seed = 30;
  int steps = 0;
  double host_layers_us = 0.0;
  std::map<std::vector<std::int64_t>, std::unique_ptr<Matmul>> products;
};

TrainingStep::TrainingStep(const StepModel& model, const Lab& lab) {
  require_possible(model);
  state_ = std::make_unique<State>(model, lab);
}
TrainingStep::~TrainingStep() = default;

double TrainingStep::loss() const {
  double sum = 0.0;
  for (const float one : state_->loss.to_host()) sum += one;
  return sum / static_cast<double>(state_->m.tokens());
}
std::vector<float> TrainingStep::gradients() const { return state_->gradient.to_host(); }
Doubles TrainingStep::weights() const {
  Doubles values;
  for (const std::uint16_t bits : state_->weight.to_host()) values.push_back(from_bf16(bits));
  return values;
}
double TrainingStep::host_layers_us() const { return state_->host_layers_us; }
const std::vector<int>& TrainingStep::tokens() const { return state_->token; }
const std::vector<int>& TrainingStep::targets() const { return state_->target; }

void TrainingStep::forward(cudaStream_t stream) {
  State& s = *state_;
  const StepModel& m = s.m;
  const auto input = [&](int i) -> Bits& {
    return i < m.layers ? s.layers[static_cast<std::size_t>(i)].x : s.last;
  };
  CUDA_CHECK(launch_permute(s.weight_of(s.tensors[0]), s.tokens.data(), input(0).data(), m.tokens(),
                            m.hidden, stream));
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < m.layers; ++i) {
    Layer& l = s.layers[static_cast<std::size_t>(i)];
    s.norm(s.tensor(i, 0), l.x, l.norm1, stream);
    s.linear(s.tensor(i, 1), l.norm1, l.qkv, stream);
    s.turn(l.qkv.data(), m.qkv_width(), l.q.data(), m.q_width(), m.q_width(), 1.0f, stream);
    s.turn(l.qkv.data() + m.q_width(), m.qkv_width(), l.k.data(), m.k_width(), m.k_width(), 1.0f,
           stream);
    CUDA_CHECK(launch_attention_forward(s.arrays(l), s.sizes(), stream));
    s.linear(s.tensor(i, 2), l.o, s.dbranch, stream);
    s.sum(l.x, s.dbranch, l.middle, stream);
    s.norm(s.tensor(i, 3), l.middle, l.norm2, stream);
    s.linear(s.tensor(i, 4), l.norm2, l.up, stream);
    CUDA_CHECK(launch_swiglu(l.up.data(), l.activated.data(), m.tokens(), m.ffn, stream));
    s.linear(s.tensor(i, 5), l.activated, s.dbranch, stream);
    s.sum(l.middle, s.dbranch, input(i + 1), stream);
  }
  s.host_layers_us = us_since(began);
  s.norm(s.tensors[s.tensors.size() - 2], s.last, s.normed, stream);
  s.linear(s.tensors.back(), s.normed, s.logits, stream);
  CUDA_CHECK(launch_cross_entropy(s.logits.data(), s.targets.data(), s.loss.data(),
                                  s.dlogits.data(), m.tokens(), m.vocab,
                                  1.0f / static_cast<float>(m.tokens()), stream));
}

void TrainingStep::backward(cudaStream_t stream) {
  State& s = *state_;
  const StepModel& m = s.m;
  CUDA_CHECK(cudaMemsetAsync(s.gradient.data(), 0, s.gradient.bytes(), stream));
  s.linear_backward(s.tensors.back(), s.normed, s.dlogits, s.narrow, stream);
  s.norm_backward(s.tensors[s.tensors.size() - 2], s.last, s.narrow, s.dx, stream);
  const auto began = std::chrono::steady_clock::now();
  for (int i = m.layers - 1; i >= 0; --i) {
    Layer& l = s.layers[static_cast<std::size_t>(i)];
    s.linear_backward(s.tensor(i, 5), l.activated, s.dx, s.narrow, stream);
    CUDA_CHECK(launch_swiglu_backward(l.up.data(), s.narrow.data(), s.wide.data(), m.tokens(),
                                      m.ffn, stream));
    s.linear_backward(s.tensor(i, 4), l.norm2, s.wide, s.narrow, stream);
    s.norm_backward(s.tensor(i, 3), l.middle, s.narrow, s.dbranch, stream);
    s.sum(s.dx, s.dbranch, s.dmiddle, stream);
    // dbranch becomes the attention output's gradient, `wide` the fused projection's.
    s.linear_backward(s.tensor(i, 2), l.o, s.dmiddle, s.dbranch, stream);
    CUDA_CHECK(launch_attention_backward(s.arrays(l), s.sizes(), stream));
    s.turn(s.dq.data(), m.q_width(), s.wide.data(), m.qkv_width(), m.q_width(), -1.0f, stream);
    s.turn(s.dk.data(), m.k_width(), s.wide.data() + m.q_width(), m.qkv_width(), m.k_width(), -1.0f,
           stream);
    s.linear_backward(s.tensor(i, 1), l.norm1, s.wide, s.narrow, stream);
    s.norm_backward(s.tensor(i, 0), l.x, s.narrow, s.dbranch, stream);
    s.sum(s.dmiddle, s.dbranch, s.dx, stream);
  }
  s.host_layers_us += us_since(began);
  CUDA_CHECK(launch_scatter_add(s.dx.data(), s.tokens.data(), s.gradient_of(s.tensors[0]),
                                m.tokens(), m.hidden, stream));
}

void TrainingStep::optimize(cudaStream_t stream) {
  State& s = *state_;
  CUDA_CHECK(launch_adam(s.master.data(), s.first.data(), s.second.data(), s.gradient.data(),
                         s.weight.data(), s.m.parameters(), {1e-3f, 0.9f, 0.95f, 1e-8f, ++s.steps},
                         stream));
}

}  // namespace orrery::calibration
