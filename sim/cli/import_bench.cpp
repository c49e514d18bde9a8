#include "sim/cli/import_bench.hpp"

#include <iostream>

#include "sim/cli/import_output.hpp"
#include "sim/core/text_file.hpp"
#include "sim/formats/benchmarks/benchmark_result.hpp"

namespace po = boost::program_options;

namespace orrery {

int import_bench(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  const auto text = [](const char* value) { return po::value<std::string>()->value_name(value); };
  options.add_options()("plan", text("FILE"),
                        "the deployment that was measured, as orrery import server writes it")(
      "system", text("NAME|FILE"), "the cluster on which it ran");
  add_output_options(options);
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery import bench FILE... --plan DEPLOYMENT --system NAME [options]\n\n"
                 "Reads results of vLLM's and SGLang's benchmarks, AIPerf, GenAI-Perf, "
                 "inference-perf and\nInferenceX; writes cases for orrery validate and orrery "
                 "serve --runs.\n\n"
              << options;
    return exit_ok;
  }
  if (parsed.words.empty()) fail_input({}, "nothing to import", "name a result");
  std::optional<JsonValue> deployment;
  if (parsed.has("plan")) deployment = JsonValue::read_file(parsed.text("plan"));
  std::string cases;
  std::vector<std::string> notes;
  for (const std::string& file : parsed.words) {
    const std::vector<BenchmarkResult> results = read_benchmark_results(read_text_file(file), file);
    for (const BenchmarkResult& result : results)
      for (const std::string& note : result.notes) notes.push_back(file + ": " + note);
    cases += (cases.empty() ? "" : ",\n") +
             benchmark_cases(results, file, deployment,
                             parsed.has("system") ? parsed.text("system") : "");
  }
  write_result(parsed, "[\n" + cases + "\n]\n", notes);
  return exit_ok;
}

}  // namespace orrery
