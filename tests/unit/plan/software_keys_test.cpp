#include "sim/plan/software_keys.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace orrery::software_keys_test {
namespace {

// Something that the key may say and that a new Software does not.
std::optional<JsonValue> another_value(const SoftwareKey& key) {
  for (const char* value :
       {"true", "false", "0.9", "1.5", "3", "7", "\"2 us\"", "\"fp16\"", "\"alternate_products\"",
        "\"25 MiB\"", "\"tensor\"", "\"step\"", "[\"rotary\"]", "\"cudnn\""}) {
    const JsonValue json = JsonValue::parse(
        R"({"value": )" + std::string{value} + R"(, "source": "s"})", "software.json");
    Software software;
    try {
      key.read(software, json);
    } catch (const Error&) {
      continue;
    }
    if (!(software == Software{})) return json;
  }
  return std::nullopt;
}

// Of two keys that fill one member the second would undo what the first did.
TEST(SoftwareKeys, EachFillsAMemberOfItsOwn) {
  std::vector<std::pair<const SoftwareKey*, JsonValue>> changes;
  for (const SoftwareKey& key : software_keys()) {
    if (key.name == "fp8_scaling" || key.name == "fp32" || key.name == "support")
      continue;  // Objects, tested by name.
    const auto value = another_value(key);
    ASSERT_TRUE(value) << key.name;
    changes.emplace_back(&key, *value);
  }
  const auto after = [&](std::initializer_list<std::size_t> order) {
    Software software;
    for (const std::size_t i : order) changes[i].first->read(software, changes[i].second);
    return software;
  };
  for (std::size_t i = 0; i < changes.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) {
      const Software both = after({k, i});
      EXPECT_TRUE(both == after({i, k}) && !(both == after({i})) && !(both == after({k})))
          << changes[i].first->name << " and " << changes[k].first->name;
    }
}

}  // namespace
}  // namespace orrery::software_keys_test
