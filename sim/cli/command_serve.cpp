#include <iostream>

#include "sim/cli/deployment_option.hpp"
#include "sim/cli/options.hpp"
#include "sim/cli/serve_pools.hpp"
#include "sim/cli/serve_search.hpp"
#include "sim/cli/serve_setup.hpp"
#include "sim/cli/serve_traffic.hpp"
#include "sim/core/shell_word.hpp"
#include "sim/serving/serving_step_text.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

po::options_description serve_options() {
  po::options_description options = deployment_options();
  options.add_options()                   //
      ("json", "print orrery.serving/1")  //
      ("help", "this text");
  return options;
}

}  // namespace

int run_serve(const Arguments& arguments) {
  po::options_description options = serve_options();
  options.add(traffic_options()).add(pool_options()).add(serve_search_options());
  ParsedOptions parsed = parse_options(options, arguments, {"chunked", "mixed"});
  if (parsed.has("help")) {
    std::cout
        << "usage: orrery serve --model NAME|FILE --system NAME|FILE --gpus N --engine NAME "
           "--step NxC [options]\n"
           "       orrery serve ... --isl LAW --osl LAW --concurrency N|--rate R|--arrival "
           "burst\n"
           "       orrery serve ... --trace FILE\n"
           "       orrery serve --plan FILE ...\n"
           "       orrery serve ... --prefill LIST --decode LIST ...\n"
           "       orrery serve --search ... --isl LAW --osl LAW [--concurrency LIST]\n\n"
           "What an iteration of a serving engine costs, and how many tokens its KV cache "
           "holds\n(docs/SERVING.md); or what clients see who send requests "
           "(docs/REPLAY.md); or\nwhich deployment is the best for them (docs/DEPLOYMENTS.md).\n\n"
        << options;
    return exit_ok;
  }
  if (!parsed.words.empty())
    fail_input({}, "'" + parsed.words.front() + "' is no option", "write --model, --system, ...");
  take_deployment_file(parsed);
  if (parsed.has("search")) return serve_search(parsed, typed_command("serve", arguments));
  for (const char* other : {"objective", "fix", "top", "all-settings", "pareto", "csv", "html"})
    if (parsed.has(other))
      fail_input({"", std::string{"--"} + other}, "belongs to a search", "add --search");
  const Place at{"", ""};
  for (const char* key : {"model", "system", "engine"})
    required(parsed, key, std::string{"name one: orrery list "} + key + "s");
  const std::optional<PoolsRequest> pools = read_pools(parsed, read_deployment_flags(parsed));
  if (has_traffic(parsed) && parsed.has("step"))
    fail_input(at / "step", "is one iteration, and requests take many", "keep one of them");
  std::optional<Iteration> iteration;
  if (!has_traffic(parsed))
    iteration = parse_iteration(
        required(parsed, "step",
                 "write an iteration, --step 64x4096, or requests, --isl 1024 --osl "
                 "1024 --concurrency 64"));
  if (pools) return serve_pools(parsed, *pools, iteration);
  if (!iteration) {
    const Stopwatch watch;
    const PricedServing priced{read_serving_setup(parsed)};
    const auto serve = [&](const ServingLoad& load) { return serve_requests(priced, load, at); };
    return serve_traffic(parsed,
                         {priced.setup.system, priced.setup.deployment.gpus(), serve, watch});
  }
  const ServingSetup setup = read_serving_setup(parsed);
  const ServingStep step = serving_step(setup, *iteration, at);
  const TokenCost cost =
      token_cost(step.tokens_per_s, static_cast<double>(setup.deployment.gpus()),
                 read_economics(setup.system.gpu.name,
                                parsed.has("economics") ? parsed.text("economics") : ""));
  std::cout << (parsed.has("json") ? serving_step_json(step, cost) : serving_step_text(step, cost));
  return exit_ok;
}

}  // namespace orrery
