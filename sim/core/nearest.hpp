#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// The known word that `word` was probably meant to be, or "" if none is close (edit distance over
/// a third of the word's length). Letters' case does not count.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

/// "did you mean 'x'?" where a word is near, else "write one of: a, b, c". Empty `known` gives "".
std::string suggestion(std::string_view word, const std::vector<std::string>& known);

/// "none or full", "0, 1 or 2"; `last` stands before the last word.
std::string alternatives(const std::vector<std::string>& words, const std::string& last = "or");

/// ASCII letters of `text` in lower case, whatever the locale is.
std::string lower_case(std::string text);

}  // namespace orrery
