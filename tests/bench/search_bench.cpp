// How many plans a warm process simulates in a second of CPU, over whole spaces of plans, and how
// long the search of a large space takes. Prints; asserts nothing by the clock, but fails where a
// search is not proven.
//
//     build/release/tests/search_bench          the tables of docs/notes/speed.md
//     build/release/tests/search_bench 500      every 500th plan of the default software alone

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "sim/core/process.hpp"
#include "sim/layers/memory.hpp"
#include "sim/search/search.hpp"
#include "sim/training/estimate.hpp"
#include "tests/bench/child.hpp"

namespace {

using namespace orrery;

struct Space {
  const char* model;
  const char* system;
  int gpus;
  std::int64_t gbs;
  std::vector<Fixed> fixed;
};

PlanSpace plans_of(const Space& space) {
  return {read_model(space.model, {}), read_system(space.system, {}), space.gpus, space.gbs,
          space.fixed};
}

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
Rates simulate(const Space& of, int every) {
  const PlanSpace space = plans_of(of);
  const System& system = space.system();
  EstimateContext context{system};
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

void print_rate(const std::string& what, const Rate& rate) {
  note(what, rate.cpu_s,
       {{"fit", static_cast<double>(rate.fits)},
        {"simulated", static_cast<double>(rate.simulated)}});
  std::printf("%-46s %9ld %9ld %10.2f %10.1f %12.0f\n", what.c_str(), rate.fits, rate.simulated,
              1e3 * rate.cpu_s / static_cast<double>(rate.simulated), 1e3 * rate.slowest_s,
              static_cast<double>(rate.simulated) / rate.cpu_s);
}

void print_rates(const std::string& what, const Space& space, int every) {
  const Rates rates = simulate(space, every);
  const Rate &inside = rates.inside, &across = rates.across;
  print_rate(what, {inside.fits + across.fits, inside.simulated + across.simulated,
                    inside.cpu_s + across.cpu_s, std::max(inside.slowest_s, across.slowest_s)});
  print_rate(what + ", tp x cp in a node", inside);
  if (across.simulated > 0) print_rate(what + ", across nodes", across);
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
bool print_search(const Space& space, const char* what) {
  const PlanSpace plans = plans_of(space);
  SearchRequest request;
  request.model = plans.model();
  request.systems = {plans.system()};
  request.gpus = {space.gpus};
  request.gbs = {space.gbs};
  request.fixed = space.fixed;
  request.workers = 2;
  const double configurations = plans.configurations();
  timespec begin{};
  timespec end{};
  const double cpu = cpu_seconds() + cpu_of_children();
  clock_gettime(CLOCK_MONOTONIC, &begin);
  const SearchResult found = search(request);
  clock_gettime(CLOCK_MONOTONIC, &end);
  const double spent = cpu_seconds() + cpu_of_children() - cpu;
  note("search, " + std::string{what} + ", batch " + std::to_string(space.gbs), spent,
       {{"legal", static_cast<double>(found.legal)},
        {"fit", static_cast<double>(found.fits)},
        {"simulated", static_cast<double>(found.simulated)}});
  std::printf("%-14s %6ld %12.0f %9ld %9ld %9ld %8.3f %7.1f %7.1f %s\n", what,
              static_cast<long>(space.gbs), configurations, static_cast<long>(found.legal),
              static_cast<long>(found.fits), static_cast<long>(found.simulated),
              found.plans.front().result.step_time.si(), spent,
              static_cast<double>(end.tv_sec - begin.tv_sec) +
                  1e-9 * static_cast<double>(end.tv_nsec - begin.tv_nsec),
              found.optimal ? "proven" : "NOT PROVEN");
  return found.optimal;
}

}  // namespace

int main(int count, char** words) {
  use_large_pages();  // As the program does.
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  const int every = count > 1 ? std::max(1, std::atoi(words[1])) : 1;
  const auto gpt3 = [](int gpus, std::int64_t gbs, const std::vector<Fixed>& fixed) {
    return Space{"gpt3-175b", "dgx-a100-80gb", gpus, gbs, fixed};
  };
  const std::vector<Fixed> of_2021{{"software", {"megatron-2021"}}};
  const Space deepseek{
      "deepseek-v3",
      "dgx-h100",
      2048,
      15360,
      {{"seq", {"4096"}}, {"tp", {"1"}}, {"cp", {"1"}}, {"mbs", {"1"}}, {"recompute", {"full"}}}};
  std::printf(
      "plans simulated one after another: GPT-3 175B on 1,024 A100s, batch 1,536;\n"
      "DeepSeek-V3 on 2,048 H100s, batch 15,360, tp 1, full recomputation\n\n");
  std::printf("%-46s %9s %9s %10s %10s %12s\n", "", "fit", "simulated", "mean (ms)", "most (ms)",
              "plans/s");
  print_rates("megatron-2021", gpt3(1024, 1536, of_2021), 1);
  print_rates("default software", gpt3(1024, 1536, {}), every);
  print_rates("DeepSeek-V3", deepseek, std::max(1, every / 100));

  std::printf("\nGPT-3 175B on 4,096 A100s: search of every plan in two processes\n\n");
  std::printf("%-14s %6s %12s %9s %9s %9s %8s %7s %7s\n", "software", "batch", "combinations",
              "divide", "fit", "simulated", "best (s)", "CPU s", "wall s");
  bool proven = true;
  for (std::int64_t gbs : {1536, 3072}) {
    proven = print_search(gpt3(4096, gbs, of_2021), "megatron-2021") && proven;
    proven = print_search(gpt3(4096, gbs, {}), "default") && proven;
  }
  return proven ? 0 : 1;
}
