#pragma once

#include <functional>

#include "calibration/gpu/cuda.hpp"

namespace orrery::calibration {

/// Work recorded once and launched as one: what the host then takes no longer depends on how many
/// kernels it holds.
class Graph {
 public:
  Graph(const std::function<void(cudaStream_t)>& work, cudaStream_t stream) {
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    try {
      work(stream);
    } catch (...) {
      cudaGraph_t broken = nullptr;
      cudaStreamEndCapture(stream, &broken);
      if (broken) cudaGraphDestroy(broken);
      cudaGetLastError();
      throw;
    }
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    const cudaError_t counted = cudaGraphGetNodes(graph, nullptr, &nodes_);
    const cudaError_t error = cudaGraphInstantiate(&runnable_, graph, 0);
    cudaGraphDestroy(graph);
    CUDA_CHECK(counted);
    CUDA_CHECK(error);
  }
  ~Graph() { cudaGraphExecDestroy(runnable_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch(cudaStream_t stream) const { CUDA_CHECK(cudaGraphLaunch(runnable_, stream)); }
  /// Kernels, copies and fills.
  std::size_t nodes() const { return nodes_; }

 private:
  cudaGraphExec_t runnable_ = nullptr;
  std::size_t nodes_ = 0;
};

}  // namespace orrery::calibration
