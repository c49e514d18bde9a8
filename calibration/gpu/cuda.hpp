#pragma once

// CUDA with errors that are exceptions and with owners for what must be given back.

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace orrery::calibration {

/// A call that failed, where, and in the library's words.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An ability that this GPU lacks: a case is skipped for it, not failed.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The GPU no longer answers this process, as after a kernel's illegal access: nothing can be
/// measured any more, and only another process can go on.
class DeviceLost : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// Waits for all work of the device. Errors: DeviceLost.
void require_alive();

/// Errors: Unsupported where memory is short, else DeviceError.
void check_cuda(cudaError_t error, const char* call, const char* file, int line);
void check_cublas(cublasStatus_t status, const char* call, const char* file, int line);

#define CUDA_CHECK(call) ::orrery::calibration::check_cuda((call), #call, __FILE__, __LINE__)
#define CUBLAS_CHECK(call) ::orrery::calibration::check_cublas((call), #call, __FILE__, __LINE__)

/// Memory of the current GPU, of `count` elements, poisoned with 0xff: unwritten elements are NaN.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(std::int64_t count) : count_{count} {
    CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&data_), bytes()));
    fill_bytes(0xff);
  }
  explicit DeviceArray(const std::vector<T>& values)
      : DeviceArray(static_cast<std::int64_t>(values.size())) {
    CUDA_CHECK(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  ~DeviceArray() { cudaFree(data_); }  // An error here is an earlier one's echo.
  DeviceArray(DeviceArray&& other) noexcept { swap(other); }
  DeviceArray& operator=(DeviceArray&& other) noexcept { return swap(other), *this; }

  T* data() const { return data_; }
  std::int64_t count() const { return count_; }
  std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(T); }
  void set_zero() { fill_bytes(0); }

  /// After all work of the device.
  std::vector<T> to_host(std::int64_t from, std::int64_t count) const {
    CUDA_CHECK(cudaDeviceSynchronize());
    std::vector<T> values(static_cast<std::size_t>(count));
    CUDA_CHECK(
        cudaMemcpy(values.data(), data_ + from, values.size() * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }
  std::vector<T> to_host() const { return to_host(0, count_); }

 private:
  // Our streams do not wait for the default one, so all that happens there is waited for.
  void fill_bytes(int value) {
    CUDA_CHECK(cudaMemset(data_, value, bytes()));
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  void swap(DeviceArray& other) {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
  }
  T* data_ = nullptr;
  std::int64_t count_ = 0;
};

class Stream {
 public:
  Stream() { CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { CUDA_CHECK(cudaEventCreate(&event_)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }
  void record(cudaStream_t stream) { CUDA_CHECK(cudaEventRecord(event_, stream)); }

 private:
  cudaEvent_t event_ = nullptr;
};

/// The time between two events that have both happened.
double elapsed_us(const Event& from, const Event& to);

}  // namespace orrery::calibration
