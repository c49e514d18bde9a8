#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <set>

#include "sim/cli/options.hpp"
#include "sim/cli/run_options.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/search_options.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/progress.hpp"
#include "sim/core/quoting.hpp"
#include "sim/core/shard.hpp"
#include "sim/core/value_list.hpp"
#include "sim/core/write_file.hpp"
#include "sim/explorer/reports.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/moe/routing_plan.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/search/search.hpp"
#include "sim/search/search_text.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

po::options_description search_options() {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  const auto texts = [](const char* name) {
    return po::value<std::vector<std::string>>()->value_name(name)->composing();
  };
  po::options_description options{"Options", 100};
  options.add_options()                                                         //
      ("model", text("NAME|FILE"), "a model of the catalog, or a config.json")  //
      ("plan", text("FILE"),
       "a run to start from, as orrery import writes it: its model, system, GPUs and batch, and "
       "all keys that a search does not vary; options win over it")(
          "system", texts("LIST"), "a system; several are compared")                     //
      ("calibration", text("FILE"), "measurements of the system: orrery calibrate fit")  //
      ("gpus", text("N"), "GPUs in all: 1024, 256,512 or 256..4096 (doubling)")          //
      ("gbs", text("N"), "sequences in a step, over all replicas; several as for gpus")  //
      ("objective", text("GOAL"),
       "step_time (default), tokens_per_s_per_gpu, cost_per_token, energy_per_token, gpus, "
       "training_time, goodput")  //
      ("reliability", text("NAME|FILE"),
       "what fails how often, for goodput: orrery list reliability (default: default)")  //
      ("storage", text("RATE"),
       "what the file system sustains, for goodput (default: the profile's for each GPU)")  //
      ("spares", text("N"),
       "nodes, or NVLink domains, that wait, for goodput (default: one is always at hand)")    //
      ("elastic", "go on without the replicas whose nodes are in repair, for goodput")         //
      ("top", text("K"), "how many plans to list (default 10)")                                //
      ("all-settings", "list plans of one layout (tp, cp, pp, ep) apart, not its best alone")  //
      ("fix", texts("KEY=V[,V]"), "only plans with this; any key of a plan, as tp=1..8")       //
      ("yes", "ranges of more than 64 values are meant")                                       //
      ("max-memory", text("SHARE"), "of the GPU's memory that may be filled (default 0.95)")   //
      ("pareto", "instead of the top: all plans that no other beats in speed and memory")      //
      ("tokens", text("N"), "tokens to train on, as 15T: what that takes and costs")           //
      ("deadline", text("TIME"), "leave out what takes longer for them, as 30d")               //
      ("economics", text("FILE"), "your prices and powers")                                    //
      ("budget", text("TIME"), "stop after this, as 60s; says what is left")                   //
      ("jobs", text("N"), "worker processes (also -j N; default: Slurm's, or all cores)")      //
      ("shard", text("I/N"),
       "search one of N shares of the plans, for --out (default: Slurm's array task)")  //
      ("out", text("DIR"), "folder of what the shards of this search find")             //
      ("merge", text("DIR"),
       "the answer, from what all shards in the folder found; takes --json, --html and --force")  //
      ("json", "print orrery.search/1 instead of the table")                                      //
      ("html", text("FILE"), "write a report for a browser: the list with its drawings")          //
      ("force", "replace files that Orrery did not write")                                        //
      ("help", "this text");
  return options;
}

// "60s", "30d".
Seconds duration(const std::string& text, const std::string& option) {
  constexpr std::pair<char, double> units[] = {
      {'s', 1.0}, {'m', 60.0}, {'h', 3600.0}, {'d', 86400.0}};
  double value = 0.0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  for (const auto& [letter, seconds] : units)
    if (error == std::errc{} && rest + 1 == end && *rest == letter && std::isfinite(value) &&
        value > 0.0)
      return Seconds{value * seconds};
  fail_input({"", "--" + option}, "'" + text + "' is not a duration",
             "write a number and s, m, h or d: 60s, 30d");
}

void read_failures(SearchRequest& request, const ParsedOptions& options) {
  if (request.goal != Goal::goodput) {
    for (const char* option : {"reliability", "storage", "spares", "elastic"})
      if (options.has(option))
        fail_input({"", "--" + std::string{option}}, "is for goals that know of failures",
                   "add --objective goodput, or leave it out");
    return;
  }
  if (options.has("deadline"))
    fail_input({"", "--deadline"}, "counts without failures, and goodput with them",
               "leave it out: the table says the days with failures");
  request.failures = FailuresMeant{
      read_reliability(options.has("reliability") ? options.text("reliability") : "default",
                       {"--reliability", ""}),
      options.has("storage")
          ? std::optional{parse_bandwidth(options.text("storage"), {"--storage", ""})}
          : std::nullopt,
      options.has("spares")
          ? std::optional{parse_count(options.text("spares"), "spares", 0, most_spares)}
          : std::nullopt,
      options.has("elastic")};
}

void read_goal(SearchRequest& request, const ParsedOptions& options) {
  if (options.has("objective")) request.goal = parse_goal(options.text("objective"));
  if (options.has("deadline") && !options.has("tokens"))
    fail_input({"", "--deadline"}, "a deadline for how much training?", "add --tokens 15T");
  const std::optional<double> tokens =
      options.has("tokens") ? std::optional{parse_tokens(options.text("tokens"), {"--tokens", ""})}
                            : std::nullopt;
  if (options.has("deadline"))
    request.deadline = Deadline{duration(options.text("deadline"), "deadline"), *tokens};
  else
    request.tokens = tokens;
  if (request.goal == Goal::gpus && !request.deadline)
    fail_input({"", "--objective"}, "the fewest GPUs for what?", "add --deadline 30d --tokens 15T");
  if (request.goal == Goal::training_time && !tokens)
    fail_input({"", "--objective"}, "the time for how much training?", "add --tokens 15T");
  if (options.has("economics")) request.economics = options.text("economics");
  read_failures(request, options);
}

// What a search leaves as it is in the run that it starts from: all that it would not vary, but for
// what is of the run's own number of replicas or stages.
std::vector<Fixed> kept_of(const JsonValue& run) {
  std::vector<Fixed> fixed;
  const JsonValue plan = keys_of_plan(run);
  for (const PlanKey& key : plan_keys()) {
    const auto value = plan.find(key.name);
    const bool follows = key.name == "gbs" || key.name == "dp" || key.name == "layers";
    if (!value || key.searched || follows) continue;
    PlanRequest request;
    set_plan_key(request, key.name, *value);
    if (request == PlanRequest{}) continue;  // What is so anyway.
    fixed.push_back({key.name, {flag_text(*value)}});
  }
  return fixed;
}

std::optional<std::string> text_in(const std::optional<JsonValue>& run, const std::string& key) {
  auto value = run ? run->find(key) : std::nullopt;
  if (run && !value) value = keys_of_plan(*run).find(key);
  return value ? std::optional{flag_text(*value)} : std::nullopt;
}

SearchRequest read_request(const ParsedOptions& options, SearchNames& names) {
  SearchRequest request;
  const std::int64_t most = options.has("yes") ? most_with_yes : RangeRule{}.most;
  std::optional<JsonValue> run;
  if (options.has("plan")) run = read_plan_file(options.text("plan"), {"", "--plan"});
  request.model = model_of(options, run);
  names.model = options.has("model")           ? options.text("model")
                : run->at("model").is_object() ? options.text("plan")
                                               : run->at("model").text();
  if (options.has("calibration")) names.calibration = options.text("calibration");
  for (const std::string& list : texts_of(options, "system"))
    for (const std::string& name : split_list(list, {"", "--system"}))
      names.systems.push_back(name);
  if (const auto system = text_in(run, "system"); system && names.systems.empty()) {
    names.systems.push_back(*system);
    request.systems.push_back(system_of(options, run));
  }
  if (names.systems.empty()) fail_input({}, "--system is missing", "name one: orrery list systems");
  if (request.systems.empty()) {
    for (const std::string& name : names.systems)
      request.systems.push_back(read_system(name, {"--system", ""}));
    if (options.has("calibration"))
      for (System& system : request.systems)
        calibrate(system, options.text("calibration"), {"--calibration", ""});
  }
  const auto given = [&](const char* key, const char* remedy) {
    const auto in_run = options.has(key) ? std::nullopt : text_in(run, key);
    return parse_numbers(in_run ? *in_run : required(options, key, remedy), key, most);
  };
  for (std::int64_t n : given("gpus", "add --gpus N")) request.gpus.push_back(static_cast<int>(n));
  request.gbs = given("gbs", "add --gbs N, sequences in a step");
  request.fixed = fixed_by(options, request.gpus, most);
  if (run)
    for (const Fixed& one : kept_of(*run))
      if (std::none_of(request.fixed.begin(), request.fixed.end(),
                       [&](const Fixed& said) { return said.key == one.key; }))
        request.fixed.push_back(one);
  read_goal(request, options);
  request.list.kind = list_kind(options);
  if (options.has("top")) {
    if (request.list.is_front())
      fail_input({"", "--top"}, "a Pareto front has no top", "leave --top or --pareto out");
    request.list.most =
        static_cast<int>(value_of_flag("top", options.text("top")).integer(1, 10'000));
  }
  if (options.has("all-settings") && request.list.is_front())
    fail_input({"", "--all-settings"}, "a Pareto front already includes all settings",
               "leave --all-settings or --pareto out");
  if (options.has("max-memory"))
    request.max_memory = parse_share(options.text("max-memory"), "max-memory");
  if (options.has("budget")) request.budget = duration(options.text("budget"), "budget");
  request.workers = workers_of(options);
  return request;
}

// Simulating ends when the bound reaches the last of the list.
std::string progress_text(const SearchProgress& progress) {
  std::string text = progress.parts_done < progress.parts
                         ? std::to_string(100 * progress.parts_done / progress.parts) + " % "
                         : std::string{};
  text += "enumerated: " + grouped(progress.legal) + " plans divide, " + grouped(progress.fits) +
          " fit";
  if (progress.best && progress.bound)
    text += "; " + grouped(progress.simulated) + " simulated, bound at " +
            fixed(100.0 * *progress.bound / *progress.best, 1) + " % of the best";
  return text;
}

// Options that do not change what a search finds.
const std::set<std::string> of_this_run{"jobs", "json", "html", "force", "shard", "out", "merge"};

// The options that say what is searched, as words of a command line.
std::vector<std::string> meaning_of(const ParsedOptions& options) {
  std::vector<std::string> words;
  for (const auto& [name, value] : options.values) {
    if (of_this_run.count(name)) continue;
    if (const auto* one = boost::any_cast<std::string>(&value.value()))
      words.push_back("--" + name + "=" + *one);
    else if (const auto* many = boost::any_cast<std::vector<std::string>>(&value.value()))
      for (const std::string& text : *many) words.push_back("--" + name + "=" + text);
    else
      words.push_back("--" + name);
  }
  return words;
}

// Stands for a search, the program and all that it reads.
std::string fingerprint_of_search(const ParsedOptions& options, const SearchRequest& request) {
  std::string text = fingerprint_of_inputs([&] {
    SearchNames unused;
    const SearchContext context{read_request(options, unused)};
    for (const Fixed& fixed : request.fixed)
      for (const std::string& value : fixed.values) {
        PlanRequest plan;
        set_plan_flag(plan, fixed.key, value);
        if (fixed.key == "routing") read_routing(value, {"--fix routing", ""});
      }
  });
  for (const std::string& word : meaning_of(options)) text += "\n" + word;
  return fingerprint_of(text);
}

// An array that is submitted again for those shards which are missing has fewer tasks, so that
// Slurm's count is only asked where the folder says none.
Shard shard_meant(const ParsedOptions& options) {
  if (options.has("shard")) return parse_shard(options.text("shard"));
  const auto task = count_in_environment("SLURM_ARRAY_TASK_ID");
  if (!task)
    fail_input({"", "--out"}, "is for what one shard of a search finds",
               "add --shard I/N, as 0/8, or submit it as an array of Slurm");
  const int of = shards_in(options.text("out"))
                     .value_or(count_in_environment("SLURM_ARRAY_TASK_COUNT").value_or(0));
  return parse_shard(std::to_string(*task) + "/" + std::to_string(of));
}

std::string share_line(const SearchShare& share, const std::string& path) {
  return "shard " + std::to_string(share.shard.index) + " of " + std::to_string(share.shard.of) +
         ": " + grouped(share.legal) + " plans divide, " + grouped(share.fits) + " fit, " +
         grouped(share.simulated) + " were simulated, " +
         grouped(static_cast<std::int64_t>(share.best.size())) + " are listed in " + path + "\n";
}

int search_shard(const ParsedOptions& options, const SearchRequest& request) {
  for (const char* name : {"json", "html"})
    if (options.has(name))
      fail_input({"", std::string{"--"} + name},
                 "is of a whole search, and this is one shard of it",
                 "when all are there: orrery search --merge " + shell_word(options.text("out")) +
                     " --" + name);
  const Shard shard = shard_meant(options);
  const std::string folder = options.text("out");
  const std::string path = share_path(folder, shard);
  const std::string fingerprint = fingerprint_of_search(options, request);
  make_folder(folder, {"", "--out"});
  if (const auto there = share_there(path); there && there->search == fingerprint) {
    std::cout << share_line(there->share, path + ", which was there");
    return exit_ok;
  } else if (there && !options.has("force")) {
    fail_input({path, ""}, "is of another search, or of another build of orrery, catalog or input",
               "name another --out folder, or say --force to replace it");
  }
  const Interruption interruption;
  const SearchShare share = [&] {
    ShardTalk talk{folder, shard, fingerprint};
    StatusLine line;
    return search_share(request, shard, talk, [&](const SearchProgress& progress) {
      if (line.is_due()) line.draw(progress_text(progress));
    });
  }();
  if (share.interrupted) {
    std::cerr << "orrery: stopped; nothing was written, and this shard begins anew\n";
    return exit_interrupted;
  }
  OutputFiles files{options.has("force")};
  files.add(path, share_text(share, fingerprint, meaning_of(options)));
  files.commit();
  std::cout << share_line(share, path);
  return exit_ok;
}

// What is asked for: of shards that are put together, what they say.
struct AskedSearch {
  ParsedOptions meaning;
  std::vector<SearchShare> shares;
};

AskedSearch read_merged(const po::options_description& options, const ParsedOptions& parsed) {
  for (const std::string& word : meaning_of(parsed))
    fail_input({"", word.substr(0, word.find('='))}, "is what the shards say already",
               "with --merge, leave it out");
  for (const char* name : {"shard", "out"})
    if (parsed.has(name))
      fail_input({"", std::string{"--"} + name}, "contradicts --merge", "keep one of them");
  const std::string folder = parsed.text("merge");
  const std::vector<ShareFile> files = read_shares(folder);
  AskedSearch asked{parse_options(options, files.front().options, {}), {}};
  SearchNames unused;
  if (fingerprint_of_search(asked.meaning, read_request(asked.meaning, unused)) !=
      files.front().search)
    fail_input({folder, ""},
               "comes from another build of orrery, or other catalog, calibration or input files",
               "put it together with those, or compute its shards again");
  for (const ShareFile& file : files) asked.shares.push_back(file.share);
  return asked;
}

}  // namespace

int run_search(const Arguments& arguments) {
  po::options_description options = search_options();
  options.add(simulator_option());
  point_plan_keys_to_fix(options, arguments, "a search");
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery search --model M --system S --gpus N --gbs B [options]\n\n"
              << options;
    return exit_ok;
  }
  if (!parsed.words.empty())
    fail_input({}, "'" + parsed.words[0] + "' belongs to no option", "see orrery search --help");
  const SimulatorChoice simulator{simulator_of(parsed)};
  AskedSearch asked{parsed, {}};
  if (parsed.has("merge")) asked = read_merged(options, parsed);
  SearchNames names;
  const SearchRequest request = read_request(asked.meaning, names);
  if (parsed.has("out")) return search_shard(parsed, request);
  if (parsed.has("shard"))
    fail_input({"", "--shard"}, "does not say where its answer goes", "add --out DIR");
  const Interruption interruption;
  const SearchResult result = [&] {
    if (!asked.shares.empty()) return put_together(request, asked.shares);
    StatusLine line;
    return search(request, [&](const SearchProgress& progress) {
      if (line.is_due()) line.draw(progress_text(progress));
    });
  }();
  if (parsed.has("html")) {
    OutputFiles files{parsed.has("force")};
    files.add(parsed.text("html"),
              search_report(result, request, names, {typed_command("search", arguments)}));
    files.commit();
  }
  std::cout << (parsed.has("json") ? search_json(result, request, names)
                                   : search_text(result, request, names));
  return result.interrupted ? exit_interrupted : exit_ok;
}

}  // namespace orrery
