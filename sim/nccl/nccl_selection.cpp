#include "sim/nccl/nccl_selection.hpp"

#include <algorithm>

#include "sim/core/error.hpp"
#include "sim/core/nearest.hpp"

namespace orrery {
namespace {

using Words = std::vector<std::string>;
using Allowed = std::vector<bool>;  // One for each word.

const Words& algorithm_words() {
  static const Words words = [] {
    Words list;
    for (const NcclAlgorithm* algorithm : nccl_algorithms()) list.push_back(algorithm->word());
    return list;
  }();
  return words;
}

Allowed default_algorithms() {
  Allowed allowed;
  for (const NcclAlgorithm* algorithm : nccl_algorithms())
    allowed.push_back(algorithm->is_default());
  return allowed;
}

// One for each CollectiveKind; those without algorithms are empty.
const Words collective_words = [] {
  Words words;
  for (const CollectiveFacts& one : collective_facts) words.emplace_back(one.nccl_name);
  return words;
}();

Words split(const std::string& text, const char* separators) {
  Words parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::size_t find_word(const std::string& word, const Words& known, const Place& at) {
  const auto found = std::find_if(known.begin(), known.end(), [&](const std::string& one) {
    return !one.empty() && lower_case(one) == lower_case(word);
  });
  if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
  std::string names;
  for (const std::string& one : known)
    if (!one.empty()) names += (names.empty() ? "" : ", ") + one;
  fail_input(at, "'" + word + "' is none of NCCL's", "write some of: " + names);
}

Allowed read_list(const std::string& list, const Words& known, const Allowed& usual,
                  const Place& at) {
  const bool excludes = list.starts_with('^');
  Allowed allowed = excludes ? usual : Allowed(known.size());
  for (const std::string& word : split(list.substr(excludes ? 1 : 0), ",+"))
    allowed[find_word(word, known, at)] = !excludes;
  return allowed;
}

std::array<Allowed, collective_kinds> read_lists(const std::string& text, const Words& known,
                                                 const Allowed& usual, const Place& at) {
  std::array<Allowed, collective_kinds> allowed;
  allowed.fill(usual);
  if (text.empty() || text == "any") return allowed;
  bool first = true;
  for (const std::string& entry : split(text, ";")) {
    const std::size_t colon = entry.find(':');
    if (colon != entry.npos) {
      const std::size_t kind = find_word(entry.substr(0, colon), collective_words, at);
      allowed[kind] = read_list(entry.substr(colon + 1), known, usual, at);
    } else if (first) {
      allowed.fill(read_list(entry, known, usual, at));
    } else {
      fail_input(at, "'" + entry + "' names no collective, as all lists but the first do",
                 "write it like \"Ring;AllReduce:" + known.front() + "\"");
    }
    first = false;
  }
  return allowed;
}

std::vector<const NcclAlgorithm*> those_of(const Allowed& allowed) {
  std::vector<const NcclAlgorithm*> algorithms;
  for (std::size_t i = 0; i < allowed.size(); ++i)
    if (allowed[i]) algorithms.push_back(nccl_algorithms()[i]);
  return algorithms;
}

// Commas separate values of a key.
std::string as_key(std::string list) {
  std::replace(list.begin(), list.end(), ',', '+');
  return list.empty() ? "any" : list;
}

}  // namespace

NcclSelection::NcclSelection() {
  algorithms_.fill(those_of(default_algorithms()));
  protocols_.fill(Allowed(std::size(nccl_protocols), true));
}

const NcclSelection& NcclSelection::unrestricted() {
  static const NcclSelection all;
  return all;
}

NcclSelection NcclSelection::only(const NcclAlgorithm& algorithm) {
  NcclSelection selection;
  selection.algorithms_.fill({&algorithm});
  return selection;
}

bool NcclSelection::allows(CollectiveKind kind, const NcclAlgorithm& one) const {
  const auto& allowed = algorithms(kind);
  return std::find(allowed.begin(), allowed.end(), &one) != allowed.end();
}

bool NcclSelection::allows_anywhere(const NcclAlgorithm& one) const {
  return std::any_of(collective_facts.begin(), collective_facts.end(),
                     [&](const CollectiveFacts& facts) { return allows(facts.kind, one); });
}

bool NcclSelection::restricts(CollectiveKind kind) const {
  return algorithms(kind) != unrestricted().algorithms(kind) ||
         protocols_[index(kind)] != unrestricted().protocols_[index(kind)];
}

NcclSelection parse_nccl_selection(const std::string& algorithms, const std::string& protocols,
                                   const Place& algorithms_at, const Place& protocols_at) {
  NcclSelection selection;
  const auto allowed =
      read_lists(algorithms, algorithm_words(), default_algorithms(), algorithms_at);
  std::transform(allowed.begin(), allowed.end(), selection.algorithms_.begin(), those_of);
  selection.protocols_ = read_lists(protocols, nccl_protocol_names(),
                                    Allowed(std::size(nccl_protocols), true), protocols_at);
  return selection;
}

std::string read_nccl_algorithms(const JsonValue& value) {
  const std::string text = value.text();
  parse_nccl_selection(text, "", value.place());
  return as_key(text);
}

std::string read_nccl_protocols(const JsonValue& value) {
  const std::string text = value.text();
  parse_nccl_selection("", text, {}, value.place());
  return as_key(text);
}

std::string algorithms_without_nvls() {
  std::string list;
  for (const NcclAlgorithm* algorithm : nccl_algorithms())
    if (algorithm->is_default() && algorithm->uses_nvls())
      list += (list.empty() ? "^" : "+") + algorithm->word();
  return list;
}

}  // namespace orrery
