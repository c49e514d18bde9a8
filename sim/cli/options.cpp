#include "sim/cli/options.hpp"

#include <algorithm>
#include <boost/program_options.hpp>
#include <iostream>
#include <sstream>
#include <utility>

#include "sim/cli/terminal.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/plan/plan_keys.hpp"

namespace po = boost::program_options;

namespace orrery {

CommandListener::CommandListener(Callbacks listen)
    : outer_{std::exchange(innermost_, this)}, listen_{std::move(listen)} {}

CommandListener::~CommandListener() { innermost_ = outer_; }

void CommandListener::report(const OptionTable& table) {
  if (innermost_) innermost_->listen_.table(table);
}

void CommandListener::report(const std::vector<std::string>& words) {
  if (innermost_) innermost_->listen_.words(words);
}

int parse_count(const std::string& text, const Place& at, int minimum, int maximum) {
  const auto value = whole_number(text);
  if (!value || *value < minimum || *value > maximum)
    fail_input(
        at, "'" + text + "' is not such a number",
        "write a whole number from " + std::to_string(minimum) + " to " + std::to_string(maximum));
  return static_cast<int>(*value);
}

namespace {

std::string hyphened(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// What to write where the option `word` is none: our name for that of Megatron-LM, DeepSpeed, Slurm
// or nccl-tests, of vLLM, SGLang or TensorRT-LLM and their benchmarks, or for one that Orrery had
// before. Commands differ in what they have. "": nothing is known.
std::string other_name(const std::string& word,
                       const std::function<bool(const std::string&)>& is_option) {
  static const std::multimap<std::string, std::string> names = [] {
    std::multimap<std::string, std::string> map;
    const auto all_mean = [&map](const char* ours, const char* others) {
      for (const std::string_view other : words_of(others))
        map.emplace("--" + std::string{other}, ours);
    };
    all_mean("--time-limit", "budget");
    all_mean("--point-time-limit", "time-limit");
    all_mean("--perfetto", "trace profile");
    all_mean("--perfetto-ranks", "trace-ranks");
    all_mean("--profile", "trace");
    all_mean("--profile-step", "step");
    all_mean("--output", "out kernels");
    all_mean("--replicates-out", "csv");
    all_mean("--simulator", "engine");
    all_mean("--unmeasured", "missing");
    all_mean("--network", "fabric");
    all_mean("--pass-lengths", "lengths");
    all_mean("--counted", "window");
    all_mean("--checkpoint-name", "checkpoint");

    all_mean("--dtype fp8", "fp8 fp8-format");
    all_mean("--dtype bf16", "bf16");
    all_mean("--dtype fp16", "fp16");
    all_mean("--gpus", "world-size num-gpus g");
    all_mean("--gpus N (all GPUs of all nodes)",
             "nodes nnodes num-nodes N ntasks ntasks-per-node n nproc-per-node gpus-per-node "
             "gpus-per-task gres G t nthreads ngpus");
    all_mean("--system", "cluster");
    all_mean("--plan", "config deepspeed-config");
    all_mean("--model", "config model-path model-name-or-path");
    all_mean("--economics", "price");
    all_mean("--gbs", "train-batch-size");
    all_mean("--gbs (micro-batch x data-parallel ranks x accumulated steps)",
             "gradient-accumulation-steps");
    all_mean("--mbs", "train-micro-batch-size-per-gpu per-device-train-batch-size");
    all_mean("--zero", "zero-stage stage fsdp use-torch-fsdp2");
    all_mean("--tokens", "train-iters train-samples train-tokens");
    all_mean("--tp", "tensor-parallel-size tp-size");
    all_mean("--vpp", "vp virtual-pipeline-model-parallel-size virtual-pipeline-size");
    all_mean("--recompute full", "gradient-checkpointing activation-checkpointing");
    all_mean("--zero 1", "use-distributed-optimizer");
    all_mean("--seq", "max-seq-len max-seq-length");
    all_mean("--checkpoint", "checkpoint-interval save-interval");
    all_mean("--reliability", "mtbf");
    all_mean("--pp", "pipeline-parallel-size pp-size");
    all_mean("--cp", "cp-size");
    all_mean("--dp", "data-parallel-size dp-size enable-dp-attention");
    all_mean("--ep", "enable-expert-parallel expert-parallel-size ep-size");
    all_mean("--moe_tp", "moe-tensor-parallel-size");
    all_mean("--eplb", "enable-eplb");
    all_mean("--redundant_experts", "ep-num-redundant-experts num-redundant-experts");
    all_mean("--two_batch", "enable-dbo enable-two-batch-overlap");
    all_mean("--prefill_delay", "enable-prefill-delayer prefill-delayer-max-delay-passes");
    all_mean("--receive_interval", "scheduler-recv-interval");
    all_mean("--window_ratio", "swa-full-tokens-ratio");
    all_mean("--weights", "quantization dtype");
    all_mean("--kv", "kv-cache-dtype");
    all_mean("--max-num-batched-tokens",
             "budget chunked-prefill-size max-num-tokens max-prefill-tokens");
    all_mean("--max_seqs", "max-num-seqs max-running-requests max-batch-size");
    all_mean("--max_length", "max-model-len context-length max-seq-len");
    all_mean("--kv_share",
             "gpu-memory-utilization mem-fraction-static kv-cache-free-gpu-memory-fraction");
    all_mean("--block", "block-size page-size tokens-per-block");
    all_mean("--chunked", "enable-chunked-prefill no-enable-chunked-prefill");
    all_mean("--mixed", "enable-mixed-chunk");
    all_mean("--host_kv", "kv-offloading-size hicache-size swap-space");
    all_mean("--prefix-cache on", "enable-prefix-caching");
    all_mean("--prefix-cache off", "no-enable-prefix-caching disable-radix-cache");
    all_mean("--speculate",
             "speculative-config speculative-algorithm num-speculative-tokens "
             "speculative-num-steps speculative-num-draft-tokens");
    all_mean("--pools", "disaggregation-mode kv-transfer-config");
    all_mean("--router", "load-balance-method");
    all_mean("--engine", "backend");
    all_mean("--isl", "input-len random-input-len random-input input-length random-range-ratio");
    all_mean("--osl", "output-len random-output-len random-output output-length");
    all_mean("--isl and --osl, or --trace FILE", "dataset-name");
    all_mean("--rate", "request-rate");
    all_mean("--requests", "num-prompts num-requests");
    all_mean("--concurrency", "max-concurrency num-clients");
    all_mean("--arrival gamma:CV", "burstiness");
    all_mean("--trace", "dataset-path");
    all_mean("--factor", "stepfactor");
    all_mean("--min-bytes", "minbytes");
    all_mean("--max-bytes", "maxbytes");
    for (const PlanKey& key : plan_keys()) {
      if (!key.megatron.empty()) map.emplace("--" + hyphened(key.megatron), "--" + key.name);
      for (const std::string& other : key.other_names)
        map.emplace("--" + hyphened(other), "--" + key.name);
    }
    return map;
  }();
  // Of nccl-tests and of servers, each in the command that has the first word's option.
  static const std::multimap<std::string, std::string> needless = [] {
    std::multimap<std::string, std::string> map;
    const auto all_in = [&map](const char* command_with, const char* others) {
      for (const std::string_view other : words_of(others))
        map.emplace("--" + std::string{other}, command_with);
    };
    all_in("min-bytes", "n iters w warmup-iters c check m agg-iters a average z blocking");
    all_in("isl",
           "host port trust-remote-code tokenizer served-model-name ignore-eos api-key "
           "disable-log-requests load-format download-dir endpoint base-url save-result");
    return map;
  }();
  const std::string theirs = hyphened(word);
  const auto [from, to] = needless.equal_range(theirs);
  if (std::any_of(from, to, [&](const auto& one) { return is_option(one.second); }))
    return "leave it out: it changes nothing about what is simulated";
  const auto [begin, end] = names.equal_range(theirs);
  const auto found = std::find_if(begin, end, [&](const auto& name) {
    return is_option(name.second.substr(2, name.second.find(' ') - 2));
  });
  return found == end ? std::string{} : "did you mean '" + found->second + "'?";
}

po::value_semantic* semantic(const OptionEntry& one) {
  if (one.value.empty()) return new po::untyped_value{true};
  if (one.may_repeat) {
    auto* many = po::value<std::vector<std::string>>()->value_name(one.value)->composing();
    return one.takes_words ? many->multitoken() : many;
  }
  auto* text = po::value<std::string>()->value_name(one.value);
  return one.value_may_lack() ? text->implicit_value("true", "") : text;
}

void add_to(po::options_description& all, const OptionEntry& one) {
  all.add_options()(one.name.c_str(), semantic(one), one.help.c_str());
}

// Whether `arguments` ask for all options: --help all, of which "all" is taken out.
bool take_all(Arguments& arguments) {
  const auto help = std::find(arguments.begin(), arguments.end(), "--help");
  if (help == arguments.end() || help + 1 == arguments.end() || help[1] != "all") return false;
  arguments.erase(help + 1);
  return true;
}

po::options_description description(const std::vector<OptionEntry>& entries,
                                    const std::string& first) {
  constexpr unsigned width = 100, without_first = 80;
  po::options_description all{first, first.empty() ? without_first : width};
  for (const OptionEntry& one : entries)
    if (one.group == first) add_to(all, one);
  for (auto one = entries.begin(); one != entries.end();) {
    po::options_description group{one->group, width};
    const auto begin = one;
    for (; one != entries.end() && one->group == begin->group; ++one) add_to(group, *one);
    if (begin->group != first) all.add(group);
  }
  return all;
}

}  // namespace

// -o is --output, -j 4 as well as -j4 are --jobs 4, and nccl-tests' -b, -e and -f its limits of
// sizes, where there are such options. Hyphens and underscores within names are alike.
std::pair<std::string, std::string> Options::long_name(const std::string& word) const {
  static const std::map<std::string, std::string> names{
      {"-o", "output"}, {"-b", "min-bytes"}, {"-e", "max-bytes"}, {"-f", "factor"}};
  if (const auto name = names.find(word); name != names.end() && find(name->second))
    return {name->second, ""};
  const bool is_count =
      word.starts_with("-j") && word.find_first_not_of("0123456789", 2) == word.npos;
  if (is_count && find("jobs")) return {"jobs", word.substr(2)};
  const std::size_t sign = std::min(word.find('='), word.size());
  if (!word.starts_with("--") || sign + 1 == word.size()) return {};
  const std::string name = word.substr(2, sign - 2);
  if (find(name)) return {};
  for (const OptionEntry& one : entries_)
    if (hyphened(one.name) == hyphened(name))
      return {one.name, sign == word.size() ? "" : word.substr(sign + 1)};
  return {};
}

// An option, or what a dash makes look like one: with what was probably meant.
void Options::refuse_unknown(const std::string& word) const {
  const std::string typed = word.substr(0, word.find('='));
  const std::string dashed = word.starts_with("--") ? typed : "-" + typed;
  std::string remedy =
      other_name(dashed, [this](const std::string& name) { return find(name) != nullptr; });
  if (remedy.empty()) {
    std::vector<std::string> names;
    for (const OptionEntry& one : entries_) names.push_back("--" + one.name);
    if (const std::string near = nearest(dashed, names); !near.empty())
      remedy = "did you mean '" + near + "'?";
  }
  const bool is_number = word.find_first_not_of("-+.0123456789") == word.npos;
  if (!is_number || word.starts_with("--") || !remedy.empty())
    fail_input(command_line, "unknown option '" + word + "'",
               remedy.empty() ? "see --help all" : remedy);
}

void Options::wide(TextWidth& into) {
  add({"wide", "", "all columns of the tables, which may exceed 80 characters", "",
       [&into](const std::string&, const Place&) { into = TextWidth::unlimited; }});
}

void Options::help() {
  add({"quiet", "", "no notes and no progress on stderr; errors stay", "",
       [](const std::string&, const Place&) { silence(); }});
  add("help", "this text");
}

bool Options::parse(const Arguments& typed, const std::string& usage) {
  Arguments arguments = typed;
  const bool shows_all = take_all(arguments) || basic_.empty();
  std::vector<OptionEntry> shown = entries_;
  if (!shows_all)
    std::erase_if(shown, [this](const OptionEntry& one) { return !basic_.contains(one.name); });
  std::ostringstream help;
  help << description(shown, first_);
  if (!shows_all) help << "\n--help all shows all " << entries_.size() << " options.\n";
  CommandListener::report({entries_, help.str()});
  const po::options_description known = description(entries_, first_);
  for (const std::string& word : arguments)
    if (word == "--" || word.starts_with("--="))
      fail_input(command_line, "'" + word + "' is no option", "leave it out");
  po::variables_map values;
  try {
    using namespace po::command_line_style;
    const po::parsed_options parsed =
        po::command_line_parser(arguments)
            .options(known)
            .style(allow_long | long_allow_adjacent | long_allow_next)
            .extra_parser([&](const std::string& word) { return long_name(word); })
            .allow_unregistered()
            .run();
    for (const po::option& one : parsed.options) {
      const bool is_word = one.position_key >= 0;
      if (one.unregistered ||
          (is_word && one.value.front().size() > 1 && one.value.front().starts_with('-')))
        refuse_unknown(one.original_tokens.front());
      if (is_word) words_.push_back(one.value.front());
    }
    po::store(parsed, values);
  } catch (const po::multiple_occurrences& error) {
    fail_input(command_line, "the option '" + error.get_option_name() + "' is given twice",
               "keep one of them");
  } catch (const po::invalid_command_line_syntax& error) {
    const bool has_value = error.kind() == po::invalid_command_line_syntax::extra_parameter;
    fail_input(command_line,
               "the option '" + error.get_option_name() +
                   (has_value ? "' takes no value" : "' needs a value"),
               has_value ? "leave the value out" : "write it after the option");
  }
  for (const OptionEntry& one : entries_) {
    if (!values.count(one.name)) continue;
    const po::variable_value& value = values[one.name];
    std::vector<std::string>& texts = typed_[one.name];
    if (one.may_repeat)
      texts = value.as<std::vector<std::string>>();
    else if (!one.value.empty())
      texts = {value.as<std::string>()};
    for (const std::string& text : texts) {
      // A shell leaves an empty word where a variable is unset.
      if (text.empty())
        fail_input(command_line / one.name, "is empty", "give a value, or leave it out");
      if (text.starts_with("--") && find(text.substr(2, text.find('=') - 2)))
        fail_input(command_line, "the option '--" + one.name + "' needs a value",
                   "write it after the option");
    }
  }
  for (const std::string form : {"json", "csv"})
    if (has(form))
      refuse({"wide"}, "is of tables as text, and --" + form + " has all their figures",
             "leave one of them out");
  if (!has("help") || usage.empty()) return true;
  std::cout << usage << "\n\n" << help.str();
  return false;
}

void Options::fill() const {
  for (const OptionEntry& option : entries_) {
    const auto found = typed_.find(option.name);
    if (found == typed_.end() || !option.take) continue;
    const Place at = command_line / option.name;
    if (option.value.empty()) option.take("", at);
    for (const std::string& text : found->second) option.take(text, at);
  }
}

bool Options::read(const Arguments& arguments, const std::string& usage) {
  if (!parse(arguments, usage)) return false;
  fill();
  return true;
}

void Options::give(const std::string& name, const std::string& text) {
  if (typed_.try_emplace(name, std::vector{text}).second) from_file_.insert(name);
}

bool Options::give(const std::string& name, const Options& other) {
  return other.has(name) && typed_.try_emplace(name, other.typed_.at(name)).second;
}

void Options::give_also(const std::string& name, const std::string& begin,
                        const std::string& text) {
  std::vector<std::string>& all = typed_[name];
  if (std::none_of(all.begin(), all.end(),
                   [&](const std::string& one) { return one.starts_with(begin); }))
    all.push_back(begin + text);
}

int run_subcommand(const Arguments& arguments, const std::vector<Subcommand>& all,
                   const std::string& usage, const std::string& nothing,
                   const std::string& unknown) {
  const std::vector<std::string> names = names_of(all);
  CommandListener::report(names);
  const std::string word = arguments.empty() ? "" : arguments.front();
  if (word == "--help") return std::cout << usage, exit_ok;
  for (const Subcommand& one : all)
    if (one.name == word) return one.run({arguments.begin() + 1, arguments.end()});
  fail_input({}, word.empty() ? nothing : "'" + word + "' " + unknown, suggestion(word, names));
}

const OptionEntry* Options::find(const std::string& name) const {
  for (const OptionEntry& option : entries_)
    if (option.name == name) return &option;
  return nullptr;
}

void Options::refuse_words(const std::string& remedy, const std::string& problem) const {
  if (!words_.empty()) fail_input({}, "'" + words_.front() + "' " + problem, remedy);
}

const std::string& Options::only_word(const std::string& none, const std::string& several,
                                      const std::string& remedy) const {
  if (words_.size() != 1) fail_input({}, words_.empty() ? none : several, remedy);
  return words_.front();
}

void Options::refuse(std::initializer_list<const char*> names, const std::string& problem,
                     const std::string& remedy) const {
  for (const char* name : names)
    if (has(name)) fail_input(command_line / name, problem, remedy);
}

void Options::refuse_rest(const std::string& group, std::initializer_list<const char*> used,
                          const std::string& problem, const std::string& remedy) const {
  for (const OptionEntry& one : entries_)
    if (one.group == group && has(one.name) && !from_file_.contains(one.name) &&
        std::none_of(used.begin(), used.end(), [&](const char* name) { return one.name == name; }))
      fail_input(command_line / one.name, problem, remedy);
}

std::string Options::required(const std::string& name, const std::string& remedy) const {
  if (!has(name)) fail_input(command_line, "--" + name + " is missing", remedy);
  return text(name);
}

}  // namespace orrery
