#include "calibration/host/reference.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

namespace orrery::calibration {
namespace {

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double inverse_rms(const Doubles& x, double epsilon) {
  double squares = 0.0;
  for (const double value : x) squares += value * value;
  return 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + epsilon);
}

constexpr double rotary_base = 10000.0;  // Su et al., arXiv 2104.09864.

double angle(int pair, int head_dim, double position) {
  return position * std::pow(rotary_base, -2.0 * pair / head_dim);
}

}  // namespace

double relative_error(const Doubles& actual, const Doubles& expected) {
  assert(actual.size() == expected.size());
  double difference = 0.0, norm = 0.0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  if (norm == 0.0) return difference == 0.0 ? 0.0 : 1.0;
  const double error = std::sqrt(difference / norm);
  return std::isfinite(error) ? error : 1e9;
}

double from_bf16(std::uint16_t bits) {
  const std::uint32_t word = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

std::uint16_t to_bf16(double value) {
  const float rounded = static_cast<float>(value);
  std::uint32_t word;
  std::memcpy(&word, &rounded, sizeof word);
  return static_cast<std::uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
}

Doubles rms_norm_row(const Doubles& x, const Doubles& gain, double epsilon) {
  const double scale = inverse_rms(x, epsilon);
  Doubles y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * gain[i];
  return y;
}

// r = 1 / rms: y = g x r, dr/dx_j = -r^3 x_j / n, so dx_j = r g_j dy_j - r^3 x_j / n sum x g dy.
Doubles rms_norm_backward_row(const Doubles& x, const Doubles& gain, const Doubles& dy,
                              double epsilon, Doubles& dgain) {
  const double scale = inverse_rms(x, epsilon);
  double product = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) product += x[i] * gain[i] * dy[i];
  Doubles dx(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    dgain[i] += dy[i] * x[i] * scale;
    dx[i] = scale * gain[i] * dy[i] -
            scale * scale * scale * x[i] * product / static_cast<double>(x.size());
  }
  return dx;
}

Doubles swiglu_row(const Doubles& in) {
  const std::size_t width = in.size() / 2;
  Doubles out(width);
  for (std::size_t i = 0; i < width; ++i) out[i] = in[i] * logistic(in[i]) * in[width + i];
  return out;
}

Doubles swiglu_backward_row(const Doubles& in, const Doubles& dout) {
  const std::size_t width = in.size() / 2;
  Doubles din(in.size());
  for (std::size_t i = 0; i < width; ++i) {
    const double s = logistic(in[i]);
    din[i] = dout[i] * in[width + i] * (s + in[i] * s * (1.0 - s));
    din[width + i] = dout[i] * in[i] * s;
  }
  return din;
}

Doubles rotate_row(const Doubles& x, int head_dim, double position, double direction) {
  Doubles y(x.size());
  const std::size_t dim = static_cast<std::size_t>(head_dim), half = dim / 2;
  for (std::size_t head = 0; head < x.size(); head += dim)
    for (std::size_t i = 0; i < half; ++i) {
      const double a = angle(static_cast<int>(i), head_dim, position);
      const double cosine = std::cos(a), sine = direction * std::sin(a);
      y[head + i] = x[head + i] * cosine - x[head + half + i] * sine;
      y[head + half + i] = x[head + half + i] * cosine + x[head + i] * sine;
    }
  return y;
}

std::vector<float> rotation_table(int sequence, int head_dim) {
  std::vector<float> turns;
  turns.reserve(static_cast<std::size_t>(sequence) * static_cast<std::size_t>(head_dim));
  for (int position = 0; position < sequence; ++position)
    for (int pair = 0; pair < head_dim / 2; ++pair) {
      turns.push_back(static_cast<float>(std::cos(angle(pair, head_dim, position))));
      turns.push_back(static_cast<float>(std::sin(angle(pair, head_dim, position))));
    }
  return turns;
}

CrossEntropy cross_entropy_row(const Doubles& logits, int target, double scale) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const double logit : logits) sum += std::exp(logit - most);
  CrossEntropy result;
  const std::size_t at = static_cast<std::size_t>(target);
  result.loss = std::log(sum) + most - logits[at];
  for (const double logit : logits) result.gradient.push_back(scale * std::exp(logit - most) / sum);
  result.gradient[at] -= scale;
  return result;
}

AdamState adam_step(const AdamState& before, double gradient, double rate, double beta1,
                    double beta2, double epsilon, int step) {
  AdamState after = before;
  after.first = beta1 * before.first + (1.0 - beta1) * gradient;
  after.second = beta2 * before.second + (1.0 - beta2) * gradient * gradient;
  after.master -= rate * after.first / (1.0 - std::pow(beta1, step)) /
                  (std::sqrt(after.second / (1.0 - std::pow(beta2, step))) + epsilon);
  return after;
}

AttentionRow attention_row(const Doubles& query, const Doubles& keys, const Doubles& values) {
  const std::size_t dim = query.size(), count = keys.size() / dim;
  AttentionRow row;
  row.probabilities.resize(count);
  for (std::size_t j = 0; j < count; ++j) {
    double score = 0.0;
    for (std::size_t d = 0; d < dim; ++d) score += query[d] * keys[j * dim + d];
    row.probabilities[j] = score / std::sqrt(static_cast<double>(dim));
  }
  const double most = *std::max_element(row.probabilities.begin(), row.probabilities.end());
  double sum = 0.0;
  for (double& p : row.probabilities) sum += p = std::exp(p - most);
  row.lse = (std::log(sum) + most) / std::log(2.0);
  row.output.assign(dim, 0.0);
  for (std::size_t j = 0; j < count; ++j) {
    row.probabilities[j] /= sum;
    for (std::size_t d = 0; d < dim; ++d)
      row.output[d] += row.probabilities[j] * values[j * dim + d];
  }
  return row;
}

Doubles attention_backward_row(const Doubles& query, const Doubles& keys, const Doubles& values,
                               const Doubles& doutput, Doubles& dkeys, Doubles& dvalues) {
  const std::size_t dim = query.size(), count = keys.size() / dim;
  const AttentionRow row = attention_row(query, keys, values);
  double delta = 0.0;
  for (std::size_t d = 0; d < dim; ++d) delta += row.output[d] * doutput[d];
  Doubles dquery(dim, 0.0);
  for (std::size_t j = 0; j < count; ++j) {
    double dp = 0.0;
    for (std::size_t d = 0; d < dim; ++d) {
      dvalues[j * dim + d] += row.probabilities[j] * doutput[d];
      dp += doutput[d] * values[j * dim + d];
    }
    const double ds = row.probabilities[j] * (dp - delta) / std::sqrt(static_cast<double>(dim));
    for (std::size_t d = 0; d < dim; ++d) {
      dquery[d] += ds * keys[j * dim + d];
      dkeys[j * dim + d] += ds * query[d];
    }
  }
  return dquery;
}

}  // namespace orrery::calibration
