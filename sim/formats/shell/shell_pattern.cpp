#include "sim/formats/shell/shell_pattern.hpp"

namespace orrery {
namespace {

// Of which every beginning and end is tried: longer texts stay as they are.
constexpr std::size_t longest_tried = 2'000;

// At the '[' of a set: whether it has `c`, and where it ends. Without an end it is a letter.
bool set_fits(std::string_view pattern, std::size_t& at, char c) {
  std::size_t i = at + 1;
  const bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated) ++i;
  bool has = false;
  for (const std::size_t first = i; i < pattern.size() && (pattern[i] != ']' || i == first); ++i) {
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      has = has || (pattern[i] <= c && c <= pattern[i + 2]);
      i += 2;
    } else {
      has = has || pattern[i] == c;
    }
  }
  if (i >= pattern.size()) {
    ++at;
    return c == '[';
  }
  at = i + 1;
  return has != negated;
}

}  // namespace

bool shell_pattern_fits(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = pattern.npos, after_star = 0;
  while (t < text.size()) {
    std::size_t next = p;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = t;
      continue;
    }
    bool fits = false;
    if (p < pattern.size()) {
      if (pattern[p] == '[')
        fits = set_fits(pattern, next, text[t]);
      else
        fits = pattern[next++] == '?' || pattern[p] == text[t];
    }
    if (fits) {
      p = next;
      ++t;
    } else if (star != pattern.npos) {  // The star takes one letter more.
      p = star + 1;
      t = ++after_star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string without_pattern(const std::string& text, const std::string& pattern, bool at_end,
                            bool longest) {
  if (text.size() > longest_tried) return text;
  const std::string_view all{text};
  for (std::size_t i = 0; i <= all.size(); ++i) {
    const std::size_t size = longest ? all.size() - i : i;
    const std::size_t cut = at_end ? all.size() - size : size;
    if (shell_pattern_fits(pattern, at_end ? all.substr(cut) : all.substr(0, cut)))
      return std::string{at_end ? all.substr(0, cut) : all.substr(cut)};
  }
  return text;
}

std::string with_replaced_pattern(const std::string& text, const std::string& pattern,
                                  const std::string& by, bool all) {
  if (pattern.empty() || text.size() > longest_tried) return text;
  const std::string_view whole{text};
  std::string made;
  for (std::size_t at = 0; at < whole.size();) {
    std::size_t size = whole.size() - at;
    while (size > 0 && !shell_pattern_fits(pattern, whole.substr(at, size))) --size;
    if (size == 0) {
      made += whole[at++];
      continue;
    }
    made += by;
    at += size;
    if (!all) return made + std::string{whole.substr(at)};
  }
  return made;
}

}  // namespace orrery
