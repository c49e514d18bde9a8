#include "sim/validation/bench_limits.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

constexpr double most_bench_requests = 4096.0, most_bench_tokens = 32768.0;
constexpr double usual_share = 0.9;  // --kv_cache_free_gpu_mem_fraction.

double in_steps_of(double step, double value) { return step * std::ceil(value / step); }

// Bytes of a number in a checkpoint, as it takes them.
std::optional<double> bytes_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::bf16:
    case WeightFormat::fp16:
      return 2.0;
    case WeightFormat::fp8:
    case WeightFormat::fp8_block:
      return 1.0;
    case WeightFormat::nvfp4:
      return 0.5;
    default:
      return std::nullopt;
  }
}

double bytes_of(KvFormat format) {
  return format == KvFormat::fp8 ? 1.0 : format == KvFormat::nvfp4 ? 0.5 : 2.0;
}

// Numbers in a checkpoint: of nvfp4 two weights are one, and 16 of them have a scale.
double numbers(const Model& model, WeightFormat format) {
  const ParameterCount all = count_parameters(model);
  const auto whole = static_cast<double>(all.embedding + all.head + all.final_norm);
  const double layers = static_cast<double>(all.total) - whole;
  return whole + layers * (format == WeightFormat::nvfp4 ? 0.5 + 1.0 / 16.0 : 1.0);
}

}  // namespace

std::optional<BenchLimits> trtllm_bench_limits(const ServingCase& one, std::int64_t input,
                                               std::int64_t output) {
  const DeploymentRequest& plan = one.deployment;
  const Model& model = one.model;
  const WeightFormat weights = plan.weights.value_or(WeightFormat::bf16);
  const WeightFormat format = model.experts ? plan.experts.value_or(weights) : weights;
  const auto each = bytes_of(format);
  if (!each) return std::nullopt;
  const int tp = plan.tp.value_or(1) * plan.dp.value_or(1), pp = plan.pp.value_or(1);
  const auto heads = static_cast<double>(std::max<std::int64_t>(tp, model.kv_heads));
  const auto width =
      static_cast<double>(model.latent ? model.hidden / model.heads : model.head_dim);
  const double a_token =
      2.0 * model.layers * heads * width * bytes_of(plan.kv.value_or(KvFormat::bf16));
  const double memory = read_system(one.system, one.place / "system").gpu.memory.si();
  const double left = memory * tp * pp - numbers(model, format) * *each;
  const auto in = static_cast<double>(input), out = static_cast<double>(output);
  const double cached =
      std::max(1.0, plan.kv_share.value_or(usual_share) * left / (a_token * (in + out)));
  const double requests = std::min(cached, most_bench_requests) / pp;
  const double tokens = std::min(requests * (1.0 + in / out), most_bench_tokens);

  const double most = requests < 256    ? std::max(64.0, in_steps_of(32, requests))
                      : requests < 1024 ? in_steps_of(128, requests)
                                        : in_steps_of(256, requests);
  const double budget = tokens < 4096   ? std::max(2048.0, in_steps_of(256, tokens))
                        : tokens < 8192 ? in_steps_of(512, tokens)
                                        : in_steps_of(1024, tokens);
  // Prompts are not cut, so that the longest one needs a place.
  return BenchLimits{std::llround(std::max(budget, in + most)), std::llround(most)};
}

}  // namespace orrery
