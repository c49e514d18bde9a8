#include "calibration/host/json.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_text.hpp"

namespace orrery::calibration::json_test {
namespace {

std::string again(const std::string& text) { return Json::parse(text, "f.json").text(); }

TEST(Json, WritesWhatItReads) {
  EXPECT_EQ(again(" {\"a\" : [1, -2.5e-3 ,true,false,null],\"b\":{}} "),
            "{\"a\": [1, -0.0025, true, false, null], \"b\": {}}");
  EXPECT_EQ(again("9007199254740991"), "9007199254740991");  // 2^53 - 1
  EXPECT_EQ(again("0.1"), "0.1");
  EXPECT_EQ(again("\"\\\"\\\\\\u0041\\u00e9\\ud83d\\ude00\\n\""),
            "\"\\\"\\\\A\xc3\xa9\xf0\x9f\x98\x80\\u000a\"");
}

TEST(Json, RefusesWhatIsNoJson) {
  const std::string broken[] = {
      "",        "{",         "[1,]",  "{\"a\" 1}", "01",   ".5",    "1.",          "nan",
      "inf",     "-",         "+1",    "0x10",      "'a'",  "\"a",   "tru",         "1 2",
      "\"\\x\"", "\"\\u12\"", "[1 2]", "{\"a\":}",  "-inf", "1e999", "\"\\ud800\"", "[}"};
  for (const std::string& text : broken) {
    SCOPED_TRACE(text);
    EXPECT_THROW(again(text), Error);
  }
}

TEST(Json, SaysWhere) {
  EXPECT_EQ(error_text([] { again("{\"a\": 1,\n\"a\": 2}"); }),
            "f.json: line 2: has the key 'a' twice; keep one of them");
  EXPECT_EQ(error_text([] { again("[1,\n\n2"); }),
            "f.json: line 3: ends in the middle of a value; the file is cut off");
  EXPECT_EQ(error_text([] { again(std::string(40, '[')); }),
            "f.json: line 1: nests more than 32 levels deep; no file of this kind does");
}

TEST(JsonPlace, NamesTheKey) {
  const Json json = Json::parse(R"({"a": {"count": 1.5, "name": "x"}})", "f.json");
  const JsonPlace a = JsonPlace{json, {"f.json", ""}}.at("a");
  EXPECT_EQ(error_text([&] { a.at("count").integer(0, 9); }),
            "f.json: /a/count: 1.5 is not a whole number; round it");
  EXPECT_EQ(error_text([&] { a.at("count").number(2.0, 9.0); }),
            "f.json: /a/count: 1.5 is out of range; write a number from 2 to 9");
  EXPECT_EQ(error_text([&] { a.at("names"); }),
            "f.json: /a: the key 'names' is missing; add it (is 'name' a misspelling of it?)");
  EXPECT_EQ(error_text([&] {
              a.allow_only({"counts", "name"});
            }),
            "f.json: /a: the key 'count' is unknown; did you mean 'counts'?");
  EXPECT_EQ(error_text([&] {
              a.at("name").choice({"horse", "zebra"});
            }),
            "f.json: /a/name: 'x' is unknown; write one of: horse, zebra");
}

}  // namespace
}  // namespace orrery::calibration::json_test
