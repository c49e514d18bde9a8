#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace orrery {

/// A trace that no GPU has made, event by event, in the form that PyTorch's profiler writes. Times
/// are in nanoseconds from where the trace begins.
class TraceText {
 public:
  /// `head`: keys next to "traceEvents", as JSON, each followed by a comma.
  explicit TraceText(std::string head = "") : head_{std::move(head)} {}

  static constexpr const char* h100 =
      "\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": "
      "\"NVIDIA H100 80GB HBM3\", \"totalGlobalMem\": 84942979072, \"computeMajor\": 9, "
      "\"computeMinor\": 0, \"numSms\": 132}], \"cuda_runtime_version\": 12040,\n";

  /// A kernel on a stream; `args` as JSON, each preceded by a comma. `correlation`: -1 for none.
  void kernel(const std::string& name, std::int64_t begin, std::int64_t length, int stream = 7,
              std::int64_t correlation = -1, const std::string& args = "",
              const std::string& category = "kernel") {
    add("{\"ph\": \"X\", \"cat\": \"" + category + "\", \"name\": \"" + name +
        "\", \"pid\": 0, \"tid\": " + std::to_string(stream) + times(begin, length) +
        ", \"args\": {\"device\": 0, \"stream\": " + std::to_string(stream) +
        (correlation >= 0 ? ", \"correlation\": " + std::to_string(correlation) : "") + args +
        "}}");
  }
  void launch(std::int64_t correlation, std::int64_t begin, std::int64_t length,
              std::int64_t thread = 100) {
    add("{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 100, "
        "\"tid\": " +
        std::to_string(thread) + times(begin, length) +
        ", \"args\": {\"correlation\": " + std::to_string(correlation) + "}}");
  }
  void operation(const std::string& name, std::int64_t begin, std::int64_t length,
                 const std::string& shapes, const std::string& types,
                 const std::string& values = "[]", std::int64_t thread = 100) {
    add("{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"" + name + "\", \"pid\": 100, \"tid\": " +
        std::to_string(thread) + times(begin, length) + ", \"args\": {\"Input Dims\": " + shapes +
        ", \"Input type\": " + types + ", \"Concrete Inputs\": " + values + "}}");
  }
  void step(int number, std::int64_t begin, std::int64_t length) {
    add("{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#" +
        std::to_string(number) + "\", \"pid\": 100, \"tid\": 100" + times(begin, length) + "}");
  }
  void add(const std::string& event) { events_.push_back(event); }

  /// The same in another order.
  TraceText backwards() const {
    TraceText other{*this};
    std::reverse(other.events_.begin(), other.events_.end());
    return other;
  }
  std::string text() const {
    std::string text = "{" + head_ + "\"traceEvents\": [\n";
    for (std::size_t i = 0; i < events_.size(); ++i)
      text += events_[i] + (i + 1 < events_.size() ? ",\n" : "\n");
    return text + "]}\n";
  }

 private:
  // Microseconds with three decimals, from a time as clocks have it.
  static std::string times(std::int64_t begin, std::int64_t length) {
    constexpr std::int64_t epoch_us = 1'712'345'678'000'000;
    char text[96];
    std::snprintf(text, sizeof text, ", \"ts\": %lld.%03d, \"dur\": %lld.%03d",
                  static_cast<long long>(epoch_us + begin / 1000), static_cast<int>(begin % 1000),
                  static_cast<long long>(length / 1000), static_cast<int>(length % 1000));
    return text;
  }

  std::string head_;
  std::vector<std::string> events_;
};

inline constexpr std::int64_t synthetic_epoch_ns = 1'712'345'678'000'000'000;

}  // namespace orrery
