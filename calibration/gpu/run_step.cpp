#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "calibration/gpu/graph.hpp"
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
  const StepGradients right = reference_step(tiny, step.weights(), step.tokens(), step.targets());
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

// A kernel that is wrong is wrong for every model of its head dimension.
const Verified& verified_once(const Lab& lab, int head_dim) {
  static std::map<int, Verified> known;
  const int dim = head_dim == 64 ? 64 : 128;
  const auto found = known.find(dim);
  if (found != known.end()) return found->second;
  return known[dim] = verify(lab, dim, lab.stopwatch.stream());
}

using Pass = std::function<void(cudaStream_t)>;
constexpr int passes = 3;  // Forward, backward, optimizer.

double median_us(const std::vector<double>& times_us) { return summarize(times_us).median_us; }

// Host time to enqueue each pass while the GPU is held up, so that it waits for nothing; nothing if
// the GPU's queue was too short for them.
std::optional<std::array<double, passes>> host_us(const std::array<Pass, passes>& step,
                                                  const std::function<void()>& after_each,
                                                  cudaStream_t stream) {
  constexpr int tries = 9;
  constexpr std::int64_t held_ns = 50'000'000;
  std::array<std::vector<double>, passes> times_us;
  Event released;
  for (int i = 0; i < tries; ++i) {
    CUDA_CHECK(launch_delay(held_ns, stream));
    released.record(stream);
    for (int pass = 0; pass < passes; ++pass) {
      const auto began = std::chrono::steady_clock::now();
      step[static_cast<std::size_t>(pass)](stream);
      const std::chrono::duration<double, std::micro> spent =
          std::chrono::steady_clock::now() - began;
      times_us[static_cast<std::size_t>(pass)].push_back(spent.count());
    }
    const cudaError_t state = cudaEventQuery(released);
    cudaGetLastError();
    CUDA_CHECK(cudaStreamSynchronize(stream));
    if (state != cudaErrorNotReady) return std::nullopt;
    after_each();
  }
  return std::array{median_us(times_us[0]), median_us(times_us[1]), median_us(times_us[2])};
}

}  // namespace

// Adam's step number, and with it its two corrections, stay those of the capture in a graph: the
// work is the same.
Measurement measure_training_step(const Case& what, const StoppingLimits& limits, Lab& lab) {
  const StepModel model = step_model_of(what);
  const bool in_graphs = what.choice("launch") == "graph";
  const cudaStream_t stream = lab.stopwatch.stream();
  TrainingStep training{model, lab};
  const Verified& verified = verified_once(lab, model.head_dim());
  const std::array<Pass, passes> eager{[&](cudaStream_t s) { training.forward(s); },
                                       [&](cudaStream_t s) { training.backward(s); },
                                       [&](cudaStream_t s) { training.optimize(s); }};
  for (const Pass& pass : eager) pass(stream);  // Loads what capturing must not meet.
  CUDA_CHECK(cudaStreamSynchronize(stream));
  std::vector<std::unique_ptr<Graph>> graphs;
  std::size_t launches = 0;
  for (const Pass& pass : eager) {
    graphs.push_back(std::make_unique<Graph>(pass, stream));
    launches += graphs.back()->nodes();
  }
  const std::array<Pass, passes> captured{[&](cudaStream_t s) { graphs[0]->launch(s); },
                                          [&](cudaStream_t s) { graphs[1]->launch(s); },
                                          [&](cudaStream_t s) { graphs[2]->launch(s); }};
  const std::array<Pass, passes>& step = in_graphs ? captured : eager;

  Event borders[passes + 1];
  std::array<std::vector<double>, passes> times_us;
  // A step at a time, as a loop that looks at its loss does.
  const auto once = [&] {
    borders[0].record(stream);
    for (int pass = 0; pass < passes; ++pass) {
      step[static_cast<std::size_t>(pass)](stream);
      borders[pass + 1].record(stream);
    }
    CUDA_CHECK(cudaStreamSynchronize(stream));
    for (int pass = 0; pass < passes; ++pass)
      times_us[static_cast<std::size_t>(pass)].push_back(
          elapsed_us(borders[pass], borders[pass + 1]));
    return elapsed_us(borders[0], borders[passes]);
  };
  for (int i = 0; i < 3; ++i) once();
  for (std::vector<double>& times : times_us) times.clear();
  Measurement one;
  one.what = what;
  StoppingRule rule{limits};
  const auto began = std::chrono::steady_clock::now();
  while (one.stopped == Stopped::not_yet) {
    rule.add(once());
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - began;
    one.stopped = rule.look(spent.count());
  }
  one.warm = rule.summary();
  one.relative_error = std::max(verified.loss_error, verified.gradient_error);
  one.implementation = "cublasLt, first choice, and orrery kernels";
  const double seconds = 1e-6 * one.warm->median_us;
  one.figures = {{"forward_us", median_us(times_us[0])},
                 {"backward_us", median_us(times_us[1])},
                 {"optimizer_us", median_us(times_us[2])},
                 {"launches_count", static_cast<double>(launches)},
                 {"parameters_count", static_cast<double>(model.parameters())},
                 {"work_flop", model.flop()},
                 {"warm_flop_per_s", model.flop() / seconds}};
  std::vector<double> layers_us;
  if (const auto host = host_us(
          step, [&] { layers_us.push_back(training.host_layers_us() / model.layers); }, stream)) {
    one.figures["host_forward_us"] = (*host)[0];
    one.figures["host_backward_us"] = (*host)[1];
    one.figures["host_optimizer_us"] = (*host)[2];
    if (!in_graphs) one.figures["host_layer_us"] = median_us(layers_us);
  }
  if (!std::isfinite(training.loss())) throw DeviceError{"wrong result: the loss is not a number"};
  return one;
}

int run_step(const StepModel& model, Lab& lab) {
  std::printf("%s, %d layers of %d, %lld parameters, %d x %d tokens\n", lab.machine.gpu.c_str(),
              model.layers, model.hidden, static_cast<long long>(model.parameters()), model.batch,
              model.sequence);
  StoppingLimits limits;
  limits.time_s = 20.0;
  std::vector<Measurement> both;
  for (const char* launch : {"eager", "graph"})
    both.push_back(measure_training_step(step_case(model, launch), limits, lab));
  std::printf("verified  loss and gradients within %.1g of double precision (%s)\n",
              *both[0].relative_error, verified_once(lab, model.head_dim()).worst.c_str());
  std::printf("%-18s %12s %12s\n", "", "eager", "in graphs");
  const auto line = [&](const char* what, const char* unit, const auto& value) {
    std::printf("%-18s %12.3f %12.3f %s\n", what, value(both[0]), value(both[1]), unit);
  };
  line("step", "ms", [](const Measurement& one) { return 1e-3 * one.warm->median_us; });
  line("  known to", "%", [](const Measurement& one) { return 100.0 * one.warm->noise; });
  for (const char* name : {"forward_us", "backward_us", "optimizer_us", "host_forward_us",
                           "host_backward_us", "host_optimizer_us", "host_layer_us"})
    if (both[0].figures.count(name))
      line(std::string{name, std::strlen(name) - 3}.c_str(), "ms", [&](const Measurement& one) {
        const auto found = one.figures.find(name);
        return found == one.figures.end() ? 0.0 : 1e-3 * found->second;
      });
  line("launches", "", [](const Measurement& one) { return one.figures.at("launches_count"); });
  line("model", "TFLOP/s (causal half)",
       [](const Measurement& one) { return 1e-12 * one.figures.at("warm_flop_per_s"); });
  return 0;
}

}  // namespace orrery::calibration
