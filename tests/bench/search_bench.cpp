// How many plans a warm process simulates in a second of CPU, over whole spaces of plans, and how
// long the search of a large space takes. Prints; asserts nothing by the clock, but fails where a
// search is not proven.
//
//     build/release/tests/search_bench          the tables of docs/SPEED.md
//     build/release/tests/search_bench 500      every 500th plan of the default software alone

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "sim/analysis/estimate/estimate.hpp"
#include "sim/analysis/search/search.hpp"
#include "sim/cost/memory/memory.hpp"
#include "tests/bench/child.hpp"

namespace {

using namespace orrery;

const char* const model = "gpt3-175b";
const char* const system_name = "dgx-a100-80gb";

struct Rate {
  long fits = 0;
  long simulated = 0;
  double cpu_s = 0.0;
  double slowest_s = 0.0;
};

// Plans whose tensor and context ranks share a node, and those where they do not.
struct Rates {
  Rate inside, across;
};

// Every `every`-th plan that fits, in one process.
Rates simulate(int gpus, std::int64_t gbs, const std::vector<Fixed>& fixed, int every) {
  const System system = read_system(system_name, {});
  EstimateContext context{system};
  const PlanSpace space{read_model(model, {}), system, gpus, gbs, fixed};
  Rates rates;
  long fits = 0;
  PlanRefusal unused;
  for (int part = 0; part < space.parts(); ++part)
    space.visit(
        part,
        [&](const PlanSpace::Choice&, const Scenario& scenario) {
          if (!memory_of(scenario).fits()) return true;
          const Plan& plan = scenario.plan;
          Rate& rate = plan.tp * plan.cp <= system.gpus_per_node ? rates.inside : rates.across;
          ++rate.fits;
          if (fits++ % every != every / 2) return true;
          const double before = cpu_seconds();
          step_time(scenario, context);
          const double spent = cpu_seconds() - before;
          ++rate.simulated;
          rate.cpu_s += spent;
          rate.slowest_s = std::max(rate.slowest_s, spent);
          return true;
        },
        unused);
  return rates;
}

void print_rate(const char* what, const Rate& rate) {
  std::printf("%-34s %9ld %9ld %10.2f %10.1f %12.0f\n", what, rate.fits, rate.simulated,
              1e3 * rate.cpu_s / static_cast<double>(rate.simulated), 1e3 * rate.slowest_s,
              static_cast<double>(rate.simulated) / rate.cpu_s);
}

void print_rates(const char* what, const std::vector<Fixed>& fixed, int every) {
  const Rates rates = simulate(1024, 1536, fixed, every);
  const Rate &inside = rates.inside, &across = rates.across;
  print_rate(what, {inside.fits + across.fits, inside.simulated + across.simulated,
                    inside.cpu_s + across.cpu_s, std::max(inside.slowest_s, across.slowest_s)});
  print_rate("  tp x cp in a node", inside);
  print_rate("  across nodes", across);
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double cpu_of_children() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// False where the answer is not proven.
bool print_search(std::int64_t gbs, const std::vector<Fixed>& fixed, const char* what) {
  SearchRequest request;
  request.model = read_model(model, {});
  request.systems = {read_system(system_name, {})};
  request.gpus = {4096};
  request.gbs = {gbs};
  request.fixed = fixed;
  request.workers = 2;
  const double configurations =
      PlanSpace{request.model, request.systems[0], 4096, gbs, fixed}.configurations();
  timespec begin{};
  timespec end{};
  const double cpu = cpu_seconds() + cpu_of_children();
  clock_gettime(CLOCK_MONOTONIC, &begin);
  const SearchResult found = search(request);
  clock_gettime(CLOCK_MONOTONIC, &end);
  std::printf("%-14s %6ld %12.0f %9ld %9ld %9ld %8.3f %7.1f %7.1f %s\n", what,
              static_cast<long>(gbs), configurations, static_cast<long>(found.legal),
              static_cast<long>(found.fits), static_cast<long>(found.simulated),
              found.plans.front().result.step_time.si(), cpu_seconds() + cpu_of_children() - cpu,
              static_cast<double>(end.tv_sec - begin.tv_sec) +
                  1e-9 * static_cast<double>(end.tv_nsec - begin.tv_nsec),
              found.optimal ? "proven" : "NOT PROVEN");
  return found.optimal;
}

}  // namespace

int main(int count, char** words) {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  const int every = count > 1 ? std::max(1, std::atoi(words[1])) : 1;
  const std::vector<Fixed> of_2021{{"software", {"megatron-2021"}}};
  std::printf("%s on 1,024 GPUs, batch 1,536: plans simulated one after another\n\n", model);
  std::printf("%-34s %9s %9s %10s %10s %12s\n", "", "fit", "simulated", "mean (ms)", "most (ms)",
              "plans/s");
  print_rates("megatron-2021", of_2021, 1);
  print_rates("default software", {}, every);

  std::printf("\n%s on 4,096 GPUs: search of every plan in two processes\n\n", model);
  std::printf("%-14s %6s %12s %9s %9s %9s %8s %7s %7s\n", "software", "batch", "combinations",
              "divide", "fit", "simulated", "best (s)", "CPU s", "wall s");
  bool proven = true;
  for (std::int64_t gbs : {1536, 3072}) {
    proven = print_search(gbs, of_2021, "megatron-2021") && proven;
    proven = print_search(gbs, {}, "default") && proven;
  }
  return proven ? 0 : 1;
}
