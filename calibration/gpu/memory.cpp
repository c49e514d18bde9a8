#include <algorithm>
#include <functional>
#include <numeric>

#include "calibration/gpu/lab.hpp"
#include "calibration/host/reference.hpp"
#include "calibration/kernels/random_value.hpp"

namespace orrery::calibration {
namespace {

using Bits = DeviceArray<std::uint16_t>;

constexpr int head_dim = 128;     // Used by rope.
constexpr double epsilon = 1e-5;  // norm_epsilon of the kernels.
constexpr double bf16_error = 6e-3, fp32_error = 1e-4;

// One streaming kernel with its operands. `error` compares rows of what the last run left, by its
// own tolerance: over 1 is wrong.
struct Work {
  std::function<void(cudaStream_t)> run;
  std::function<double(const std::vector<std::int64_t>& rows)> error;
  double bytes = 0.0;  ///< Bytes read and written, each once; a second pass counts again.
  double tolerance = bf16_error;
};

std::shared_ptr<Bits> random(std::uint64_t seed, std::int64_t count) {
  auto array = std::make_shared<Bits>(count);
  CUDA_CHECK(launch_fill(array->data(), Format::bf16, count, seed, 1.0f, nullptr));
  CUDA_CHECK(cudaDeviceSynchronize());
  return array;
}

std::shared_ptr<DeviceArray<float>> random_floats(std::uint64_t seed, std::int64_t count) {
  auto array = std::make_shared<DeviceArray<float>>(count);
  CUDA_CHECK(launch_fill(array->data(), Format::fp32, count, seed, 1.0f, nullptr));
  CUDA_CHECK(cudaDeviceSynchronize());
  return array;
}

Doubles row_of(const Bits& array, std::int64_t row, std::int64_t width) {
  Doubles values;
  for (const std::uint16_t bits : array.to_host(row * width, width))
    values.push_back(from_bf16(bits));
  return values;
}

Doubles row_of(const DeviceArray<float>& array, std::int64_t row, std::int64_t width) {
  const std::vector<float> values = array.to_host(row * width, width);
  return {values.begin(), values.end()};
}

// The error of rows that are a function of their number alone.
template <class Actual, class Expected>
double rows_error(const std::vector<std::int64_t>& rows, Actual actual, Expected expected) {
  Doubles all, right;
  for (const std::int64_t row : rows) {
    const Doubles got = actual(row), should = expected(row);
    all.insert(all.end(), got.begin(), got.end());
    right.insert(right.end(), should.begin(), should.end());
  }
  return relative_error(all, right);
}

Work copy_work(std::int64_t rows, std::int64_t width) {
  const auto x = random(1, rows * width);
  const auto y = std::make_shared<Bits>(rows * width);
  return {
      [=](cudaStream_t s) { CUDA_CHECK(launch_copy(x->data(), y->data(), 2 * rows * width, s)); },
      [=](const auto& some) {
        return rows_error(
            some, [&](auto r) { return row_of(*y, r, width); },
            [&](auto r) { return row_of(*x, r, width); });
      },
      4.0 * static_cast<double>(rows * width), 0.0};
}

// The exclusive or of everything: runs repeat it, so an odd number of runs is needed to see it.
Work read_work(std::int64_t rows, std::int64_t width) {
  const auto x = random(1, rows * width);
  const auto mixed = std::make_shared<DeviceArray<unsigned>>(1);
  return {[=](cudaStream_t s) {
            CUDA_CHECK(cudaMemsetAsync(mixed->data(), 0, mixed->bytes(), s));
            CUDA_CHECK(launch_read(x->data(), 2 * rows * width, mixed->data(), s));
          },
          [=](const auto&) {
            const std::vector<std::uint16_t> all = x->to_host();
            unsigned expected = 0;
            for (std::size_t i = 0; i < all.size(); i += 2)
              expected ^= all[i] | unsigned{all[i + 1]} << 16;
            return mixed->to_host()[0] == expected ? 0.0 : 1.0;
          },
          2.0 * static_cast<double>(rows * width), 0.0};
}

Work triad_work(std::int64_t rows, std::int64_t width) {
  const auto a = random_floats(1, rows * width), b = random_floats(2, rows * width);
  const auto c = std::make_shared<DeviceArray<float>>(rows * width);
  return {[=](cudaStream_t s) {
            CUDA_CHECK(launch_triad(a->data(), b->data(), c->data(), rows * width, s));
          },
          [=](const auto& some) {
            return rows_error(
                some, [&](auto r) { return row_of(*c, r, width); },
                [&](auto r) {
                  Doubles sum = row_of(*a, r, width);
                  const Doubles other = row_of(*b, r, width);
                  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += 3.0 * other[i];
                  return sum;
                });
          },
          12.0 * static_cast<double>(rows * width), fp32_error};
}

Work rms_norm_work(std::int64_t rows, std::int64_t width) {
  const auto x = random(1, rows * width), gain = random(2, width);
  const auto y = std::make_shared<Bits>(rows * width);
  return {[=](cudaStream_t s) {
            CUDA_CHECK(launch_rms_norm(x->data(), gain->data(), y->data(), rows,
                                       static_cast<int>(width), s));
          },
          [=](const auto& some) {
            const Doubles g = row_of(*gain, 0, width);
            return rows_error(
                some, [&](auto r) { return row_of(*y, r, width); },
                [&](auto r) { return rms_norm_row(row_of(*x, r, width), g, epsilon); });
          },
          4.0 * static_cast<double>(rows * width)};
}

Work rms_norm_backward_work(std::int64_t rows, std::int64_t width) {
  const auto x = random(1, rows * width), gain = random(2, width), dy = random(3, rows * width);
  const auto dx = std::make_shared<Bits>(rows * width);
  const auto dgain = std::make_shared<DeviceArray<float>>(width);
  const auto partial = std::make_shared<DeviceArray<float>>(rms_norm_partials * width);
  return {[=](cudaStream_t s) {
            CUDA_CHECK(launch_rms_norm_backward(x->data(), gain->data(), dy->data(), dx->data(),
                                                dgain->data(), partial->data(), rows,
                                                static_cast<int>(width), s));
          },
          [=](const auto& some) {
            const Doubles g = row_of(*gain, 0, width);
            Doubles expected_dgain(static_cast<std::size_t>(width), 0.0);
            const double error = rows_error(
                some, [&](auto r) { return row_of(*dx, r, width); },
                [&](auto r) {
                  return rms_norm_backward_row(row_of(*x, r, width), g, row_of(*dy, r, width),
                                               epsilon, expected_dgain);
                });
            // The gain's gradient is the sum over all rows.
            if (static_cast<std::int64_t>(some.size()) < rows) return error;
            return std::max(error, relative_error(row_of(*dgain, 0, width), expected_dgain));
          },
          6.0 * static_cast<double>(rows * width)};
}

Work swiglu_work(std::int64_t rows, std::int64_t width) {
  const auto in = random(1, 2 * rows * width);
  const auto out = std::make_shared<Bits>(rows * width);
  return {[=](cudaStream_t s) {
            CUDA_CHECK(launch_swiglu(in->data(), out->data(), rows, static_cast<int>(width), s));
          },
          [=](const auto& some) {
            return rows_error(
                some, [&](auto r) { return row_of(*out, r, width); },
                [&](auto r) { return swiglu_row(row_of(*in, r, 2 * width)); });
          },
          6.0 * static_cast<double>(rows * width)};
}

Work swiglu_backward_work(std::int64_t rows, std::int64_t width) {
  const auto in = random(1, 2 * rows * width), dout = random(2, rows * width);
  const auto din = std::make_shared<Bits>(2 * rows * width);
  return {[=](cudaStream_t s) {
            CUDA_CHECK(launch_swiglu_backward(in->data(), dout->data(), din->data(), rows,
                                              static_cast<int>(width), s));
          },
          [=](const auto& some) {
            return rows_error(
                some, [&](auto r) { return row_of(*din, r, 2 * width); },
                [&](auto r) {
                  return swiglu_backward_row(row_of(*in, r, 2 * width), row_of(*dout, r, width));
                });
          },
          10.0 * static_cast<double>(rows * width)};
}

Work rope_work(std::int64_t rows, std::int64_t width) {
  if (width % head_dim != 0) throw Unsupported{"rope is measured on whole heads of 128"};
  const auto x = random(1, rows * width);
  const auto y = std::make_shared<Bits>(rows * width);
  const int sequence = static_cast<int>(std::min<std::int64_t>(rows, 8192));
  const auto turns = std::make_shared<DeviceArray<float>>(rotation_table(sequence, head_dim));
  return {
      [=](cudaStream_t s) {
        CUDA_CHECK(launch_rotate(x->data(), width, y->data(), width, rows, static_cast<int>(width),
                                 {turns->data(), sequence, head_dim, 1.0f}, s));
      },
      [=](const auto& some) {
        return rows_error(
            some, [&](auto r) { return row_of(*y, r, width); },
            [&](auto r) {
              return rotate_row(row_of(*x, r, width), head_dim, static_cast<double>(r % sequence),
                                1.0);
            });
      },
      4.0 * static_cast<double>(rows * width)};
}

Work cross_entropy_work(std::int64_t rows, std::int64_t width) {
  const auto logits = random(1, rows * width);
  const auto gradient = std::make_shared<Bits>(rows * width);
  const auto loss = std::make_shared<DeviceArray<float>>(rows);
  std::vector<int> chosen;
  for (std::int64_t r = 0; r < rows; ++r) chosen.push_back(static_cast<int>(r * 7919 % width));
  const auto targets = std::make_shared<DeviceArray<int>>(chosen);
  return {
      [=](cudaStream_t s) {
        CUDA_CHECK(launch_cross_entropy(logits->data(), targets->data(), loss->data(),
                                        gradient->data(), rows, static_cast<int>(width), 1.0f, s));
      },
      [=](const auto& some) {
        // The target's own gradient, near -1, would hide what is wrong with all others.
        const auto without_target = [&](Doubles gradients, std::int64_t r) {
          gradients[static_cast<std::size_t>(chosen[static_cast<std::size_t>(r)])] = 0.0;
          return gradients;
        };
        Doubles losses, expected;
        const double error = rows_error(
            some, [&](auto r) { return without_target(row_of(*gradient, r, width), r); },
            [&](auto r) {
              const CrossEntropy right = cross_entropy_row(
                  row_of(*logits, r, width), chosen[static_cast<std::size_t>(r)], 1.0);
              losses.push_back(loss->to_host(r, 1)[0]);
              expected.push_back(right.loss);
              return without_target(right.gradient, r);
            });
        return std::max(error, relative_error(losses, expected));
      },
      // Read for the sum, and again for the gradient.
      6.0 * static_cast<double>(rows * width)};
}

Work permute_work(std::int64_t rows, std::int64_t width) {
  const auto x = random(1, rows * width);
  const auto y = std::make_shared<Bits>(rows * width);
  std::vector<int> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [](int a, int b) {  // Shuffled, always alike.
    const float u = random_value(9, static_cast<std::uint64_t>(a));
    const float v = random_value(9, static_cast<std::uint64_t>(b));
    return u != v ? u < v : a < b;
  });
  const auto index = std::make_shared<DeviceArray<int>>(order);
  return {[=](cudaStream_t s) {
            CUDA_CHECK(launch_permute(x->data(), index->data(), y->data(), rows,
                                      static_cast<int>(width), s));
          },
          [=](const auto& some) {
            return rows_error(
                some, [&](auto r) { return row_of(*y, r, width); },
                [&](auto r) { return row_of(*x, order[static_cast<std::size_t>(r)], width); });
          },
          4.0 * static_cast<double>(rows * width), 0.0};
}

// The first step from zero moments, whose weights it changes by the rate: compared are the changes.
Work adam_work(std::int64_t rows, std::int64_t width) {
  const std::int64_t count = rows * width;
  const auto master = random_floats(1, count), gradient = random_floats(2, count);
  const auto first = std::make_shared<DeviceArray<float>>(count);
  const auto second = std::make_shared<DeviceArray<float>>(count);
  const auto weight = std::make_shared<Bits>(count);
  first->set_zero();
  second->set_zero();
  const AdamStep step{1e-2f, 0.9f, 0.95f, 1e-8f, 1};
  return {[=](cudaStream_t s) {
            CUDA_CHECK(launch_adam(master->data(), first->data(), second->data(), gradient->data(),
                                   weight->data(), count, step, s));
          },
          [=](const auto& some) {
            return rows_error(
                some,
                [&](auto r) {
                  Doubles change = row_of(*master, r, width);
                  for (std::size_t i = 0; i < change.size(); ++i)
                    change[i] -= random_value(
                        1, static_cast<std::uint64_t>(r * width + static_cast<std::int64_t>(i)));
                  const Doubles moments = row_of(*second, r, width);
                  change.insert(change.end(), moments.begin(), moments.end());
                  return change;
                },
                [&](auto r) {
                  Doubles change, moments;
                  for (const double g : row_of(*gradient, r, width)) {
                    const AdamState after = adam_step({}, g, 1e-2, 0.9, 0.95, 1e-8, 1);
                    change.push_back(after.master);
                    moments.push_back(after.second);
                  }
                  change.insert(change.end(), moments.begin(), moments.end());
                  return change;
                });
          },
          30.0 * static_cast<double>(count), fp32_error};
}

Work make_work(const std::string& op, std::int64_t rows, std::int64_t width) {
  if (op == "copy") return copy_work(rows, width);
  if (op == "read") return read_work(rows, width);
  if (op == "triad") return triad_work(rows, width);
  if (op == "rms_norm") return rms_norm_work(rows, width);
  if (op == "rms_norm_backward") return rms_norm_backward_work(rows, width);
  if (op == "swiglu") return swiglu_work(rows, width);
  if (op == "swiglu_backward") return swiglu_backward_work(rows, width);
  if (op == "rope") return rope_work(rows, width);
  if (op == "cross_entropy") return cross_entropy_work(rows, width);
  if (op == "permute") return permute_work(rows, width);
  return adam_work(rows, width);
}

double verified_error(const Work& work, const std::vector<std::int64_t>& rows,
                      cudaStream_t stream) {
  work.run(stream);
  CUDA_CHECK(cudaStreamSynchronize(stream));
  const double error = work.error(rows);
  require_right(error, work.tolerance);
  return error;
}

}  // namespace

Measurement measure_memory(const Case& what, const StoppingLimits& limits, Lab& lab) {
  const std::string& op = what.choice("op");
  const std::int64_t rows = what.size("rows"), width = what.size("width");
  if (width % 8 != 0) throw Unsupported{"streaming kernels have widths of multiples of 8"};
  if (op == "rms_norm_backward" &&
      width * static_cast<std::int64_t>(sizeof(float)) > lab.shared_bytes_a_block)
    throw Unsupported{"a row's gradient does not fit into this GPU's shared memory"};
  // All of a small instance, then rows of the one that is timed.
  const std::int64_t few = std::min<std::int64_t>(rows, 64);
  std::vector<std::int64_t> all(static_cast<std::size_t>(few));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  double error = verified_error(make_work(op, few, width), all, lab.stopwatch.stream());
  const Work work = make_work(op, rows, width);
  std::vector<std::int64_t> some{0, rows / 3, rows / 2, rows - 1};
  some.erase(std::unique(some.begin(), some.end()), some.end());
  error = std::max(error, verified_error(work, some, lab.stopwatch.stream()));

  const Stopwatch::Times times = lab.stopwatch.time(work.run, limits, 2);
  Measurement one;
  one.what = what;
  one.relative_error = error;
  one.cold = times.cold;
  one.warm = times.warm;
  one.stopped = times.stopped;
  one.implementation = "orrery kernel";
  one.figures = {{"moved_bytes", work.bytes},
                 {"cold_bytes_per_s", work.bytes / (1e-6 * times.cold.median_us)},
                 {"warm_bytes_per_s", work.bytes / (1e-6 * times.warm.median_us)}};
  return one;
}

}  // namespace orrery::calibration
