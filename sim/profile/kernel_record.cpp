#include "sim/profile/kernel_record.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "sim/core/error.hpp"

namespace orrery {
namespace {

using calibration::Case;
using calibration::make_case;
using Dims = std::vector<std::int64_t>;

// These are the limits of a record.
constexpr std::int64_t largest = std::int64_t{1} << 24;
constexpr std::int64_t longest_ns = 10'000'000'000'000;
constexpr std::int64_t most_memory = std::int64_t{1} << 45;
// Ratio of the longest to the shortest time of a shape: beyond, a clock was set.
constexpr double most_spread = 1e6;

std::optional<JsonValue> list(const std::string& text, const std::string& file) {
  if (text.empty()) return std::nullopt;
  return JsonValue::parse(text, file);
}

// Sizes of input `index`; nothing: it is no tensor of `rank` dimensions.
std::optional<Dims> dims(const JsonValue& shapes, std::size_t index, std::size_t rank) {
  const std::vector<JsonValue> inputs = shapes.elements();
  if (index >= inputs.size() || !inputs[index].is_array()) return std::nullopt;
  Dims sizes;
  for (const JsonValue& size : inputs[index].elements()) {
    if (!size.is_number()) return std::nullopt;
    const double value = size.number(-1e300, 1e300);
    if (!(value >= 1.0 && value <= static_cast<double>(largest))) return std::nullopt;
    sizes.push_back(static_cast<std::int64_t>(value));
  }
  return sizes.size() == rank ? std::optional{sizes} : std::nullopt;
}

std::string word(const std::optional<JsonValue>& words, std::size_t index) {
  if (!words) return "";
  const std::vector<JsonValue> all = words->elements();
  return index < all.size() && all[index].is_string() ? all[index].text() : "";
}

std::string dtype_of(const std::string& type) {
  if (type == "c10::BFloat16") return "bf16";
  if (type == "c10::Half") return "fp16";
  if (type.starts_with("c10::Float8")) return "fp8";
  return "";
}

// aten::mm's C[m,n] = A[m,k] B[k,n]; of addmm and _scaled_mm, whose further inputs stand before or
// behind.
std::optional<Case> product(const std::string& name, const JsonValue& shapes,
                            const std::optional<JsonValue>& types) {
  const std::size_t first = name == "aten::addmm" ? 1 : 0;
  if (name != "aten::mm" && name != "aten::addmm" && name != "aten::_scaled_mm")
    return std::nullopt;
  const auto a = dims(shapes, first, 2), b = dims(shapes, first + 1, 2);
  const std::string dtype = dtype_of(word(types, first));
  if (!a || !b || dtype.empty() || (*a)[1] != (*b)[0]) return std::nullopt;
  return make_case("gemm", {"forward", dtype}, {(*a)[0], (*b)[1], (*a)[1]});
}

// Query [batch, heads, sequence, dim], then keys and values. `causal`: the input with that flag.
struct AttentionName {
  const char* name;
  const char* pass;
  std::size_t query, causal;
};
constexpr AttentionName attention_names[] = {
    {"aten::_scaled_dot_product_flash_attention", "forward", 0, 4},
    {"aten::_scaled_dot_product_cudnn_attention", "forward", 0, 6},
    {"aten::_scaled_dot_product_flash_attention_backward", "backward", 1, 11},
    {"aten::_scaled_dot_product_cudnn_attention_backward", "backward", 1, 14},
};

std::optional<Case> attention(const std::string& name, const JsonValue& shapes,
                              const std::optional<JsonValue>& types,
                              const std::optional<JsonValue>& values) {
  for (const AttentionName& known : attention_names) {
    if (name != known.name) continue;
    const auto q = dims(shapes, known.query, 4), k = dims(shapes, known.query + 1, 4),
               v = dims(shapes, known.query + 2, 4);
    if (!q || !k || !v || dtype_of(word(types, known.query)) != "bf16") return std::nullopt;
    if (word(values, known.causal) != "True" || (*q)[2] != (*k)[2] || *k != *v ||
        (*q)[3] != (*k)[3] || (*q)[1] % (*k)[1] != 0 || (*q)[3] < 8 || (*q)[3] > 512 ||
        (*q)[1] > 4096 || (*q)[0] > 1 << 20)
      return std::nullopt;
    return make_case("attention", {known.pass, "bf16"},
                     {(*q)[0], (*q)[2], (*q)[1], (*k)[1], (*q)[3]});
  }
  return std::nullopt;
}

// One trace's kernels, gathered by the operation that launched them.
class Gathering {
 public:
  Gathering(const KinetoTrace& trace, const KernelNames& names) : trace_{trace} {
    for (const GpuActivity& one : trace.activities)
      if (communicates(names.of(trace, one))) communication_.push_back({one.begin_ns, one.end_ns});
    merge(communication_);
    for (const GpuActivity& one : trace.activities) {
      const GpuWork work = names.of(trace, one);
      if (one.kind != GpuActivity::Kind::kernel || communicates(work)) continue;
      const bool wanted = work == GpuWork::products || work == GpuWork::attention;
      if (wanted) ++kernels_;
      const std::optional<std::size_t> operation = operation_of(one);
      if (!operation) continue;
      Launched& launched = launched_[*operation];
      launched.ns += one.end_ns - one.begin_ns;
      launched.wanted = launched.wanted || wanted;
      launched.kernels += wanted ? 1 : 0;
      launched.alone = launched.alone && !beside_communication(one);
    }
  }

  void add_to(std::map<std::string, std::pair<Case, std::vector<double>>>& times,
              std::int64_t& hidden, std::int64_t& without_shape) const {
    std::map<std::array<std::uint32_t, 4>, std::optional<Case>> cases;
    std::int64_t used = 0;
    for (const auto& [index, launched] : launched_) {
      if (!launched.wanted || launched.ns <= 0 || launched.ns > longest_ns) continue;
      const HostOperation& operation = trace_.operations[index];
      const auto [place, fresh] = cases.try_emplace(
          std::array{operation.name, operation.shapes, operation.types, operation.values});
      if (fresh) place->second = case_of(operation);
      if (!place->second) continue;
      used += launched.kernels;
      if (!launched.alone) {
        hidden += launched.kernels;
        continue;
      }
      auto& [what, us] = times[place->second->id()];
      what = *place->second;
      us.push_back(1e-3 * static_cast<double>(launched.ns));
    }
    without_shape += kernels_ - used;
  }

 private:
  struct Interval {
    std::int64_t begin_ns, end_ns;
  };
  struct Launched {
    std::int64_t ns = 0, kernels = 0;
    bool wanted = false, alone = true;
  };

  static void merge(std::vector<Interval>& sorted) {
    std::vector<Interval> merged;
    for (const Interval& one : sorted)
      if (!merged.empty() && one.begin_ns <= merged.back().end_ns)
        merged.back().end_ns = std::max(merged.back().end_ns, one.end_ns);
      else
        merged.push_back(one);
    sorted = std::move(merged);
  }
  bool beside_communication(const GpuActivity& one) const {
    const auto after = std::upper_bound(
        communication_.begin(), communication_.end(), one.end_ns - 1,
        [](std::int64_t at, const Interval& interval) { return at < interval.begin_ns; });
    return after != communication_.begin() && std::prev(after)->end_ns > one.begin_ns;
  }
  // Operations of a thread nest; they are sorted by thread, begin and, longest first, by end.
  std::optional<std::size_t> operation_of(const GpuActivity& one) const {
    const auto launch = std::lower_bound(
        trace_.launches.begin(), trace_.launches.end(), one.correlation,
        [](const Launch& a, std::int64_t wanted) { return a.correlation < wanted; });
    if (one.correlation < 0 || launch == trace_.launches.end() ||
        launch->correlation != one.correlation)
      return std::nullopt;
    auto at = std::upper_bound(
        trace_.operations.begin(), trace_.operations.end(),
        std::pair{launch->thread, launch->begin_ns},
        [](const std::pair<std::int64_t, std::int64_t>& wanted, const HostOperation& operation) {
          return wanted < std::pair{operation.thread, operation.begin_ns};
        });
    // Those that ended before lie between; a launch is within a few levels of its operation.
    for (int steps = 0; at != trace_.operations.begin() && steps < 64; ++steps) {
      --at;
      if (at->thread != launch->thread) return std::nullopt;
      if (at->end_ns >= launch->end_ns)
        return static_cast<std::size_t>(at - trace_.operations.begin());
    }
    return std::nullopt;
  }
  std::optional<Case> case_of(const HostOperation& operation) const {
    const auto shapes = list(trace_.names[operation.shapes], trace_.file);
    if (!shapes) return std::nullopt;
    const auto types = list(trace_.names[operation.types], trace_.file);
    const std::string& name = trace_.names[operation.name];
    if (auto found = product(name, *shapes, types)) return found;
    return attention(name, *shapes, types, list(trace_.names[operation.values], trace_.file));
  }

  const KinetoTrace& trace_;
  std::vector<Interval> communication_;
  std::map<std::size_t, Launched> launched_;
  std::int64_t kernels_ = 0;
};

calibration::Machine machine_of(const KinetoTrace& trace) {
  const KinetoTrace::Device& device = trace.device;
  if (device.name.empty() || device.multiprocessors < 1 || device.memory_bytes < 1)
    fail_input({trace.file, "/deviceProperties"}, "does not say which GPU it is of",
               "write the trace with a PyTorch of 2023 or later");
  calibration::Machine machine;
  const std::string named = shown_text(device.name);  // A record has no control characters.
  machine.gpu = named.starts_with("NVIDIA") ? named : "NVIDIA " + named;
  machine.gpu_id = "not stated";
  machine.compute_capability = std::to_string(device.major) + "." + std::to_string(device.minor);
  machine.driver = "not stated";
  machine.cuda_runtime = trace.cuda_runtime;
  machine.cublas = "not stated";
  machine.nccl = shown_text(trace.nccl);
  machine.multiprocessors = static_cast<int>(std::min<std::int64_t>(device.multiprocessors, 4096));
  machine.memory_bytes = std::min(device.memory_bytes, most_memory);
  return machine;
}

}  // namespace

TracedKernels kernels_of_traces(const std::vector<KinetoTrace>& traces, const KernelNames& names) {
  TracedKernels traced;
  calibration::Record& record = traced.record;
  record.machine = machine_of(traces.front());
  record.command = "orrery import kineto";
  record.program = "PyTorch's profiler";
  record.started = "not stated";
  std::map<std::string, std::pair<Case, std::vector<double>>> times;
  std::int64_t hidden = 0, without_shape = 0;
  for (const KinetoTrace& trace : traces) {
    const calibration::Machine machine = machine_of(trace);
    if (machine.gpu != record.machine.gpu)
      fail_input({trace.file, "/deviceProperties"},
                 "is of '" + machine.gpu + "', but " + traces.front().file + " of '" +
                     record.machine.gpu + "'",
                 "import each kind of GPU by itself");
    Gathering{trace, names}.add_to(times, hidden, without_shape);
  }
  std::int64_t scattered = 0;
  for (auto& [id, found] : times) {
    const auto [least, most] = std::minmax_element(found.second.begin(), found.second.end());
    if (*most > most_spread * *least) {
      ++scattered;
      continue;
    }
    calibration::Measurement one;
    one.what = found.first;
    one.implementation = std::string{in_a_step} + ", PyTorch's profiler";
    one.warm = calibration::summarize(found.second);
    one.stopped = calibration::Stopped::samples;
    record.measurements.push_back(std::move(one));
  }
  if (record.measurements.empty())
    fail_input({traces.front().file, ""},
               "has no product or attention with a known shape that runs alone",
               "profile with record_shapes=True");
  const auto note = [&](std::int64_t count, const std::string& why) {
    if (count > 0) traced.notes.push_back(std::to_string(count) + why);
  };
  note(hidden,
       " kernels concurrent with collectives were left out: contention affects their times");
  note(scattered, " shapes whose times differ a million times: the trace's clock was set");
  note(without_shape,
       " kernels of products or attention without a shape that a table has: launched in a CUDA "
       "graph, by an operation outside of PyTorch's own, or grouped");
  return traced;
}

}  // namespace orrery
