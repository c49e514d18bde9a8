#include "sim/serving/steady_window.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

namespace orrery {
namespace {

constexpr int usual_batches = 20;
constexpr std::size_t least_requests = 60;  // Three a batch.
// 95 % quantile of Student's t with 19 degrees of freedom.
constexpr double student = 1.729;

// A run is steady if its half-widths are at most these: relative ones, and of a share of requests.
constexpr double most_rate_half = 0.02;
constexpr double most_tpot_half = 0.02;
constexpr double most_ttft_half = 0.06;
constexpr double most_share_half = 0.015;
// A steady window lasts at least so many times as long as a mean request.
constexpr double least_request_times = 8.0;
// MSER's error differs by chance: the first truncation within this factor of the least is taken.
constexpr double mser_tolerance = 1.05;

SampledMean of_batch_means(const std::vector<double>& means) {
  const auto n = static_cast<double>(means.size());
  SampledMean found{std::accumulate(means.begin(), means.end(), 0.0) / n, 0.0};
  double variance = 0.0, covariance = 0.0;
  for (std::size_t i = 0; i < means.size(); ++i) {
    variance += (means[i] - found.mean) * (means[i] - found.mean);
    if (i > 0) covariance += (means[i] - found.mean) * (means[i - 1] - found.mean);
  }
  if (variance <= 0.0) return found;
  // The variance of the mean of a first-order autoregressive series.
  const double correlation = std::clamp(covariance / variance, 0.0, 0.8);
  const double widened = (1.0 + correlation) / (1.0 - correlation);
  found.half = student * std::sqrt(variance / (n - 1.0) / n * widened);
  return found;
}

// The number of leading values that MSER-5 truncates, at most half of them.
std::size_t mser_truncation(const std::vector<double>& values) {
  constexpr std::size_t width = 5;
  const std::size_t batches = values.size() / width;
  if (batches < 4) return 0;
  std::vector<double> means(batches);
  for (std::size_t b = 0; b < batches; ++b)
    means[b] = std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(b * width),
                               values.begin() + static_cast<std::ptrdiff_t>((b + 1) * width), 0.0) /
               static_cast<double>(width);
  // errors[k]: squared error of the mean of the batches that are left if the first k are truncated.
  std::vector<double> errors(batches / 2 + 1);
  double sum = 0.0, squares = 0.0, least = std::numeric_limits<double>::infinity();
  for (std::size_t truncated = batches; truncated-- > 0;) {
    sum += means[truncated];
    squares += means[truncated] * means[truncated];
    if (truncated >= errors.size()) continue;
    const auto n = static_cast<double>(batches - truncated);
    errors[truncated] = std::max(0.0, squares - sum * sum / n) / (n * n);
    least = std::min(least, errors[truncated]);
  }
  const auto best = static_cast<std::size_t>(
      std::find_if(errors.begin(), errors.end(),
                   [&](double error) { return error <= mser_tolerance * least; }) -
      errors.begin());
  return best * width;
}

// Adds `tokens`, which are made evenly from `from` to `to`, to the slices of the window in which
// they are made.
void add_evenly(const SteadyWindow& window, Seconds from, Seconds to, double tokens,
                std::vector<double>& slices) {
  const Seconds width = window.span() / static_cast<double>(slices.size());
  const auto place = [&](Seconds time) {
    return std::clamp((time - window.begin) / width, 0.0, static_cast<double>(slices.size()));
  };
  const double first = place(from), last = place(to);
  if (!(to > from)) {
    if (from >= window.begin && from < window.end)
      slices[static_cast<std::size_t>(first)] += tokens;
    return;
  }
  const double each = tokens / ((to - from) / width);
  for (double at = first; at < last;) {
    const double next = std::min(last, std::floor(at) + 1.0);
    slices[std::min(slices.size() - 1, static_cast<std::size_t>(at))] += each * (next - at);
    at = next;
  }
}

// Mean time from the admission of a request to its last token.
Seconds mean_service_time(const std::vector<RequestTimes>& times) {
  Seconds sum;
  for (const RequestTimes& of : times) sum += of.e2e - of.queue;
  return sum / static_cast<double>(times.size());
}

// The backlog grows: more requests wait at the end of the second half of the sending time than in
// its middle, beyond what chance would do, or more are present, if those of the middle have not
// only just begun to fill the engine. Under overload both grow in proportion to time.
bool backlog_grows(const std::vector<RequestTimes>& times, const std::vector<std::uint32_t>& sent) {
  const Seconds end = times[sent.back()].arrival;
  const Seconds middle = times[sent[sent.size() / 2]].arrival;
  struct Found {
    double in_middle = 0.0, at_end = 0.0;
  };
  Found waiting, present;
  double came = 0.0;
  for (const RequestTimes& of : times) {
    const auto count = [&](Found& found, Seconds stay) {
      found.in_middle += of.arrival <= middle && of.arrival + stay > middle ? 1.0 : 0.0;
      found.at_end += of.arrival <= end && of.arrival + stay > end ? 1.0 : 0.0;
    };
    count(waiting, of.queue);
    count(present, of.e2e);
    came += of.arrival > middle && of.arrival <= end ? 1.0 : 0.0;
  }
  const auto grows = [&](const Found& found) {
    return found.at_end > 1.4 * found.in_middle &&
           found.at_end - found.in_middle > 3.0 * std::sqrt(came);
  };
  const Seconds sending = middle - times[sent.front()].arrival;
  return grows(waiting) || (sending > 1.5 * mean_service_time(times) && grows(present));
}

}  // namespace

SampledMean batch_mean(const std::vector<double>& values, int batches) {
  const std::size_t count = std::min(values.size(), static_cast<std::size_t>(batches));
  if (count < 2) return {values.empty() ? 0.0 : values.front(), 0.0};
  std::vector<double> means(count);
  for (std::size_t b = 0; b < count; ++b) {
    const std::size_t from = b * values.size() / count, to = (b + 1) * values.size() / count;
    means[b] = std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(from),
                               values.begin() + static_cast<std::ptrdiff_t>(to), 0.0) /
               static_cast<double>(to - from);
  }
  SampledMean found = of_batch_means(means);
  found.mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  return found;
}

SteadyWindow whole_run(const ReplayCounts& counts) {
  const ReplayTotals& totals = counts.totals;
  SteadyWindow window;
  window.begin = totals.first_arrival;
  window.end = totals.end;
  window.requests = totals.finished;
  window.ended = static_cast<double>(totals.finished);
  window.prompt_tokens = static_cast<double>(totals.prompt_tokens);
  window.output_tokens = static_cast<double>(totals.output_tokens);
  return window;
}

namespace {

// All requests in the order in which clients sent them; routers of closed loops mix the list.
std::vector<std::uint32_t> in_sending_order(const std::vector<RequestTimes>& times) {
  std::vector<std::uint32_t> sent(times.size());
  std::iota(sent.begin(), sent.end(), 0u);
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    return times[a].arrival < times[b].arrival;
  };
  if (!std::is_sorted(sent.begin(), sent.end(), earlier))
    std::stable_sort(sent.begin(), sent.end(), earlier);
  return sent;
}

Seconds mean_request_time(const std::vector<RequestTimes>& times) {
  Seconds sum;
  for (const RequestTimes& of : times) sum += of.e2e;
  return sum / static_cast<double>(times.size());
}

// The window's requests are those at [from, to) in the order of sending.
struct WindowBounds {
  std::size_t from = 0, to = 0;
};

WindowBounds find_window(const RequestList& list, const std::vector<RequestTimes>& times,
                         const std::vector<std::uint32_t>& sent, std::int64_t skipped,
                         bool overloaded) {
  // Under overload requests take longer and longer: there is no steady state to wait for.
  const Seconds a_request = overloaded ? Seconds{} : mean_request_time(times);
  const auto sent_before = [&](Seconds time) {
    return static_cast<std::size_t>(
        std::partition_point(sent.begin(), sent.end(),
                             [&](std::uint32_t i) { return times[i].arrival < time; }) -
        sent.begin());
  };
  WindowBounds window;
  window.to = std::max<std::size_t>(1, sent_before(times[sent.back()].arrival - a_request));
  if (skipped >= 0) {
    window.from = static_cast<std::size_t>(skipped);
  } else if (!overloaded) {
    window.from =
        std::max<std::size_t>(list.clients, sent_before(times[sent.front()].arrival + a_request));
    std::vector<double> series;
    for (std::size_t i = window.from; i < window.to; ++i) series.push_back(times[sent[i]].e2e.si());
    window.from += mser_truncation(series);
  }
  return window;
}

// The time in which an overloaded engine is full, whether or not requests still come: from the
// admission of one in seven, not before a request's time has passed, until that of six in seven,
// when the first replicas may run out of requests. False if that is no longer than two requests.
bool take_full_time(const std::vector<RequestTimes>& times, SteadyWindow& window) {
  std::vector<Seconds> admitted;
  admitted.reserve(times.size());
  for (const RequestTimes& of : times) admitted.push_back(of.arrival + of.queue);
  std::sort(admitted.begin(), admitted.end());
  const Seconds a_request = mean_service_time(times);
  window.begin = std::max(admitted[admitted.size() / 7], admitted.front() + a_request);
  window.end = admitted[admitted.size() - 1 - admitted.size() / 7];
  return window.span() > 2.0 * a_request;
}

// Counts tokens and answers by the time at which they are made.
void count_made(const RequestList& list, const std::vector<RequestTimes>& times,
                SteadyWindow& window) {
  std::vector<double> prompts(usual_batches), outputs(usual_batches);
  window.ended = 0.0;
  for (const RequestTimes& of : times) {
    const Seconds started = of.arrival + of.queue, token = of.arrival + of.ttft;
    const Seconds end = of.arrival + of.e2e;
    if (end < window.begin || of.arrival >= window.end) continue;
    const Request& request = list.requests[of.request];
    window.ended += end < window.end ? 1.0 : 0.0;
    add_evenly(window, started, token, request.prompt_tokens, prompts);
    add_evenly(window, token, token, 1.0, outputs);
    add_evenly(window, token, end, request.output_tokens - 1.0, outputs);
  }
  window.prompt_tokens = std::accumulate(prompts.begin(), prompts.end(), 0.0);
  window.output_tokens = std::accumulate(outputs.begin(), outputs.end(), 0.0);
  for (double& slice : outputs) slice /= (window.span() / usual_batches).si();
  window.output_rate = of_batch_means(outputs);
}

// Counts latencies of the requests that were sent in the window, in place of those of all.
void count_sent(const RequestList& list, const std::vector<RequestTimes>& times,
                std::span<const std::uint32_t> sent, const std::optional<Slo>& slo,
                ReplayCounts& counts, SteadyWindow& window) {
  counts.forget_finished();
  std::vector<double> ttft, tpot, within;
  for (const std::uint32_t i : sent) {
    const RequestTimes& of = times[i];
    const Request& request = list.requests[of.request];
    const std::optional<Slo>& limits = list.limits_of(request, slo);
    counts.finish(of, request.prompt_tokens, request.output_tokens, limits);
    ttft.push_back(of.ttft.si());
    if (request.output_tokens > 1) tpot.push_back(of.tpot.si());
    within.push_back(!limits || limits->met(of.ttft, of.tpot, of.e2e) ? 1.0 : 0.0);
  }
  window.ttft = batch_mean(ttft);
  window.tpot = batch_mean(tpot);
  window.attainment = batch_mean(within);
}

}  // namespace

SteadyWindow measure_steady(const RequestList& list, const std::vector<RequestTimes>& times,
                            std::int64_t skipped, const std::optional<Slo>& slo,
                            ReplayCounts& counts) {
  SteadyWindow window = whole_run(counts);
  const std::size_t least = skipped < 0 ? least_requests : 1;
  if (times.size() < least) return window;
  const std::vector<std::uint32_t> sent = in_sending_order(times);
  const bool overloaded = list.clients == 0 && backlog_grows(times, sent);
  window.overloaded = overloaded;
  const auto [from, to] = find_window(list, times, sent, skipped, overloaded);
  if (from + least > to && skipped >= 0)
    fail_input({"", "--skip-first"},
               "leaves no request that is sent and answered while others are as well",
               "skip fewer than " + std::to_string(to) + ", or add requests (--requests)");
  if (from + least > to) return window;

  window.whole = false;
  window.begin = times[sent[from]].arrival;
  window.end = times[sent[std::min(to, sent.size() - 1)]].arrival;
  if (overloaded && skipped < 0 && !take_full_time(times, window)) {
    window = whole_run(counts);
    window.overloaded = true;
    return window;
  }
  window.warm_up = static_cast<std::int64_t>(from);
  window.requests = static_cast<std::int64_t>(to - from);
  count_made(list, times, window);
  // The engine may still be filling with longer and longer batches: answers follow tokens.
  if (overloaded) {
    double tokens = 0.0;
    for (const RequestTimes& of : times)
      tokens += static_cast<double>(list.requests[of.request].output_tokens);
    window.ended = window.output_tokens * static_cast<double>(times.size()) / tokens;
  }
  const auto in_window = std::span{sent}.subspan(from, to - from);
  count_sent(list, times, in_window, slo, counts, window);
  window.counted.assign(in_window.begin(), in_window.end());
  window.long_enough =
      !overloaded && window.span() >= least_request_times * mean_request_time(times);
  window.steady = window.long_enough && window.output_rate.relative() <= most_rate_half &&
                  window.tpot.relative() <= most_tpot_half &&
                  window.ttft.relative() <= most_ttft_half &&
                  window.attainment.half <= most_share_half;
  return window;
}

}  // namespace orrery
