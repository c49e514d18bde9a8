#include "calibration/host/json.hpp"

#include <charconv>
#include <cmath>

#include "sim/core/nearest.hpp"

namespace orrery::calibration {
namespace {

constexpr int deepest = 32;

void append_quoted(std::string& out, const std::string& text) {
  static const char* const digits = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

void append(std::string& out, const Json& value) {
  if (const bool* boolean = value.boolean()) {
    out += *boolean ? "true" : "false";
  } else if (const double* number = value.number()) {
    char digits[32];
    // Whole numbers without exponent, so that people and other readers see integers.
    const bool whole = *number == std::floor(*number) && std::abs(*number) < 0x1p53;
    const auto end =
        whole ? std::to_chars(digits, digits + sizeof digits, static_cast<std::int64_t>(*number))
              : std::to_chars(digits, digits + sizeof digits, *number);
    out.append(digits, end.ptr);
  } else if (const std::string* string = value.string()) {
    append_quoted(out, *string);
  } else if (const Json::Array* array = value.array()) {
    out += '[';
    for (const Json& element : *array) {
      if (&element != &array->front()) out += ", ";
      append(out, element);
    }
    out += ']';
  } else if (const Json::Object* object = value.object()) {
    out += '{';
    for (const auto& member : *object) {
      if (&member != &object->front()) out += ", ";
      append_quoted(out, member.first);
      out += ": ";
      append(out, member.second);
    }
    out += '}';
  } else {
    out += "null";
  }
}

// The part of a foreign text that a message may show: printable ASCII, not too much of it.
std::string shown(const std::string& text) {
  std::string out;
  for (const char c : text.substr(0, 60)) out += c >= 0x20 && c < 0x7f ? c : '?';
  return text.size() > 60 ? out + "..." : out;
}

std::string shown(const Json& value) {
  if (value.string()) return "'" + shown(*value.string()) + "'";
  if (value.array()) return "a list";
  if (value.object()) return "an object";
  return value.text();
}

std::string number_text(double value) { return Json{value}.text(); }

class Parser {
 public:
  Parser(const std::string& text, const std::string& file) : text_{text}, file_{file} {}

  Json document() {
    const Json json = value(0);
    skip_blanks();
    if (at_ != text_.size()) fail("has text behind its end", "remove it");
    return json;
  }

 private:
  [[noreturn]] void fail(const std::string& problem, const std::string& remedy) const {
    std::size_t line = 1;
    for (std::size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n';
    fail_input({file_, "line " + std::to_string(line)}, problem, remedy);
  }
  [[noreturn]] void fail_syntax() const {
    if (at_ >= text_.size()) fail("ends in the middle of a value", "the file is cut off");
    fail("is not valid JSON", "check commas, quotes and brackets there");
  }

  void skip_blanks() {
    while (at_ < text_.size() && std::string_view{" \t\r\n"}.find(text_[at_]) != std::string::npos)
      ++at_;
  }
  char peek() {
    skip_blanks();
    if (at_ >= text_.size()) fail_syntax();
    return text_[at_];
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail_syntax();
  }
  Json word(const std::string& word, Json meaning) {
    if (text_.compare(at_, word.size(), word) != 0) fail_syntax();
    at_ += word.size();
    return meaning;
  }

  Json value(int depth) {
    if (depth > deepest) fail("nests more than 32 levels deep", "no file of this kind does");
    switch (peek()) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return string();
      case 't':
        return word("true", true);
      case 'f':
        return word("false", false);
      case 'n':
        return word("null", {});
      default:
        return number();
    }
  }

  Json object(int depth) {
    expect('{');
    Json::Object members;
    if (take('}')) return members;
    do {
      if (peek() != '"') fail_syntax();
      std::string key = string();
      for (const auto& member : members)
        if (member.first == key) fail("has the key '" + shown(key) + "' twice", "keep one of them");
      expect(':');
      members.emplace_back(std::move(key), value(depth + 1));
    } while (take(','));
    expect('}');
    return members;
  }

  Json array(int depth) {
    expect('[');
    Json::Array elements;
    if (take(']')) return elements;
    do elements.push_back(value(depth + 1));
    while (take(','));
    expect(']');
    return elements;
  }

  // JSON excludes some numbers of from_chars (inf, nan, 01, .5, 1.): the first characters decide.
  Json number() {
    const std::size_t digits = at_ + (text_[at_] == '-');
    const auto digit = [&](std::size_t i) {
      return i < text_.size() && text_[i] >= '0' && text_[i] <= '9';
    };
    if (!digit(digits) || (text_[digits] == '0' && digit(digits + 1))) fail_syntax();
    double number = 0.0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (error == std::errc::result_out_of_range)
      fail("holds a number beyond any double", "check it");
    if (error != std::errc{} || !std::isfinite(number) || end[-1] == '.') fail_syntax();
    at_ = static_cast<std::size_t>(end - text_.data());
    return number;
  }

  std::string string() {
    expect('"');
    std::string out;
    while (true) {
      if (at_ >= text_.size()) fail_syntax();
      const char c = text_[at_++];
      if (c == '"') return out;
      if (static_cast<unsigned char>(c) < 0x20)
        fail("has a line break in a text", "close its quote");
      if (c == '\\')
        escape(out);
      else
        out += c;
    }
  }

  void escape(std::string& out) {
    static const std::string letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    if (at_ >= text_.size()) fail_syntax();
    const char c = text_[at_++];
    if (const std::size_t known = letters.find(c); known != letters.npos) {
      out += meanings[known];
    } else if (c == 'u') {
      unsigned code = hexadecimal();
      if (code >= 0xd800 && code < 0xdc00) {  // The first half of a pair.
        if (text_.compare(at_, 2, "\\u") != 0) fail_syntax();
        at_ += 2;
        const unsigned low = hexadecimal();
        if (low < 0xdc00 || low >= 0xe000) fail_syntax();
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      } else if (code >= 0xdc00 && code < 0xe000) {
        fail_syntax();
      }
      append_utf8(out, code);
    } else {
      fail_syntax();
    }
  }

  unsigned hexadecimal() {
    unsigned code = 0;
    if (at_ + 4 > text_.size()) fail_syntax();
    const auto [end, error] = std::from_chars(&text_[at_], &text_[at_] + 4, code, 16);
    if (error != std::errc{} || end != &text_[at_] + 4) fail_syntax();
    at_ += 4;
    return code;
  }

  static void append_utf8(std::string& out, unsigned code) {
    const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += static_cast<char>(0xc0 | (code >> 6));
      tail(0);
    } else if (code < 0x10000) {
      out += static_cast<char>(0xe0 | (code >> 12));
      tail(6), tail(0);
    } else {
      out += static_cast<char>(0xf0 | (code >> 18));
      tail(12), tail(6), tail(0);
    }
  }

  const std::string& text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

}  // namespace

Json Json::parse(const std::string& text, const std::string& file) {
  return Parser{text, file}.document();
}

std::string Json::text() const {
  std::string out;
  append(out, *this);
  return out;
}

const Json* Json::find(const std::string& key) const {
  if (const Object* members = object())
    for (const auto& member : *members)
      if (member.first == key) return &member.second;
  return nullptr;
}

JsonPlace JsonPlace::at(const std::string& key) const {
  if (const Json* value = value_->find(key)) return {*value, place_ / key};
  const std::string near = nearest(key, keys());
  fail("the key '" + key + "' is missing",
       near.empty() ? "add it" : "add it (is '" + shown(near) + "' a misspelling of it?)");
}

std::vector<std::string> JsonPlace::keys() const {
  if (!value_->object()) fail(shown(*value_) + " is not an object", "write {\"key\": value, ...}");
  std::vector<std::string> keys;
  for (const auto& member : *value_->object()) keys.push_back(member.first);
  return keys;
}

void JsonPlace::allow_only(const std::vector<std::string>& known) const {
  for (const std::string& key : keys()) {
    bool found = false;
    for (const std::string& name : known) found = found || name == key;
    if (!found) fail("the key '" + shown(key) + "' is unknown", suggestion(key, known));
  }
}

std::vector<JsonPlace> JsonPlace::elements() const {
  if (!value_->array()) fail(shown(*value_) + " is not a list", "write [value, ...]");
  std::vector<JsonPlace> elements;
  for (const Json& element : *value_->array())
    elements.push_back({element, place_ / elements.size()});
  return elements;
}

std::string JsonPlace::text() const {
  if (!value_->string()) fail(shown(*value_) + " is not text", "write it in quotes");
  return *value_->string();
}

bool JsonPlace::boolean() const {
  if (!value_->boolean()) fail(shown(*value_) + " is neither true nor false", "write one of them");
  return *value_->boolean();
}

double JsonPlace::number(double least, double most) const {
  const double* number = value_->number();
  if (!number) fail(shown(*value_) + " is not a number", "write a plain number");
  if (!(*number >= least && *number <= most))
    fail(shown(*value_) + " is out of range",
         "write a number from " + number_text(least) + " to " + number_text(most));
  return *number;
}

std::int64_t JsonPlace::integer(std::int64_t least, std::int64_t most) const {
  const double value = number(static_cast<double>(least), static_cast<double>(most));
  if (value != std::floor(value)) fail(shown(*value_) + " is not a whole number", "round it");
  return static_cast<std::int64_t>(value);
}

std::size_t JsonPlace::choice(const std::vector<std::string>& names) const {
  const std::string word = text();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == word) return i;
  fail("'" + shown(word) + "' is unknown", suggestion(word, names));
}

}  // namespace orrery::calibration
