#include <algorithm>
#include <cmath>
#include <iostream>

#include "sim/cli/serve_fleet.hpp"
#include "sim/cli/serve_setup.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/write_file.hpp"
#include "sim/fleet/fleet_text.hpp"
#include "sim/formats/requests/session_files.hpp"

namespace orrery {
namespace {

constexpr std::int64_t most_lanes_said = 1 << 16;
constexpr std::uint32_t drawn_sessions = 400;  // Of a profile.
constexpr std::int64_t longest_of_profile = 260'000;
constexpr double most_turns = 2e7;              // Of sessions that begin at a rate: some 2 GB.
constexpr std::uint32_t usual_warm_turns = 10;  // AgentX.

Seconds span_of(const std::optional<std::string>& text, const char* option, Seconds otherwise) {
  if (!text) return otherwise;
  const Seconds span = parse_span(*text, command_line / option);
  if (!(span > Seconds{}))
    fail_input(command_line / option, "'" + *text + "' is no time above 0",
               "write like 300s or 1h");
  return span;
}

// "25..75%": the part of the first session of each lane that lies behind it.
void read_start(const std::string& text, SessionLoad& load) {
  const Place at = command_line / "start-at";
  const std::string remedy = "write like 25..75% or 50%";
  std::string_view shares = trimmed(text);
  if (shares.empty() || shares.back() != '%')
    fail_input(at, "'" + shown_text(text) + "' has no percentage", remedy);
  shares.remove_suffix(1);
  const std::size_t dots = shares.find("..");
  const auto low = plain_number(shares.substr(0, dots));
  const auto high = dots == shares.npos ? low : plain_number(shares.substr(dots + 2));
  if (!low || !high || *low < 0.0 || *high < *low || *high > 100.0)
    fail_input(at, "'" + shown_text(text) + "' is no range from 0 to 100 %", remedy);
  load.start_low = *low / 100.0;
  load.start_high = *high / 100.0;
}

SessionLoad load_of(const Options& options, const SessionOptions& given,
                    const TrafficOptions& traffic, std::int64_t& cut_turns) {
  options.refuse({"isl", "osl", "concurrency", "rate", "arrival", "requests", "lengths", "trace",
                  "trace-format", "speed", "first", "shared-prefix", "class", "goodput", "counted",
                  "skip-first", "runs", "perfetto", "unfolded"},
                 "is for requests without sessions", "leave it out, or --sessions");
  SessionLoad load;
  load.file = *given.file;
  load.seed = traffic.arrivals.seed;
  if (const SessionProfile* profile = session_profile(*given.file)) {
    options.refuse({"sessions-format"}, "is of files", "leave it out");
    load.trace = draw_sessions(*profile, drawn_sessions,
                               given.longest_context.value_or(longest_of_profile), load.seed);
  } else {
    load.trace = read_sessions(*given.file, given.format);
  }
  load.think = given.think;
  load.duration = span_of(given.duration, "duration", load.duration);
  load.longest_wait = span_of(given.longest_wait, "longest-wait", load.longest_wait);
  const int ways =
      (given.lanes.has_value() ? 1 : 0) + (given.rate ? 1 : 0) + (given.finds_lanes ? 1 : 0);
  if (ways != 1)
    fail_input(command_line / "sessions",
               ways == 0 ? "does not say how many come"
                         : "comes by more than one of --lanes, --session-rate and --most-lanes",
               "write one of --lanes 48, --session-rate 0.5 and --most-lanes");
  if (given.rate) {
    options.refuse({"warm-turns", "start-at"}, "is for lanes", "leave it out, or write --lanes");
    load.rate = *given.rate;
  } else {
    load.lanes = static_cast<std::uint32_t>(given.lanes.value_or(1));
    load.warm_turns = static_cast<std::uint32_t>(given.warm_turns.value_or(usual_warm_turns));
    read_start(given.start_at.value_or("25..75%"), load);
  }
  if (given.longest_context && !session_profile(*given.file))
    cut_turns = cut_long_sessions(*given.longest_context, load.trace);
  if (load.trace.sessions.empty())
    fail_input(command_line / "longest-context", "leaves no session", "raise it");
  const double turns = load.rate * load.duration.si() *
                       static_cast<double>(load.trace.turns.size()) /
                       static_cast<double>(load.trace.sessions.size());
  if (turns > most_turns)
    fail_input(command_line / "session-rate",
               "brings " + grouped(std::llround(turns)) + " turns within the duration",
               "lower it or --duration: at most 20 million are simulated");
  return load;
}

// Says which option shortens sessions that the model or its memory cannot hold.
void need_context(const PricedServing& priced, const SessionLoad& load) {
  const Request longest = longest_of(load.trace.list);
  const std::int64_t tokens = std::int64_t{longest.prompt_tokens} + longest.output_tokens;
  const KvCapacity& kv = priced.kv;
  if (tokens <= kv.tokens) return;
  fail_infeasible(command_line / "sessions",
                  "the longest turn keeps " + grouped(tokens) +
                      " tokens in the KV cache, which holds " + grouped(kv.tokens),
                  "cut sessions before such turns: --longest-context " +
                      std::to_string(kv.tokens / 1000 * 1000) + ", or raise tp");
}

}  // namespace

void add_sessions(Options& options, SessionOptions& into) {
  options.group("Sessions");
  options.add("sessions", "FILE",
              "sessions of turns that wait for each other's answers, or a profile to draw them "
              "from: claude-code or codex (docs/guides/sessions.md)",
              into.file);
  options.add("sessions-format", "NAME", "weka, bailian or dynamo (default: what it looks like)",
              into.format);
  options.add("lanes", "N", "so many sessions at a time: each lane replays one after the other",
              into.lanes, whole(1, most_lanes_said));
  options.add("session-rate", "R", "sessions that begin a second", into.rate, real(1e-6, 1e6));
  options.add("most-lanes", "the largest number of lanes whose turns keep to --slo",
              into.finds_lanes);
  options.add("duration", "TIME", "turns are sent for so long (1h)", into.duration);
  options.add("warm-turns", "N", "turns of each lane before the clock starts (10)", into.warm_turns,
              whole(0, 1'000'000));
  options.add("start-at", "A..B%",
              "the part of its first session that a lane has behind it at first (25..75%)",
              into.start_at);
  options.add("think", "FACTOR", "on the waits of users and tools; 0: none (1)", into.think,
              real(0.0, 1e6));
  options.add("longest-wait", "TIME", "longer waits are cut to it", into.longest_wait);
  options.add("longest-context", "TOKENS",
              "sessions end before the first turn with more tokens, prompt and answer",
              into.longest_context, whole(1, most_request_tokens));
}

int serve_sessions(const Options& options, const SessionOptions& given,
                   const TrafficOptions& traffic, const PricedServing& priced,
                   const Stopwatch& since) {
  SessionAnswer answer;
  answer.load = load_of(options, given, traffic, answer.cut_turns);
  answer.slo = traffic.rules.replay.slo;
  need_context(priced, answer.load);
  if (given.finds_lanes) {
    if (!answer.slo)
      fail_input(command_line / "most-lanes", "needs limits to keep to",
                 "add --slo ttft=3000,tpot=40@p90");
    MostLanes most = most_lanes(priced, answer.load, traffic.rules, command_line);
    answer.load.lanes = std::max(1u, most.lanes);
    answer.lanes_tried = most.tried;
    answer.run = std::move(most.run);
  } else {
    answer.run = serve_sessions(priced, answer.load, traffic.rules, command_line);
  }
  if (answer.run.counts.totals.finished == 0)
    fail_infeasible(command_line / "duration", "no turn was answered after the warm-up",
                    "raise it, or lower --warm-turns");
  answer.economics = read_economics(priced.setup.system, traffic.economics);
  const Request longest = longest_of(answer.load.trace.list);
  print_deployment_notes(answer.run.setup, answer.run.kv,
                         std::int64_t{longest.prompt_tokens} + longest.output_tokens);
  OutputFiles files{traffic.force};
  if (traffic.requests_out) files.add(*traffic.requests_out, turn_lines(answer));
  files.commit();
  std::cout << (traffic.json ? session_json(answer, since.passed().si()) : session_text(answer));
  return exit_ok;
}

}  // namespace orrery
