// The options of all commands: what --help shows of them, that a name means one thing, and that
// names of other tools and names of before are answered with what to write.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::options_test {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Option {
  std::string name, value, help;
};
using Commands = std::map<std::string, std::vector<Option>>;  // By "estimate", "sweep run".

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Text without roff's escapes.
std::string plain(const std::string& roff) {
  std::string text;
  for (std::size_t i = 0; i < roff.size(); ++i)
    if (roff[i] == '\\' && i + 1 < roff.size())
      text += roff[++i] == 'e' ? "\\" : roff[i] == '&' ? "" : std::string(1, roff[i]);
    else
      text += roff[i];
  return text;
}

std::string between_quotes(const std::string& line, int which) {
  std::size_t begin = 0, end = 0;
  for (int i = 0; i <= which; ++i) {
    begin = line.find('"', i == 0 ? 0 : end + 1);
    if (begin == line.npos) return "";
    end = line.find('"', begin + 1);
  }
  return line.substr(begin + 1, end - begin - 1);
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(c));
  return text;
}

// All options of all commands, as manual pages have them.
const Commands& all_commands() {
  static const Commands all = [] {
    Commands found;
    for (const std::string& usage : lines_of(run_orrery("--help").out)) {
      if (!usage.starts_with("  ") || usage[2] == ' ' || usage.starts_with("  orrery")) continue;
      const std::string command = usage.substr(2, usage.find(' ', 2) - 2);
      std::string of = command;
      const std::vector<std::string> lines = lines_of(run_orrery("manual " + command).out);
      for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string line = plain(lines[i]);
        if (line.starts_with(".SH \"ORRERY ")) of = lower(between_quotes(line, 0).substr(7));
        if (!line.starts_with(".B \"--") && !line.starts_with(".BI \"--")) continue;
        std::string name = between_quotes(line, 0).substr(2);
        while (name.ends_with(' ')) name.pop_back();
        found[of].push_back({name, between_quotes(line, 1), plain(lines.at(i + 1))});
      }
    }
    return found;
  }();
  return all;
}

// "export" is the page of "export megatron".
std::string typed(const std::string& command) {
  return command == "export" ? "export megatron" : command;
}

std::vector<std::string> names_in(const std::string& help) {
  std::vector<std::string> names;
  for (const std::string& line : lines_of(help))
    if (line.starts_with("  --")) names.push_back(line.substr(4, line.find(' ', 4) - 4));
  return names;
}

constexpr std::size_t most_shown = 20;

TEST(Help, ShowsAFewOptionsAndAllOnRequest) {
  std::size_t commands = 0, long_ones = 0;
  for (const auto& [command, options] : all_commands()) {
    SCOPED_TRACE(command);
    const std::string short_help = run_orrery(typed(command) + " --help").out;
    const std::string help = run_orrery(typed(command) + " --help all").out;
    const std::vector<std::string> shown = names_in(short_help), all = names_in(help);
    EXPECT_LE(shown.size(), most_shown);
    EXPECT_EQ(all.size(), options.size());
    for (const Option& option : options) EXPECT_THAT(all, Contains(option.name));
    for (const std::string& name : shown) EXPECT_THAT(all, Contains(name));
    EXPECT_THAT(shown, Contains("help"));
    if (shown.size() < all.size())
      EXPECT_THAT(short_help,
                  EndsWith("\n--help all shows all " + std::to_string(all.size()) + " options.\n"));
    else
      EXPECT_EQ(short_help, help);
    EXPECT_EQ(run_orrery("help " + typed(command) + " all").out, help);
    long_ones += shown.size() < all.size();
    ++commands;
  }
  EXPECT_GT(commands, 30u);
  EXPECT_GT(long_ones, 10u);
}

// Values that mean the same: a list of some thing is that thing, several times; a name may always
// be a file's.
std::string kind_of_value(const std::string& value) {
  return value.ends_with("|FILE") ? value.substr(0, value.size() - 5) : value;
}

TEST(OptionNames, HaveOneKindOfValue) {
  const std::map<std::string, std::string> exceptions{
      {"attention", "plans and deployments have keys of their own, which files name so"},
      {"experts", "the same; of a kernel it is a size"},
      {"bytes", "of a kernel it is a size"},
      {"dtype", "a command names the formats that it takes"},
      {"output", "a result is a file or a folder"}};
  std::map<std::string, std::map<std::string, std::string>> commands_by_value;
  for (const auto& [command, options] : all_commands())
    for (const Option& option : options)
      if (option.value != "LIST")
        commands_by_value[option.name][kind_of_value(option.value)] += " " + command;
  for (const auto& [name, values] : commands_by_value) {
    if (exceptions.contains(name)) {
      EXPECT_GT(values.size(), 1u) << "--" << name << " is no exception";
      continue;
    }
    std::string text;
    for (const auto& [value, commands] : values) text += "\n'" + value + "' in" + commands;
    EXPECT_EQ(values.size(), 1u) << "--" << name << text;
  }
}

TEST(OptionNames, AreExplainedAlike) {
  // What these do depends on the command, which says so: its inputs, its answer, or where the files
  // that it reads are silent. Keys of deployments are explained apart from those of plans.
  const std::set<std::string> said_by_command{"model",
                                              "system",
                                              "gpus",
                                              "plan",
                                              "software",
                                              "gpu",
                                              "engine",
                                              "name",
                                              "set",
                                              "nodes",
                                              "ranks",
                                              "collective",
                                              "gpus-per-node",
                                              "json",
                                              "csv",
                                              "html",
                                              "svg",
                                              "output",
                                              "perfetto",
                                              "tokens",
                                              "gbs",
                                              "mbs",
                                              "seq",
                                              "dtype",
                                              "bytes",
                                              "kv",
                                              "objective",
                                              "all-settings",
                                              "pareto",
                                              "search",
                                              "fix",
                                              "deadline",
                                              "time-limit",
                                              "reliability",
                                              "runs",
                                              "unfolded",
                                              "seed",
                                              "shard",
                                              "yes",
                                              "names",
                                              "calibration",
                                              "attention",
                                              "experts",
                                              "tp",
                                              "pp",
                                              "dp",
                                              "ep",
                                              "vpp",
                                              "ep_overlap",
                                              "network",
                                              "network-latency",
                                              "wiring",
                                              "scale-up-bandwidth"};
  std::map<std::string, std::map<std::string, std::string>> commands_by_help;
  for (const auto& [command, options] : all_commands())
    for (const Option& option : options)
      commands_by_help[option.name][option.help] += " " + command;
  for (const auto& [name, helps] : commands_by_help) {
    if (said_by_command.contains(name)) {
      EXPECT_GT(helps.size(), 1u) << "--" << name << " is no exception";
      continue;
    }
    std::string text;
    for (const auto& [help, commands] : helps) text += "\n'" + help + "' in" + commands;
    EXPECT_EQ(helps.size(), 1u) << "--" << name << text;
  }
}

std::string refusal(const std::string& words) {
  const Outcome outcome =
      run_shell("('" ORRERY_TEST_BINARY_FOLDER "/orrery' " + words + " 2>&1 >/dev/null)");
  EXPECT_EQ(outcome.code, 2) << words;
  return outcome.out;
}

std::string meant(const std::string& option) { return "; did you mean '" + option + "'?\n"; }

// Commands, options of others in them, and ours; "": it is of no use here.
TEST(OptionNames, OfOtherToolsAreAnswered) {
  struct Foreign {
    const char* command;
    const char* theirs;
    const char* ours;
  };
  const std::string all_gpus = "--gpus N (all GPUs of all nodes)";
  const std::vector<Foreign> all{// vLLM and its benchmark.
                                 {"serve", "--tensor-parallel-size", "--tp"},
                                 {"serve", "--pipeline-parallel-size", "--pp"},
                                 {"serve", "--data-parallel-size", "--dp"},
                                 {"serve", "--enable-expert-parallel", "--ep"},
                                 {"serve", "--enable-eplb", "--eplb"},
                                 {"serve", "--enable-dbo", "--two_batch"},
                                 {"serve", "--max-num-seqs", "--max_seqs"},
                                 {"serve", "--max-model-len", "--max_length"},
                                 {"serve", "--gpu-memory-utilization", "--kv_share"},
                                 {"serve", "--quantization", "--weights"},
                                 {"serve", "--dtype", "--weights"},
                                 {"serve", "--kv-cache-dtype", "--kv"},
                                 {"serve", "--block-size", "--block"},
                                 {"serve", "--enable-chunked-prefill", "--chunked"},
                                 {"serve", "--enable-prefix-caching", "--prefix-cache on"},
                                 {"serve", "--no-enable-prefix-caching", "--prefix-cache off"},
                                 {"serve", "--speculative-config", "--speculate"},
                                 {"serve", "--num-speculative-tokens", "--speculate"},
                                 {"serve", "--kv-transfer-config", "--pools"},
                                 {"serve", "--trust-remote-code", ""},
                                 {"serve", "--port", ""},
                                 {"serve", "--host", ""},
                                 {"serve", "--request-rate", "--rate"},
                                 {"serve", "--burstiness", "--arrival gamma:CV"},
                                 {"serve", "--max-concurrency", "--concurrency"},
                                 {"serve", "--num-prompts", "--requests"},
                                 {"serve", "--random-input-len", "--isl"},
                                 {"serve", "--random-output-len", "--osl"},
                                 {"serve", "--input-len", "--isl"},
                                 {"serve", "--dataset-path", "--trace"},
                                 {"serve", "--dataset-name", "--isl and --osl, or --trace FILE"},
                                 {"serve", "--ignore-eos", ""},
                                 {"serve", "--backend", "--engine"},
                                 // SGLang.
                                 {"serve", "--model-path", "--model"},
                                 {"serve", "--tp-size", "--tp"},
                                 {"serve", "--dp-size", "--dp"},
                                 {"serve", "--ep-size", "--ep"},
                                 {"serve", "--enable-dp-attention", "--dp"},
                                 {"serve", "--chunked-prefill-size", "--max-num-batched-tokens"},
                                 {"serve", "--max-running-requests", "--max_seqs"},
                                 {"serve", "--mem-fraction-static", "--kv_share"},
                                 {"serve", "--context-length", "--max_length"},
                                 {"serve", "--page-size", "--block"},
                                 {"serve", "--disable-radix-cache", "--prefix-cache off"},
                                 {"serve", "--enable-mixed-chunk", "--mixed"},
                                 {"serve", "--disaggregation-mode", "--pools"},
                                 {"serve", "--ep-num-redundant-experts", "--redundant_experts"},
                                 {"serve", "--hicache-size", "--host_kv"},
                                 // TensorRT-LLM.
                                 {"serve", "--tp_size", "--tp"},
                                 {"serve", "--max_batch_size", "--max_seqs"},
                                 {"serve", "--max_num_tokens", "--max-num-batched-tokens"},
                                 {"serve", "--max_seq_len", "--max_length"},
                                 {"serve", "--kv_cache_free_gpu_memory_fraction", "--kv_share"},
                                 // Slurm and launchers of PyTorch.
                                 {"estimate", "--nodes", all_gpus.c_str()},
                                 {"estimate", "-N", all_gpus.c_str()},
                                 {"estimate", "--ntasks-per-node", all_gpus.c_str()},
                                 {"estimate", "--gpus-per-node", all_gpus.c_str()},
                                 {"search", "--nnodes", all_gpus.c_str()},
                                 {"run", "--nproc-per-node", all_gpus.c_str()},
                                 {"buy", "--gpus-per-node", all_gpus.c_str()},
                                 {"collective", "--ntasks-per-node", all_gpus.c_str()},
                                 // nccl-tests.
                                 {"collective", "-g", "--gpus"},
                                 {"collective", "-n", ""},
                                 {"collective", "-w", ""},
                                 {"collective", "-c", ""},
                                 // Megatron-LM.
                                 {"estimate", "--tensor-model-parallel-size", "--tp"},
                                 {"estimate", "--pipeline-model-parallel-size", "--pp"},
                                 {"estimate", "--context-parallel-size", "--cp"},
                                 {"estimate", "--expert-model-parallel-size", "--ep"},
                                 {"estimate", "--expert-tensor-parallel-size", "--etp"},
                                 {"estimate", "--micro-batch-size", "--mbs"},
                                 {"estimate", "--global-batch-size", "--gbs"},
                                 {"estimate", "--seq-length", "--seq"},
                                 {"estimate", "--sequence-parallel", "--sp"},
                                 {"estimate", "--overlap-grad-reduce", "--dp_overlap"},
                                 {"estimate", "--fp8-format", "--dtype fp8"},
                                 {"estimate", "--train-iters", "--tokens"},
                                 {"estimate", "--world-size", "--gpus"},
                                 {"estimate", "--config", "--plan"},
                                 // DeepSpeed.
                                 {"estimate", "--deepspeed_config", "--plan"},
                                 {"estimate", "--zero-stage", "--zero"},
                                 {"estimate", "--train_batch_size", "--gbs"},
                                 {"estimate", "--train_micro_batch_size_per_gpu", "--mbs"},
                                 {"estimate", "--gradient_accumulation_steps",
                                  "--gbs (micro-batch x data-parallel ranks x accumulated steps)"}};
  EXPECT_GT(all.size(), 60u);
  for (const auto& [command, theirs, ours] : all) {
    const std::string answer = std::string{ours}.empty()
                                   ? "; leave it out: it changes nothing about what is simulated\n"
                                   : meant(ours);
    EXPECT_EQ(refusal(std::string{command} + " " + theirs + " 8"),
              "orrery: error: unknown option '" + std::string{theirs} + "'" + answer)
        << command;
  }
}

// What others write, understood as it stands.
TEST(OptionNames, OfOtherToolsAreTakenWhereTheyMeanTheSame) {
  const std::string sweep = "collective all_reduce --system dgx-h100 --gpus 8 ";
  EXPECT_EQ(run_orrery(sweep + "-b 8 -e 1K -f 4").out,
            run_orrery(sweep + "--min-bytes 8 --max-bytes 1K --factor 4").out);
  const std::string served =
      "serve --model llama3.1-8b --system dgx-h100 --gpus 1 --engine vllm "
      "--step 8x1000+4000 ";
  const Outcome limited = run_orrery(served + "--max_num_batched_tokens 8k");
  EXPECT_EQ(limited.code, 0);
  EXPECT_EQ(limited.out, run_orrery(served + "--max-num-batched-tokens 8192").out);
}

TEST(OptionNames, OfBeforeAreAnsweredWithThoseOfNow) {
  for (const auto& [typed, now] : std::map<std::string, std::string>{
           {"search --budget 60s", "--time-limit"},
           {"calibrate gpu --budget 5m", "--time-limit"},
           {"serve --budget 8192", "--max-num-batched-tokens"},
           {"kernel iteration --budget 8192", "--max-num-batched-tokens"},
           {"sweep run --time-limit '60 s'", "--point-time-limit"},
           {"sweep run --out folder", "--output"},
           {"search --out folder", "--output"},
           {"manual --out folder", "--output"},
           {"estimate --trace t.json", "--perfetto"},
           {"estimate --trace-ranks 0", "--perfetto-ranks"},
           {"estimate --engine simgrid", "--simulator"},
           {"estimate --missing shapes.json", "--unmeasured"},
           {"collective all_reduce --engine simgrid", "--simulator"},
           {"compare --trace t.json", "--profile"},
           {"compare --step 5", "--profile-step"},
           {"run --csv runs.csv", "--replicates-out"},
           {"serve --window all", "--counted"},
           {"schedule 1f1b --lengths 1,2,1", "--pass-lengths"},
           {"import kineto t.json --kernels r.json", "--output"},
           {"import nccl-topo t.xml --fabric ethernet", "--network"},
           {"export server --checkpoint org/name", "--checkpoint-name"}})
    EXPECT_THAT(refusal(typed), EndsWith(meant(now))) << typed;
}

TEST(Quiet, LeavesOutNotesAndNothingElse) {
  const auto streams = [](const std::string& words) {
    return std::pair{
        run_orrery(words).out,
        run_shell("('" ORRERY_TEST_BINARY_FOLDER "/orrery' " + words + " 2>&1 >/dev/null)").out};
  };
  const std::string noted =
      "estimate --model llama3-8b --system dgx-h100 --gpus 8 --gbs 8 --tokens 1k --no-timing";
  const auto [answer, notes] = streams(noted);
  const auto [same, nothing] = streams(noted + " --quiet");
  EXPECT_THAT(notes, HasSubstr("orrery: note: "));
  EXPECT_THAT(nothing, IsEmpty());
  EXPECT_EQ(answer, same);
  EXPECT_EQ(refusal("estimate --quiet --tp x --model llama3-8b --system dgx-h100 --gpus 8 --gbs 8"),
            refusal("estimate --tp x --model llama3-8b --system dgx-h100 --gpus 8 --gbs 8"));
  // Progress, where it is asked for.
  const TemporaryFolder folder;
  const std::string swept =
      " run --model llama3-8b --system dgx-h100 --gpus 8 --tp 1,2,4,8 --gbs "
      "64,128 --output ";
  const auto progress = [&](const std::string& words) {
    return run_shell("(ORRERY_PROGRESS=lines '" ORRERY_TEST_BINARY_FOLDER "/orrery' sweep" + swept +
                         words + " 2>&1 >/dev/null)",
                     folder.path().string())
        .out;
  };
  EXPECT_THAT(progress("loud"), HasSubstr("orrery: progress: "));
  EXPECT_THAT(progress("quiet --quiet"), IsEmpty());
}

TEST(Quiet, IsAnOptionOfEveryCommand) {
  for (const auto& [command, options] : all_commands()) {
    std::vector<std::string> names;
    for (const Option& option : options) names.push_back(option.name);
    EXPECT_THAT(names, Contains("quiet")) << command;
  }
}

}  // namespace
}  // namespace orrery::options_test
