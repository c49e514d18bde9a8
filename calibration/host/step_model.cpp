#include "calibration/host/step_model.hpp"

#include <cassert>

namespace orrery::calibration {
namespace {

constexpr double epsilon = 1e-5;  // norm_epsilon of the kernels.

using Index = std::size_t;

Doubles slice(const Doubles& from, Index at, Index count) {
  const auto begin = from.begin() + static_cast<std::ptrdiff_t>(at);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

void put(Doubles& to, Index at, const Doubles& values) {
  for (Index i = 0; i < values.size(); ++i) to[at + i] = values[i];
}

void add(Doubles& to, const Doubles& values) {
  for (Index i = 0; i < values.size(); ++i) to[i] += values[i];
}

// A linear layer W [out, in] of `rows` inputs.
struct Linear {
  Linear(const Doubles& weights, const StepModel::Tensor& tensor)
      : out{static_cast<Index>(tensor.rows)},
        in{static_cast<Index>(tensor.columns)},
        at{static_cast<Index>(tensor.at)},
        w{weights.data() + tensor.at} {}

  Doubles forward(const Doubles& x) const {
    const Index rows = x.size() / in;
    Doubles y(rows * out, 0.0);
    for (Index r = 0; r < rows; ++r)
      for (Index o = 0; o < out; ++o)
        for (Index i = 0; i < in; ++i) y[r * out + o] += x[r * in + i] * w[o * in + i];
    return y;
  }
  /// Returns dx, adds dW to its place among all gradients.
  Doubles backward(const Doubles& x, const Doubles& dy, Doubles& gradients) const {
    const Index rows = x.size() / in;
    Doubles dx(rows * in, 0.0);
    for (Index r = 0; r < rows; ++r)
      for (Index o = 0; o < out; ++o)
        for (Index i = 0; i < in; ++i) {
          dx[r * in + i] += dy[r * out + o] * w[o * in + i];
          gradients[at + o * in + i] += dy[r * out + o] * x[r * in + i];
        }
    return dx;
  }

  Index out, in, at;
  const double* w;
};

// A norm's gain, applied to every row.
struct Norm {
  Norm(const Doubles& weights, const StepModel::Tensor& tensor)
      : at{static_cast<Index>(tensor.at)},
        gain{slice(weights, at, static_cast<Index>(tensor.count()))} {}

  Doubles forward(const Doubles& x) const {
    Doubles y(x.size());
    for (Index r = 0; r < x.size(); r += gain.size())
      put(y, r, rms_norm_row(slice(x, r, gain.size()), gain, epsilon));
    return y;
  }
  Doubles backward(const Doubles& x, const Doubles& dy, Doubles& gradients) const {
    Doubles dx(x.size()), dgain(gain.size(), 0.0);
    for (Index r = 0; r < x.size(); r += gain.size())
      put(dx, r,
          rms_norm_backward_row(slice(x, r, gain.size()), gain, slice(dy, r, gain.size()), epsilon,
                                dgain));
    for (Index i = 0; i < dgain.size(); ++i) gradients[at + i] += dgain[i];
    return dx;
  }

  Index at;
  Doubles gain;
};

// All heads of all tokens: qkv [tokens, qkv_width] -> o [tokens, q_width], queries and keys turned.
class Attention {
 public:
  explicit Attention(const StepModel& model) : m_{model} {}

  Doubles forward(const Doubles& qkv) const {
    const Doubles turned = turn(qkv, 1.0);
    Doubles o(static_cast<Index>(m_.tokens() * m_.q_width()));
    for_each([&](Index b, Index head, Index i) {
      put(o, query_at(b, head, i, m_.q_width()),
          attention_row(query(turned, b, head, i), keys(turned, b, head, i, 0),
                        keys(turned, b, head, i, 1))
              .output);
    });
    return o;
  }

  Doubles backward(const Doubles& qkv, const Doubles& d_o) const {
    const Doubles turned = turn(qkv, 1.0);
    Doubles dqkv(qkv.size(), 0.0);
    for_each([&](Index b, Index head, Index i) {
      Doubles dkeys((i + 1) * dim(), 0.0), dvalues = dkeys;
      const Doubles dquery = attention_backward_row(
          query(turned, b, head, i), keys(turned, b, head, i, 0), keys(turned, b, head, i, 1),
          slice(d_o, query_at(b, head, i, m_.q_width()), dim()), dkeys, dvalues);
      put(dqkv, query_at(b, head, i, m_.qkv_width()), dquery);
      for (Index j = 0; j <= i; ++j)
        for (Index d = 0; d < dim(); ++d) {
          dqkv[key_at(b, head, j, 0) + d] += dkeys[j * dim() + d];
          dqkv[key_at(b, head, j, 1) + d] += dvalues[j * dim() + d];
        }
    });
    return turn(dqkv, -1.0);
  }

 private:
  Index dim() const { return static_cast<Index>(m_.head_dim()); }
  template <class Action>
  void for_each(Action action) const {
    for (Index b = 0; b < static_cast<Index>(m_.batch); ++b)
      for (Index head = 0; head < static_cast<Index>(m_.heads); ++head)
        for (Index i = 0; i < static_cast<Index>(m_.sequence); ++i) action(b, head, i);
  }
  Index query_at(Index b, Index head, Index i, int width) const {
    return (b * static_cast<Index>(m_.sequence) + i) * static_cast<Index>(width) + head * dim();
  }
  // Keys (0) and values (1) of the head that serves this query head.
  Index key_at(Index b, Index head, Index j, Index which) const {
    const Index kv_head = head / static_cast<Index>(m_.heads / m_.kv_heads);
    return query_at(b, kv_head, j, m_.qkv_width()) + static_cast<Index>(m_.q_width()) +
           which * static_cast<Index>(m_.k_width());
  }
  Doubles query(const Doubles& qkv, Index b, Index head, Index i) const {
    return slice(qkv, query_at(b, head, i, m_.qkv_width()), dim());
  }
  Doubles keys(const Doubles& qkv, Index b, Index head, Index i, Index which) const {
    Doubles all;
    for (Index j = 0; j <= i; ++j) {
      const Doubles one = slice(qkv, key_at(b, head, j, which), dim());
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  Doubles turn(const Doubles& qkv, double direction) const {
    Doubles turned = qkv;
    const Index width = static_cast<Index>(m_.qkv_width());
    const Index both = static_cast<Index>(m_.q_width() + m_.k_width());
    for (Index t = 0; t * width < qkv.size(); ++t)
      put(turned, t * width,
          rotate_row(slice(qkv, t * width, both), m_.head_dim(),
                     static_cast<double>(t % static_cast<Index>(m_.sequence)), direction));
    return turned;
  }

  const StepModel& m_;
};

// Values of its forward pass that a layer's backward pass needs.
struct Kept {
  Doubles x, norm1, qkv, o, middle, norm2, up, activated;
};

Doubles swiglu(const Doubles& in, Index width) {
  Doubles out;
  for (Index r = 0; r < in.size(); r += 2 * width) {
    const Doubles row = swiglu_row(slice(in, r, 2 * width));
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

Doubles swiglu_backward(const Doubles& in, const Doubles& dout, Index width) {
  Doubles din(in.size());
  for (Index r = 0; r * width < dout.size(); ++r)
    put(din, 2 * r * width,
        swiglu_backward_row(slice(in, 2 * r * width, 2 * width), slice(dout, r * width, width)));
  return din;
}

}  // namespace

std::vector<StepModel::Tensor> StepModel::tensors() const {
  std::vector<Tensor> all;
  std::int64_t at = 0;
  const auto tensor = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    all.push_back({name, at, rows, columns});
    at += rows * columns;
  };
  tensor("embedding", vocab, hidden);
  for (int layer = 0; layer < layers; ++layer) {
    tensor("norm1", 1, hidden);
    tensor("qkv", qkv_width(), hidden);
    tensor("proj", hidden, q_width());
    tensor("norm2", 1, hidden);
    tensor("fc1", 2 * std::int64_t{ffn}, hidden);
    tensor("fc2", hidden, ffn);
  }
  tensor("norm", 1, hidden);
  tensor("head", vocab, hidden);
  return all;
}

std::int64_t StepModel::parameters() const {
  const Tensor last = tensors().back();
  return last.at + last.count();
}

double StepModel::flop() const {
  double products = 0.0;
  for (const Tensor& tensor : tensors())
    if (tensor.rows > 1 && tensor.name != "embedding")
      products += 2.0 * static_cast<double>(tensor.count());
  const double attention = 2.0 * layers * static_cast<double>(sequence) * hidden;
  return 3.0 * static_cast<double>(tokens()) * (products + attention);
}

StepModel step_model_of(const Case& what) {
  const auto size = [&](const char* name) { return static_cast<int>(what.size(name)); };
  return {size("layers"),   size("hidden"), size("ffn"),      size("heads"),
          size("kv_heads"), size("vocab"),  size("sequence"), size("batch")};
}

Case step_case(const StepModel& m, const std::string& launch, double weight) {
  return make_case("training_step", {launch},
                   {m.layers, m.hidden, m.ffn, m.heads, m.kv_heads, m.vocab, m.sequence, m.batch},
                   weight);
}

StepGradients reference_step(const StepModel& model, const Doubles& weights,
                             const std::vector<int>& tokens, const std::vector<int>& targets) {
  const std::vector<StepModel::Tensor> all = model.tensors();
  const auto layer_tensor = [&](int layer, int which) {
    return all[static_cast<Index>(1 + 6 * layer + which)];
  };
  const Index h = static_cast<Index>(model.hidden), ffn = static_cast<Index>(model.ffn);
  const Index vocab = static_cast<Index>(model.vocab);
  const Attention attention{model};
  StepGradients step;
  step.gradients.assign(static_cast<Index>(model.parameters()), 0.0);
  Doubles& gradients = step.gradients;

  Doubles x;
  for (const int token : tokens) {
    const Doubles row = slice(weights, static_cast<Index>(token) * h, h);
    x.insert(x.end(), row.begin(), row.end());
  }
  std::vector<Kept> kept;
  for (int layer = 0; layer < model.layers; ++layer) {
    Kept k;
    k.x = x;
    k.norm1 = Norm{weights, layer_tensor(layer, 0)}.forward(x);
    k.qkv = Linear{weights, layer_tensor(layer, 1)}.forward(k.norm1);
    k.o = attention.forward(k.qkv);
    add(x, Linear{weights, layer_tensor(layer, 2)}.forward(k.o));
    k.middle = x;
    k.norm2 = Norm{weights, layer_tensor(layer, 3)}.forward(x);
    k.up = Linear{weights, layer_tensor(layer, 4)}.forward(k.norm2);
    k.activated = swiglu(k.up, ffn);
    add(x, Linear{weights, layer_tensor(layer, 5)}.forward(k.activated));
    kept.push_back(std::move(k));
  }
  const Norm last{weights, all[all.size() - 2]};
  const Linear head{weights, all.back()};
  const Doubles normed = last.forward(x), logits = head.forward(normed);
  Doubles dlogits(logits.size());
  const double scale = 1.0 / static_cast<double>(tokens.size());
  for (Index t = 0; t < tokens.size(); ++t) {
    const CrossEntropy row = cross_entropy_row(slice(logits, t * vocab, vocab), targets[t], scale);
    step.loss += scale * row.loss;
    put(dlogits, t * vocab, row.gradient);
  }

  Doubles dx = last.backward(x, head.backward(normed, dlogits, gradients), gradients);
  for (int layer = model.layers - 1; layer >= 0; --layer) {
    const Kept& k = kept[static_cast<Index>(layer)];
    const Doubles dactivated =
        Linear{weights, layer_tensor(layer, 5)}.backward(k.activated, dx, gradients);
    const Doubles dnorm2 = Linear{weights, layer_tensor(layer, 4)}.backward(
        k.norm2, swiglu_backward(k.up, dactivated, ffn), gradients);
    add(dx, Norm{weights, layer_tensor(layer, 3)}.backward(k.middle, dnorm2, gradients));
    const Doubles d_o = Linear{weights, layer_tensor(layer, 2)}.backward(k.o, dx, gradients);
    const Doubles dnorm1 = Linear{weights, layer_tensor(layer, 1)}.backward(
        k.norm1, attention.backward(k.qkv, d_o), gradients);
    add(dx, Norm{weights, layer_tensor(layer, 0)}.backward(k.x, dnorm1, gradients));
  }
  for (Index t = 0; t < tokens.size(); ++t)
    for (Index i = 0; i < h; ++i) gradients[static_cast<Index>(tokens[t]) * h + i] += dx[t * h + i];
  return step;
}

}  // namespace orrery::calibration
