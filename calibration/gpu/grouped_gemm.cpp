#include <algorithm>
#include <map>
#include <memory>

#include "calibration/gpu/graph.hpp"
#include "calibration/gpu/lab.hpp"
#include "calibration/host/expert_tokens.hpp"

namespace orrery::calibration {
namespace {

constexpr int branches = 4;  // Streams of Transformer Engine's grouped linear layer.

// One expert's product: its own tokens replace the layer's in (tokens, n, k). (m, n, k) are those
// of the whole layer's pass, defined in docs/guides/calibrate.md.
MatmulShape shape_of(const Case& what, std::int64_t tokens) {
  const MatmulShape::Pass pass = pass_named(what.choice("pass"));
  const std::int64_t n = what.size("n"), k = what.size("k");
  const std::string& dtype = what.choice("dtype");
  if (pass == MatmulShape::Pass::forward) return {pass, tokens, n, k, dtype};
  if (pass == MatmulShape::Pass::dgrad) return {pass, tokens, k, n, dtype};
  return {pass, n, k, tokens, dtype};
}

}  // namespace

Measurement measure_grouped_gemm(const Case& what, const StoppingLimits& limits, Lab& lab) {
  const std::vector<std::int64_t> tokens = expert_tokens(
      what.size("tokens"), what.size("experts"), what.choice("tokens_by_expert") == "skewed");
  // Products that run at the same time need a workspace each.
  std::vector<std::unique_ptr<Cublas>> cublas;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<Event>> joined;
  for (int i = 0; i < branches; ++i) {
    cublas.push_back(std::make_unique<Cublas>());
    streams.push_back(std::make_unique<Stream>());
    joined.push_back(std::make_unique<Event>());
  }
  std::vector<std::unique_ptr<Matmul>> products;
  std::vector<MatmulOperands> operands;
  Measurement one;
  one.what = what;
  one.relative_error = 0.0;
  double flop = 0.0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const MatmulShape shape = shape_of(what, tokens[i]);
    products.push_back(std::make_unique<Matmul>(*cublas[i % branches], shape));
    operands.emplace_back(shape);
    flop += 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
            static_cast<double>(shape.k);
    // Few experts are looked at in full detail; all run the same library on other pointers.
    if (i < 4 || i + 1 == tokens.size()) {
      const double error = matmul_error(*products.back(), operands.back(), lab.stopwatch.stream());
      require_right(error, matmul_tolerance(shape));
      one.relative_error = std::max(*one.relative_error, error);
    }
  }
  Event forked;
  const auto all = [&](cudaStream_t stream) {
    forked.record(stream);
    for (int i = 0; i < branches; ++i) CUDA_CHECK(cudaStreamWaitEvent(*streams[i], forked, 0));
    for (std::size_t i = 0; i < products.size(); ++i)
      products[i]->run(operands[i].a.data(), operands[i].b.data(), operands[i].c.data(),
                       *streams[i % branches]);
    for (int i = 0; i < branches; ++i) {
      joined[i]->record(*streams[i]);
      CUDA_CHECK(cudaStreamWaitEvent(stream, *joined[i], 0));
    }
  };
  all(lab.stopwatch.stream());  // Loads what is loaded lazily, which capturing must not meet.
  CUDA_CHECK(cudaDeviceSynchronize());
  const Graph graph{all, lab.stopwatch.stream()};
  const Stopwatch::Times times =
      lab.stopwatch.time([&](cudaStream_t stream) { graph.launch(stream); }, limits);
  one.cold = times.cold;
  one.warm = times.warm;
  one.stopped = times.stopped;
  one.implementation = "cublasLt, first choice, a product an expert in 4 branches of a graph";
  one.figures = {{"work_flop", flop},
                 {"warm_flop_per_s", flop / (1e-6 * times.warm.median_us)},
                 {"largest_expert_tokens_count",
                  static_cast<double>(*std::max_element(tokens.begin(), tokens.end()))}};
  return one;
}

}  // namespace orrery::calibration
