#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calibration/host/case.hpp"
#include "calibration/host/reference.hpp"

namespace orrery::calibration {

/// A decoder in the manner of Llama: RMSNorm, rotary embedding, grouped keys, SwiGLU, untied head.
struct StepModel {
  int layers = 2, hidden = 4096, ffn = 14336, heads = 32, kv_heads = 8, vocab = 32000;
  int sequence = 4096, batch = 1;

  std::int64_t tokens() const { return std::int64_t{batch} * sequence; }
  int head_dim() const { return hidden / heads; }
  int q_width() const { return hidden; }
  int k_width() const { return kv_heads * head_dim(); }
  int qkv_width() const { return q_width() + 2 * k_width(); }

  /// One weight among all, which lie one behind the other: [rows, columns], row-major, from `at`.
  struct Tensor {
    std::string name;
    std::int64_t at, rows, columns;
    std::int64_t count() const { return rows * columns; }
  };
  /// embedding; norm1, qkv, proj, norm2, fc1 (gates first), fc2 of each layer; norm, head.
  std::vector<Tensor> tensors() const;
  std::int64_t parameters() const;

  /// Multiply-adds as 2, attention's causal half, backward twice the forward (Narayanan et al.,
  /// SC'21, with the causal half): of one step.
  double flop() const;
};

/// The model of a case of kind training_step, and the case of a model. `launch`: "eager", each
/// kernel by itself, or "graph", each pass as one CUDA graph.
StepModel step_model_of(const Case& what);
Case step_case(const StepModel& model, const std::string& launch, double weight = 1.0);

/// Loss (mean over tokens) and the gradients of all weights of one step, in double precision.
struct StepGradients {
  double loss = 0.0;
  Doubles gradients;
};
StepGradients reference_step(const StepModel& model, const Doubles& weights,
                             const std::vector<int>& tokens, const std::vector<int>& targets);

}  // namespace orrery::calibration
