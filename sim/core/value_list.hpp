#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/core/json_value.hpp"

namespace orrery {

/// The value that a JSON file would hold for a flag's text; its place is the flag. Numbers, true
/// and false are what they look like, also "1,024" and "8k", which is 8,192 for lengths of tokens
/// and else 8,000; everything else is a word. Errors: a malformed number, text that is no UTF-8.
JsonValue value_of_flag(const std::string& key, const std::string& text);
/// The same of a text that stands elsewhere; `place` is what messages name.
JsonValue value_of_text(const std::string& text, const std::string& place);
/// The other way round: a word, true or false, or a whole number, in a flag's form.
std::string flag_text(const JsonValue& value);

/// Continuation of a range that does not state its own: 2..8 is 2, 3, 4, ...; or 2, 4, 8; or those
/// of 2, 3, 4, ... that divide something.
enum class OpenRange { counts, doubles, divides };

struct RangeRule {
  OpenRange open = OpenRange::counts;
  /// Values of a range that `divides` divide at least one of these; empty: not known yet.
  std::vector<std::int64_t> wholes = {};
  /// Values of one range. More are an error unless the user confirms them.
  std::int64_t most = 64;
};
inline constexpr std::int64_t most_with_yes = 100'000;

/// The words between blanks and ends of lines.
std::vector<std::string> words_in(const std::string& text);

using WordPairs = std::vector<std::pair<std::string, std::string>>;
/// "theirs=ours" of each word of a text; a word alone means itself.
WordPairs pairs_in(const std::string& text);
/// Each word of several texts with what that text means: {"an encoder", "bert roberta"}.
WordPairs words_by_meaning(const WordPairs& texts_by_meaning);

/// The parts of a text before, between and behind the marks, also empty ones.
std::vector<std::string> split(const std::string& text, const char* marks);
/// Words or whole numbers in one text, with `between` between them.
template <class Items>
std::string joined(const Items& items, const std::string& between = ", ") {
  std::string text;
  bool is_first = true;
  for (const auto& item : items) {
    if (!std::exchange(is_first, false)) text += between;
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(item)>>)
      text += std::to_string(item);
    else
      text += item;
  }
  return text;
}

/// Splits "1,2,4" at its commas. Errors (bad_input): nothing between two of them.
std::vector<std::string> split_list(const std::string& text, const Place& at);

/// True if an item is a range that does not state its step.
bool is_open_range(const std::string& item, const Place& at);

/// The values of one item of a list: itself, or those of a range of whole numbers, "256..8192*2" or
/// "8..64+8", which ends at the last value that it hits. Errors (bad_input): a range without a step
/// that goes on, that ends before it begins, without a value, or with more than the rule allows.
std::vector<std::string> values_of_item(const std::string& item, const Place& at,
                                        const RangeRule& rule = {});

/// Both: the values of a list of items. "1,024" is one number. Errors besides: what may be either,
/// as "1,152".
std::vector<std::string> parse_value_list(const std::string& text, const Place& at,
                                          const RangeRule& rule = {});

/// The divisors of `whole` from 1 to `most`, as a list of values.
std::vector<std::string> divisors(std::int64_t whole, std::int64_t most);

/// Refuses so many values of one range.
[[noreturn]] void refuse_long_range(std::int64_t values, std::int64_t most, const Place& at);

}  // namespace orrery
