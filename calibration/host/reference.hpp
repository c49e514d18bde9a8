#pragma once

// Results of kernels, computed in double precision and in the plainest way. Matrices are row-major.

#include <cstdint>
#include <vector>

namespace orrery::calibration {

using Doubles = std::vector<double>;

/// ||actual - expected|| / ||expected||, Euclidean; 1 at least where a value is no number. Where
/// all that is expected is 0: 0 if it is so, else 1.
double relative_error(const Doubles& actual, const Doubles& expected);

/// The value of a bf16's bits, and the bits of a value (to nearest, ties to even).
double from_bf16(std::uint16_t bits);
std::uint16_t to_bf16(double value);

/// One row.
Doubles rms_norm_row(const Doubles& x, const Doubles& gain, double epsilon);
/// dx of one row; adds to dgain.
Doubles rms_norm_backward_row(const Doubles& x, const Doubles& gain, const Doubles& dy,
                              double epsilon, Doubles& dgain);
/// SwiGLU of a row; `in`: gates, then ups.
Doubles swiglu_row(const Doubles& in);
Doubles swiglu_backward_row(const Doubles& in, const Doubles& dout);
/// Heads of head_dim, turned to `position`; base 10000; direction -1 turns back.
Doubles rotate_row(const Doubles& x, int head_dim, double position, double direction);
/// Cosine and sine of every pair of `sequence` positions, as kernels take them.
std::vector<float> rotation_table(int sequence, int head_dim);

struct CrossEntropy {
  double loss = 0.0;
  Doubles gradient;
};
CrossEntropy cross_entropy_row(const Doubles& logits, int target, double scale);

struct AdamState {
  double master = 0.0, first = 0.0, second = 0.0;
};
AdamState adam_step(const AdamState& before, double gradient, double rate, double beta1,
                    double beta2, double epsilon, int step);

/// One query's causal attention: scores with its keys 0..count-1, [count, head_dim] each.
struct AttentionRow {
  Doubles probabilities;  ///< One for each key.
  Doubles output;
  double lse = 0.0;  ///< Log2 of the sum of exponentials.
};
AttentionRow attention_row(const Doubles& query, const Doubles& keys, const Doubles& values);
/// Its share of the gradients: returns dq, adds to dkeys and dvalues.
Doubles attention_backward_row(const Doubles& query, const Doubles& keys, const Doubles& values,
                               const Doubles& doutput, Doubles& dkeys, Doubles& dvalues);

}  // namespace orrery::calibration
