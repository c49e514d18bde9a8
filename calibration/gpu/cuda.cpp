#include "calibration/gpu/cuda.hpp"

namespace orrery::calibration {

void check_cuda(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // Errors that do not last are not to be reported twice.
  if (error == cudaErrorMemoryAllocation)
    throw Unsupported{"too little memory on this GPU or host for it"};
  throw DeviceError{std::string{call} + ": " + cudaGetErrorString(error) + " (" +
                    cudaGetErrorName(error) + ", " + file + ":" + std::to_string(line) + ")"};
}

void require_alive() {
  const cudaError_t error = cudaDeviceSynchronize();
  if (error == cudaSuccess) return;
  throw DeviceLost{std::string{"the GPU no longer answers: "} + cudaGetErrorString(error) + " (" +
                   cudaGetErrorName(error) + ")"};
}

void check_cublas(cublasStatus_t status, const char* call, const char* file, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError{std::string{call} + ": " + cublasLtGetStatusString(status) + " (" +
                    cublasLtGetStatusName(status) + ", " + file + ":" + std::to_string(line) + ")"};
}

double elapsed_us(const Event& from, const Event& to) {
  float ms = 0.0f;
  CUDA_CHECK(cudaEventElapsedTime(&ms, from, to));
  return 1e3 * static_cast<double>(ms);
}

}  // namespace orrery::calibration
