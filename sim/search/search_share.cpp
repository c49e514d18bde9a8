#include "sim/search/search_share.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/core/json_value.hpp"
#include "sim/core/shard.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/write_file.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const std::string schema = "orrery.search-shard/1";
constexpr std::int64_t most = std::int64_t{1} << 53;  // Exact in JSON up to this.
constexpr double largest = 1e300;

// "search-00003-of-00008.json"; nothing: the name is of no shard.
std::optional<Shard> shard_named(const std::string& name) {
  Shard shard;
  int end = 0;
  if (std::sscanf(name.c_str(), "search-%9d-of-%9d.json%n", &shard.index, &shard.of, &end) != 2 ||
      end != static_cast<int>(name.size()) || name != fs::path{share_path("", shard)}.filename())
    return std::nullopt;
  return shard;
}

PlanSpace::Choice choice_of(const JsonValue& json) {
  const std::vector<JsonValue> values = json.elements();
  PlanSpace::Choice choice;
  if (values.size() > choice.size())
    json.fail("is of more dimensions than a search has", "compute this shard again");
  choice.fill(PlanSpace::left_open);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (const std::int64_t value = values[i].integer(-1, PlanSpace::left_open - 1); value >= 0)
      choice[i] = static_cast<std::uint8_t>(value);
  return choice;
}

Json json_of(const PlanSpace::Choice& choice) {
  std::size_t size = choice.size();
  while (size > 0 && choice[size - 1] == PlanSpace::left_open) --size;
  Json values = Json::array();
  for (std::size_t i = 0; i < size; ++i)
    values.push_back(choice[i] == PlanSpace::left_open ? -1 : int{choice[i]});
  return values;
}

Candidate candidate_of(const JsonValue& json) {
  json.allow_only({"space", "choice", "memory", "step_s", "score"});
  Candidate candidate;
  candidate.space = static_cast<std::int32_t>(json.at("space").integer(0, 1 << 30));
  candidate.choice = choice_of(json.at("choice"));
  candidate.memory = json.at("memory").number(0.0, largest);
  candidate.step_s = json.at("step_s").number(0.0, largest);
  candidate.score = json.at("score").number(-largest, largest);
  return candidate;
}

Json json_of(const Candidate& candidate) {
  return {{"space", candidate.space},
          {"choice", json_of(candidate.choice)},
          {"memory", candidate.memory},
          {"step_s", candidate.step_s},
          {"score", candidate.score}};
}

[[noreturn]] void refuse_damaged(const Place& place) {
  fail_input(place, "is no shard of a search, or damaged",
             "remove it, and compute this shard again");
}

}  // namespace

std::string share_path(const std::string& folder, Shard shard) {
  char name[64];
  std::snprintf(name, sizeof name, "search-%05d-of-%05d.json", shard.index, shard.of);
  return (fs::path{folder} / name).string();
}

std::string share_text(const SearchShare& share, const std::string& search,
                       const std::vector<std::string>& options) {
  Json plans = Json::array();
  for (const Candidate& plan : share.best) plans.push_back(json_of(plan));
  const Json document{
      {"schema", schema},
      {"shard", share.shard.index},
      {"of", share.shard.of},
      {"search", search},
      {"options", options},
      {"legal", share.legal},
      {"fits", share.fits},
      {"simulated", share.simulated},
      {"left", share.left},
      {"best_unexplored",
       std::isfinite(share.best_unexplored) ? Json(share.best_unexplored) : Json(nullptr)},
      {"parts_cut_short", share.parts_cut_short},
      {"least_memory", share.none.least_memory},
      {"smallest", share.none.smallest},
      {"refusal", share.none.refusal.reason},
      {"refusal_depth", share.none.refusal.depth},
      {"plans", std::move(plans)},
  };
  return sealed(document.dump()) + "\n";
}

ShareFile read_share(const std::string& text, const Place& place) {
  const auto line = text.ends_with('\n') ? unsealed(text.substr(0, text.size() - 1))
                                         : std::optional<std::string>{};
  if (!line) refuse_damaged(place);
  const JsonValue json = JsonValue::parse(*line, place.file);
  json.allow_only({"schema", "shard", "of", "search", "options", "legal", "fits", "simulated",
                   "left", "best_unexplored", "parts_cut_short", "least_memory", "smallest",
                   "refusal", "refusal_depth", "plans"});
  if (json.at("schema").text() != schema)
    json.at("schema").fail("is not " + schema, "compute this shard again");
  ShareFile file;
  file.search = json.at("search").text();
  for (const JsonValue& option : json.at("options").elements())
    file.options.push_back(option.text());
  SearchShare& share = file.share;
  share.shard.of = static_cast<int>(json.at("of").integer(1, largest_shard_count));
  share.shard.index = static_cast<int>(json.at("shard").integer(0, share.shard.of - 1));
  share.legal = json.at("legal").integer(0, most);
  share.fits = json.at("fits").integer(0, share.legal);
  share.simulated = json.at("simulated").integer(0, share.fits);
  share.left = json.at("left").integer(0, share.fits - share.simulated);
  if (const auto bound = json.find("best_unexplored"))
    share.best_unexplored = bound->number(-largest, largest);
  for (const JsonValue& part : json.at("parts_cut_short").elements())
    share.parts_cut_short.push_back(static_cast<int>(part.integer(0, 1 << 30)));
  share.none.least_memory = json.at("least_memory").number(0.0, largest);
  share.none.smallest = json.at("smallest").text();
  share.none.refusal = {json.at("refusal").text(),
                        static_cast<std::size_t>(json.at("refusal_depth").integer(0, 1 << 20))};
  for (const JsonValue& plan : json.at("plans").elements())
    share.best.push_back(candidate_of(plan));
  return file;
}

namespace {

// The file that a shard writes while it works.
std::string talk_path(const std::string& folder, Shard shard) {
  return share_path(folder, shard) + ".part";
}

}  // namespace

ShardExchange::ShardExchange(std::string folder, Shard shard, std::string search)
    : folder_{std::move(folder)}, search_{std::move(search)}, shard_{shard} {}

ShardExchange::~ShardExchange() {
  std::error_code code;
  fs::remove(talk_path(folder_, shard_), code);
}

bool ShardExchange::is_due() const { return since_.passed().si() >= wait_s_; }

void ShardExchange::send(const std::vector<Candidate>& best) {
  SearchShare so_far;
  so_far.shard = shard_;
  so_far.best = best;
  try {
    write_file(talk_path(folder_, shard_), share_text(so_far, search_, {}));
  } catch (const Error&) {
    // The others simulate a few plans more.
  }
}

std::vector<Candidate> ShardExchange::received() {
  const Stopwatch listening;
  std::vector<Candidate> received;
  std::error_code code;
  for (fs::directory_iterator entry{folder_, code}, end; !code && entry != end;
       entry.increment(code)) {
    std::string name = entry->path().filename().string();
    if (name.ends_with(".part")) name.resize(name.size() - 5);
    const auto shard = shard_named(name);
    if (!shard || shard->of != shard_.of || shard->index == shard_.index) continue;
    std::error_code gone;
    const auto written = entry->last_write_time(gone);
    const auto [known, fresh] = known_.try_emplace(entry->path().string(), written);
    if (gone || (!fresh && known->second == written)) continue;
    known->second = written;
    if (const auto file = share_there(entry->path().string()); file && file->search == search_)
      received.insert(received.end(), file->share.best.begin(), file->share.best.end());
  }
  wait_s_ = std::max(0.1, 20.0 * listening.passed().si());
  since_ = {};
  return received;
}

std::optional<ShareFile> share_there(const std::string& path) {
  std::error_code code;
  if (!fs::exists(path, code)) return std::nullopt;
  try {
    return read_share(read_input_file(path), {path, ""});
  } catch (const Error&) {
    return std::nullopt;  // It is computed again.
  }
}

std::optional<int> shards_in(const std::string& folder) {
  std::error_code code;
  for (fs::directory_iterator entry{folder, code}, end; !code && entry != end;
       entry.increment(code))
    if (const auto shard = shard_named(entry->path().filename().string())) return shard->of;
  return std::nullopt;
}

std::vector<ShareFile> read_shares(const std::string& folder) {
  std::error_code code;
  std::vector<ShareFile> files;
  std::string first;
  for (fs::directory_iterator entry{folder, code}, end; !code && entry != end;
       entry.increment(code)) {
    const auto shard = shard_named(entry->path().filename().string());
    if (!shard) continue;
    const std::string path = entry->path().string();
    ShareFile file = read_share(read_input_file(path), {path, ""});
    const Shard& stated = file.share.shard;
    if (stated.index != shard->index || stated.of != shard->of) refuse_damaged({path, ""});
    if (files.empty())
      first = path;
    else if (stated.of != files.front().share.shard.of)
      fail_input({path, ""},
                 "is a shard of " + std::to_string(stated.of) + ", and " + first + " of " +
                     std::to_string(files.front().share.shard.of),
                 "keep those of one number in the folder");
    else if (file.search != files.front().search)
      fail_input({path, ""},
                 "is of another search than " + first +
                     ", or of another build of orrery, catalog or input",
                 "compute one of them again");
    files.push_back(std::move(file));
  }
  if (code)
    fail_input({folder, ""}, "cannot be read: " + code.message(),
               "name the folder that was given to orrery search --output");
  if (files.empty())
    fail_input({folder, ""}, "holds no shard of a search",
               "compute them: orrery search ... --shard 0/8 --output " + folder);
  const int of = files.front().share.shard.of;
  std::vector<bool> done(static_cast<std::size_t>(of));
  for (const ShareFile& file : files) done[static_cast<std::size_t>(file.share.shard.index)] = true;
  if (const std::string missing = places_missing(done); !missing.empty())
    fail_input({folder, ""}, "shards are missing, of " + std::to_string(of) + ": " + missing,
               "compute them: orrery search ... --shard " +
                   missing.substr(0, missing.find_first_of(",-")) + "/" + std::to_string(of) +
                   " --output " + folder);
  std::sort(files.begin(), files.end(), [](const ShareFile& a, const ShareFile& b) {
    return a.share.shard.index < b.share.shard.index;
  });
  return files;
}

}  // namespace orrery
