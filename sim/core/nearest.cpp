#include "sim/core/nearest.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "sim/core/value_list.hpp"

namespace orrery {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Levenshtein's distance with one row of the table.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  // A word from a hostile file may be megabytes long; nothing known is, so nothing is near.
  constexpr std::size_t longest_word = 100;
  if (word.size() > longest_word) return "";
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) best_distance = distance, best = candidate;
  }
  return best;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  if (known.empty()) return "";
  if (const std::string near = nearest(word, known); !near.empty())
    return "did you mean '" + near + "'?";
  return "write one of: " + joined(known);
}

std::string alternatives(const std::vector<std::string>& words, const std::string& last) {
  std::string all;
  for (std::size_t i = 0; i < words.size(); ++i)
    all += (i == 0 ? "" : i + 1 == words.size() ? " " + last + " " : ", ") + words[i];
  return all;
}

std::string lower_case(std::string text) {
  for (char& c : text) c = lower(c);
  return text;
}

}  // namespace orrery
