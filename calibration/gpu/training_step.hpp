#pragma once

#include <map>
#include <memory>

#include "calibration/gpu/lab.hpp"
#include "calibration/host/step_model.hpp"

namespace orrery::calibration {

/// One GPU's training step of a small decoder, with everything that a real one does: forward,
/// backward and Adam, bf16 with fp32 master weights and gradients. Products are cuBLASLt's first
/// choice, as frameworks take it; the rest is our own kernels.
class TrainingStep {
 public:
  /// Weights are random, of variance 1 / width; tokens and targets too. Errors: DeviceError where
  /// the memory does not suffice; Unsupported for shapes that the kernels do not have.
  TrainingStep(const StepModel& model, const Lab& lab);
  ~TrainingStep();

  void forward(cudaStream_t stream);
  void backward(cudaStream_t stream);
  void optimize(cudaStream_t stream);
  /// Host time that the last forward and backward pass took to hand over their layers, without
  /// embedding and head.
  double host_layers_us() const;

  /// Loss of the last forward pass, averaged over tokens; gradients of the last backward pass.
  double loss() const;
  std::vector<float> gradients() const;
  /// The weights as products read them: bf16.
  Doubles weights() const;
  const std::vector<int>& tokens() const;
  const std::vector<int>& targets() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// orrery-gpu step: measures the step of `model`, launched one by one and in graphs, and prints
/// what it takes. Returns an exit code.
int run_step(const StepModel& model, Lab& lab);

}  // namespace orrery::calibration
