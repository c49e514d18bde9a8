#include <algorithm>
#include <cmath>

#include "calibration/gpu/lab.hpp"
#include "calibration/host/reference.hpp"

namespace orrery::calibration {
namespace {

// bf16 outputs; probabilities and score gradients are rounded on the way (tests/unit/calibration).
constexpr double forward_tolerance = 6e-3, backward_tolerance = 1.5e-2;

struct Arrays {
  explicit Arrays(const AttentionSizes& s)
      : tokens{std::int64_t{s.batch} * s.sequence},
        q_width{std::int64_t{s.heads} * s.head_dim},
        k_width{std::int64_t{s.kv_heads} * s.head_dim},
        q{tokens * q_width},
        k{tokens * k_width},
        v{tokens * k_width},
        o{tokens * q_width},
        d_o{tokens * q_width},
        dq{tokens * q_width},
        dk{tokens * k_width},
        dv{tokens * k_width},
        lse{tokens * s.heads},
        delta{tokens * s.heads},
        dq_sum{tokens * q_width} {
    std::uint64_t seed = 21;
    for (DeviceArray<std::uint16_t>* array : {&q, &k, &v, &d_o})
      CUDA_CHECK(launch_fill(array->data(), Format::bf16, array->count(), seed++, 1.0f, nullptr));
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  AttentionArrays pointers() const {
    return {q.data(),     k.data(),      v.data(),  o.data(),  lse.data(), d_o.data(),
            delta.data(), dq_sum.data(), dq.data(), dk.data(), dv.data()};
  }

  std::int64_t tokens, q_width, k_width;
  DeviceArray<std::uint16_t> q, k, v, o, d_o, dq, dk, dv;
  DeviceArray<float> lse, delta, dq_sum;
};

Doubles values(const std::vector<std::uint16_t>& bits) {
  Doubles out;
  out.reserve(bits.size());
  for (const std::uint16_t one : bits) out.push_back(from_bf16(one));
  return out;
}

// Compares the first sequence of what has been computed with the reference: these queries' outputs
// in these heads; the gradients of the queries from `first_query` on, and those of the keys from
// `first_key` on, which no earlier query sees.
class Comparison {
 public:
  Comparison(const Arrays& arrays, const AttentionSizes& sizes) : a_{arrays}, s_{sizes} {
    k_ = a_.k.to_host(0, s_.sequence * a_.k_width);
    v_ = a_.v.to_host(0, s_.sequence * a_.k_width);
  }

  /// The largest error of a head's queries taken together or, as late queries average over many
  /// values and are small, of each query (`alone`).
  double forward(const std::vector<int>& heads, const std::vector<int>& queries, bool alone) {
    double worst = 0.0;
    for (const int head : heads) {
      Doubles actual, expected;
      for (const int i : queries) {
        if (alone) actual.clear(), expected.clear();
        append(actual, row(a_.o, i, a_.q_width, head));
        append(expected, attention_row(row(a_.q, i, a_.q_width, head), keys(k_, head, i + 1),
                                       keys(v_, head, i + 1))
                             .output);
        if (alone) worst = std::max(worst, relative_error(actual, expected));
      }
      if (!alone) worst = std::max(worst, relative_error(actual, expected));
    }
    return worst;
  }

  double backward(int kv_head, int first_query, int first_key) {
    const int group = s_.heads / s_.kv_heads;
    const std::size_t all = static_cast<std::size_t>(s_.sequence) * s_.head_dim;
    Doubles actual, expected, dkeys(all, 0.0), dvalues(all, 0.0);
    for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      Doubles some_keys = keys(k_, head, s_.sequence), some_values = keys(v_, head, s_.sequence);
      for (int i = s_.sequence - 1; i >= first_query; --i) {  // Each sees one key less.
        some_keys.resize(static_cast<std::size_t>(i + 1) * s_.head_dim);
        some_values.resize(some_keys.size());
        append(actual, row(a_.dq, i, a_.q_width, head));
        append(expected,
               attention_backward_row(row(a_.q, i, a_.q_width, head), some_keys, some_values,
                                      row(a_.d_o, i, a_.q_width, head), dkeys, dvalues));
      }
    }
    double error = relative_error(actual, expected);
    Doubles dk, dv, expected_dk, expected_dv;
    for (int j = first_key; j < s_.sequence; ++j) {
      append(dk, row(a_.dk, j, a_.k_width, kv_head));
      append(dv, row(a_.dv, j, a_.k_width, kv_head));
      const auto at = static_cast<std::ptrdiff_t>(j) * s_.head_dim;
      expected_dk.insert(expected_dk.end(), dkeys.begin() + at, dkeys.begin() + at + s_.head_dim);
      expected_dv.insert(expected_dv.end(), dvalues.begin() + at,
                         dvalues.begin() + at + s_.head_dim);
    }
    error = std::max(error, relative_error(dk, expected_dk));
    return std::max(error, relative_error(dv, expected_dv));
  }

 private:
  static void append(Doubles& to, const Doubles& more) {
    to.insert(to.end(), more.begin(), more.end());
  }
  Doubles row(const DeviceArray<std::uint16_t>& array, int token, std::int64_t width,
              int head) const {
    return values(array.to_host(token * width + std::int64_t{head} * s_.head_dim, s_.head_dim));
  }
  Doubles keys(const std::vector<std::uint16_t>& from, int head, int count) const {
    const int kv_head = head / (s_.heads / s_.kv_heads);
    Doubles out;
    out.reserve(static_cast<std::size_t>(count) * s_.head_dim);
    for (int j = 0; j < count; ++j)
      for (int d = 0; d < s_.head_dim; ++d)
        out.push_back(from_bf16(from[static_cast<std::size_t>(
            j * a_.k_width + std::int64_t{kv_head} * s_.head_dim + d)]));
    return out;
  }

  const Arrays& a_;
  const AttentionSizes& s_;
  std::vector<std::uint16_t> k_, v_;
};

std::vector<int> range(int from, int to) {
  std::vector<int> all;
  for (int i = from; i < to; ++i) all.push_back(i);
  return all;
}

// All queries and keys of a short sequence with the same grouping, then samples of the one that is
// timed; of its gradients the last five tokens', whose keys no other query sees.
double verify(const AttentionSizes& sizes, const Arrays& arrays, bool backward,
              cudaStream_t stream) {
  const auto run = [&](const AttentionSizes& s, const Arrays& a) {
    CUDA_CHECK(launch_attention_forward(a.pointers(), s, stream));
    if (backward) CUDA_CHECK(launch_attention_backward(a.pointers(), s, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
  };
  AttentionSizes small = sizes;
  small.batch = 1;
  small.sequence = 256;
  small.heads = sizes.heads / sizes.kv_heads;
  small.kv_heads = 1;
  small.v_stride = sizes.head_dim;
  const Arrays few{small};
  run(small, few);
  Comparison of_small{few, small};
  double forward_error = of_small.forward(range(0, small.heads), range(0, small.sequence), false);
  double backward_error = 0.0;
  if (backward) backward_error = of_small.backward(0, 0, 0);

  run(sizes, arrays);
  Comparison of_all{arrays, sizes};
  const int last = sizes.sequence - 1;
  forward_error = std::max(
      forward_error, of_all.forward({0, sizes.heads - 1}, {0, 1, last / 3, last / 2, last}, true));
  if (backward)
    backward_error =
        std::max(backward_error, of_all.backward(sizes.kv_heads - 1, last - 4, last - 4));
  require_right(forward_error, forward_tolerance);
  require_right(backward_error, backward_tolerance);
  return backward ? backward_error : forward_error;
}

}  // namespace

Measurement measure_attention(const Case& what, const StoppingLimits& limits, Lab& lab) {
  AttentionSizes sizes{
      static_cast<int>(what.size("batch")),    static_cast<int>(what.size("sequence")),
      static_cast<int>(what.size("heads")),    static_cast<int>(what.size("kv_heads")),
      static_cast<int>(what.size("head_dim")), what.size("kv_heads") * what.size("head_dim")};
  if (sizes.head_dim != 64 && sizes.head_dim != 128)
    throw Unsupported{"the attention kernel has head dimensions of 64 and 128"};
  if (sizes.sequence % 128 != 0)
    throw Unsupported{"the attention kernel has sequences of multiples of 128"};
  if (sizes.batch > 65535) throw Unsupported{"the attention kernel has batches up to 65535"};
  const bool backward = what.choice("pass") == "backward";
  const Arrays arrays{sizes};
  Measurement one;
  one.what = what;
  one.relative_error = verify(sizes, arrays, backward, lab.stopwatch.stream());
  const Stopwatch::Times times = lab.stopwatch.time(
      [&](cudaStream_t stream) {
        CUDA_CHECK((backward ? launch_attention_backward : launch_attention_forward)(
            arrays.pointers(), sizes, stream));
      },
      limits, backward ? 4 : 1);
  one.cold = times.cold;
  one.warm = times.warm;
  one.stopped = times.stopped;
  one.implementation = "orrery mma.sync kernel, not tuned to this GPU";
  // The causal half; backward has five products for forward's two.
  const double forward_flop =
      2.0 * sizes.batch * sizes.heads * std::pow(sizes.sequence, 2.0) * sizes.head_dim;
  const double flop = backward ? 2.5 * forward_flop : forward_flop;
  one.figures = {{"work_flop", flop}, {"warm_flop_per_s", flop / (1e-6 * times.warm.median_us)}};
  return one;
}

}  // namespace orrery::calibration
