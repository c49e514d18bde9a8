#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// The text of a file that may be compressed with gzip, regardless of its name, a piece at a time:
/// traces are hundreds of megabytes, and a good part of them is skipped.
///
/// Errors (bad_input) are thrown while it is read: no regular file, a damaged or cut off gzip
/// stream, more than `most_bytes` of text, and more than `longest_quote` of it without a quotation
/// mark: a string or number too long to hold.
class InflatedText : public std::streambuf {
 public:
  static constexpr std::int64_t most_bytes = std::int64_t{16} << 30;
  static constexpr std::int64_t longest_quote = std::int64_t{64} << 20;

  explicit InflatedText(const std::string& path);
  ~InflatedText() override;
  InflatedText(const InflatedText&) = delete;
  InflatedText& operator=(const InflatedText&) = delete;

  std::int64_t bytes() const { return bytes_; }  ///< Read so far.

 protected:
  int_type underflow() override;

 private:
  struct Gzip;
  std::string path_;
  std::unique_ptr<Gzip> file_;
  std::vector<char> buffer_;
  std::int64_t bytes_ = 0, since_quote_ = 0;
};

/// Microseconds as a trace writes them, "5203.257", "1712345678901234.5", "1e3", in nanoseconds:
/// exact, where a double keeps a quarter of a microsecond of a time since 1970. Digits below a
/// nanosecond are rounded, halves away from zero. Nothing: no number, negative, or over 2^62 ns.
std::optional<std::int64_t> nanoseconds_of(std::string_view microseconds);

/// Work of a GPU in a stretch of time, in nanoseconds of the trace's clock.
struct GpuActivity {
  enum class Kind : std::uint8_t { kernel, copy, fill };
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t correlation = -1;  ///< Shared with the call that launched it; -1: unknown.
  std::int32_t stream = 0;
  std::uint32_t name = 0;        ///< Index into KinetoTrace::names.
  std::uint32_t group = 0;       ///< Index of a collective's process group in names; 0: unknown.
  std::uint32_t collective = 0;  ///< Index of PyTorch's name of it in names; 0: unknown.
  Kind kind = Kind::kernel;
};

/// A call of the host that hands work to the GPU.
struct Launch {
  std::int64_t correlation = -1, begin_ns = 0, end_ns = 0;
  std::int64_t thread = 0;
};

/// An operation of PyTorch on the host, with the shapes that record_shapes=True keeps.
struct HostOperation {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t thread = 0;
  std::uint32_t name = 0;
  std::uint32_t shapes = 0;  ///< Index in names, as JSON: "[[4096,4096],[4096,1024]]"; 0: unknown.
  std::uint32_t types = 0;   ///< Likewise: "["c10::BFloat16","c10::BFloat16"]".
  std::uint32_t values = 0;  ///< Likewise, "Concrete Inputs".
};

/// ProfilerStep#12, on the host's clock.
struct ProfiledStep {
  std::int64_t number = 0, begin_ns = 0, end_ns = 0;
};

/// One process's trace of PyTorch's profiler (Kineto).
struct KinetoTrace {
  struct Device {
    std::string name;  ///< "NVIDIA H100 80GB HBM3"
    std::int64_t multiprocessors = 0, memory_bytes = 0, major = 0, minor = 0;
  };
  std::string file;
  Device device;             ///< The GPU whose activities these are; "": unknown.
  std::int64_t rank = -1;    ///< -1: unknown.
  std::int64_t ranks = 0;    ///< 0: unknown.
  std::string nccl;          ///< Its version; "".
  std::string cuda_runtime;  ///< "12.4"; "".
  std::int64_t events = 0;   ///< Events of all categories.
  std::vector<std::string> names{""};
  std::vector<GpuActivity> activities;  ///< Sorted by begin, then end, stream, name.
  std::vector<Launch> launches;         ///< Sorted by correlation.
  std::vector<HostOperation> operations;
  std::vector<ProfiledStep> steps;  ///< Sorted by number.
};

/// Reads a trace while it is read from disk, gzipped or not: it keeps some 60 bytes for each
/// kernel, launch and operation, and skips other events. Times are exact to the nanosecond, as they
/// are written.
///
/// Errors (bad_input) name the file and, in JSON, the byte: errors of InflatedText; no JSON, or
/// none of Kineto's; nesting over 64 levels; activities of several GPUs, which one process has in
/// DataParallel alone; times that are no number, negative or beyond 2^62 ns, durations over a day;
/// over 50 million events that are kept; no work of a GPU at all.
KinetoTrace read_kineto(const std::string& path);
/// Parses a trace from a text.
KinetoTrace parse_kineto(std::istream& text, const std::string& file);

}  // namespace orrery
