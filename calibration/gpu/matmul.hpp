#pragma once

#include <functional>
#include <memory>
#include <string>

#include "calibration/gpu/cuda.hpp"
#include "calibration/kernels/launch.hpp"

namespace orrery::calibration {

/// cuBLASLt's handle and its workspace, one for each stream that runs products at the same time.
class Cublas {
 public:
  Cublas();
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;
  cublasLtHandle_t handle() const { return handle_; }
  void* workspace() const { return workspace_.data(); }
  std::size_t workspace_bytes() const { return workspace_.bytes(); }

 private:
  cublasLtHandle_t handle_ = nullptr;
  DeviceArray<char> workspace_;
};

/// One product of a linear layer, C[m,n] = A[m,k] B[k,n], all row-major, laid out as a training
/// step has its operands: with X[T,in] inputs, W[out,in] weights, dY[T,out] output gradients
///   forward  Y = X W^T     A is X,    B lies transposed (W),      C in 16 bits (tf32: 32)
///   dgrad    dX = dY W     A is dY,   B lies as it is (W),        C as above
///   wgrad    dW += dY^T X  A lies transposed (dY), B as it is (X), C in fp32, added to
/// fp8 has A as it is and B transposed in every pass, as Hopper's units want it and training
/// libraries keep transposed copies for; forward e4m3 x e4m3, gradients e5m2 x e4m3; scales are 1.
/// Forward sums fast (in the units' own precision), gradients do not: Transformer Engine's default.
struct MatmulShape {
  enum class Pass { forward, dgrad, wgrad };
  Pass pass = Pass::forward;
  std::int64_t m = 0, n = 0, k = 0;
  std::string dtype = "bf16";

  Format a_format() const;
  Format b_format() const;
  Format c_format() const;
  bool a_transposed() const { return pass == Pass::wgrad && dtype != "fp8"; }
  bool b_transposed() const { return pass == Pass::forward || dtype == "fp8"; }
  bool adds() const { return pass == Pass::wgrad; }
};
MatmulShape::Pass pass_named(const std::string& name);

/// A way to do it.
class Matmul {
 public:
  /// Errors: Unsupported, where the library has no algorithm.
  Matmul(const Cublas& cublas, const MatmulShape& shape);
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  /// The number of algorithms that the library proposes, its favourite first.
  int choices() const { return static_cast<int>(algorithms_.size()); }
  int choice() const { return choice_; }
  void choose(int choice) { choice_ = choice; }
  void run(const void* a, const void* b, void* c, cudaStream_t stream) const;
  const MatmulShape& shape() const { return shape_; }

 private:
  const Cublas& cublas_;
  MatmulShape shape_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t left_ = nullptr, right_ = nullptr, out_ = nullptr;
  DeviceArray<float> one_;  // fp8's scale.
  std::vector<cublasLtMatmulAlgo_t> algorithms_;
  int choice_ = 0;
};

/// Operands of a product, filled with random values; A and C have variance 1, B 1/k.
struct MatmulOperands {
  explicit MatmulOperands(const MatmulShape& shape);
  DeviceArray<char> a, b, c;
};

/// Error of a product against double precision at sampled elements of C, corners and borders among
/// them: relative_error() of these. Runs the product once, from poisoned or (wgrad) known C.
/// Errors: DeviceError where an element of C is no number.
double matmul_error(const Matmul& matmul, MatmulOperands& operands, cudaStream_t stream);
/// The largest error that rounding explains for a dtype.
double matmul_tolerance(const MatmulShape& shape);

}  // namespace orrery::calibration
