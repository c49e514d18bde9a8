#include "tests/fuzz/mutation.hpp"

#include <nlohmann/json.hpp>
#include <sstream>

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

template <class Container>
std::size_t any_of(const Container& from, std::mt19937& random) {
  return random() % from.size();
}

// Numbers at which readers change their mind, and words.
Json any_scalar(const std::vector<std::string>& words, std::mt19937& random) {
  static const std::vector<Json> some{0,
                                      1,
                                      -1,
                                      2,
                                      3,
                                      4,
                                      7,
                                      8,
                                      16,
                                      64,
                                      1024,
                                      65536,
                                      1 << 24,
                                      2147483647,
                                      4294967296,
                                      1e18,
                                      -0.5,
                                      0.5,
                                      0.9,
                                      1e-9,
                                      1e308,
                                      1e-308,
                                      true,
                                      false,
                                      nullptr,
                                      "",
                                      "1 GB/s",
                                      "80 GiB",
                                      "5 us",
                                      "1 TFLOP/s",
                                      "0 us",
                                      Json::array(),
                                      Json::object()};
  if (random() % 3 == 0 && !words.empty()) return words[any_of(words, random)];
  return some[any_of(some, random)];
}

void collect(Json& node, std::vector<Json*>& all) {
  all.push_back(&node);
  if (node.is_structured())
    for (Json& child : node) collect(child, all);
}

void change_object(Json& node, const std::vector<std::string>& words, std::mt19937& random) {
  auto at = node.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(any_of(node, random)));
  switch (random() % 3) {
    case 0:
      node.erase(at);
      return;
    case 1:
      if (!words.empty()) node[words[any_of(words, random)]] = Json{at.value()};
      return;
    default:
      if (!words.empty()) node[words[any_of(words, random)]] = any_scalar(words, random);
  }
}

void change_array(Json& node, const std::vector<std::string>& words, std::mt19937& random) {
  const std::size_t at = any_of(node, random);
  switch (random() % 4) {
    case 0:
      node.erase(at);
      return;
    case 1:
      node.push_back(Json(node[at]));
      return;
    case 2:
      node.push_back(any_scalar(words, random));
      return;
    default:
      std::swap(node[at], node[any_of(node, random)]);
  }
}

// A number near it, as a sum or a product.
Json near(const Json& number, std::mt19937& random) {
  if (!number.is_number_integer()) {
    const double factors[] = {-1.0, 0.0, 0.5, 0.9, 1.1, 2.0, 1e3, 1e-3, 1e30};
    return number.get<double>() * factors[random() % std::size(factors)];
  }
  const auto value = number.get<std::int64_t>();
  constexpr std::int64_t far = 1LL << 40;
  if (value > far || value < -far) return 1;
  const std::int64_t others[] = {value + 1, value - 1, -value, value * 2, value / 2, value * 16};
  return others[random() % std::size(others)];
}

// Another of its kind: "400 GB/s" becomes "800 GB/s", a word another word.
Json like(const Json& scalar, const std::vector<std::string>& words, std::mt19937& random) {
  if (scalar.is_number()) return near(scalar, random);
  if (scalar.is_boolean()) return !scalar.get<bool>();
  if (!scalar.is_string()) return any_scalar(words, random);
  const std::string text = scalar.get<std::string>();
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits > 0 && digits < 10)
    return near(Json(std::stoll(text.substr(0, digits))), random).dump() + text.substr(digits);
  return words.empty() ? Json{""} : Json(words[any_of(words, random)]);
}

std::string changed_json(const std::string& text, const std::vector<std::string>& words,
                         std::mt19937& random) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return {};
  do {
    std::vector<Json*> nodes;
    collect(json, nodes);
    // What readers accept differs mostly in its values.
    if (random() % 2 == 0)
      std::erase_if(nodes, [](const Json* node) { return node->is_structured(); });
    if (nodes.empty()) continue;
    Json& node = *nodes[any_of(nodes, random)];
    const bool inside = random() % 4 != 0;
    if (node.is_object() && !node.empty() && inside)
      change_object(node, words, random);
    else if (node.is_array() && !node.empty() && inside)
      change_array(node, words, random);
    else if (!node.is_structured() && inside)
      node = like(node, words, random);
    else if (random() % 2 == 0)
      node = Json(*nodes[any_of(nodes, random)]);
    else
      node = any_scalar(words, random);
  } while (random() % 3 == 0);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string any_word(const std::vector<std::string>& words, std::mt19937& random) {
  if (random() % 3 == 0 || words.empty()) return std::to_string(1u << random() % 11);
  return words[any_of(words, random)];
}

std::string changed_lines(const std::string& text, const std::vector<std::string>& words,
                          std::mt19937& random) {
  std::vector<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  for (bool more = true; more && !lines.empty(); more = random() % 3 == 0) {
    const std::size_t at = any_of(lines, random);
    const auto place = lines.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t equals = lines[at].find('=');
    switch (random() % 5) {
      case 0:
        lines.erase(place);
        break;
      case 1:
        lines.insert(place, std::string{lines[any_of(lines, random)]});
        break;
      case 2:
        lines.insert(place, any_word(words, random));
        break;
      case 3:
        std::swap(lines[at], lines[any_of(lines, random)]);
        break;
      default:
        lines[at] = (equals == std::string::npos ? "" : lines[at].substr(0, equals + 1)) +
                    any_word(words, random);
    }
  }
  std::string changed;
  for (const std::string& line : lines) changed += line + "\n";
  return changed;
}

}  // namespace

std::string changed_in_shape(const std::string& text, Shape shape,
                             const std::vector<std::string>& words, std::mt19937& random) {
  if (shape == Shape::json) return changed_json(text, words, random);
  if (shape == Shape::lines) return changed_lines(text, words, random);
  return {};
}

}  // namespace orrery
