#include "sim/profile/kineto_trace.hpp"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "sim/core/error.hpp"
#include "sim/core/json_value.hpp"

namespace orrery {

struct InflatedText::Gzip {
  gzFile file = nullptr;
};

InflatedText::InflatedText(const std::string& path)
    : path_{path}, file_{std::make_unique<Gzip>()}, buffer_(1 << 18) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    fail_input({path, ""},
               std::filesystem::exists(path, error) ? "is not a file" : "does not exist",
               "name a trace that PyTorch's profiler wrote");
  // Passes uncompressed text through.
  file_->file = gzopen(path.c_str(), "rb");
  if (!file_->file) fail_input({path, ""}, "cannot be opened", "check its permissions");
  gzbuffer(file_->file, 1 << 18);
}

InflatedText::~InflatedText() {
  if (file_->file) gzclose(file_->file);
}

InflatedText::int_type InflatedText::underflow() {
  const int count = gzread(file_->file, buffer_.data(), static_cast<unsigned>(buffer_.size()));
  int code = Z_OK;
  const char* const why = gzerror(file_->file, &code);
  if (count < 0 || (code != Z_OK && code != Z_STREAM_END)) {
    const bool cut_off = code == Z_BUF_ERROR;
    fail_input({path_, ""},
               cut_off ? "is cut off within its gzip stream"
                       : "is a damaged gzip file (" + std::string{why ? why : "unreadable"} + ")",
               "copy it again, or write the trace again");
  }
  if (count == 0) return traits_type::eof();
  bytes_ += count;
  if (bytes_ > most_bytes)
    fail_input({path_, ""}, "holds over 16 GiB of text", "profile fewer steps");
  const auto end = buffer_.begin() + count;
  const auto quote = std::find(std::make_reverse_iterator(end), buffer_.rend(), '"');
  since_quote_ =
      quote == buffer_.rend() ? since_quote_ + count : quote - std::make_reverse_iterator(end);
  if (since_quote_ > longest_quote)
    fail_input({path_, ""}, "has 64 MiB of text without a quotation mark",
               "name a trace that PyTorch's profiler wrote");
  setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
  return traits_type::to_int_type(buffer_.front());
}

namespace {

constexpr std::int64_t most_ns = std::int64_t{1} << 62;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::optional<std::int64_t> nanoseconds_of(std::string_view text) {
  const std::size_t e = text.find_first_of("eE");
  int exponent = 0;
  if (e != text.npos) {
    std::string_view digits = text.substr(e + 1);
    if (digits.starts_with('+')) digits.remove_prefix(digits.starts_with("+-") ? 0 : 1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (error != std::errc{} || end != digits.data() + digits.size() || digits.empty())
      return std::nullopt;
    if (exponent < -400 || exponent > 400) return std::nullopt;
    text = text.substr(0, e);
  }
  // Digits, and where the point stands among them once microseconds are nanoseconds.
  std::int64_t whole = 0;
  int place = exponent + 3;
  bool point = false, any = false, round_up = false, rounded = false;
  for (const char c : text) {
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (!is_digit(c)) return std::nullopt;
    any = true;
    if (point && place == 0) {  // Below a nanosecond: the first such digit decides.
      if (!rounded) round_up = c >= '5';
      rounded = true;
      continue;
    }
    if (point) --place;
    if (whole > most_ns / 10) return std::nullopt;
    whole = 10 * whole + (c - '0');
  }
  if (!any) return std::nullopt;
  for (; place > 0; --place) {
    if (whole > most_ns / 10) return std::nullopt;
    whole *= 10;
  }
  for (; place < 0; ++place) {  // A negative exponent.
    round_up = whole % 10 >= 5;
    whole /= 10;
  }
  whole += round_up ? 1 : 0;
  return whole > most_ns ? std::nullopt : std::optional{whole};
}

namespace {

constexpr std::size_t deepest = 64;
constexpr std::size_t most_events = 50'000'000;
constexpr std::size_t longest_name = 1 << 20;  // Templates' names have some ten thousand letters.
constexpr std::int64_t longest_event_ns = std::int64_t{86'400} * 1'000'000'000;

constexpr std::string_view step_name = "ProfilerStep#";

// Fields of an event that are kept while it is read.
struct Event {
  std::string phase, category, name;
  std::optional<std::int64_t> begin_ns, length_ns;
  std::int64_t thread = 0;
  // The rest comes from its "args".
  std::int64_t stream = 0, correlation = -1, device = 0;
  std::string group, group_meaning, collective, shapes, types, values;

  void clear() {
    for (std::string* text :
         {&phase, &category, &name, &group, &group_meaning, &collective, &shapes, &types, &values})
      text->clear();
    begin_ns = length_ns = std::nullopt;
    thread = stream = device = 0;
    correlation = -1;
  }
};

std::string version_text(std::int64_t version) {  // 12040 is 12.4.
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

class Reader {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  explicit Reader(const std::string& file) { trace_.file = file; }

  // Callbacks of nlohmann's SAX interface.
  bool null() { return token("null"); }
  bool boolean(bool value) { return token(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) {
    return captured_ ? token(std::to_string(value)) : whole(value);
  }
  bool number_unsigned(number_unsigned_t value) {
    if (captured_) return token(std::to_string(value));
    return whole(value > std::uint64_t{1} << 62 ? -1 : static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t, const string_t& written) {
    if (captured_) return token(written);
    if (where() == Where::event) time(written);
    return true;
  }
  bool string(string_t& value) {
    if (captured_) return token(nlohmann::json(value).dump(-1, ' ', false, replace));
    text(value);
    return true;
  }
  bool binary(binary_t&) { return true; }
  bool key(string_t& value) {
    if (captured_) {
      separate();
      *captured_ += nlohmann::json(value).dump(-1, ' ', false, replace) + ":";
      fresh_ = true;
    }
    key_.swap(value);
    return true;
  }
  bool start_object(std::size_t) { return open('{'); }
  bool start_array(std::size_t) { return open('['); }
  bool end_object() { return close('}'); }
  bool end_array() { return close(']'); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    fail("is no valid JSON at byte " + std::to_string(position),
         "it may be cut off: write the trace again");
  }

  KinetoTrace finish() {
    if (!has_events_) fail("has no traceEvents", "name a trace that PyTorch's profiler wrote");
    if (trace_.activities.empty())
      fail("has no work of a GPU", "profile with ProfilerActivity.CUDA");
    for (const auto& [id, device] : devices_)
      if (id == device_) trace_.device = device;
    std::sort(trace_.activities.begin(), trace_.activities.end(),
              [](const GpuActivity& a, const GpuActivity& b) {
                return std::tie(a.begin_ns, a.end_ns, a.stream, a.name, a.correlation) <
                       std::tie(b.begin_ns, b.end_ns, b.stream, b.name, b.correlation);
              });
    std::sort(trace_.launches.begin(), trace_.launches.end(), [](const Launch& a, const Launch& b) {
      return std::tie(a.correlation, a.begin_ns, a.end_ns, a.thread) <
             std::tie(b.correlation, b.begin_ns, b.end_ns, b.thread);
    });
    std::sort(trace_.operations.begin(), trace_.operations.end(),
              [&](const HostOperation& a, const HostOperation& b) {
                return std::tie(a.thread, a.begin_ns, b.end_ns, a.name) <
                       std::tie(b.thread, b.begin_ns, a.end_ns, b.name);
              });
    std::sort(trace_.steps.begin(), trace_.steps.end(),
              [](const ProfiledStep& a, const ProfiledStep& b) {
                return std::tie(a.number, a.begin_ns) < std::tie(b.number, b.begin_ns);
              });
    return std::move(trace_);
  }

 private:
  enum class Where { nothing, root, events, event, arguments, devices, device, distributed, other };
  static constexpr auto replace = nlohmann::json::error_handler_t::replace;

  [[noreturn]] void fail(const std::string& problem, const std::string& remedy) const {
    fail_input({trace_.file, ""}, problem, remedy);
  }
  Where where() const { return stack_.empty() ? Where::nothing : stack_.back(); }

  bool open(char bracket) {
    if (stack_.size() >= deepest)
      fail("is nested over " + std::to_string(deepest) + " levels deep",
           "name a trace that PyTorch's profiler wrote");
    if (!captured_ && bracket == '[' && where() == Where::arguments) {
      captured_ = key_ == "Input Dims"        ? &event_.shapes
                  : key_ == "Input type"      ? &event_.types
                  : key_ == "Concrete Inputs" ? &event_.values
                                              : nullptr;
      if (captured_) {
        captured_->clear();
        fresh_ = true;
        captured_from_ = stack_.size();
      }
    }
    if (captured_) {
      separate();
      *captured_ += bracket;
      fresh_ = true;
    }
    stack_.push_back(next(bracket == '{'));
    if (where() == Where::event) event_.clear();
    if (where() == Where::device) read_ = {-1, {}};
    return true;
  }
  Where next(bool object) const {
    switch (where()) {
      case Where::nothing:
        return object ? Where::root : Where::other;
      case Where::root:
        if (object) return key_ == "distributedInfo" ? Where::distributed : Where::other;
        return key_ == "traceEvents"        ? Where::events
               : key_ == "deviceProperties" ? Where::devices
                                            : Where::other;
      case Where::events:
        return object ? Where::event : Where::other;
      case Where::event:
        return object && key_ == "args" ? Where::arguments : Where::other;
      case Where::devices:
        return object ? Where::device : Where::other;
      default:
        return Where::other;
    }
  }
  bool close(char bracket) {
    if (captured_) {
      *captured_ += bracket;
      fresh_ = false;
    }
    const Where done = where();
    stack_.pop_back();
    if (captured_ && stack_.size() == captured_from_) captured_ = nullptr;
    if (done == Where::event) add_event();
    if (done == Where::events) has_events_ = true;
    if (done == Where::device) devices_.push_back(read_);
    return true;
  }

  void separate() {
    if (!fresh_) *captured_ += ',';
    if (captured_->size() > longest_name) fail("has an operation with over 1 MiB of inputs", "");
  }
  bool token(const std::string& written) {
    if (!captured_) return true;
    separate();
    *captured_ += written;
    fresh_ = false;
    return true;
  }

  void time(const std::string& written) {
    if (key_ != "ts" && key_ != "dur") return;
    (key_ == "ts" ? event_.begin_ns : event_.length_ns) = nanoseconds_of(written);
  }
  bool whole(std::int64_t value) {
    switch (where()) {
      case Where::event:
        if (key_ == "ts" || key_ == "dur") time(std::to_string(value));
        if (key_ == "tid") event_.thread = value;
        break;
      case Where::arguments:
        if (key_ == "stream") event_.stream = value;
        if (key_ == "correlation") event_.correlation = value;
        if (key_ == "device") event_.device = value;
        break;
      case Where::device:
        if (key_ == "id") read_.first = value;
        if (key_ == "totalGlobalMem") read_.second.memory_bytes = value;
        if (key_ == "computeMajor") read_.second.major = value;
        if (key_ == "computeMinor") read_.second.minor = value;
        if (key_ == "numSms") read_.second.multiprocessors = value;
        break;
      case Where::distributed:
        if (key_ == "rank") trace_.rank = value;
        if (key_ == "world_size") trace_.ranks = value;
        break;
      case Where::root:
        if (key_ == "cuda_runtime_version") trace_.cuda_runtime = version_text(value);
        break;
      default:
        break;
    }
    return true;
  }
  void text(std::string& value) {
    std::string* kept = nullptr;
    switch (where()) {
      case Where::event:
        kept = key_ == "ph"     ? &event_.phase
               : key_ == "cat"  ? &event_.category
               : key_ == "name" ? &event_.name
                                : nullptr;
        break;
      case Where::arguments:
        kept = key_ == "Collective name"             ? &event_.collective
               : key_ == "Process Group Name"        ? &event_.group
               : key_ == "Process Group Description" ? &event_.group_meaning
                                                     : nullptr;
        break;
      case Where::device:
        kept = key_ == "name" ? &read_.second.name : nullptr;
        break;
      case Where::distributed:
        kept = key_ == "nccl_version" ? &trace_.nccl : nullptr;
        break;
      default:
        break;
    }
    if (!kept) return;
    if (value.size() > longest_name) fail("has a name of over 1 MiB", "");
    kept->swap(value);
  }

  // Newer writers say "gpu_memcpy", PyTorch before 1.12 "Memcpy".
  bool is(std::string_view one, std::string_view other) const {
    return event_.category == one || event_.category == other;
  }
  void add_event() {
    ++trace_.events;
    if (event_.phase != "X") return;
    const bool kernel = is("kernel", "Kernel");
    const bool copy = is("gpu_memcpy", "Memcpy"), fill = is("gpu_memset", "Memset");
    const bool launch = is("cuda_runtime", "Runtime") || is("cuda_driver", "Driver");
    const bool operation = is("cpu_op", "Operator") && !event_.shapes.empty();
    const bool step = event_.name.starts_with(step_name) && is("user_annotation", "Operator");
    if (!kernel && !copy && !fill && !launch && !operation && !step) return;
    if (!event_.begin_ns || !event_.length_ns || *event_.length_ns > longest_event_ns)
      fail("event " + std::to_string(trace_.events) + " ('" + shown_text(event_.name) +
               "') has no time, or one that cannot be meant",
           "write the trace again");
    if (++kept_ > most_events) fail("has over 50 million events", "profile fewer steps");
    const std::int64_t begin = *event_.begin_ns, end = begin + *event_.length_ns;
    if (kernel || copy || fill) {
      if (!trace_.activities.empty() && event_.device != device_)
        fail("has work of the GPUs " + std::to_string(device_) + " and " +
                 std::to_string(event_.device),
             "trace one process a GPU");
      device_ = event_.device;
      const std::string& group = event_.group_meaning.empty() ? event_.group : event_.group_meaning;
      trace_.activities.push_back({begin, end, event_.correlation,
                                   static_cast<std::int32_t>(event_.stream), interned(event_.name),
                                   interned(group), interned(event_.collective),
                                   kernel ? GpuActivity::Kind::kernel
                                   : copy ? GpuActivity::Kind::copy
                                          : GpuActivity::Kind::fill});
    } else if (launch) {
      if (event_.correlation >= 0)
        trace_.launches.push_back({event_.correlation, begin, end, event_.thread});
    } else if (step) {
      const auto number = nanoseconds_of(std::string_view{event_.name}.substr(step_name.size()));
      if (number) trace_.steps.push_back({*number / 1000, begin, end});
    } else {
      trace_.operations.push_back({begin, end, event_.thread, interned(event_.name),
                                   interned(event_.shapes), interned(event_.types),
                                   interned(event_.values)});
    }
  }
  std::uint32_t interned(const std::string& name) {
    if (name.empty()) return 0;
    const auto [place, fresh] =
        places_.try_emplace(name, static_cast<std::uint32_t>(trace_.names.size()));
    if (fresh) trace_.names.push_back(name);
    return place->second;
  }

  KinetoTrace trace_;
  std::vector<Where> stack_;
  std::string key_;
  Event event_;
  std::pair<std::int64_t, KinetoTrace::Device> read_;
  std::vector<std::pair<std::int64_t, KinetoTrace::Device>> devices_;
  std::unordered_map<std::string, std::uint32_t> places_;
  std::string* captured_ = nullptr;  // Destination of the array that is read, as JSON.
  std::size_t captured_from_ = 0;
  bool fresh_ = true;  // The next captured value is the first of its list.
  bool has_events_ = false;
  std::int64_t device_ = 0;
  std::size_t kept_ = 0;
};

}  // namespace

KinetoTrace parse_kineto(std::istream& text, const std::string& file) {
  Reader reader{file};
  nlohmann::json::sax_parse(text, &reader);
  return reader.finish();
}

KinetoTrace read_kineto(const std::string& path) {
  InflatedText text{path};
  std::istream stream{&text};
  stream.exceptions(std::ios::badbit);  // Passes on exceptions of the buffer.
  return parse_kineto(stream, path);
}

}  // namespace orrery
