#include "sim/formats/requests/read_requests.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

#include "sim/core/json_value.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

RequestFormat format_of(const std::string& text, const std::string& file) {
  const std::string_view all = trimmed(text);
  const std::string_view first = trimmed(all.substr(0, all.find('\n')));
  const auto has = [&](std::string_view in, const char* key) {
    return in.find(std::string{'"'} + key + '"') != in.npos;
  };
  if (all.starts_with('{')) {
    if (has(first, "input_length")) return RequestFormat::mooncake;
    if (has(first, "arrival_s")) return RequestFormat::lines;
    if (has(all, "input_lens")) return RequestFormat::vllm;
  } else if (const RequestFormat csv = csv_format(first); csv != RequestFormat::lines) {
    return csv;
  }
  fail_input(
      {file, ""}, "looks like none of the traces that are read",
      "name its form with --trace-format: mooncake, azure, burstgpt, lengths, vllm or lines");
}

RequestFormat named_format(const std::string& name) {
  return choice<RequestFormat>(name, {"", "--trace-format"});
}

RequestTrace parse(RequestFormat format, const std::string& text, const std::string& file) {
  switch (format) {
    case RequestFormat::lines:
    case RequestFormat::mooncake:
      return parse_json_line_requests(text, file, format);
    case RequestFormat::vllm:
      return parse_vllm_requests(text, file);
    default:
      return parse_csv_requests(text, file, format);
  }
}

}  // namespace

RequestTrace parse_request_trace(const std::string& text, const std::string& file,
                                 const TraceReading& reading) {
  require_text(text, file, "a trace of requests");
  const RequestFormat format =
      reading.format.empty() ? format_of(text, file) : named_format(reading.format);
  RequestTrace trace = parse(format, text, file);
  std::vector<Request>& requests = trace.list.requests;
  if (requests.empty())
    fail_input({file, ""}, "holds no request that was answered", "give a trace with requests");
  const auto earlier = [](const Request& a, const Request& b) { return a.arrival < b.arrival; };
  if (!std::is_sorted(requests.begin(), requests.end(), earlier))
    std::stable_sort(requests.begin(), requests.end(), earlier);
  if (reading.first > 0 && static_cast<std::int64_t>(requests.size()) > reading.first)
    requests.resize(static_cast<std::size_t>(reading.first));
  const Seconds start = requests.front().arrival;
  for (Request& request : requests) request.arrival = (request.arrival - start) / reading.speed;
  return trace;
}

RequestTrace read_request_trace(const std::string& path, const TraceReading& reading) {
  return parse_request_trace(read_input_file(path), path, reading);
}

namespace {

// The next `digits` digits, and the character that must follow them (0: any).
std::optional<int> number(std::string_view& text, std::size_t digits, char then) {
  int value = 0;
  if (text.size() < digits + (then ? 1 : 0)) return std::nullopt;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + digits, value);
  if (error != std::errc{} || rest != text.data() + digits || value < 0) return std::nullopt;
  if (then && text[digits] != then && !(then == 'T' && text[digits] == ' ')) return std::nullopt;
  text.remove_prefix(digits + (then ? 1 : 0));
  return value;
}

}  // namespace

double seconds_of_timestamp(std::string_view text) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  const auto year = number(text, 4, '-'), month = number(text, 2, '-'), day = number(text, 2, 'T');
  if (!year || !month || !day) return none;
  const auto hour = number(text, 2, ':'), minute = number(text, 2, ':'),
             second = number(text, 2, 0);
  if (!hour || !minute || !second || *hour > 23 || *minute > 59 || *second > 60) return none;
  double fraction = 0.0;
  if (text.starts_with('.')) {
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), fraction);
    if (error != std::errc{} || !(fraction < 1.0)) return none;
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  }
  if (!text.empty() && text != "Z" && text != "+00:00") return none;
  using namespace std::chrono;
  const year_month_day date{std::chrono::year{*year},
                            std::chrono::month{static_cast<unsigned>(*month)},
                            std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok()) return none;
  const auto days = static_cast<double>(sys_days{date}.time_since_epoch().count());
  return days * 86400.0 + *hour * 3600.0 + *minute * 60.0 + *second + fraction;
}

}  // namespace orrery
