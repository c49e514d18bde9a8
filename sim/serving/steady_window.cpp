#include "sim/serving/steady_window.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace orrery {
namespace {

constexpr int usual_batches = 20;
constexpr std::size_t least_requests = 60;  // Three a batch.
// 95 % quantile of Student's t with 19 degrees of freedom.
constexpr double student = 1.729;

// A run is steady within these half widths: relative ones, and a share of requests.
constexpr double close_rate = 0.02;
constexpr double close_tpot = 0.02;
constexpr double close_ttft = 0.06;
constexpr double close_share = 0.015;
constexpr double about_as_good = 1.05;
constexpr double least_spans = 8.0;  // Of a request's time that a window lasts.

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

// MSER-5: the number of values to leave out, at most half of them.
std::size_t found_warm_up(const std::vector<double>& values) {
  constexpr std::size_t width = 5;
  const std::size_t batches = values.size() / width;
  if (batches < 4) return 0;
  std::vector<double> means(batches);
  for (std::size_t b = 0; b < batches; ++b)
    means[b] = std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(b * width),
                               values.begin() + static_cast<std::ptrdiff_t>((b + 1) * width), 0.0) /
               static_cast<double>(width);
  // Of leaving out `left_out` batches: variance of the others over their number.
  std::vector<double> errors(batches / 2 + 1);
  double sum = 0.0, squares = 0.0, least = std::numeric_limits<double>::infinity();
  for (std::size_t left_out = batches; left_out-- > 0;) {
    sum += means[left_out];
    squares += means[left_out] * means[left_out];
    if (left_out >= errors.size()) continue;
    const auto n = static_cast<double>(batches - left_out);
    errors[left_out] = std::max(0.0, squares - sum * sum / n) / (n * n);
    least = std::min(least, errors[left_out]);
  }
  // Chance alone moves the least: the first that is about as good.
  const auto best = static_cast<std::size_t>(
      std::find_if(errors.begin(), errors.end(),
                   [&](double error) { return error <= about_as_good * least; }) -
      errors.begin());
  return best * width;
}

// Share of the time from `from` to `to` that lies in the window; a moment lies in it or not.
double share_within(const SteadyWindow& window, Seconds from, Seconds to) {
  if (!(to > from)) return from >= window.begin && from < window.end ? 1.0 : 0.0;
  const Seconds inside = std::min(to, window.end) - std::max(from, window.begin);
  return std::max(0.0, inside / (to - from));
}

// Adds tokens made evenly from `from` to `to` to slices of the window.
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

// The backlog grows: more requests are present at the end of the second half of the sending time
// than in its middle, beyond what chance would do. Under overload it grows in proportion to time.
bool grows(const std::vector<RequestTimes>& times, const std::vector<std::uint32_t>& sent) {
  const Seconds end = times[sent.back()].arrival;
  const Seconds middle = times[sent[sent.size() / 2]].arrival;
  double present_middle = 0.0, present_end = 0.0, came = 0.0;
  for (const RequestTimes& of : times) {
    if (of.arrival <= middle && of.arrival + of.e2e > middle) present_middle += 1.0;
    if (of.arrival <= end && of.arrival + of.e2e > end) present_end += 1.0;
    if (of.arrival > middle && of.arrival <= end) came += 1.0;
  }
  return present_end > 1.4 * present_middle && present_end - present_middle > 3.0 * std::sqrt(came);
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

SteadyWindow measure_steady(const RequestList& list, const std::vector<RequestTimes>& times,
                            std::int64_t skipped, const std::optional<Slo>& slo,
                            ReplayCounts& counts) {
  SteadyWindow window = whole_run(counts);
  if (times.size() < least_requests && skipped < 0) return window;
  // Requests in the order of their sending; in a closed loop a router may reorder them.
  std::vector<std::uint32_t> sent(times.size());
  std::iota(sent.begin(), sent.end(), 0u);
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    return times[a].arrival < times[b].arrival;
  };
  if (!std::is_sorted(sent.begin(), sent.end(), earlier))
    std::stable_sort(sent.begin(), sent.end(), earlier);
  const bool open = list.clients == 0;
  window.overloaded = open && grows(times, sent);

  double mean_e2e = 0.0;
  for (const RequestTimes& of : times) mean_e2e += of.e2e.si();
  mean_e2e /= static_cast<double>(times.size());
  const Seconds first = times[sent.front()].arrival;
  const auto sent_before = [&](Seconds time) {
    return static_cast<std::size_t>(
        std::partition_point(sent.begin(), sent.end(),
                             [&](std::uint32_t i) { return times[i].arrival < time; }) -
        sent.begin());
  };
  // Under overload requests take longer and longer: there is no steady state to wait for.
  const Seconds a_request{window.overloaded ? 0.0 : mean_e2e};
  const std::size_t to =
      std::max<std::size_t>(1, sent_before(times[sent.back()].arrival - a_request));
  std::size_t from = 0;
  if (skipped >= 0) {
    from = static_cast<std::size_t>(skipped);
  } else if (!window.overloaded) {
    from = std::max<std::size_t>(open ? 0 : list.clients, sent_before(first + a_request));
    if (from < to) {
      std::vector<double> series;
      for (std::size_t i = from; i < to; ++i) series.push_back(times[sent[i]].e2e.si());
      from += found_warm_up(series);
    }
  }
  if (from + (skipped < 0 ? least_requests : 1) > to) {
    window.overloaded = false;
    return window;
  }
  window.whole = false;
  window.begin = times[sent[from]].arrival;
  window.end = to < sent.size() ? times[sent[to]].arrival : times[sent.back()].arrival;
  window.warm_up = static_cast<std::int64_t>(from);
  window.requests = static_cast<std::int64_t>(to - from);

  ReplayCounts of_window = counts;
  for (LatencyHistogram* histogram :
       {&of_window.ttft, &of_window.tpot, &of_window.e2e, &of_window.queue})
    *histogram = {};
  ReplayTotals& totals = of_window.totals;
  totals.finished = totals.within_slo = 0;
  totals.prompt_tokens = totals.output_tokens = 0;
  totals.prefix_hit_tokens = totals.host_hit_tokens = 0;
  std::vector<double> ttft, tpot, within;
  for (std::size_t i = from; i < to; ++i) {
    const RequestTimes& of = times[sent[i]];
    const Request& request = list.requests[of.request];
    of_window.finish(of, request.prompt_tokens, request.output_tokens, slo);
    ttft.push_back(of.ttft.si());
    if (request.output_tokens > 1) tpot.push_back(of.tpot.si());
    within.push_back(!slo || slo->met(of.ttft, of.tpot, of.e2e) ? 1.0 : 0.0);
  }
  std::vector<double> slices(usual_batches);
  window.ended = window.prompt_tokens = window.output_tokens = 0.0;
  for (const RequestTimes& of : times) {
    const Seconds token = of.arrival + of.ttft, end = of.arrival + of.e2e;
    if (end < window.begin || of.arrival >= window.end) continue;
    const Request& request = list.requests[of.request];
    window.ended += end >= window.begin && end < window.end ? 1.0 : 0.0;
    const Seconds started = of.arrival + of.queue;
    window.prompt_tokens += request.prompt_tokens * share_within(window, started, token);
    add_evenly(window, token, token, 1.0, slices);
    if (request.output_tokens > 1)
      add_evenly(window, token, end, request.output_tokens - 1.0, slices);
  }
  counts = std::move(of_window);
  window.output_tokens = std::accumulate(slices.begin(), slices.end(), 0.0);
  for (double& slice : slices) slice /= (window.span() / usual_batches).si();
  window.output_rate = of_batch_means(slices);
  window.ttft = batch_mean(ttft);
  window.tpot = batch_mean(tpot);
  window.attainment = batch_mean(within);
  window.lasts = !window.overloaded && window.span().si() >= least_spans * mean_e2e;
  window.steady = window.lasts && window.output_rate.relative() <= close_rate &&
                  window.tpot.relative() <= close_tpot && window.ttft.relative() <= close_ttft &&
                  window.attainment.half <= close_share;
  return window;
}

}  // namespace orrery
