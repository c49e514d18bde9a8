#include <algorithm>
#include <iostream>

#include "sim/analysis/estimate/estimate.hpp"
#include "sim/cli/options/engine_option.hpp"
#include "sim/cli/options/long_work.hpp"
#include "sim/cli/options/memory_option.hpp"
#include "sim/cli/options/scenario_options.hpp"
#include "sim/output/answers/compare_text.hpp"
#include "sim/output/report/result_json.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

constexpr std::size_t most_plans = 26;  // A letter each.

po::options_description compare_options() {
  po::options_description options{"What comes out", 100};
  options.add_options()  //
      ("economics", po::value<std::string>()->value_name("FILE"),
       "your prices, over those of topologies/economics")      //
      ("json", "print orrery.compare/1 instead of the table")  //
      ("help", "this text");
  return options;
}

po::options_description all_options() {
  po::options_description options;
  options.add(scenario_options())
      .add(engine_option())
      .add(memory_option())
      .add(host_memory_option())
      .add(compare_options());
  return options;
}

// "--tp 8 --pp 4" in one word is a plan.
bool is_flags(const std::string& word) {
  return word.starts_with("--") && word.find(' ') != word.npos;
}

Arguments split(const std::string& flags) {
  Arguments words;
  for (std::size_t begin = 0; begin < flags.size();) {
    const std::size_t end = std::min(flags.find(' ', begin), flags.size());
    if (end > begin) words.push_back(flags.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// Plans in the order in which they were named; the rest are options for all of them.
struct Request {
  Arguments plans;
  ParsedOptions common;
};

Request read_request(const Arguments& arguments) {
  Arguments flags;
  Arguments others;
  for (const std::string& word : arguments) {
    // A word that no plan can be called marks the place.
    others.push_back(is_flags(word) ? "\n" + std::to_string(flags.size()) : word);
    if (is_flags(word)) flags.push_back(word);
  }
  Request request{{}, parse_options(all_options(), others, scenario_booleans())};
  for (const std::string& word : request.common.words)
    request.plans.push_back(word.starts_with('\n') ? flags[std::stoul(word.substr(1))] : word);
  return request;
}

// `own` and, where it leaves an option open, those for all plans.
ParsedOptions over_common(Arguments own, const ParsedOptions& common) {
  const po::options_description options = scenario_options();
  const ParsedOptions said = parse_options(options, own, scenario_booleans());
  if (!said.words.empty())
    fail_input({}, "'" + said.words[0] + "' belongs to no option", "see orrery compare --help");
  for (const auto& option : options.options()) {
    const std::string& name = option->long_name();
    if (said.has(name) || !common.has(name)) continue;
    own.push_back("--" + name);
    own.push_back(common.text(name));
  }
  return parse_options(options, own, scenario_booleans());
}

ComparedPlan estimated(const ParsedOptions& options, const std::string& source,
                       const Detail& detail) {
  if (!options.has("plan") && !options.has("model"))
    fail_input(
        {source, ""}, "names no model",
        "add --model for all plans, or begin it with a plan file: \"--plan FILE " + source + "\"");
  const std::string result = result_json(estimate(read_scenario(options), detail).result);
  return read_compared_plan(JsonValue::parse(result, source), source);
}

ComparedPlan compared_plan(const std::string& word, const ParsedOptions& common) {
  const Detail detail{.engine = engine_of(common),
                      .host_memory = host_memory_of(common),
                      .most_memory = memory_limit_of(common)};
  if (is_flags(word)) return estimated(over_common(split(word), common), word, detail);
  const JsonValue file = read_plan_file(word, {word, ""});
  if (file.is_object() && file.has("schema")) return read_compared_plan(file, word);
  return estimated(over_common({"--plan", word}, common), word, detail);
}

std::optional<Range> rent_of(const ComparedPlan& plan, const ParsedOptions& options) {
  const std::string file = options.has("economics") ? options.text("economics") : "";
  const Range rent = read_economics(plan.range.gpu, file).rent_usd_per_gpu_hour;
  return rent.known() ? std::optional{rent} : std::nullopt;
}

}  // namespace

int run_compare(const Arguments& arguments) {
  const Request request = read_request(arguments);
  if (request.common.has("help")) {
    std::cout << "usage: orrery compare PLAN PLAN... [options]\n\n"
                 "A PLAN is a result (of orrery estimate --json), a search (of orrery search\n"
                 "--json: its first plan), a plan file, or options in quotes: \"--tp 8 --pp 4\".\n"
                 "Other options are for all plans.\n\n"
              << all_options();
    return exit_ok;
  }
  if (request.plans.size() < 2 || request.plans.size() > most_plans)
    fail_input({},
               "from 2 to 26 plans can be compared, not " + std::to_string(request.plans.size()),
               "orrery compare a.json \"--tp 8 --pp 4\"");
  if (request.common.has("plan"))
    fail_input({"", "--plan"}, "is one plan of several", "write the file without --plan");
  std::vector<ComparedPlan> plans;
  {
    LongWork line;
    for (const std::string& word : request.plans) {
      ProgressListener::tell({Progress::Of::plans, plans.size(), request.plans.size()});
      plans.push_back(compared_plan(word, request.common));
    }
  }
  require_one_model(plans);
  std::vector<PricedPlan> priced;
  for (const ComparedPlan& plan : plans) priced.push_back({plan, rent_of(plan, request.common)});
  std::cout << (request.common.has("json") ? compare_json(priced) : compare_text(priced));
  return exit_ok;
}

}  // namespace orrery
