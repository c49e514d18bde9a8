#include "sim/base/text/json_value.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "sim/base/core/error_list.hpp"
#include "sim/base/core/nearest.hpp"
#include "sim/base/text/input_file.hpp"
#include "sim/base/text/own_figures.hpp"
#include "sim/base/text/quantity_text.hpp"

namespace orrery {
namespace {

constexpr std::uintmax_t largest_file_bytes = 64u << 20;
constexpr int deepest_nesting = 100;

std::string shown(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

// JSON as nearly all files have it, in a third of nlohmann's time: a table of kernels has 200 kB of
// numbers, and reading it was most of a small estimate. Nothing where the text is not plain: the
// slow way then reads it, and knows what to say.
class PlainJson {
 public:
  explicit PlainJson(const std::string& text) : at_{text.data()}, end_{text.data() + text.size()} {}

  std::optional<nlohmann::json> parse() {
    nlohmann::json root;
    if (!value(root, 0)) return std::nullopt;
    skip_space();
    if (at_ != end_) return std::nullopt;
    return root;
  }

 private:
  using Json = nlohmann::json;

  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  bool take(char expected) {
    skip_space();
    if (at_ == end_ || *at_ != expected) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view expected) {
    if (!std::string_view{at_, end_}.starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }

  bool value(Json& into, int depth) {
    skip_space();
    if (at_ == end_ || depth >= deepest_nesting) return false;
    switch (*at_) {
      case '{':
        return object(into, depth);
      case '[':
        return array(into, depth);
      case '"': {
        std::string read;
        if (!text(read)) return false;
        into = std::move(read);
        return true;
      }
      case 't':
        into = true;
        return word("true");
      case 'f':
        into = false;
        return word("false");
      case 'n':
        return word("null");
      default:
        return number(into);
    }
  }

  bool object(Json& into, int depth) {
    ++at_;
    Json::object_t members;
    if (!take('}')) {
      do {
        std::string key;
        skip_space();
        if (!text(key) || !take(':')) return false;
        const auto [member, fresh] = members.try_emplace(std::move(key));
        if (!fresh || !value(member->second, depth + 1)) return false;
      } while (take(','));
      if (!take('}')) return false;
    }
    into = std::move(members);
    return true;
  }

  bool array(Json& into, int depth) {
    ++at_;
    const std::size_t first = elements_.size();
    if (!take(']')) {
      do {
        Json element;
        if (!value(element, depth + 1)) return false;
        elements_.push_back(std::move(element));
      } while (take(','));
      if (!take(']')) return false;
    }
    const auto begin = elements_.begin() + static_cast<std::ptrdiff_t>(first);
    into = Json::array_t(std::move_iterator{begin}, std::move_iterator{elements_.end()});
    elements_.resize(first);
    return true;
  }

  // Without escapes, and of ASCII.
  bool text(std::string& into) {
    if (at_ == end_ || *at_ != '"') return false;
    const char* const begin = ++at_;
    while (at_ != end_ && *at_ >= ' ' && *at_ < '\x7f' && *at_ != '"' && *at_ != '\\') ++at_;
    if (at_ == end_ || *at_ != '"') return false;
    into.assign(begin, at_++);
    return true;
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  bool digits() {
    const char* const begin = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != begin;
  }

  bool number(Json& into) {
    const char* const begin = at_;
    const bool negative = *at_ == '-';
    if (negative) ++at_;
    const char* const first = at_;
    if (!digits() || (*first == '0' && at_ - first > 1)) return false;
    bool whole = true;
    if (at_ != end_ && *at_ == '.') {
      ++at_;
      whole = false;
      if (!digits()) return false;
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      whole = false;
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      if (!digits()) return false;
    }
    // The types that nlohmann gives to numbers. Out of range is its business.
    if (!whole) return read<double>(begin, into);
    return negative ? read<std::int64_t>(begin, into) : read<std::uint64_t>(begin, into);
  }
  template <class Number>
  bool read(const char* begin, Json& into) const {
    Number number{};
    const auto [end, code] = std::from_chars(begin, at_, number);
    if (code != std::errc{} || end != at_) return false;
    into = number;
    return true;
  }

  const char* at_;
  const char* const end_;
  Json::array_t elements_;  // Of the arrays that are open, so that each is made in one piece.
};

std::string number_text(double value) {
  std::ostringstream out;
  out.precision(15);
  out << value;
  return out.str();
}

}  // namespace

std::string json_quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string shown_text(const std::string& text) {
  const std::string quoted = shown(text);
  return quoted.ends_with('"') ? quoted.substr(1, quoted.size() - 2) : quoted.substr(1);
}

JsonValue JsonValue::read_file(const std::string& path) {
  namespace fs = std::filesystem;
  const Place place{path, ""};
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (!fs::exists(status)) fail_input(place, "no such file", "check the path");
  if (fs::is_directory(status)) fail_input(place, "is a directory", "name a JSON file in it");
  if (!fs::is_regular_file(status)) fail_input(place, "is not a regular file", "name a JSON file");
  const std::uintmax_t size = fs::file_size(path, code);
  if (!code && size > largest_file_bytes)
    fail_input(place, "has " + std::to_string(size >> 20) + " MiB, more than the 64 MiB allowed",
               "no model, system or plan is that large; check the path");
  return parse(read_input_file(path), path);
}

JsonValue JsonValue::parse(const std::string& text, const std::string& file) {
  using nlohmann::json;
  const Place place{file, ""};
  if (text.empty()) fail_input(place, "is empty", "write a JSON object");
  if (auto plain = PlainJson{text}.parse()) {
    auto document = std::make_shared<const json>(std::move(*plain));
    const json* root = document.get();
    return JsonValue{std::move(document), root, place};
  }

  std::vector<std::set<std::string>> open_objects;
  std::string duplicate;
  const json::parser_callback_t note_keys = [&](int depth, json::parse_event_t event,
                                                json& parsed) {
    const bool opens =
        event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    if (opens && depth >= deepest_nesting)
      fail_input(place, "nests more than " + std::to_string(deepest_nesting) + " levels deep",
                 "no model, system or plan does; check the file");
    if (event == json::parse_event_t::object_start) open_objects.emplace_back();
    if (event == json::parse_event_t::object_end) open_objects.pop_back();
    if (event == json::parse_event_t::key && duplicate.empty() &&
        !open_objects.back().insert(parsed.get<std::string>()).second)
      duplicate = parsed.get<std::string>();
    return true;
  };
  auto document = std::make_shared<json>();
  try {
    *document = json::parse(text, note_keys);
  } catch (const json::parse_error& error) {
    const std::string_view before = std::string_view{text}.substr(0, error.byte);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t newline = before.rfind('\n');
    const std::size_t column = newline == before.npos ? before.size() : before.size() - newline - 1;
    if (error.byte > text.size())  // The parser read the end where it wanted more.
      fail_input(place, "ends in the middle of a value (line " + std::to_string(line) + ")",
                 "the file is cut off; fetch it again");
    fail_input(
        place,
        "is not valid JSON at line " + std::to_string(line) + ", column " + std::to_string(column),
        "check commas, quotes and brackets there");
  } catch (const json::out_of_range&) {
    fail_input(place, "holds a number that is too large", "no value here exceeds 1e300");
  }
  if (!duplicate.empty())
    fail_input(place, "has the key '" + shown_text(duplicate) + "' twice in one object",
               "keep one of them");
  const json* root = document.get();
  return JsonValue{std::move(document), root, place};
}

bool JsonValue::is_object() const { return value_->is_object(); }
bool JsonValue::is_array() const { return value_->is_array(); }
bool JsonValue::is_string() const { return value_->is_string(); }
bool JsonValue::is_number() const { return value_->is_number(); }
bool JsonValue::is_boolean() const { return value_->is_boolean(); }
bool JsonValue::operator==(const JsonValue& other) const { return *value_ == *other.value_; }

std::vector<std::string> JsonValue::keys() const {
  if (!is_object()) fail(shown(*value_) + " is not an object", "write {\"key\": value, ...}");
  std::vector<std::string> keys;
  for (const auto& [key, unused] : value_->items()) keys.push_back(key);
  return keys;
}

std::optional<JsonValue> JsonValue::find(const std::string& key) const {
  if (!is_object()) fail(shown(*value_) + " is not an object", "write {\"key\": value, ...}");
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  // A user's own figure was written without a "value" (own_figures.hpp).
  const auto source = key == "value" ? value_->find("source") : value_->end();
  const bool is_own = source != value_->end() && source->is_string() &&
                      source->get_ref<const std::string&>() == own_source;
  return JsonValue{document_, &*found, is_own ? place_ : place_ / key};
}

bool JsonValue::has(const std::string& key) const { return find(key).has_value(); }

JsonValue JsonValue::at(const std::string& key) const {
  if (auto value = find(key)) return *value;
  const std::string near = nearest(key, keys());
  fail("the key '" + key + "' is missing",
       near.empty() ? "add it" : "add it (is '" + near + "' a misspelling of it?)");
}

void JsonValue::allow_only(const std::vector<std::string>& known) const {
  ErrorList errors;
  for (const std::string& key : keys())
    if (std::find(known.begin(), known.end(), key) == known.end())
      errors.attempt(
          [&] { fail("the key '" + shown_text(key) + "' is unknown", suggestion(key, known)); });
  errors.raise();
}

JsonValue JsonValue::with(const std::string& key, const JsonValue& value) const {
  if (!is_object()) fail(shown(*value_) + " is not an object", "write {\"key\": value, ...}");
  auto document = std::make_shared<nlohmann::json>(*value_);
  (*document)[key] = *value.value_;
  const nlohmann::json* root = document.get();
  return JsonValue{std::move(document), root, place_};
}

std::string JsonValue::compact() const { return value_->dump(); }

std::vector<JsonValue> JsonValue::elements() const {
  if (!is_array()) fail(shown(*value_) + " is not a list", "write [value, ...]");
  std::vector<JsonValue> elements;
  elements.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i)
    elements.push_back(JsonValue{document_, &(*value_)[i], place_ / i});
  return elements;
}

std::vector<double> JsonValue::number_table(std::size_t columns) const {
  if (!is_array()) fail(shown(*value_) + " is not a list", "write [[value, ...], ...]");
  std::vector<double> numbers;
  numbers.reserve(value_->size() * columns);
  for (std::size_t i = 0; i < value_->size(); ++i) {
    const nlohmann::json& row = (*value_)[i];
    if (!row.is_array())
      fail_input(place_ / i, shown(row) + " is not a list", "write [value, ...]");
    if (row.size() != columns)
      fail_input(place_ / i,
                 "has " + std::to_string(row.size()) + " values for " + std::to_string(columns) +
                     " columns",
                 "write one value a column");
    for (std::size_t j = 0; j < columns; ++j) {
      if (!row[j].is_number())
        fail_input(place_ / i / j, shown(row[j]) + " is not a number", "write a plain number");
      numbers.push_back(row[j].get<double>());
    }
  }
  return numbers;
}

std::string JsonValue::text() const {
  if (!value_->is_string()) fail(shown(*value_) + " is not text", "write it in quotes");
  return value_->get<std::string>();
}

bool JsonValue::boolean() const {
  if (!value_->is_boolean())
    fail(shown(*value_) + " is neither true nor false", "write one of the two");
  return value_->get<bool>();
}

double JsonValue::number(double minimum, double maximum) const {
  if (!value_->is_number()) fail(shown(*value_) + " is not a number", "write a plain number");
  const double value = value_->get<double>();
  if (!(value >= minimum && value <= maximum))
    fail(shown(*value_) + " is out of range",
         "write a number from " + number_text(minimum) + " to " + number_text(maximum));
  return value;
}

std::int64_t JsonValue::integer(std::int64_t minimum, std::int64_t maximum) const {
  const std::string range =
      "write a whole number from " + std::to_string(minimum) + " to " + std::to_string(maximum);
  if (!value_->is_number()) fail(shown(*value_) + " is not a whole number", range);
  bool inside = false;
  if (value_->is_number_unsigned()) {  // Compared exactly: a double has 53 bits.
    const auto value = value_->get<std::uint64_t>();
    inside = std::cmp_less_equal(minimum, value) && std::cmp_less_equal(value, maximum);
  } else if (value_->is_number_integer()) {
    const auto value = value_->get<std::int64_t>();
    inside = minimum <= value && value <= maximum;
  } else {
    const double value = value_->get<double>();
    if (value != std::floor(value)) fail(shown(*value_) + " is not a whole number", range);
    // The cast is defined below 2^63 only, and `maximum` may round up to that.
    inside = value >= static_cast<double>(minimum) && value <= static_cast<double>(maximum) &&
             value < 0x1p63;
  }
  if (!inside) fail(shown(*value_) + " is out of range", range);
  return value_->get<std::int64_t>();
}

BytesPerSecond JsonValue::bandwidth() const { return parse_bandwidth(text(), place_); }
Bytes JsonValue::bytes() const { return parse_bytes(text(), place_); }
Seconds JsonValue::duration() const { return parse_duration(text(), place_); }
FlopPerSecond JsonValue::flop_rate() const { return parse_flop_rate(text(), place_); }

JsonValue JsonValue::sourced() const {
  if (!is_object())
    fail(shown(*value_) + " names no source",
         "write {\"value\": ..., \"source\": \"where the number is from\"}");
  allow_only({"value", "source"});
  if (at("source").text().empty()) at("source").fail("is empty", "say where the number is from");
  return at("value");
}

void JsonValue::fail(const std::string& problem, const std::string& remedy) const {
  fail_input(place_, problem, remedy);
}

}  // namespace orrery
