#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/object_reader.hpp"

namespace orrery::own_figures_test {
namespace {

using ::testing::ElementsAre;

JsonValue parsed(const std::string& text) { return JsonValue::parse(text, "a.json"); }

TEST(OwnFigures, AreWrittenOutAtAnyDepth) {
  const JsonValue json = with_own_sources(
      parsed(R"({"n": 8, "name": "n", "s": {"n": "2 us", "list": [{"n": 1}, 5]}})"), {"n"});
  EXPECT_EQ(json, parsed(R"({"n": {"value": 8, "source": "yours"}, "name": "n",
      "s": {"n": {"value": "2 us", "source": "yours"},
            "list": [{"n": {"value": 1, "source": "yours"}}, 5]}})"));
  EXPECT_THAT(own_figures(json), ElementsAre("n", "s/list/0/n", "s/n"));
}

TEST(OwnFigures, LeaveWhatHasASourceAndWhatIsNoFigure) {
  const JsonValue json =
      parsed(R"({"n": {"value": 8, "source": "s"}, "m": true, "k": null, "l": [1]})");
  EXPECT_EQ(with_own_sources(json, {"n", "m", "k", "l"}), json);
  EXPECT_THAT(own_figures(json), ElementsAre());
}

TEST(OwnFigures, AreNamedInErrorsAsTheyWereWritten) {
  const JsonValue json =
      with_own_sources(parsed(R"({"n": 8, "m": {"value": 8, "source": "s"}})"), {"n", "m"});
  EXPECT_EQ(json.at("n").sourced().place().pointer, "/n");
  EXPECT_EQ(json.at("m").sourced().place().pointer, "/m/value");
}

std::string errors_of(const std::string& text) {
  const JsonValue json = parsed(text);
  ObjectReader reader{json, {"a", "b", "c"}};
  reader.required("a", [](const JsonValue& value) { value.integer(1, 5); });
  reader.required("b", [](const JsonValue& value) { value.integer(1, 5); });
  reader.optional("c", [](const JsonValue& value) { value.integer(1, 5); });
  reader.check([&] { json.fail("together", ""); });
  try {
    reader.raise();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(ObjectReader, GoesOnAfterAnError) {
  EXPECT_EQ(errors_of(R"({"a": 0, "b": 6, "c": 7})"),
            "a.json: /a: 0 is out of range; write a whole number from 1 to 5\n"
            "a.json: /b: 6 is out of range; write a whole number from 1 to 5\n"
            "a.json: /c: 7 is out of range; write a whole number from 1 to 5");
}

TEST(ObjectReader, ChecksTogetherOnlyWhatIsRightByItself) {
  EXPECT_EQ(errors_of(R"({"a": 1, "b": 2})"), "a.json: together");
  EXPECT_EQ(errors_of(R"({"a": 1})"),
            "a.json: the key 'b' is missing; add it (is 'a' a misspelling of it?)");
}

TEST(ObjectReader, NamesAMisspelledKeyOnce) {
  EXPECT_EQ(errors_of(R"({"a": 1, "bb": 2, "cc": 0})"),
            "a.json: the key 'bb' is unknown; did you mean 'b'?\n"
            "a.json: the key 'cc' is unknown; did you mean 'c'?");
}

}  // namespace
}  // namespace orrery::own_figures_test
