// How many requests a second of CPU a replay takes, and how long a trace of the size of BurstGPT's
// takes with reading. Prints; fails only where a limit of ten times the usual time is exceeded.
//
//     build/release/tests/replay_bench [rows of the trace]

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "sim/core/random.hpp"
#include "sim/formats/requests/read_requests.hpp"
#include "sim/serving/replay_requests.hpp"
#include "sim/serving/request_traffic.hpp"
#include "tests/bench/child.hpp"

namespace {

using namespace orrery;

// About a model of 70 billion parameters on two GPUs.
StepCosts step_costs() {
  StepCosts costs;
  costs.dense = [](double tokens) { return Seconds{0.008 + 1e-5 * tokens}; };
  costs.decode_attention = [](double n, double c) { return Seconds{1e-4 + 1e-6 * n + 2e-9 * c}; };
  costs.prefill_attention = [](double q, double p) {
    return Seconds{1e-9 * (q * p + 0.5 * q * q)};
  };
  costs.head = [](double rows) { return Seconds{1e-4 + 1e-7 * rows}; };
  costs.host = [](double requests) { return Seconds{2e-3 + 2e-5 * requests}; };
  costs.gap = [](double requests) { return Seconds{8e-6 * requests}; };
  return costs;
}

constexpr std::uint32_t replicas = 64;

ReplayShape fleet() {
  ReplayShape shape;
  shape.replicas = replicas;
  shape.replica.kv = {400'000, 16, true};
  return shape;
}

// Prompts of chats: a system prompt of a thousand applications and what was said before, in hash
// blocks of 512 tokens, as traces have them.
RequestList chats(std::int64_t requests) {
  RequestTraffic traffic;
  traffic.arrivals = Arrivals::poisson;
  traffic.rate = 4.0 * replicas;
  traffic.requests = requests;
  traffic.prompt = {LengthDistribution::Kind::lognormal, 735, 735, 0.8};
  traffic.output = {LengthDistribution::Kind::lognormal, 200, 200, 0.8};
  RequestList list = sample_requests(traffic);
  list.hash_tokens = 512;
  Random random{7};
  for (Request& request : list.requests) {
    request.first_hash = static_cast<std::uint32_t>(list.hashes.size());
    request.hashes = request.prompt_tokens / 512;
    const std::uint64_t chat = random.below(1000);
    for (std::uint32_t i = 0; i < request.hashes; ++i) list.hashes.push_back(chat << 20 | i);
  }
  return list;
}

struct Timed {
  double cpu_s = 0.0;
  ReplayCounts counts;
};

Timed timed(const RequestList& list, const ReplayShape& shape) {
  const double before = cpu_seconds();
  Timed result;
  result.counts = replay_requests(list, shape, step_costs()).counts;
  result.cpu_s = cpu_seconds() - before;
  return result;
}

void print(const char* what, std::int64_t requests, const Timed& timed) {
  const ReplayTotals& totals = timed.counts.totals;
  note(what, timed.cpu_s,
       {{"requests", static_cast<double>(requests)},
        {"events", static_cast<double>(totals.events)},
        {"output_tokens", static_cast<double>(totals.output_tokens)}});
  std::printf("%-44s %8.2f M requests/s  %5.2f events a request  %6.1f G tokens/s\n", what,
              static_cast<double>(requests) / timed.cpu_s / 1e6,
              static_cast<double>(totals.events) / static_cast<double>(requests),
              static_cast<double>(totals.prompt_tokens + totals.output_tokens) / timed.cpu_s / 1e9);
}

// A CSV of BurstGPT's columns: its mean lengths are some 600 and 130 tokens, and 2 % of its
// requests failed (arXiv 2401.17644).
void write_burstgpt(const std::string& path, std::int64_t rows) {
  std::ofstream file{path};
  file << "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n";
  Random random{11};
  const LengthDistribution prompt{LengthDistribution::Kind::lognormal, 350, 350, 1.0};
  const LengthDistribution answer{LengthDistribution::Kind::lognormal, 80, 80, 1.0};
  std::int64_t time = 0;
  char line[96];
  for (std::int64_t i = 0; i < rows; ++i) {
    time += static_cast<std::int64_t>(random.below(3));
    const unsigned in = prompt.sample(random);
    const unsigned out = random.below(50) == 0 ? 0u : answer.sample(random);
    std::snprintf(line, sizeof line, "%lld,ChatGPT,%u,%u,%u,API log\n",
                  static_cast<long long>(time), in, out, in + out);
    file << line;
  }
}

}  // namespace

int main(int count, char** words) {
  const std::int64_t rows = count > 1 ? std::atoll(words[1]) : 5'000'000;
  const std::int64_t requests = 1'000'000;
  const RequestList list = chats(requests);
  ReplayShape shape = fleet();
  const Timed usual = timed(list, shape);
  print("64 replicas, prefix tree, percentiles", requests, usual);
  shape.replica.kv.keeps_prefixes = false;
  print("the same without the tree", requests, timed(list, shape));
  shape.replica.kv.keeps_prefixes = true;
  shape.replica.replay.routing = Routing::prefix;
  print("a router that looks for the longest prefix", requests, timed(list, shape));

  const std::string path = "/tmp/orrery_replay_bench.csv";
  write_burstgpt(path, rows);
  const double before = cpu_seconds();
  const RequestTrace trace = read_request_trace(path, {});
  const double reading = cpu_seconds() - before;
  ReplayShape one = fleet();
  one.replicas = 4;
  const Timed burst = timed(trace.list, one);
  std::remove(path.c_str());
  note("reading a trace", reading, {{"rows", static_cast<double>(rows)}});
  std::printf(
      "a trace of %lld rows: %.2f s of reading and %.2f s of replay on one core, %lld "
      "failed\n",
      static_cast<long long>(rows), reading, burst.cpu_s,
      static_cast<long long>(trace.list.failed));
  print("4 replicas", static_cast<std::int64_t>(trace.list.requests.size()), burst);
  return usual.cpu_s < 10.0 && reading + burst.cpu_s < 100.0 ? 0 : 1;
}
