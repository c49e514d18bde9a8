#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "sim/cli/scenario_options.hpp"
#include "sim/core/number_text.hpp"
#include "sim/explorer/loopback_server.hpp"
#include "sim/plan/plan_keys.hpp"

extern char** environ;

namespace orrery {
namespace {

// The example that `orrery explore` alone shows: GPT-3 as in Narayanan et al. (SC'21).
const std::map<std::string, std::string>& example() {
  static const std::map<std::string, std::string> state{{"model", "gpt3-175b"},
                                                        {"system", "dgx-a100-80gb"},
                                                        {"gpus", "1024"},
                                                        {"tp", "8"},
                                                        {"pp", "8"},
                                                        {"mbs", "1"},
                                                        {"gbs", "1536"},
                                                        {"recompute", "full"},
                                                        {"tokens", "300B"}};
  return state;
}

// The typed values, by key.
std::map<std::string, std::string> words_of(const Options& options, const ScenarioOptions& inputs) {
  std::map<std::string, std::string> words;
  if (inputs.plan) {
    const JsonValue file = read_plan_file(*inputs.plan);
    const Scenario scenario = read_scenario(inputs);
    const PlanRequest request = plan_again(scenario.plan);
    words["gpus"] = std::to_string(scenario.plan.gpus());
    for (const PlanKey& key : plan_keys()) {
      const bool open = key.access.may_be_open && !key.can_change(scenario.plan);
      const bool follows = key.follows && key.follows(scenario.plan);
      if (key.has_value(scenario.plan) && !open && !follows && key.text(scenario.plan) != key.usual)
        words[key.name] = key.text(scenario.plan);
    }
    for (const char* key : {"model", "system", "calibration"})
      if (const auto value = file.find(key); value && value->is_string())
        words[key] = value->text();
    // A model or system that the plan file itself holds is read from there.
    for (const std::string key : {"model", "system"})
      if (!words.contains(key) || carried(file, key + "s", words[key])) words[key] = *inputs.plan;
  }
  for (const std::string& key : keys_outside_plan())
    if (options.has(key)) words[key] = options.text(key);
  for (const auto& [key, text] : inputs.keys) words[key] = text;
  if (words.empty()) return example();
  for (const auto& [key, fallback] : {std::pair{"gpus", "64"}, {"gbs", "256"}})
    if (!words.contains(key)) words[key] = fallback;
  for (const char* key : {"model", "system"})
    if (!words.contains(key)) words[key] = example().at(key);
  return words;
}

std::string percent_encoded(const std::string& text) {
  constexpr char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.,:/+~";
  constexpr char digits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::string{plain}.find(c) != std::string::npos)
      encoded += c;
    else
      encoded += std::string{'%', digits[byte / 16], digits[byte % 16]};
  }
  return encoded;
}

// The state as the page's links have it.
std::string fragment_of(const std::map<std::string, std::string>& words) {
  std::string fragment;
  for (const auto& [key, word] : words)
    fragment += (fragment.empty() ? "#" : "&") + key + "=" + percent_encoded(word);
  return fragment;
}

void open_in_browser(const std::string& address) {
  if (!std::getenv("DISPLAY") && !std::getenv("WAYLAND_DISPLAY")) return;
  std::string program = "xdg-open", argument = address;
  char* words[] = {program.data(), argument.data(), nullptr};
  pid_t process = 0;
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  // The browser's own output is of no interest to the user.
  posix_spawn_file_actions_t silent;
  ::posix_spawn_file_actions_init(&silent);
  ::posix_spawn_file_actions_addopen(&silent, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&silent, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // The printed address remains if there is no such program.
  ::posix_spawnp(&process, program.c_str(), &silent, &attributes, words, environ);
  ::posix_spawn_file_actions_destroy(&silent);
  ::posix_spawnattr_destroy(&attributes);
}

// Ctrl-C and its like, kept back from all threads, so that one can wait for them.
sigset_t signals_that_end() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&signals, signal);
  return signals;
}

}  // namespace

int run_explore(const Arguments& arguments) {
  ScenarioOptions given;
  Detail detail;
  detail.most_memory = tolerated_share_of_memory;
  int port = 0;
  bool stays_closed = false;
  Options options{""};
  add_scenario(options, given);
  add_simulator(options);
  add_host_memory_option(options, detail.host_memory);
  options.group("The page");
  options.add("tokens", "N", "tokens to train on, as 15T: adds training time and cost");
  options.add("economics", "FILE[,FILE]",
              "your prices and powers, over those of topologies/economics");
  options.add("port", "N", "of 127.0.0.1, where the page is (default: one that is free)", port,
              Counted{1, 65535});
  options.add("no-open", "print the address and do not open it in a browser", stays_closed);
  options.help();
  options.basic({"model",    "system", "gpus",      "plan", "tp",      "pp",    "cp",
                 "ep",       "gbs",    "mbs",       "seq",  "zero",    "dtype", "recompute",
                 "software", "tokens", "economics", "port", "no-open", "help"});
  if (!options.read(
          arguments,
          "usage: orrery explore [--model M --system S --gpus N --gbs B] [options]\n\n"
          "Serves a page to this machine in which the options below are parameters, until "
          "Ctrl-C."))
    return exit_ok;
  options.refuse_words("see orrery explore --help");

  const std::map<std::string, std::string> words = words_of(options, given);
  NamesAllowed names = NamesAllowed::of_catalog();
  for (const auto& [key, word] : words) names.given[key].insert(word);
  // Errors in the typed values are reported here, and not in the page.
  WarmInputs first{names, detail};
  ExploredState state;
  for (const auto& [key, word] : words) state = state.with(key, word);
  state.request();
  const StateInputs inputs{state, first};
  if (state.says("tokens")) parse_tokens(state.word("tokens"), {"--tokens", ""});
  if (state.says("economics")) read_economics(inputs.context.system(), state.word("economics"));

  Evaluator evaluator{[&] { return std::move(first); }, {}};
  const sigset_t signals = signals_that_end();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  LoopbackServer server{evaluator, port};
  const std::string address = server.address() + fragment_of(words);
  std::cout << "The explorer is at\n\n  " << address
            << "\n\nfor this machine alone. Ctrl-C ends it.\n"
            << std::flush;
  std::thread serving{[&] { server.serve(); }};
  if (!stays_closed) open_in_browser(address);

  bool reader_is_gone = false;
  for (int signal = SIGCHLD; signal == SIGCHLD && !reader_is_gone;) {
    if (::sigwait(&signals, &signal) != 0) break;
    reader_is_gone = signal == SIGCHLD && evaluator.has_ended();
  }
  evaluator.stop();
  server.stop();
  serving.join();
  if (reader_is_gone) {
    std::cerr << "orrery: internal error: the process that reads the catalog ended\n";
    return exit_internal;
  }
  return exit_ok;
}

}  // namespace orrery
