#include <chrono>
#include <cmath>
#include <cstdio>

#include "calibration/gpu/training_step.hpp"

namespace orrery::calibration {
namespace {

// bf16 keeps 8 bits; some twenty roundings on the way of a gradient, 2^-9 each, add up like
// independent errors to about 1 %.
constexpr double loss_tolerance = 5e-3, gradient_tolerance = 5e-2;

struct Verified {
  double loss_error = 0.0, gradient_error = 0.0;
  std::string worst;
};

// Loss and every gradient of a tiny model, then that the loss falls while it learns.
Verified verify(const Lab& lab, int head_dim, cudaStream_t stream) {
  StepModel tiny;
  tiny.layers = 2, tiny.hidden = 2 * head_dim, tiny.ffn = 192, tiny.heads = 2, tiny.kv_heads = 1;
  tiny.vocab = 256, tiny.sequence = 128, tiny.batch = 2;
  TrainingStep step{tiny, lab};
  step.forward(stream);
  step.backward(stream);
  CUDA_CHECK(cudaStreamSynchronize(stream));
  const StepGradients right =
      reference_step(tiny, step.initial_weights(), step.tokens(), step.targets());
  const std::vector<float> gradients = step.gradients();
  Verified verified;
  verified.loss_error = std::abs(step.loss() / right.loss - 1.0);
  for (const StepModel::Tensor& tensor : tiny.tensors()) {
    const auto from = tensor.at, to = tensor.at + tensor.count();
    const double error =
        relative_error({gradients.begin() + from, gradients.begin() + to},
                       {right.gradients.begin() + from, right.gradients.begin() + to});
    if (error >= verified.gradient_error) {
      verified.gradient_error = error;
      verified.worst = tensor.name;
    }
  }
  require_right(verified.loss_error, loss_tolerance);
  require_right(verified.gradient_error, gradient_tolerance);
  const double before = step.loss();
  for (int i = 0; i < 5; ++i) {
    step.optimize(stream);
    step.forward(stream);
    step.backward(stream);
  }
  CUDA_CHECK(cudaStreamSynchronize(stream));
  if (!(step.loss() < before)) throw DeviceError{"wrong result: the loss does not fall"};
  return verified;
}

}  // namespace

int run_step(const StepModel& model, Lab& lab) {
  const cudaStream_t stream = lab.stopwatch.stream();
  const Verified verified = verify(lab, model.head_dim() == 64 ? 64 : 128, stream);
  std::printf("verified  loss within %.1g, gradients within %.1g (%s) of double precision\n",
              verified.loss_error, verified.gradient_error, verified.worst.c_str());
  std::fflush(stdout);

  TrainingStep step{model, lab};
  Event borders[4];
  // A step at a time, with the host ahead by one: it waits for the step before.
  const auto once = [&] {
    borders[0].record(stream);
    step.forward(stream);
    borders[1].record(stream);
    step.backward(stream);
    borders[2].record(stream);
    step.optimize(stream);
    borders[3].record(stream);
    CUDA_CHECK(cudaStreamSynchronize(stream));
  };
  for (int i = 0; i < 3; ++i) once();
  StoppingLimits limits;
  limits.time_s = 20.0;
  StoppingRule rule{limits};
  std::vector<double> forward_us, backward_us, optimizer_us;
  const auto began = std::chrono::steady_clock::now();
  for (Stopped why = Stopped::not_yet; why == Stopped::not_yet;) {
    once();
    forward_us.push_back(elapsed_us(borders[0], borders[1]));
    backward_us.push_back(elapsed_us(borders[1], borders[2]));
    optimizer_us.push_back(elapsed_us(borders[2], borders[3]));
    rule.add(elapsed_us(borders[0], borders[3]));
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - began;
    why = rule.look(spent.count());
  }
  const TimingSummary time = rule.summary();
  const double seconds = 1e-6 * time.median_us;
  std::printf("%s, %d layers of %d, %lld parameters, %d x %d tokens\n", lab.machine.gpu.c_str(),
              model.layers, model.hidden, static_cast<long long>(model.parameters()), model.batch,
              model.sequence);
  std::printf("step       %10.3f ms  (%.3f to %.3f, median known to %.2f %%, %d steps)\n",
              1e-3 * time.median_us, 1e-3 * time.p10_us, 1e-3 * time.p90_us, 100.0 * time.noise,
              time.samples);
  std::printf("forward    %10.3f ms\n", 1e-3 * summarize(forward_us).median_us);
  std::printf("backward   %10.3f ms\n", 1e-3 * summarize(backward_us).median_us);
  std::printf("optimizer  %10.3f ms\n", 1e-3 * summarize(optimizer_us).median_us);
  std::printf("tokens     %10.0f /s\n", static_cast<double>(model.tokens()) / seconds);
  std::printf("model      %10.1f TFLOP/s (causal half)\n", 1e-12 * model.flop() / seconds);
  std::printf("loss       %10.4f\n", step.loss());
  return 0;
}

}  // namespace orrery::calibration
