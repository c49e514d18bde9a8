#include "sim/formats/requests/session_files.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "sim/core/json_value.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

constexpr double longest_time = 1e9;  // Thirty years.
constexpr std::int64_t most_hash = std::int64_t{1} << 53;
constexpr std::int64_t most_block = 1 << 16;
constexpr std::uint32_t bailian_block = 16;
constexpr std::uint32_t dynamo_block = 512;

std::uint32_t tokens_at(const JsonValue& row, const char* key) {
  return static_cast<std::uint32_t>(row.at(key).integer(1, most_request_tokens));
}

// The value of the first of these keys that is there.
std::optional<JsonValue> any_of(const JsonValue& row, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (auto value = row.find(key)) return value;
  return std::nullopt;
}

double seconds_of(const JsonValue& row, std::initializer_list<const char*> keys, double otherwise) {
  const auto value = any_of(row, keys);
  return value ? value->number(0.0, longest_time) : otherwise;
}

// One for each block of the prompt, of which the last may be cut off.
std::vector<std::uint64_t> hashes_of(const JsonValue& row, std::uint32_t prompt_tokens,
                                     std::uint32_t block) {
  const std::uint64_t most = (prompt_tokens + block - 1) / block;
  const auto too_many = [&](const JsonValue& at) {
    at.fail("has more hashes than the prompt's " + std::to_string(prompt_tokens) +
                " tokens have blocks of " + std::to_string(block),
            "give one for each block");
  };
  std::vector<std::uint64_t> hashes;
  if (const auto ids = row.find("hash_ids")) {
    for (const std::int64_t id : ids->integers(0, most_hash))
      hashes.push_back(static_cast<std::uint64_t>(id));
    if (hashes.size() > most) too_many(*ids);
  } else if (const auto runs = row.find("runs")) {
    const std::vector<double> numbers = runs->number_table(2);
    for (std::size_t i = 0; i < numbers.size(); i += 2) {
      const double first = numbers[i], count = numbers[i + 1];
      if (!(first >= 0.0 && count >= 0.0 && first <= static_cast<double>(most_hash) &&
            first == std::floor(first) && count == std::floor(count)))
        runs->fail("has a run that is no first hash and a number of them", "write [[1, 258]]");
      if (static_cast<double>(hashes.size()) + count > static_cast<double>(most)) too_many(*runs);
      for (double hash = first; hash < first + count; hash += 1.0)
        hashes.push_back(static_cast<std::uint64_t>(hash));
    }
  }
  return hashes;
}

void set_block(const JsonValue& at, std::uint32_t tokens, SessionTrace& trace) {
  if (trace.list.hash_tokens != 0 && trace.list.hash_tokens != tokens)
    at.fail("has blocks of " + std::to_string(tokens) + " tokens, sessions before it of " +
                std::to_string(trace.list.hash_tokens),
            "give one file for each size of blocks");
  trace.list.hash_tokens = tokens;
}

// The turns of one object of kv-cache-tester's form.
class WekaSession {
 public:
  WekaSession(const JsonValue& session, std::uint32_t block) : block_{block} {
    for (const JsonValue& row : session.at("requests").elements()) {
      if (const auto type = row.find("type"); type && type->text() == "subagent")
        add_sub_agent(row);
      else
        add_turn(row);
    }
    if (turns_.empty())
      session.at("requests").fail("holds no request of the session", "leave the session out");
  }

  const std::vector<RecordedTurn>& turns() const { return turns_; }

 private:
  struct Chain {  // Turns that follow each other.
    std::optional<std::uint32_t> last;
    double answered = 0.0;  // When the last one was, as recorded, from the session's beginning.
  };
  struct SubAgent {
    Chain chain;
    double begun = 0.0, ended = 0.0;
    bool joined = false;
  };

  // Appends a turn to a chain; `from`: the chain's beginning. Returns the wait before it.
  double append(const JsonValue& row, double from, bool by_sub_agent, Chain& chain) {
    RecordedTurn turn;
    turn.prompt_tokens = tokens_at(row, "in");
    // An answer that broke off: its prompt was computed all the same.
    turn.output_tokens = static_cast<std::uint32_t>(
        std::max<std::int64_t>(1, row.at("out").integer(0, most_request_tokens)));
    turn.hashes = hashes_of(row, turn.prompt_tokens, block_);
    turn.by_sub_agent = by_sub_agent;
    const double sent = from + seconds_of(row, {"t"}, 0.0);
    const double wait =
        seconds_of(row, {"think_time", "think"}, std::max(0.0, sent - chain.answered));
    if (chain.last) turn.before.push_back({*chain.last, Seconds{wait}});
    chain.last = static_cast<std::uint32_t>(turns_.size());
    chain.answered = sent + seconds_of(row, {"api_time", "api"}, 0.0);
    turns_.push_back(std::move(turn));
    return sent;
  }

  void add_turn(const JsonValue& row) {
    const double answered = parent_.answered;
    const std::size_t before = turns_.size();
    const double sent = append(row, 0.0, false, parent_);
    RecordedTurn& turn = turns_[before];
    // It waits for the sub-agents that had ended by then. What its own wait holds of their time is
    // theirs.
    for (SubAgent& agent : sub_agents_) {
      if (agent.joined || !agent.chain.last || agent.ended > sent) continue;
      agent.joined = true;
      if (!turn.before.empty()) {
        Seconds& own = turn.before.front().wait;
        const double shared = agent.ended - std::max(answered, agent.begun);
        own = std::max(Seconds{}, own - Seconds{std::max(0.0, shared)});
      }
      turn.before.push_back({*agent.chain.last, Seconds{sent - agent.ended}});
    }
  }

  // Its requests' times count from its beginning. It begins with the parent's last answer.
  void add_sub_agent(const JsonValue& row) {
    SubAgent agent;
    agent.begun = seconds_of(row, {"t"}, 0.0);
    agent.chain.answered = agent.begun;
    const std::size_t first = turns_.size();
    for (const JsonValue& request : row.at("requests").elements())
      append(request, agent.begun, true, agent.chain);
    if (turns_.size() == first) return;
    if (parent_.last) {
      const double wait = std::max(0.0, agent.begun - parent_.answered);
      turns_[first].before.insert(turns_[first].before.begin(), {*parent_.last, Seconds{wait}});
    }
    agent.ended = agent.begun + seconds_of(row, {"duration_ms"}, 0.0) * 1e-3;
    agent.ended = std::max(agent.ended, agent.chain.answered);
    sub_agents_.push_back(agent);
  }

  std::uint32_t block_;
  std::vector<RecordedTurn> turns_;
  Chain parent_;
  std::vector<SubAgent> sub_agents_;
};

void add_weka(const JsonValue& session, SessionTrace& trace) {
  const auto block = any_of(session, {"block_size", "block"});
  if (!block) session.at("block_size");
  set_block(*block, static_cast<std::uint32_t>(block->integer(1, most_block)), trace);
  if (const auto scope = session.find("hash_id_scope"); scope && scope->text() == "global")
    scope->fail("'global' is not read: sessions would have to be in step", "use local hashes");
  trace.list.hashes_of_sessions = true;
  const auto name = session.find("id");
  add_session(name ? name->text() : "", WekaSession{session, trace.list.hash_tokens}.turns(),
              session.place() / "requests", trace);
}

// Rows of one session each, in the order of the file.
struct Rows {
  std::string name;
  std::vector<RecordedTurn> turns;
  double sent = 0.0;
};

// A child follows its parent; a parent with several children has as many branches.
void parse_bailian(const std::vector<JsonValue>& rows, SessionTrace& trace) {
  struct Place {
    std::size_t session;
    std::uint32_t turn;
    double sent;
  };
  std::map<std::int64_t, Place> chats;
  std::vector<Rows> sessions;
  for (const JsonValue& row : rows) {
    const std::int64_t id = row.at("chat_id").integer(0, most_hash);
    const std::int64_t parent = row.at("parent_chat_id").integer(-1, most_hash);
    const double sent = row.at("timestamp").number(0.0, longest_time);
    RecordedTurn turn;
    turn.prompt_tokens = tokens_at(row, "input_length");
    turn.output_tokens = tokens_at(row, "output_length");
    turn.hashes = hashes_of(row, turn.prompt_tokens, bailian_block);
    std::size_t session = sessions.size();
    const auto found = chats.find(parent);
    if (found != chats.end()) {
      session = found->second.session;
      turn.before.push_back(
          {found->second.turn, Seconds{std::max(0.0, sent - found->second.sent)}});
    } else {
      sessions.push_back({std::to_string(id), {}, sent});
    }
    if (chats.contains(id)) row.at("chat_id").fail("is there twice", "name each chat once");
    chats[id] = {session, static_cast<std::uint32_t>(sessions[session].turns.size()), sent};
    sessions[session].turns.push_back(std::move(turn));
  }
  trace.list.hash_tokens = bailian_block;
  for (const Rows& session : sessions)
    add_session(session.name, session.turns, rows.front().place(), trace);
}

void parse_dynamo(const std::vector<JsonValue>& rows, SessionTrace& trace) {
  std::vector<Rows> sessions;
  std::map<std::string, std::size_t> number;
  for (const JsonValue& row : rows) {
    const JsonValue id = row.at("session_id");
    const std::string name = id.is_string() ? id.text() : std::to_string(id.integer(0, most_hash));
    const auto [found, is_new] = number.try_emplace(name, sessions.size());
    if (is_new) sessions.push_back({name, {}, 0.0});
    Rows& session = sessions[found->second];
    RecordedTurn turn;
    turn.prompt_tokens = tokens_at(row, "input_length");
    turn.output_tokens = tokens_at(row, "output_length");
    turn.hashes = hashes_of(row, turn.prompt_tokens, dynamo_block);
    const auto delay = row.find("delay");
    const auto sent = row.find("timestamp");
    const double at = sent ? sent->number(0.0, longest_time * 1e3) * 1e-3 : session.sent;
    if (!session.turns.empty()) {
      if (!delay && !sent) row.at("delay");
      if (!delay && at < session.sent)
        sent->fail("is before the turn that it follows", "order the rows of a session by time");
      const double wait = delay ? delay->number(0.0, longest_time * 1e3) * 1e-3 : at - session.sent;
      turn.before.push_back({static_cast<std::uint32_t>(session.turns.size() - 1), Seconds{wait}});
    }
    session.sent = at;
    session.turns.push_back(std::move(turn));
  }
  trace.list.hash_tokens = dynamo_block;
  for (const Rows& session : sessions)
    add_session(session.name, session.turns, rows.front().place(), trace);
}

std::vector<JsonValue> rows_of(const std::string& text, const std::string& file) {
  std::vector<JsonValue> rows;
  const std::vector<std::string_view> lines = lines_of(text);
  for (std::size_t index = 0; index < lines.size(); ++index) {
    const std::string_view line = trimmed(lines[index]);
    if (line.empty()) continue;
    rows.push_back(
        JsonValue::parse(std::string{line}, file + ": line " + std::to_string(index + 1)));
    if (!rows.back().is_object()) rows.back().fail("is no object", "write an object a line");
  }
  return rows;
}

SessionFormat session_format_of(const std::string& text, const std::string& file) {
  const std::string_view all = trimmed(text);
  const std::string_view first = all.substr(0, std::min(all.find('\n'), std::size_t{1} << 16));
  if (all.starts_with('{')) {
    if (first.find("\"chat_id\"") != first.npos) return SessionFormat::bailian;
    if (first.find("\"session_id\"") != first.npos) return SessionFormat::dynamo;
    if (all.find("\"requests\"") != all.npos) return SessionFormat::weka;
  }
  fail_input({file, ""}, "looks like none of the session files that are read",
             "name its form with --sessions-format: weka, bailian or dynamo");
}

void parse_into(const std::string& text, const std::string& file, const std::string& format,
                SessionTrace& trace) {
  require_text(text, file, "a file of sessions");
  const SessionFormat form = format.empty()
                                 ? session_format_of(text, file)
                                 : choice<SessionFormat>(format, {"", "--sessions-format"});
  if (form == SessionFormat::weka) {
    // An object over several lines is one session; else each line is one.
    const std::string_view all = trimmed(text);
    const std::size_t line_end = all.find('\n');
    const bool is_whole = line_end != all.npos && trimmed(all.substr(0, line_end)).back() != '}';
    if (is_whole)
      add_weka(JsonValue::parse(text, file), trace);
    else
      for (const JsonValue& session : rows_of(text, file)) add_weka(session, trace);
    return;
  }
  const std::vector<JsonValue> rows = rows_of(text, file);
  if (form == SessionFormat::bailian)
    parse_bailian(rows, trace);
  else
    parse_dynamo(rows, trace);
}

}  // namespace

SessionTrace parse_sessions(const std::string& text, const std::string& file,
                            const std::string& format) {
  SessionTrace trace;
  parse_into(text, file, format, trace);
  if (trace.sessions.empty())
    fail_input({file, ""}, "holds no session", "give a file with sessions");
  count_common_beginnings(trace);
  return trace;
}

SessionTrace read_sessions(const std::string& path, const std::string& format) {
  if (!std::filesystem::is_directory(path))
    return parse_sessions(read_input_file(path), path, format);
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator{path})
    if (entry.path().extension() == ".json" || entry.path().extension() == ".jsonl")
      files.insert(entry.path().string());
  if (files.empty())
    fail_input({path, ""}, "has no .json or .jsonl files", "give a file or folder of sessions");
  SessionTrace trace;
  for (const std::string& file : files) parse_into(read_input_file(file), file, format, trace);
  count_common_beginnings(trace);
  return trace;
}

}  // namespace orrery
