#ifdef ORRERY_HAVE_NCCL

#include "calibration/gpu/collective.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "calibration/host/reference.hpp"
#include "calibration/kernels/random_value.hpp"

namespace orrery::calibration {
namespace {

// Stream r of the random values is rank r's.
double sent(int rank, std::int64_t i) {
  return random_value(static_cast<std::uint64_t>(1000 + rank), static_cast<std::uint64_t>(i));
}

}  // namespace

// A rank that gives up alone leaves the others in a collective that never ends.
void check_nccl(ncclResult_t result, const char* call, const char* file, int line) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "orrery-gpu: error: %s: %s (%s:%d); %s\n", call, ncclGetErrorString(result),
               file, line, ncclGetLastError(nullptr));
  std::_Exit(1);
}

// fp32. `piece` is what a rank sends to (or gets from) each of the others, or all that it sends.
struct CollectiveRank::Buffers {
  Buffers(const std::string& name, std::int64_t bytes, int rank, int ranks) {
    const bool in_pieces = name != "all_reduce" && name != "send_recv";
    piece = bytes / 4 / (in_pieces ? ranks : 1);
    if (piece == 0) return;
    const bool gathers = name == "all_gather", scatters = name == "reduce_scatter";
    send_count = in_pieces && !gathers ? piece * ranks : piece;
    receive_count = in_pieces && !scatters ? piece * ranks : piece;
    send = DeviceArray<float>{send_count};
    receive = DeviceArray<float>{receive_count};
    CUDA_CHECK(launch_fill(send.data(), Format::fp32, send_count,
                           static_cast<std::uint64_t>(1000 + rank), 1.0f, nullptr));
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  std::int64_t piece = 0, send_count = 0, receive_count = 0;
  DeviceArray<float> send, receive;
};

void CollectiveRank::enqueue(const std::string& name, Buffers& b, cudaStream_t stream) {
  const auto count = static_cast<std::size_t>(b.piece);
  if (name == "all_reduce") {
    NCCL_CHECK(ncclAllReduce(b.send.data(), b.receive.data(), count, ncclFloat, ncclSum,
                             communicator_, stream));
  } else if (name == "all_gather") {
    NCCL_CHECK(
        ncclAllGather(b.send.data(), b.receive.data(), count, ncclFloat, communicator_, stream));
  } else if (name == "reduce_scatter") {
    NCCL_CHECK(ncclReduceScatter(b.send.data(), b.receive.data(), count, ncclFloat, ncclSum,
                                 communicator_, stream));
  } else {
    // Each to each, or each to the next, as nccl-tests has them.
    const bool all = name == "all_to_all";
    NCCL_CHECK(ncclGroupStart());
    for (int i = 0; i < (all ? ranks_ : 1); ++i) {
      const int to = all ? i : (rank_ + 1) % ranks_, from = all ? i : (rank_ + ranks_ - 1) % ranks_;
      const std::int64_t at = all ? i * b.piece : 0;
      NCCL_CHECK(ncclSend(b.send.data() + at, count, ncclFloat, to, communicator_, stream));
      NCCL_CHECK(ncclRecv(b.receive.data() + at, count, ncclFloat, from, communicator_, stream));
    }
    NCCL_CHECK(ncclGroupEnd());
  }
}

// The relative error at sampled places of what arrived.
double CollectiveRank::wrong_share(const std::string& name, Buffers& b) {
  Doubles actual, expected;
  for (int s = 0; s < 64; ++s) {
    const std::int64_t i = s == 63 ? b.receive_count - 1 : b.receive_count / 63 * s;
    actual.push_back(b.receive.to_host(i, 1)[0]);
    double value = 0.0;
    if (name == "all_reduce")
      for (int r = 0; r < ranks_; ++r) value += sent(r, i);
    else if (name == "reduce_scatter")
      for (int r = 0; r < ranks_; ++r) value += sent(r, rank_ * b.piece + i);
    else if (name == "all_gather")
      value = sent(static_cast<int>(i / b.piece), i % b.piece);
    else if (name == "all_to_all")
      value = sent(static_cast<int>(i / b.piece), rank_ * b.piece + i % b.piece);
    else
      value = sent((rank_ + ranks_ - 1) % ranks_, i);
    expected.push_back(value);
  }
  return relative_error(actual, expected);
}

double CollectiveRank::slowest(double value) {
  CUDA_CHECK(
      cudaMemcpyAsync(agreed_.data(), &value, sizeof value, cudaMemcpyHostToDevice, stream_));
  NCCL_CHECK(ncclAllReduce(agreed_.data(), agreed_.data(), 1, ncclDouble, ncclMax, communicator_,
                           stream_));
  CUDA_CHECK(
      cudaMemcpyAsync(&value, agreed_.data(), sizeof value, cudaMemcpyDeviceToHost, stream_));
  CUDA_CHECK(cudaStreamSynchronize(stream_));
  return value;
}

double CollectiveRank::sample_us(const std::string& name, Buffers& buffers, int runs) {
  slowest(0.0);  // All begin together.
  // The host hands over while the GPU waits; that all do takes most of this away again.
  CUDA_CHECK(launch_delay(20'000 + 10'000 * std::int64_t{runs}, stream_));
  before_.record(stream_);
  for (int i = 0; i < runs; ++i) enqueue(name, buffers, stream_);
  after_.record(stream_);
  CUDA_CHECK(cudaStreamSynchronize(stream_));
  return slowest(elapsed_us(before_, after_) / runs);
}

Measurement CollectiveRank::measure(const Case& what, const StoppingLimits& limits) {
  const std::string& name = what.choice("collective");
  std::unique_ptr<Buffers> buffers;
  double lacking = 0.0;
  std::string why;
  try {
    buffers = std::make_unique<Buffers>(name, what.size("bytes"), rank_, ranks_);
  } catch (const DeviceError& error) {
    lacking = 1.0;
    why = error.what();
  }
  if (slowest(lacking) > 0.0)
    throw DeviceError{why.empty() ? "another rank has no memory for it" : why};
  if (buffers->piece == 0) throw Unsupported{"too few bytes for a number from each rank"};

  for (int i = 0; i < 5; ++i) enqueue(name, *buffers, stream_);
  CUDA_CHECK(cudaStreamSynchronize(stream_));
  Measurement one;
  one.what = what;
  one.relative_error = slowest(wrong_share(name, *buffers));
  require_right(*one.relative_error, 1e-5);

  const double once_us = sample_us(name, *buffers, 1);
  const int runs = static_cast<int>(std::clamp(std::ceil(2000.0 / once_us), 1.0, 50.0));
  StoppingRule rule{limits};
  // The samples are the same on all ranks, and so is the time they took.
  for (double spent_s = 0.0; one.stopped == Stopped::not_yet;) {
    const double us = std::max(sample_us(name, *buffers, runs), 1e-3);
    rule.add(us);
    spent_s += 1e-6 * us * runs;
    one.stopped = rule.look(spent_s);
  }
  one.warm = rule.summary();
  one.implementation = "NCCL, fp32, out of place";
  const double algorithm_bytes_per_s =
      static_cast<double>(what.size("bytes")) / (1e-6 * one.warm->median_us);
  one.figures = {{"warm_bytes_per_s", algorithm_bytes_per_s}};
  if (what.kind == "collective_overlap") measure_overlap(what, *buffers, one);
  return one;
}

// Products while collectives go on, then collectives while products go on. What goes on is given
// four times the time of what is measured, on every rank; if that did not last, more.
void CollectiveRank::measure_overlap(const Case& what, Buffers& buffers, Measurement& one) {
  const std::string& name = what.choice("collective");
  const Cublas cublas;
  const MatmulShape shape{MatmulShape::Pass::forward, what.size("m"), what.size("n"),
                          what.size("k"), "bf16"};
  const Matmul matmul{cublas, shape};
  MatmulOperands operands{shape};
  Stream other;
  require_right(slowest(matmul_error(matmul, operands, stream_)), matmul_tolerance(shape));
  const auto product = [&](cudaStream_t stream) {
    matmul.run(operands.a.data(), operands.b.data(), operands.c.data(), stream);
  };
  const double collective_us = one.warm->median_us;
  const auto products_us = [&](int count) {
    before_.record(stream_);
    for (int i = 0; i < count; ++i) product(stream_);
    after_.record(stream_);
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    return elapsed_us(before_, after_) / count;
  };
  products_us(5);
  const double product_us = slowest(products_us(20));

  const auto overlapped = [&](bool measures_products) {
    const double own_us = measures_products ? product_us : collective_us;
    const double other_us = measures_products ? collective_us : product_us;
    const int runs = static_cast<int>(std::clamp(5000.0 / own_us, 3.0, 50.0));
    for (double longer = 4.0; longer < 100.0; longer *= 2.0) {
      const int companions =
          static_cast<int>(std::clamp(longer * runs * own_us / other_us, 3.0, 400.0));
      slowest(0.0);
      for (int i = 0; i < companions; ++i)
        measures_products ? enqueue(name, buffers, other) : product(other);
      CUDA_CHECK(launch_delay(300'000, stream_));
      before_.record(stream_);
      for (int i = 0; i < runs; ++i)
        measures_products ? product(stream_) : enqueue(name, buffers, stream_);
      after_.record(stream_);
      Event ended;
      ended.record(other);
      CUDA_CHECK(cudaStreamSynchronize(stream_));
      CUDA_CHECK(cudaStreamSynchronize(other));
      const double left_us = elapsed_us(after_, ended);
      const double us = elapsed_us(before_, after_) / runs;
      if (slowest(left_us > 0.0 ? 0.0 : 1.0) == 0.0) return slowest(us);
    }
    throw DeviceError{"what should go on beside could not be made to last"};
  };
  std::vector<double> products, collectives;
  for (int i = 0; i < 9; ++i) products.push_back(overlapped(true));
  for (int i = 0; i < 9; ++i) collectives.push_back(overlapped(false));
  one.figures["product_alone_us"] = product_us;
  one.figures["product_beside_us"] = summarize(products).median_us;
  one.figures["product_slowdown_ratio"] = summarize(products).median_us / product_us;
  one.figures["collective_beside_us"] = summarize(collectives).median_us;
  one.figures["collective_slowdown_ratio"] = summarize(collectives).median_us / collective_us;
}

}  // namespace orrery::calibration

#endif
