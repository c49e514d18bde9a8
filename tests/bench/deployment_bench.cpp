// How many deployments a second of CPU the closed forms of serving judge, and how long a search of
// them takes. Prints; asserts nothing by the clock.
//
//     build/release/tests/deployment_bench

#include <cstdio>

#include "sim/search/deployment_search.hpp"
#include "sim/search/serving_bound.hpp"
#include "sim/serving/steady_serving.hpp"
#include "tests/bench/child.hpp"

namespace {

using namespace orrery;

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// CPU time of this process and of its workers.
double all_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return cpu_seconds() + seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Case {
  const char* model;
  std::vector<const char*> systems;
  std::vector<const char*> engines;
  int gpus;
  std::vector<Fixed> fixed;
};

DeploymentSearchRequest request_of(const Case& one) {
  DeploymentSearchRequest request;
  request.model = read_model(one.model, {});
  for (const char* system : one.systems)
    for (const char* engine : one.engines)
      request.platforms.push_back(
          {read_system(system, {}), read_serving_engine(engine, {}), one.gpus, system, engine});
  request.fixed = one.fixed;
  for (int clients = 1; clients <= 1024; clients *= 2) {
    RequestTraffic traffic;
    traffic.concurrency = clients;
    traffic.prompt = parse_length_distribution("1024", {});
    traffic.output = parse_length_distribution("1024", {});
    traffic.requests = 10 * clients;
    ServingLoad load;
    load.list = sample_requests(traffic);
    request.loads.push_back(std::move(load));
  }
  return request;
}

// Every layout under every load; the time includes reading the tables and costing the kernels.
void print_closed_forms(const Case& one) {
  const DeploymentSearchRequest request = request_of(one);
  const double begin = cpu_seconds();
  const DeploymentSpace space = deployment_space(request.model, request.platforms, request.fixed,
                                                 longest_of(request.loads.back().list));
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const ServingKernels>> kernels;
  std::vector<std::unique_ptr<const PricedServing>> priced;
  for (const DeploymentLayout& layout : space.layouts) {
    const ServingPlatform& on = request.platforms[static_cast<std::size_t>(layout.platform)];
    auto& shared = kernels[{on.system_word, on.engine_word}];
    if (!shared) shared = std::make_shared<const ServingKernels>(on.system.gpu, on.engine);
    priced.push_back(std::make_unique<const PricedServing>(
        ServingSetup{request.model, on.system, on.engine, layout.plan}, shared));
  }
  long states = 0;
  double sum = 0.0;
  for (const auto& serving : priced)
    for (const ServingLoad& load : request.loads) {
      const SteadyState state = steady_state(*serving, {1024, 1024, load.list.clients}, {"", ""});
      sum += state.output_tokens_per_s;
      ++states;
    }
  const double steady = cpu_seconds() - begin;
  std::vector<RequestWork> works;
  for (const ServingLoad& load : request.loads) works.emplace_back(load.list);
  const double before = cpu_seconds();
  for (const auto& serving : priced) {
    const ServingBound bound{*serving, 1024};
    for (std::size_t l = 0; l < works.size(); ++l)
      sum += bound.least_span(works[l], request.loads[l]).si();
  }
  const double bounds = cpu_seconds() - before;
  note(std::string{one.model} + ", steady states", steady,
       {{"points", static_cast<double>(states)}});
  note(std::string{one.model} + ", bounds", bounds, {{"points", static_cast<double>(states)}});
  const auto rate = [&](double seconds) { return static_cast<double>(states) / seconds; };
  std::printf("%-16s %9zu %9ld %12.0f %12.0f %10.3g\n", one.model, space.layouts.size(), states,
              rate(steady), rate(bounds), sum);
}

void print_search(const Case& one, bool pareto) {
  DeploymentSearchRequest request = request_of(one);
  if (pareto) request.list.kind = BestList::Kind::front;
  const double begin = all_cpu_seconds();
  const DeploymentSearchResult result = search_deployments(request);
  const double spent = all_cpu_seconds() - begin;
  const char* listed = pareto ? "pareto" : "top";
  note(std::string{one.model} + ", search, " + listed, spent,
       {{"points", static_cast<double>(result.points)},
        {"replayed", static_cast<double>(result.replayed)}});
  std::printf("%-16s %-6s %9ld %9ld %10.2f\n", one.model, listed, static_cast<long>(result.points),
              static_cast<long>(result.replayed), spent);
}

}  // namespace

int main() {
  const std::vector<Case> cases{
      {"llama3.1-70b",
       {"dgx-h100", "dgx-h200", "dgx-b200"},
       {"vllm", "sglang", "trtllm"},
       8,
       {{"weights", {"bf16", "fp8"}}, {"kv", {"bf16", "fp8"}}}},
      {"deepseek-v3",
       {"dgx-h200", "dgx-b200"},
       {"vllm", "sglang"},
       16,
       {{"weights", {"fp8_block"}}}},
      {"qwen3-32b", {"rtx-pro-6000-pcie", "l40s-pcie", "dgx-h100"}, {"vllm"}, 8, {}}};
  std::printf("%-16s %9s %9s %12s %12s %10s\n", "closed forms", "layouts", "points", "steady/s",
              "bounds/s", "checksum");
  for (const Case& one : cases) print_closed_forms(one);
  std::printf("\n%-16s %-6s %9s %9s %10s\n", "search", "", "points", "replayed", "CPU s");
  for (const Case& one : cases)
    for (const bool pareto : {false, true}) print_search(one, pareto);
}
