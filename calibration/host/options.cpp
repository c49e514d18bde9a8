#include "calibration/host/options.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>

#include "calibration/host/case.hpp"
#include "sim/core/error.hpp"
#include "sim/core/nearest.hpp"

namespace orrery::calibration {
namespace {

double parse_number(const std::string& text, const std::string& option, double least, double most) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() ||
      !(value >= least && value <= most))
    fail_input({"", option}, "'" + text + "' is out of range",
               "write a number from " + Json{least}.text() + " to " + Json{most}.text());
  return value;
}

int parse_count(const std::string& text, const std::string& option, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most)
    fail_input(
        {"", option}, "'" + text + "' is out of range",
        "write a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return value;
}

using Setter = std::function<void(Options&, const std::string& text, const std::string& option)>;

Setter count(int Options::*member, int least, int most) {
  return [=](Options& options, const std::string& text, const std::string& option) {
    options.*member = parse_count(text, option, least, most);
  };
}

Setter word(std::string Options::*member) {
  return [=](Options& options, const std::string& text, const std::string& option) {
    if (text.empty()) fail_input({"", option}, "is empty", "name a file");
    options.*member = text;
  };
}

const std::map<std::string, Setter>& measure_setters() {
  static const std::map<std::string, Setter> setters{
      {"-o", word(&Options::output)},
      {"--output", word(&Options::output)},
      {"--shapes", word(&Options::shapes)},
      {"--besides",
       [](Options& o, const std::string& text, const std::string& option) {
         if (text.empty()) fail_input({"", option}, "is empty", "name a record");
         o.besides.push_back(text);
       }},
      {"--bootstrap", word(&Options::bootstrap)},
      {"--kinds", [](Options& o, const std::string& text,
                     const std::string& option) { o.kinds = parse_kinds(text, option); }},
      {"--time-limit",
       [](Options& o, const std::string& text, const std::string& option) {
         o.budget_s = parse_duration(text, option);
       }},
      {"--time", [](Options& o, const std::string& text,
                    const std::string& option) { o.time_s = parse_duration(text, option); }},
      {"--noise",
       [](Options& o, const std::string& text, const std::string& option) {
         o.noise = parse_number(text, option, 1e-4, 0.5);
       }},
      {"--device", count(&Options::device, 0, 1023)},
      {"--rank", count(&Options::rank, 0, 1 << 20)},
      {"--ranks", count(&Options::ranks, 2, 1 << 20)}};
  return setters;
}

Setter step_count(int StepModel::*member, int least, int most) {
  return [=](Options& options, const std::string& text, const std::string& option) {
    options.step.*member = parse_count(text, option, least, most);
  };
}

const std::map<std::string, Setter>& step_setters() {
  static const std::map<std::string, Setter> setters{
      {"--layers", step_count(&StepModel::layers, 1, 1000)},
      {"--hidden", step_count(&StepModel::hidden, 64, 1 << 16)},
      {"--ffn", step_count(&StepModel::ffn, 64, 1 << 20)},
      {"--heads", step_count(&StepModel::heads, 1, 1024)},
      {"--kv-heads", step_count(&StepModel::kv_heads, 1, 1024)},
      {"--vocab", step_count(&StepModel::vocab, 64, 1 << 20)},
      {"--seq", step_count(&StepModel::sequence, 64, 1 << 20)},
      {"--mbs", step_count(&StepModel::batch, 1, 1 << 16)},
      {"--device", count(&Options::device, 0, 1023)}};
  return setters;
}

void check(const Options& options) {
  if ((options.ranks > 0) != !options.bootstrap.empty())
    fail_input({"", "--bootstrap"}, "several processes need both --ranks and --bootstrap",
               "give each process --rank R --ranks N --bootstrap FILE");
  if (options.rank >= std::max(options.ranks, 1))
    fail_input({"", "--rank"}, "is not below the number of ranks", "ranks count from 0");
  if (options.resume && options.ranks > 0)
    fail_input({"", "--resume"}, "does not work over several processes", "measure again");
}

}  // namespace

double parse_duration(const std::string& text, const std::string& option) {
  const auto refuse = [&] {
    fail_input({"", option}, "'" + text + "' is not a duration", "write it like 30s, 5m or 1.5h");
  };
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit{end, text.data() + text.size()};
  const double seconds = unit == "s" ? 1.0 : unit == "m" ? 60.0 : unit == "h" ? 3600.0 : 0.0;
  if (error != std::errc{} || seconds == 0.0) refuse();
  if (!(value * seconds >= 0.01 && value * seconds <= 1e6)) refuse();
  return value * seconds;
}

std::vector<std::string> parse_kinds(const std::string& text, const std::string& option) {
  const std::vector<std::string> known = case_kind_names();
  std::vector<std::string> kinds;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string kind = text.substr(at, comma - at);
    if (std::find(known.begin(), known.end(), kind) == known.end())
      fail_input({"", option}, "'" + kind + "' is not a kind of measurement",
                 suggestion(kind, known));
    kinds.push_back(kind);
    at = comma + 1;
  }
  return kinds;
}

Options parse_options(const std::vector<std::string>& arguments) {
  Options options;
  if (arguments.empty()) return options.command = "help", options;
  options.command = arguments[0];
  if (options.command == "--help" || options.command == "-h") options.command = "help";
  if (options.command == "--version") options.command = "version";
  const std::vector<std::string> commands{"measure", "step", "info", "list", "help", "version"};
  if (std::find(commands.begin(), commands.end(), options.command) == commands.end())
    fail_input({}, "'" + options.command + "' is not a command",
               suggestion(options.command, commands));
  static const std::map<std::string, Setter> none;
  const auto& setters = options.command == "measure" || options.command == "list"
                            ? measure_setters()
                        : options.command == "step" ? step_setters()
                                                    : none;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string& option = arguments[i];
    if (option == "--help") return options.command = "help", options;
    if (option == "--resume" && options.command == "measure") {
      options.resume = true;
      continue;
    }
    const auto setter = setters.find(option);
    if (setter == setters.end()) {
      std::vector<std::string> known;
      for (const auto& one : setters) known.push_back(one.first);
      if (options.command == "measure") known.emplace_back("--resume");
      const std::string near = nearest(option, known);
      fail_input({}, "unknown option '" + option + "'",
                 near.empty() ? "see orrery-gpu --help" : "did you mean '" + near + "'?");
    }
    if (i + 1 == arguments.size()) fail_input({"", option}, "needs a value", "write it behind");
    setter->second(options, arguments[++i], option);
  }
  check(options);
  return options;
}

std::string usage() {
  std::string text =
      "orrery-gpu: measures kernels, transfers and collectives of this machine for Orrery\n"
      "\n"
      "usage: orrery-gpu measure [options]   measure, and write a calibration record\n"
      "       orrery-gpu step [options]      time the training step of a small real transformer\n"
      "       orrery-gpu list [options]      what measure would measure\n"
      "       orrery-gpu info                what this machine is\n"
      "\n"
      "measure and list:\n"
      "  -o, --output FILE   the record (default calibration-record.json)\n"
      "  --resume            continue that record: measure only what it does not hold\n"
      "  --besides FILE      not what that record holds, of this machine or of one like it; may "
      "be\n"
      "                      given several times. orrery calibrate fit joins records\n"
      "  --shapes FILE       a work list, orrery.calibration-shapes/1, instead of the default\n"
      "  --kinds A,B         only these kinds of measurement\n"
      "  --time-limit 5m         stop after this time and keep what there is (s, m, h)\n"
      "  --time 1s           at most this long a case (default 1s)\n"
      "  --noise 0.005       repeat until the median is known this well (default 0.005)\n"
      "  --device N          the GPU (default 0)\n"
      "  --rank R --ranks N --bootstrap FILE\n"
      "                      one of N processes with a GPU each, on one node or several; FILE "
      "lies\n"
      "                      where all can read it and does not exist yet. Collectives only\n"
      "\n"
      "step:\n"
      "  --layers 2 --hidden 4096 --ffn 14336 --heads 32 --kv-heads 8 --vocab 32000\n"
      "  --seq 4096 --mbs 1 --device 0\n"
      "\n"
      "kinds:\n";
  for (const CaseKind& kind : case_kinds())
    text += "  " + kind.name + std::string(20 - std::min<std::size_t>(kind.name.size(), 19), ' ') +
            kind.meaning + "\n";
  return text +
         "\nExit codes: 0 ok, 1 a CUDA or NCCL call failed, 2 bad input, 5 some cases failed, 6 "
         "the "
         "GPU\n"
         "stopped answering (the record is kept: --resume goes on behind the case that it stopped "
         "in),\n"
         "77 no usable NVIDIA GPU, 130 interrupted (the record is kept).\n";
}

}  // namespace orrery::calibration
