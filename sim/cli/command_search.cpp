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
#include "sim/plan/unlikely_inputs.hpp"
#include "sim/search/search.hpp"
#include "sim/search/search_text.hpp"

namespace orrery {
namespace {

// The options of `orrery search`, and the request that they make.
struct SearchOptions {
  SearchRequest request;
  ScenarioOptions inputs;  ///< Model, calibration, and the run to start from.
  std::vector<std::string> systems, fixed;
  std::optional<std::string> gpus, gbs, reliability, output, merge, html;
  std::optional<BytesPerSecond> storage;
  std::optional<int> spares;
  ListOptions list;
  std::optional<Seconds> deadline;
  std::optional<Shard> shard;
  bool elastic = false, long_ranges = false, json = false, force = false;
  TextWidth width = TextWidth::terminal;
};

// "60s", "30d".
Seconds duration(const std::string& text, const Place& at) {
  const auto seconds =
      number_with_unit(text, {{"s", 1.0}, {"m", 60.0}, {"h", 3600.0}, {"d", 86400.0}});
  if (!seconds || *seconds <= 0.0)
    fail_input(at, "'" + text + "' is not a duration", "write a number and s, m, h or d: 60s, 30d");
  return Seconds{*seconds};
}

void add_search(Options& options, SearchOptions& into) {
  SearchRequest& request = into.request;
  options.add("model", "NAME|FILE", "a model of the catalog, or a Hugging Face config.json",
              into.inputs.model);
  options.add("plan", "FILE",
              "a run to start from, as orrery import writes it: its model, system, GPUs and batch, "
              "and all keys that a search does not vary; options win over it",
              into.inputs.plan);
  options.add("system", "LIST", "a system; several are compared", into.systems);
  options.add("calibration", "FILE", "measurements of the system: orrery calibrate fit",
              into.inputs.calibration);
  options.add("gpus", "N", "GPUs in all: 1024, 256,512 or 256..4096 (doubling)", into.gpus);
  options.add("gbs", "N", "sequences in a step, over all replicas; several as for gpus", into.gbs);
  options.add(
      "objective", "GOAL",
      "step_time (default), tokens_per_s_per_gpu, cost_per_token, energy_per_token, gpus, "
      "training_time, goodput",
      [&request](const std::string& text, const Place&) { request.goal = parse_goal(text); });
  options.add("reliability", "NAME|FILE",
              "what fails how often, for goodput: orrery list reliability (default: default)",
              into.reliability);
  options.add("storage", "RATE",
              "what the file system sustains, as \"2 TB/s\" (default: the profile's for each GPU)",
              into.storage, parse_bandwidth);
  options.add("spares", "N", "spare nodes (default: unlimited)", into.spares,
              Counted{0, most_spares});
  options.add("elastic", "continue without the replicas whose nodes are in repair", into.elastic);
  options.add("top", "K", "how many to list (default 10)", into.list.top, whole(1, 10'000));
  options.add("all-settings", "list plans of one layout (tp, cp, pp, ep) apart, not its best alone",
              into.list.all_settings);
  options.add("fix", "KEY=V[,V]", "only plans with this; any key of a plan, as tp=1..8",
              into.fixed);
  options.add("yes", "ranges of more than 64 values are meant", into.long_ranges);
  options.add("max-memory", "SHARE", "of the GPU's memory that may be filled (default 0.95)",
              request.max_memory, parse_share);
  options.add("pareto", "instead of the top: all plans that no other beats in speed and memory",
              into.list.pareto);
  options.add("tokens", "N", "tokens to train on, as 15T: what that takes and costs",
              request.tokens, parse_tokens);
  options.add("deadline", "TIME", "leave out what takes longer for them, as 30d", into.deadline,
              duration);
  options.add("economics", "FILE[,FILE]",
              "your prices and powers, over those of topologies/economics", request.economics);
  options.add("time-limit", "TIME", "stop after this, as 60s; says what is left", request.budget,
              duration);
  add_jobs(options, request.workers);
  options.add("shard", "I/N",
              "search one of N shares of the plans, for --output (default: Slurm's array task)",
              into.shard, parse_shard);
  options.add("output", "DIR", "folder of what the shards of this search find (also -o DIR)",
              into.output);
  options.add("merge", "DIR",
              "the answer, from what all shards in the folder found; takes --json, --html and "
              "--force",
              into.merge);
  options.add("json", "print orrery.search/1 instead of the table", into.json);
  options.add("html", "FILE", "write a report for a browser: the list with its drawings",
              into.html);
  options.add("force", "replace files that Orrery did not write", into.force);
  options.wide(into.width);
  options.help();
  add_simulator(options);
  options.basic({"model", "plan", "system", "gpus", "gbs", "objective", "top", "fix", "pareto",
                 "max-memory", "tokens", "deadline", "economics", "time-limit", "jobs", "json",
                 "html", "force", "help"});
}

void read_failures(SearchRequest& request, const SearchOptions& given, const Options& options) {
  if (request.goal != Goal::goodput)
    return options.refuse({"reliability", "storage", "spares", "elastic"},
                          "is for goals that know of failures",
                          "add --objective goodput, or leave it out");
  options.refuse({"deadline"}, "counts without failures, and goodput with them",
                 "leave it out: the table says the days with failures");
  request.failures = AssumedFailures{
      read_reliability(given.reliability.value_or("default"), command_line / "reliability"),
      given.storage, given.spares, given.elastic};
}

void read_goal(SearchRequest& request, const SearchOptions& given, const Options& options) {
  const Place goal = command_line / "objective";
  if (given.deadline && !request.tokens)
    fail_input(command_line / "deadline", "a deadline for how much training?", "add --tokens 15T");
  if (request.goal == Goal::gpus && !given.deadline)
    fail_input(goal, "the fewest GPUs for what?", "add --deadline 30d --tokens 15T");
  if (request.goal == Goal::training_time && !request.tokens)
    fail_input(goal, "the time for how much training?", "add --tokens 15T");
  if (!request.tokens && !given.deadline && prices_of(request.goal).empty())
    options.refuse({"economics"}, "prices of what?",
                   "say how long to train: --tokens 15T, or add --objective cost_per_token");
  if (given.deadline) {
    request.deadline = Deadline{*given.deadline, *request.tokens};
    request.tokens.reset();
  }
  read_failures(request, given, options);
}

// The values that a search keeps from the run that it starts from: all keys that it would not vary,
// except those that hold only for the run's own number of replicas or stages.
std::vector<Fixed> kept_of(const JsonValue& run) {
  std::vector<Fixed> fixed;
  const JsonValue plan = keys_of_plan(run);
  for (const PlanKey& key : plan_keys()) {
    const auto value = plan.find(key.name);
    const bool follows = key.name == "gbs" || key.name == "dp" || key.name == "layers";
    if (!value || key.searched || follows) continue;
    PlanRequest request;
    set_plan_key(request, key.name, *value);
    if (request == PlanRequest{}) continue;  // The value is the default.
    fixed.push_back({key.name, {flag_text(*value)}});
  }
  return fixed;
}

std::optional<std::string> text_in(const std::optional<JsonValue>& run, const std::string& key) {
  auto value = run ? run->find(key) : std::nullopt;
  if (run && !value) value = keys_of_plan(*run).find(key);
  return value ? std::optional{flag_text(*value)} : std::nullopt;
}

SearchRequest read_request(const SearchOptions& given, const Options& options, SearchNames& names) {
  SearchRequest request = given.request;
  const ScenarioOptions& inputs = given.inputs;
  const std::int64_t most = given.long_ranges ? most_with_yes : RangeRule{}.most;
  std::optional<JsonValue> run;
  if (inputs.plan) run = read_plan_file(*inputs.plan);
  request.model = model_of(inputs, run);
  names.model = inputs.model                   ? *inputs.model
                : run->at("model").is_object() ? *inputs.plan
                                               : run->at("model").text();
  names.calibration = inputs.calibration.value_or("");
  for (const std::string& list : given.systems)
    for (const std::string& name : split_list(list, command_line / "system"))
      names.systems.push_back(name);
  if (const auto system = text_in(run, "system"); system && names.systems.empty()) {
    names.systems.push_back(*system);
    request.systems.push_back(system_of(inputs, run));
  }
  if (names.systems.empty()) fail_input({}, "--system is missing", "name one: orrery list systems");
  if (request.systems.empty()) {
    for (const std::string& name : names.systems)
      request.systems.push_back(read_system(name, command_line / "system"));
    if (inputs.calibration)
      for (System& system : request.systems)
        calibrate(system, *inputs.calibration, command_line / "calibration");
  }
  const auto numbers_of = [&](const char* key, const char* remedy) {
    const auto in_run = options.has(key) ? std::nullopt : text_in(run, key);
    return parse_numbers(in_run ? *in_run : options.required(key, remedy), key, most);
  };
  for (std::int64_t n : numbers_of("gpus", "add --gpus N"))
    request.gpus.push_back(static_cast<int>(n));
  request.gbs = numbers_of("gbs", "add --gbs N, sequences in a step");
  request.fixed = fixed_by(given.fixed, request.gpus, most);
  if (run)
    for (const Fixed& one : kept_of(*run))
      if (std::none_of(request.fixed.begin(), request.fixed.end(),
                       [&](const Fixed& other) { return other.key == one.key; }))
        request.fixed.push_back(one);
  if (request.tokens) note_doubt(unlikely_tokens(*request.tokens, default_sequence(request.model)));
  note_doubt(unlikely_batch(*std::max_element(request.gbs.begin(), request.gbs.end()),
                            default_sequence(request.model),
                            *std::max_element(request.gpus.begin(), request.gpus.end())));
  read_goal(request, given, options);
  request.list = given.list.list();
  if (request.list.is_front()) {
    options.refuse({"top"}, "a Pareto front has no top", "leave --top or --pareto out");
    options.refuse({"all-settings"}, "a Pareto front already includes all settings",
                   "leave --all-settings or --pareto out");
  }
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
const std::set<std::string> of_this_run{"jobs",   "json",  "html",  "force", "shard",
                                        "output", "merge", "quiet", "wide"};

// The options that say what is searched, as words of a command line.
std::vector<std::string> search_options_of(const Options& options) {
  std::vector<std::string> words;
  for (const auto& [name, texts] : options.typed()) {
    if (of_this_run.count(name)) continue;
    if (texts.empty()) words.push_back("--" + name);
    for (const std::string& text : texts) words.push_back("--" + name + "=" + text);
  }
  return words;
}

// Hash of a search, the program and all that it reads.
std::string fingerprint_of_search(const SearchOptions& given, const Options& options,
                                  const SearchRequest& request) {
  std::string text = fingerprint_of_inputs([&] {
    SearchNames unused;
    const SearchContext context{read_request(given, options, unused)};
    for (const Fixed& fixed : request.fixed)
      for (const std::string& value : fixed.values) {
        PlanRequest plan;
        set_plan_flag(plan, fixed.key, value);
        if (fixed.key == "routing") read_routing(value, {"--fix routing", ""});
      }
  });
  for (const std::string& word : search_options_of(options)) text += "\n" + word;
  return fingerprint_of(text);
}

// An array that is submitted again for those shards which are missing has fewer tasks, so that
// Slurm's count is only taken if the folder has none.
Shard chosen_shard(const SearchOptions& given) {
  if (given.shard) return *given.shard;
  const auto task = count_in_environment("SLURM_ARRAY_TASK_ID");
  if (!task)
    fail_input(command_line / "output", "is for what one shard of a search finds",
               "add --shard I/N, as 0/8, or submit it as an array of Slurm");
  const int of =
      shards_in(*given.output).value_or(count_in_environment("SLURM_ARRAY_TASK_COUNT").value_or(0));
  return parse_shard(std::to_string(*task) + "/" + std::to_string(of), command_line / "shard");
}

std::string share_line(const SearchShare& share, const std::string& path) {
  return "shard " + std::to_string(share.shard.index) + " of " + std::to_string(share.shard.of) +
         ": " + grouped(share.legal) + " plans divide, " + grouped(share.fits) + " fit, " +
         grouped(share.simulated) + " were simulated, " +
         grouped(static_cast<std::int64_t>(share.best.size())) + " are listed in " + path + "\n";
}

int search_shard(const SearchOptions& given, const Options& options, const SearchRequest& request) {
  const std::string& folder = *given.output;
  for (const char* name : {"json", "html"})
    options.refuse(
        {name}, "is of a whole search, and this is one shard of it",
        "when all are there: orrery search --merge " + shell_word(folder) + " --" + name);
  const Shard shard = chosen_shard(given);
  const std::string path = share_path(folder, shard);
  const std::string fingerprint = fingerprint_of_search(given, options, request);
  make_folder(folder, command_line / "output");
  if (const auto there = share_there(path); there && there->search == fingerprint) {
    std::cout << share_line(there->share, path + ", which was there");
    return exit_ok;
  } else if (there && !given.force) {
    fail_input({path, ""}, "is of another search, or of another build of orrery, catalog or input",
               "name another --output folder, or say --force to replace it");
  }
  const Interruption interruption;
  const SearchShare share = [&] {
    ShardExchange exchange{folder, shard, fingerprint};
    StatusLine line;
    return search_share(request, shard, exchange, [&](const SearchProgress& progress) {
      if (line.is_due()) line.draw(progress_text(progress));
    });
  }();
  if (share.interrupted) {
    std::cerr << "orrery: stopped; nothing was written, and this shard begins anew\n";
    return exit_interrupted;
  }
  write_output(path, share_text(share, fingerprint, search_options_of(options)), given.force);
  std::cout << share_line(share, path);
  return exit_ok;
}

// The options and the shares of shards that are put together.
std::vector<SearchShare> read_merged(const SearchOptions& given, const Options& options,
                                     SearchOptions& stored, Options& stored_options) {
  for (const std::string& word : search_options_of(options))
    fail_input({"", word.substr(0, word.find('='))}, "is what the shards say already",
               "with --merge, leave it out");
  options.refuse({"shard", "output"}, "contradicts --merge", "keep one of them");
  const std::string& folder = *given.merge;
  const std::vector<ShareFile> files = read_shares(folder);
  stored_options.read(files.front().options);
  SearchNames unused;
  if (fingerprint_of_search(stored, stored_options, read_request(stored, stored_options, unused)) !=
      files.front().search)
    fail_input({folder, ""},
               "comes from another build of orrery, or other catalog, calibration or input files",
               "put it together with those, or compute its shards again");
  std::vector<SearchShare> shares;
  for (const ShareFile& file : files) shares.push_back(file.share);
  return shares;
}

}  // namespace

int run_search(const Arguments& arguments) {
  SearchOptions given, stored;
  Options options, stored_options;  // Shards that are merged store theirs.
  add_search(options, given);
  add_search(stored_options, stored);
  point_plan_keys_to_fix(options, arguments, "a search");
  if (!options.read(arguments,
                    "usage: orrery search --model M --system S --gpus N --gbs B [options]"))
    return exit_ok;
  options.refuse_words("see orrery search --help");
  std::vector<SearchShare> shares;
  if (given.merge) shares = read_merged(given, options, stored, stored_options);
  SearchNames names;
  const SearchRequest request = given.merge ? read_request(stored, stored_options, names)
                                            : read_request(given, options, names);
  if (given.output) {
    options.refuse({"json", "html"},
                   "is of the whole answer, and --output keeps a shard's part of it",
                   "leave it out here, and give it with --merge");
    return search_shard(given, options, request);
  }
  options.refuse({"shard"}, "does not say where its answer goes", "add --output DIR");
  const Interruption interruption;
  const SearchResult result = [&] {
    if (!shares.empty()) return put_together(request, shares);
    StatusLine line;
    return search(request, [&](const SearchProgress& progress) {
      if (line.is_due()) line.draw(progress_text(progress));
    });
  }();
  if (given.html)
    write_output(*given.html,
                 search_report(result, request, names, {typed_command("search", arguments)}),
                 given.force);
  std::cout << (given.json ? search_json(result, request, names)
                           : search_text(result, request, names, given.width));
  return result.interrupted ? exit_interrupted : exit_ok;
}

}  // namespace orrery
