#include "sim/measurements/nccl_selection.hpp"

#include <algorithm>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {
namespace {

using Words = std::vector<std::string>;

const Words algorithm_words{"Tree",     "Ring", "CollnetDirect", "CollnetChain", "NVLS",
                            "NVLSTree", "PAT"};
const Words protocol_words{"LL", "LL128", "Simple"};
// In the order of CollectiveKind; those without algorithms are empty.
const Words collective_words = [] {
  Words words;
  for (const CollectiveFacts& one : collective_facts) words.emplace_back(one.nccl_name);
  return words;
}();

std::size_t find_word(const std::string& word, const Words& known, const Place& at) {
  const auto found = std::find_if(known.begin(), known.end(), [&](const std::string& one) {
    return !one.empty() && lower_case(one) == lower_case(word);
  });
  if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
  std::vector<std::string> names{known.begin(), known.end()};
  std::erase(names, "");
  fail_input(at, "'" + word + "' is none of NCCL's", "write some of: " + joined(names));
}

template <std::size_t count>
std::array<bool, count> read_list(const std::string& list, const Words& known, const Place& at) {
  const bool excludes = list.starts_with('^');
  std::array<bool, count> allowed;
  allowed.fill(excludes);
  for (const std::string& word : split(list.substr(excludes ? 1 : 0), ",+"))
    allowed[find_word(word, known, at)] = !excludes;
  return allowed;
}

template <std::size_t count>
void read_lists(const std::string& text, const Words& known, const Place& at,
                std::array<std::array<bool, count>, collective_kinds>& allowed) {
  if (text.empty() || text == "any") return;
  bool first = true;
  for (const std::string& entry : split(text, ";")) {
    const std::size_t colon = entry.find(':');
    if (colon != entry.npos) {
      const std::size_t kind = find_word(entry.substr(0, colon), collective_words, at);
      allowed[kind] = read_list<count>(entry.substr(colon + 1), known, at);
    } else if (first) {
      allowed.fill(read_list<count>(entry, known, at));
    } else {
      fail_input(at, "'" + entry + "' names no collective, as all lists but the first do",
                 "write it like \"Ring;AllReduce:" + known.front() + "\"");
    }
    first = false;
  }
}

// Commas separate values of a key.
std::string as_key(std::string list) {
  std::replace(list.begin(), list.end(), ',', '+');
  return list.empty() ? "any" : list;
}

}  // namespace

std::string_view name(NcclAlgorithm algorithm) {
  static constexpr std::string_view names[]{"tree", "ring",      "CollNet", "CollNet-chain",
                                            "NVLS", "NVLS-tree", "PAT"};
  return names[static_cast<std::size_t>(algorithm)];
}

std::string_view name(NcclProtocol protocol) {
  static constexpr std::string_view names[]{"LL", "LL128", "Simple"};
  return names[static_cast<std::size_t>(protocol)];
}

NcclSelection::NcclSelection() {
  for (auto& allowed : algorithms_) allowed.fill(true);
  for (auto& allowed : protocols_) allowed.fill(true);
}

NcclSelection NcclSelection::only(NcclAlgorithm algorithm) {
  NcclSelection selection;
  for (auto& allowed : selection.algorithms_) {
    allowed.fill(false);
    allowed[static_cast<std::size_t>(algorithm)] = true;
  }
  return selection;
}

bool NcclSelection::restricts(CollectiveKind kind) const {
  const auto all = [](const auto& allowed) {
    return std::all_of(allowed.begin(), allowed.end(), [](bool one) { return one; });
  };
  return !all(algorithms_[index(kind)]) || !all(protocols_[index(kind)]);
}

NcclSelection parse_nccl_selection(const std::string& algorithms, const std::string& protocols,
                                   const Place& algorithms_at, const Place& protocols_at) {
  NcclSelection selection;
  read_lists(algorithms, algorithm_words, algorithms_at, selection.algorithms_);
  read_lists(protocols, protocol_words, protocols_at, selection.protocols_);
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

}  // namespace orrery
