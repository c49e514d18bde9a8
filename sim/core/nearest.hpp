#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/core/error.hpp"
#include "sim/core/json_value.hpp"

namespace orrery {

/// The known word that `word` was probably meant to be, or "" if none is close (edit distance over
/// a third of the word's length). Letters' case does not count.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

/// "did you mean 'x'?" where a word is near, else "write one of: a, b, c". Empty `known` gives "".
std::string suggestion(std::string_view word, const std::vector<std::string>& known);

/// The enumerator that a word names; `names` are in the enumerators' order. Errors (bad_input):
/// another word, "'x' " + `problem`.
template <class Enum>
Enum choice(const std::string& word, const Place& at, const std::string& problem = "is unknown",
            const std::vector<std::string>& names = enum_words<Enum>) {
  const auto found = std::find(names.begin(), names.end(), word);
  if (found == names.end())
    fail_input(at, "'" + shown_text(word) + "' " + problem, suggestion(word, names));
  return static_cast<Enum>(found - names.begin());
}

/// "none or full", "0, 1 or 2"; `last` stands before the last word.
std::string alternatives(const std::vector<std::string>& words, const std::string& last = "or");

/// ASCII letters of `text` in lower case, whatever the locale is.
std::string lower_case(std::string text);

}  // namespace orrery
