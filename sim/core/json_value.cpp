#include "sim/core/json_value.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/core/error.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/object_reader.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

constexpr std::uintmax_t largest_file_bytes = 64u << 20;
constexpr std::size_t deepest_nesting = 100;

std::string shown(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

// Builds a document from the events of nlohmann's reader. Its own builder takes the last of two
// equal keys and nests at any depth; its callbacks would find both, in three times the time.
class DocumentBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  DocumentBuilder(const std::string& text, const Place& place) : text_{text}, place_{place} {}

  nlohmann::json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& value) override { return add(std::move(value)); }

  bool start_object(std::size_t) override { return open(nlohmann::json::value_t::object); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(nlohmann::json::value_t::array); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    auto& members = open_.back()->get_ref<nlohmann::json::object_t&>();
    const auto [member, fresh] = members.try_emplace(std::move(name));
    if (!fresh)
      fail_input(place_, "has the key '" + shown_text(member->first) + "' twice in one object",
                 "keep one of them");
    member_ = &member->second;
    return true;
  }

  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::json::exception& error) override {
    if (dynamic_cast<const nlohmann::json::out_of_range*>(&error) != nullptr)
      fail_input(place_, "holds a number that is too large", "no value here exceeds 1e300");
    const std::string_view before = std::string_view{text_}.substr(0, byte);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t newline = before.rfind('\n');
    const std::size_t column = newline == before.npos ? before.size() : before.size() - newline - 1;
    if (byte > text_.size())  // The parser read the end where it wanted more.
      fail_input(place_, "ends in the middle of a value (line " + std::to_string(line) + ")",
                 "the file is cut off; fetch it again");
    fail_input(
        place_,
        "is not valid JSON at line " + std::to_string(line) + ", column " + std::to_string(column),
        "check commas, quotes and brackets there");
  }

 private:
  nlohmann::json& slot() {
    if (open_.empty()) return root_;
    return open_.back()->is_array() ? open_.back()->emplace_back() : *member_;
  }
  bool add(nlohmann::json value) {
    slot() = std::move(value);
    return true;
  }
  bool open(nlohmann::json::value_t type) {
    if (open_.size() >= deepest_nesting)
      fail_input(place_, "nests more than " + std::to_string(deepest_nesting) + " levels deep",
                 "no model, system or plan does; check the file");
    nlohmann::json& opened = slot();
    opened = type;
    open_.push_back(&opened);  // It stays where it is: its parent gets no other until it closes.
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& text_;
  const Place& place_;
  nlohmann::json root_;
  std::vector<nlohmann::json*> open_;  // Outermost first.
  nlohmann::json* member_ = nullptr;   // The innermost object's place for its next value.
};

// Python's json writes NaN, Infinity and -Infinity, which JSON has no words for. They become texts:
// no key takes them as a number, and one that nothing reads does no harm.
std::string with_quoted_infinities(const std::string& text) {
  std::string quoted;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (in_string && text[at] == '\\' && at + 1 < text.size()) {
      quoted.append(text, at++, 2);
      continue;
    }
    if (text[at] == '"') in_string = !in_string;
    const std::string_view rest = std::string_view{text}.substr(at);
    std::string_view word;
    for (const std::string_view constant : {"NaN", "Infinity", "-Infinity"})
      if (!in_string && rest.starts_with(constant)) word = constant;
    if (word.empty()) {
      quoted += text[at];
      continue;
    }
    quoted += '"' + std::string{word} + '"';
    at += word.size() - 1;
  }
  return quoted;
}

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
  if (path == standard_input) return parse(read_standard_input(), path);
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
  const Place place{file, ""};
  if (text.empty()) fail_input(place, "is empty", "write a JSON object");
  const bool of_python = text.find("NaN") != text.npos || text.find("Infinity") != text.npos;
  const std::string quoted = of_python ? with_quoted_infinities(text) : "";
  const std::string& read = of_python ? quoted : text;
  DocumentBuilder builder{read, place};
  nlohmann::json::sax_parse(read, &builder);
  const auto document = std::make_shared<const nlohmann::json>(builder.take());
  return JsonValue{document, document.get(), place};
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
  if (value_->contains(key)) fail("the key '" + key + "' is null", "give it a value");
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

std::vector<std::int64_t> JsonValue::integers(std::int64_t minimum, std::int64_t maximum) const {
  if (!is_array()) fail(shown(*value_) + " is not a list", "write [number, ...]");
  std::vector<std::int64_t> numbers;
  numbers.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i) {
    const nlohmann::json& one = (*value_)[i];
    const bool is_whole =
        one.is_number_integer() &&
        !(one.is_number_unsigned() && one.get<std::uint64_t>() > std::uint64_t{1} << 62);
    if (!is_whole || one.get<std::int64_t>() < minimum || one.get<std::int64_t>() > maximum)
      fail_input(place_ / i,
                 shown(one) + " is no whole number from " + std::to_string(minimum) + " to " +
                     std::to_string(maximum),
                 "write one");
    numbers.push_back(one.get<std::int64_t>());
  }
  return numbers;
}

std::string JsonValue::text() const {
  if (!value_->is_string()) fail(shown(*value_) + " is not text", "write it in quotes");
  std::string text = value_->get<std::string>();
  // Terminals execute control characters when they print the text.
  const auto controls = [](char c) {
    return (static_cast<unsigned char>(c) < ' ' && !std::strchr("\n\r\t", c)) || c == '\x7f';
  };
  if (std::any_of(text.begin(), text.end(), controls))
    fail(shown(*value_) + " holds a control character", "leave it out");
  return text;
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
