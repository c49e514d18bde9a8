#include <algorithm>
#include <cmath>
#include <iostream>

#include "sim/cli/scenario_options.hpp"
#include "sim/cli/search_options.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/progress.hpp"
#include "sim/core/quoting.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"
#include "sim/core/write_file.hpp"
#include "sim/explorer/reports.hpp"
#include "sim/search/row_search.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

constexpr int most_gpus_to_buy = 1 << 20;
po::options_description buy_options() {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  const auto texts = [](const char* name) {
    return po::value<std::vector<std::string>>()->value_name(name)->composing();
  };
  po::options_description options{"Options", 100};
  options.add_options()                                                                 //
      ("model", text("NAME|FILE"), "a model of the catalog, or a config.json")          //
      ("tokens", text("N"), "tokens to train on, as 15T")                               //
      ("system", texts("LIST"), "what could be bought or rented: orrery list systems")  //
      ("gpus", text("N"), "GPUs in all: 1024, 256,512 or 256..4096 (doubling)")         //
      ("deadline", text("TIME"), "how long it may take, as 60d")                        //
      ("budget", text("USD"), "what it may cost, as 10M")                               //
      ("pay", text("HOW"), "which money counts: rent (default) or own")                 //
      ("max-batch-tokens", text("N"),
       "tokens of the largest batch that training can use, as 4M (default 16M)")  //
      ("gbs", text("N"), "instead: sequences in a step; several as for gpus")     //
      ("reliability", text("NAME|FILE"),
       "days with failures, by the closed form of orrery run: orrery list reliability")       //
      ("dtype", text("FORMAT"), "as --fix dtype=fp8: the same on all systems")                //
      ("fix", texts("KEY=V[,V]"), "only plans with this; any key of a plan, as tp=1..8")      //
      ("max-memory", text("SHARE"), "of the GPU's memory that may be filled (default 0.95)")  //
      ("economics", text("FILE[,FILE]"),
       "your prices and powers, over those of topologies/economics; a file with the key gpu counts "
       "for that one alone")                                                                    //
      ("jobs", text("N"), "worker processes (also -j N; default: all cores); no other effect")  //
      ("json", "print orrery.purchase/1 instead of the table")                                  //
      ("csv", "print the rows as CSV")                                                          //
      ("html", text("FILE"), "write a page for a browser as well")                              //
      ("force", "replace a file that Orrery did not write")                                     //
      ("help", "this text");
  return options;
}

// "10M", "$2.5M", "800k": a number and a power of 1000.
double parse_dollars(const std::string& text) {
  std::string_view word = text;
  if (word.starts_with('$')) word.remove_prefix(1);
  constexpr std::pair<char, double> units[] = {{'k', 1e3}, {'K', 1e3}, {'M', 1e6}, {'B', 1e9}};
  double unit = 1.0;
  for (const auto& [letter, size] : units)
    if (word.ends_with(letter)) unit = size;
  if (unit > 1.0) word.remove_suffix(1);
  const auto value = plain_number(word);
  if (!value || !(*value > 0.0) || !std::isfinite(*value * unit))
    fail_input(command_line / "budget", "'" + shown_text(text) + "' is no sum of dollars",
               "write it like 10M, 2.5M or 800k");
  return *value * unit;
}

// As the field says it: 16M is 16 x 2^20, as 2,048 sequences of 8,192 are.
std::int64_t parse_batch_tokens(const std::string& text) {
  std::string_view word = text;
  double unit = 1.0;
  if (word.ends_with('K') || word.ends_with('k')) unit = 0x1p10;
  if (word.ends_with('M')) unit = 0x1p20;
  if (unit > 1.0) word.remove_suffix(1);
  const auto value = plain_number(word);
  const double tokens = value ? *value * unit : 0.0;
  if (!(tokens >= 1.0 && tokens <= 0x1p40))
    fail_input(command_line / "max-batch-tokens",
               "'" + shown_text(text) + "' is no number of tokens",
               "write it like 4M or 16M (M: 2^20) or 15728640");
  return static_cast<std::int64_t>(tokens);
}

void read_systems(const ParsedOptions& parsed, PurchaseRequest& request, PurchaseNames& names) {
  for (const std::string& list : texts_of(parsed, "system"))
    for (const std::string& name : split_list(list, command_line / "system")) {
      if (std::find(names.systems.begin(), names.systems.end(), name) != names.systems.end())
        fail_input(command_line / "system", "'" + name + "' is named twice", "keep one of them");
      names.systems.push_back(name);
      request.systems.push_back(read_system(name, {"--system", ""}));
    }
  if (names.systems.empty())
    fail_input({}, "--system is missing", "name one or more: orrery list systems");
}

void read_batches(const ParsedOptions& parsed, PurchaseRequest& request) {
  if (parsed.has("gbs")) {
    if (parsed.has("max-batch-tokens"))
      fail_input(command_line / "gbs", "says the batches that --max-batch-tokens would choose",
                 "leave one of them out");
    request.batches = parse_numbers(parsed.text("gbs"), "gbs", RangeRule{}.most);
    return;
  }
  std::int64_t seq = usual_sequence(request.model);
  for (const Fixed& fixed : request.fixed) {
    if (fixed.key != "seq") continue;
    if (fixed.values.size() > 1)
      fail_input(command_line / "fix", "a purchase has sequences of one length",
                 "ask once for each: --fix seq=" + fixed.values.front());
    seq = std::stoll(fixed.values.front());
  }
  if (seq <= 0)
    fail_input(command_line / "fix", "the model does not say how long a sequence is",
               "add --fix seq=N");
  const std::int64_t tokens = parsed.has("max-batch-tokens")
                                  ? parse_batch_tokens(parsed.text("max-batch-tokens"))
                                  : usual_most_batch_tokens;
  request.usual_batch = !parsed.has("max-batch-tokens");
  request.most_batch = tokens / seq;
  if (request.most_batch < 1)
    fail_input(command_line / "max-batch-tokens",
               grouped(tokens) + " tokens are less than a sequence of " + grouped(seq),
               "allow more, or shorter sequences (--fix seq=N)");
}

PurchaseRequest read_request(const ParsedOptions& parsed, PurchaseNames& names) {
  PurchaseRequest request;
  names.model = required(parsed, "model", "name one: orrery list models");
  request.model = read_model(names.model, {"--model", ""});
  names.tokens = required(parsed, "tokens", "say how much to train: --tokens 15T");
  request.tokens = parse_tokens(names.tokens, {"--tokens", ""});
  read_systems(parsed, request, names);
  for (const std::int64_t n :
       parse_numbers(required(parsed, "gpus", "write how many: --gpus 1024, or 256..4096"), "gpus",
                     RangeRule{}.most)) {
    if (n > most_gpus_to_buy)
      fail_input(command_line / "gpus", grouped(n) + " GPUs are more than anybody has",
                 "write at most " + grouped(most_gpus_to_buy));
    request.gpus.push_back(static_cast<int>(n));
  }
  std::sort(request.gpus.begin(), request.gpus.end());
  request.fixed = fixed_by(parsed, request.gpus, RangeRule{}.most);
  if (parsed.has("dtype")) {
    if (std::any_of(request.fixed.begin(), request.fixed.end(),
                    [](const Fixed& fixed) { return fixed.key == "dtype"; }))
      fail_input(command_line / "dtype", "is fixed by --fix dtype as well",
                 "leave one of them out");
    request.fixed.push_back(parse_fixed("dtype=" + parsed.text("dtype"), request.gpus));
  }
  read_batches(parsed, request);
  if (parsed.has("max-memory"))
    request.max_memory = parse_share(parsed.text("max-memory"), "max-memory");
  if (parsed.has("economics"))
    request.economics = split_list(parsed.text("economics"), command_line / "economics");
  if (parsed.has("pay")) {
    const std::string& how = parsed.text("pay");
    if (how != "rent" && how != "own")
      fail_input(command_line / "pay", "'" + shown_text(how) + "' is no way to pay",
                 "write rent or own");
    request.pay = how == "own" ? PayBy::own : PayBy::rent;
  }
  if (parsed.has("deadline")) {
    request.deadline = parse_span(parsed.text("deadline"), command_line / "deadline");
    if (*request.deadline <= Seconds{})
      fail_input(command_line / "deadline", "leaves no time", "write it like 60d");
  }
  if (parsed.has("budget")) request.budget_usd = parse_dollars(parsed.text("budget"));
  if (parsed.has("reliability")) {
    names.reliability = parsed.text("reliability");
    request.reliability = read_reliability(names.reliability, {"--reliability", ""});
  }
  request.workers = workers_of(parsed);
  return request;
}

}  // namespace

int run_buy(const Arguments& arguments) {
  po::options_description options = buy_options();
  options.add(simulator_option());
  point_plan_keys_to_fix(options, arguments, "a purchase");
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery buy --model M --tokens T --system S,S --gpus N [options]\n\n"
                 "Which machine trains a model in how many days for how much money "
                 "(docs/guides/buy.md).\n\n"
              << options;
    return exit_ok;
  }
  if (!parsed.words.empty())
    fail_input({}, "'" + parsed.words[0] + "' belongs to no option", "see orrery buy --help");
  const SimulatorChoice simulator{simulator_of(parsed)};
  if (parsed.has("json") && parsed.has("csv"))
    fail_input(command_line / "csv", "and --json would be printed into each other",
               "leave one of them out");
  PurchaseNames names;
  const PurchaseRequest request = read_request(parsed, names);
  const Interruption interruption;
  const Purchase purchase = [&] {
    StatusLine line;
    return buy(request, [&](const PurchaseProgress& progress) {
      if (line.is_due())
        line.draw(std::to_string(progress.done) + " of " + std::to_string(progress.rows) +
                  " rows searched");
    });
  }();
  if (parsed.has("html")) {
    OutputFiles files{parsed.has("force")};
    files.add(parsed.text("html"),
              purchase_report(purchase, request, names, {typed_command("buy", arguments)}));
    files.commit();
  }
  std::cout << (parsed.has("json")  ? purchase_json(purchase, request, names)
                : parsed.has("csv") ? purchase_csv(purchase, request)
                                    : purchase_document(purchase, request, names).text());
  return purchase.interrupted ? exit_interrupted : exit_ok;
}

}  // namespace orrery
