#include "sim/core/flag_value.hpp"

namespace orrery {
namespace {

// `text` as a JSON string, byte for byte: what is no UTF-8 is refused, not replaced.
std::string quoted(const std::string& text) {
  static constexpr char hex[] = "0123456789abcdef";
  std::string json = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20)
      json += std::string{"\\u00"} + hex[byte / 16] + hex[byte % 16];
    else
      json += (c == '"' || c == '\\' ? "\\" : "") + std::string{c};
  }
  return json + "\"";
}

// A sign stands before a number or its exponent; between two numbers it joins a list: "1+3".
bool may_be_a_number(const std::string& text) {
  if (text.empty() || text.find_first_not_of("+-.0123456789eE") != text.npos) return false;
  const std::size_t sign = text.find_first_of("+-", 1);
  return sign == text.npos || text[sign - 1] < '0' || text[sign - 1] > '9';
}

}  // namespace

JsonValue value_of_text(const std::string& text, const std::string& place) {
  // Written as a JSON scalar with the quotes left out: numbers and true/false as they are.
  const bool bare = text == "true" || text == "false" || may_be_a_number(text);
  try {
    return JsonValue::parse(bare ? text : quoted(text), place);
  } catch (const Error&) {
    fail_input({place, ""},
               "'" + shown_text(text) + "' is " + (bare ? "not a number" : "not UTF-8 text"),
               bare ? "write a whole number" : "write letters and digits");
  }
}

JsonValue value_of_flag(const std::string& key, const std::string& text) {
  return value_of_text(text, "--" + shown_text(key));
}

std::string flag_text(const JsonValue& value) {
  if (value.is_string()) return value.text();
  if (value.is_boolean()) return value.boolean() ? "true" : "false";
  return std::to_string(value.integer(0, std::int64_t{1} << 40));
}

}  // namespace orrery
