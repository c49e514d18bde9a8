#pragma once

#include <string>

#include "sim/core/json_value.hpp"

namespace orrery {

/// What a flag's text says, as the value that a JSON file would hold; its place is the flag.
/// Numbers, true and false are what they look like, everything else is a word. Errors: a number
/// that is none, text that is no UTF-8.
JsonValue value_of_flag(const std::string& key, const std::string& text);
/// The same of a text that stands elsewhere; `place` is what messages name.
JsonValue value_of_text(const std::string& text, const std::string& place);
/// The other way round: a word, true or false, or a whole number, as a flag would say it.
std::string flag_text(const JsonValue& value);

}  // namespace orrery
