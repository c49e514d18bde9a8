#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// What is not known of a text is marked inside of it, so that it lasts through assignments: what a
// variable that nobody sets would bring, which is nothing unless it is set outside, and what only a
// program could say.

std::string unset_mark(const std::string& name);
std::string unknown_mark(const std::string& as_written);

/// No program would have to be run to say it.
bool is_known(std::string_view text);
/// As Bash sees it if nothing is set outside: without what unset variables would bring.
std::string without_unset(std::string_view text);
/// Variables that are marked as unset in it.
std::vector<std::string> unset_names(std::string_view text);
/// For people and for what reads the words: "$NAME", "$(date)".
std::string shown_marks(std::string_view text);
/// Text from outside, which must not bring marks of its own.
std::string without_marks(std::string text);
/// Words between blanks outside of marks; each with the number of line ends before it.
std::vector<std::pair<std::string, std::size_t>> split_words(std::string_view text);

}  // namespace orrery
