#include "calibration/gpu/matmul.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "calibration/host/reference.hpp"
#include "calibration/kernels/random_value.hpp"

namespace orrery::calibration {
namespace {

// cuBLAS's recommendation for Hopper and later; more than any earlier GPU needs.
constexpr std::int64_t most_workspace_bytes = 32 << 20;
constexpr int most_choices = 8;

constexpr std::uint64_t a_seed = 11, b_seed = 12, c_seed = 13;

cudaDataType_t data_type(Format format) {
  switch (format) {
    case Format::bf16:
      return CUDA_R_16BF;
    case Format::fp16:
      return CUDA_R_16F;
    case Format::fp32:
      return CUDA_R_32F;
    case Format::e4m3:
      return CUDA_R_8F_E4M3;
    case Format::e5m2:
      return CUDA_R_8F_E5M2;
  }
  return CUDA_R_32F;
}

// Rounds the same way as launch_fill.
double rounded(float value, Format format) {
  switch (format) {
    case Format::bf16:
      return static_cast<float>(__nv_bfloat16(value));
    case Format::fp16:
      return static_cast<float>(__half(value));
    case Format::fp32:
      return value;
    case Format::e4m3:
      return static_cast<float>(__nv_fp8_e4m3(value));
    case Format::e5m2:
      return static_cast<float>(__nv_fp8_e5m2(value));
  }
  return value;
}

double value_of(const char* bytes, Format format) {
  if (format == Format::fp32) {
    float value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  if (format == Format::bf16) return from_bf16(bits);
  __half_raw raw;
  raw.x = bits;
  return static_cast<float>(__half(raw));
}

float b_scale(const MatmulShape& shape) {
  // fp8 has too few exponents for small numbers: a scale would do what 1 does here.
  return shape.dtype == "fp8" ? 1.0f : 1.0f / std::sqrt(static_cast<float>(shape.k));
}

double element(const MatmulShape& shape, std::int64_t row, std::int64_t column) {
  double sum =
      shape.adds() ? random_value(c_seed, static_cast<std::uint64_t>(row * shape.n + column)) : 0.0;
  for (std::int64_t i = 0; i < shape.k; ++i) {
    const std::int64_t a_at = shape.a_transposed() ? i * shape.m + row : row * shape.k + i;
    const std::int64_t b_at = shape.b_transposed() ? column * shape.k + i : i * shape.n + column;
    sum += rounded(random_value(a_seed, static_cast<std::uint64_t>(a_at)), shape.a_format()) *
           rounded(random_value(b_seed, static_cast<std::uint64_t>(b_at)) * b_scale(shape),
                   shape.b_format());
  }
  return sum;
}

// Rows or columns worth a look: both ends, the borders of tiles near them, and some in between.
std::vector<std::int64_t> samples(std::int64_t count, std::uint64_t seed) {
  std::set<std::int64_t> chosen;
  for (const std::int64_t i :
       {std::int64_t{0}, std::int64_t{63}, std::int64_t{64}, count / 2, count - 2, count - 1})
    chosen.insert(std::clamp<std::int64_t>(i, 0, count - 1));
  for (std::uint64_t i = 0; i < 6; ++i)
    chosen.insert(static_cast<std::int64_t>((random_value(seed, i) + 3.5) / 7.0 *
                                            static_cast<double>(count)));
  return {chosen.begin(), chosen.end()};
}

template <class T>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value));
}

}  // namespace

Cublas::Cublas() : workspace_{most_workspace_bytes} { CUBLAS_CHECK(cublasLtCreate(&handle_)); }
Cublas::~Cublas() { cublasLtDestroy(handle_); }

Format MatmulShape::a_format() const {
  if (dtype == "fp8") return pass == Pass::forward ? Format::e4m3 : Format::e5m2;
  return dtype == "bf16" ? Format::bf16 : dtype == "fp16" ? Format::fp16 : Format::fp32;
}
Format MatmulShape::b_format() const { return dtype == "fp8" ? Format::e4m3 : a_format(); }
Format MatmulShape::c_format() const {
  if (pass == Pass::wgrad) return Format::fp32;
  return dtype == "fp8" ? Format::bf16 : a_format();
}

MatmulShape::Pass pass_named(const std::string& name) {
  return name == "forward" ? MatmulShape::Pass::forward
         : name == "dgrad" ? MatmulShape::Pass::dgrad
                           : MatmulShape::Pass::wgrad;
}

// cuBLAS thinks in columns: a row-major C[m,n] is its column-major [n,m], the product of B^T, which
// comes first, and A^T. What lies row-major [x,y] is column-major [y,x].
Matmul::Matmul(const Cublas& cublas, const MatmulShape& shape) : cublas_{cublas}, shape_{shape} {
  const cublasOperation_t left_op = shape.b_transposed() ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t right_op = shape.a_transposed() ? CUBLAS_OP_T : CUBLAS_OP_N;
  CUBLAS_CHECK(cublasLtMatmulDescCreate(
      &operation_, shape.dtype == "tf32" ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
      CUDA_R_32F));
  set(operation_, CUBLASLT_MATMUL_DESC_TRANSA, left_op);
  set(operation_, CUBLASLT_MATMUL_DESC_TRANSB, right_op);
  if (shape.dtype == "fp8") {
    one_ = DeviceArray<float>{std::vector<float>{1.0f}};
    const void* const scale = one_.data();
    set(operation_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scale);
    set(operation_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scale);
    const std::int8_t fast = shape.pass == MatmulShape::Pass::forward;
    set(operation_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, fast);
  }
  const auto layout = [](cublasLtMatrixLayout_t* made, Format format, std::int64_t rows,
                         std::int64_t columns) {
    CUBLAS_CHECK(cublasLtMatrixLayoutCreate(made, data_type(format),
                                            static_cast<std::uint64_t>(rows),
                                            static_cast<std::uint64_t>(columns), rows));
  };
  if (shape.b_transposed())
    layout(&left_, shape.b_format(), shape.k, shape.n);
  else
    layout(&left_, shape.b_format(), shape.n, shape.k);
  if (shape.a_transposed())
    layout(&right_, shape.a_format(), shape.m, shape.k);
  else
    layout(&right_, shape.a_format(), shape.k, shape.m);
  layout(&out_, shape.c_format(), shape.n, shape.m);

  cublasLtMatmulPreference_t preference = nullptr;
  CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&preference));
  const std::size_t bytes = cublas.workspace_bytes();
  CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes));
  cublasLtMatmulHeuristicResult_t found[most_choices];
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(cublas.handle(), operation_, left_, right_, out_, out_,
                                     preference, most_choices, found, &count);
  cublasLtMatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE)
    CUBLAS_CHECK(status);
  for (int i = 0; i < count; ++i)
    if (found[i].state == CUBLAS_STATUS_SUCCESS) algorithms_.push_back(found[i].algo);
  if (algorithms_.empty())
    throw Unsupported{"cublasLt has no algorithm for this format and shape on this GPU"};
}

Matmul::~Matmul() {
  cublasLtMatrixLayoutDestroy(left_);
  cublasLtMatrixLayoutDestroy(right_);
  cublasLtMatrixLayoutDestroy(out_);
  cublasLtMatmulDescDestroy(operation_);
}

void Matmul::run(const void* a, const void* b, void* c, cudaStream_t stream) const {
  const float alpha = 1.0f, beta = shape_.adds() ? 1.0f : 0.0f;
  CUBLAS_CHECK(cublasLtMatmul(cublas_.handle(), operation_, &alpha, b, left_, a, right_, &beta, c,
                              out_, c, out_, &algorithms_[static_cast<std::size_t>(choice_)],
                              cublas_.workspace(), cublas_.workspace_bytes(), stream));
}

MatmulOperands::MatmulOperands(const MatmulShape& shape)
    : a{shape.m * shape.k * bytes_of(shape.a_format())},
      b{shape.k * shape.n * bytes_of(shape.b_format())},
      c{shape.m * shape.n * bytes_of(shape.c_format())} {
  CUDA_CHECK(launch_fill(a.data(), shape.a_format(), shape.m * shape.k, a_seed, 1.0f, nullptr));
  CUDA_CHECK(
      launch_fill(b.data(), shape.b_format(), shape.k * shape.n, b_seed, b_scale(shape), nullptr));
  if (shape.adds())  // Numbers to add to: adding to poison would toggle no wires.
    CUDA_CHECK(launch_fill(c.data(), shape.c_format(), shape.m * shape.n, c_seed, 1.0f, nullptr));
  CUDA_CHECK(cudaDeviceSynchronize());
}

double matmul_error(const Matmul& matmul, MatmulOperands& operands, cudaStream_t stream) {
  const MatmulShape& shape = matmul.shape();
  const Format format = shape.c_format();
  if (shape.adds())
    CUDA_CHECK(launch_fill(operands.c.data(), format, shape.m * shape.n, c_seed, 1.0f, stream));
  else
    CUDA_CHECK(cudaMemsetAsync(operands.c.data(), 0xff, operands.c.bytes(), stream));
  matmul.run(operands.a.data(), operands.b.data(), operands.c.data(), stream);
  DeviceArray<unsigned long long> broken{1};
  CUDA_CHECK(cudaMemsetAsync(broken.data(), 0, broken.bytes(), stream));
  CUDA_CHECK(
      launch_count_not_finite(operands.c.data(), format, shape.m * shape.n, broken.data(), stream));
  if (broken.to_host()[0] != 0)
    throw DeviceError{std::to_string(broken.to_host()[0]) +
                      " elements of the product are no numbers"};
  Doubles actual, expected;
  const std::vector<std::int64_t> columns = samples(shape.n, 2);
  for (const std::int64_t row : samples(shape.m, 1))
    for (const std::int64_t column : columns) {
      const std::int64_t at = (row * shape.n + column) * bytes_of(format);
      actual.push_back(value_of(operands.c.to_host(at, bytes_of(format)).data(), format));
      expected.push_back(element(shape, row, column));
    }
  return relative_error(actual, expected);
}

// Rounding errors: bf16's output by 2^-9, fp16's by 2^-12, a few times if the sum is split and its
// parts are kept in that format; tf32's operands by 2^-10 each at most. fp8 operands are exact
// here, but Hopper's units keep 14 bits of a sum (DeepSeek-V3, arXiv 2412.19437, 3.3.2): summing
// fast, each of the k / 32 steps may cut off up to 2^-14 of it, always towards the same side; else
// only what is summed between two steps in fp32. Wrong results are off by a tenth and more: one
// wrong element of the 144 that are compared makes 0.1.
double matmul_tolerance(const MatmulShape& shape) {
  if (shape.dtype != "fp8") return shape.dtype == "bf16" ? 1e-2 : 2e-3;
  const double steps =
      shape.pass == MatmulShape::Pass::forward ? static_cast<double>(shape.k) / 32.0 : 4.0;
  return std::min(1e-2 + steps * 0x1p-14, 8e-2);
}

}  // namespace orrery::calibration
