#include "sim/core/json_value.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/error_text.hpp"

namespace orrery::json_value_test {
namespace {

JsonValue parse(const std::string& text) { return JsonValue::parse(text, "a.json"); }
std::string parse_error(const std::string& text) {
  return error_text([&] { parse(text); });
}

TEST(JsonValue, ReadsScalarsListsAndQuantities) {
  const JsonValue json = parse(
      R"({"n": 4096.0, "x": 0.5, "b": true, "t": "gpt", "l": [1, 2], "none": null,
          "nic": "400 Gb/s", "memory": "80 GiB", "latency": "5 us", "peak": "312 TFLOP/s",
          "s": {"value": 3, "source": "datasheet"}})");
  EXPECT_EQ(json.at("n").integer(1, 5000), 4096);
  EXPECT_EQ(json.at("x").number(0, 1), 0.5);
  EXPECT_TRUE(json.at("b").boolean());
  EXPECT_EQ(json.at("t").text(), "gpt");
  EXPECT_EQ(json.at("l").elements().at(1).integer(0, 9), 2);
  EXPECT_EQ(json.at("l").elements().at(1).place().pointer, "/l/1");
  EXPECT_FALSE(json.has("none"));
  EXPECT_EQ(json.at("nic").bandwidth().si(), 50e9);
  EXPECT_EQ(json.at("memory").bytes().si(), 80 * 0x1p30);
  EXPECT_DOUBLE_EQ(json.at("latency").duration().si(), 5e-6);
  EXPECT_EQ(json.at("peak").flop_rate().si(), 312e12);
  EXPECT_EQ(json.at("s").sourced().integer(0, 9), 3);
}

TEST(JsonValue, AValueOutlivesItsDocument) {
  const auto inner = [] { return parse(R"({"a": {"b": 7}})").at("a").at("b"); }();
  EXPECT_EQ(inner.integer(0, 9), 7);
}

TEST(JsonValue, EqualityIsOfValues) {
  EXPECT_TRUE(parse("8") == parse("8.0"));
  EXPECT_FALSE(parse("8") == parse("9"));
}

// Read from events (DocumentBuilder): the types and digits must be those of nlohmann's document.
// Python's json writes these, and no reader of numbers takes them.
TEST(JsonValue, InfinityAndNanAreTexts) {
  const JsonValue json = parse(R"({"a": [Infinity, -Infinity, NaN], "b": "NaN \" Infinity"})");
  EXPECT_EQ(json.at("a").elements()[1].text(), "-Infinity");
  EXPECT_EQ(json.at("b").text(), "NaN \" Infinity");
  EXPECT_EQ(error_text([&] { json.at("a").elements()[2].number(0, 1); }),
            "a.json: /a/2: \"NaN\" is not a number; write a plain number");
  EXPECT_THROW(parse("{NaN: 1, NaN}"), Error);
  EXPECT_THROW(parse("[Infinityx]"), Error);
}

TEST(JsonValue, ReadsWhatItsLibraryReads) {
  for (const char* text : {"0",
                           "-0",
                           "-0.0",
                           "7",
                           "-7",
                           "0.1",
                           "1E-5",
                           "123.456e+2",
                           "1e300",
                           "5e-324",
                           "9007199254740993",
                           "18446744073709551615",
                           "18446744073709551616",
                           "-9223372036854775808",
                           "-9223372036854775809",
                           "0.1000000000000000055511151231257827",
                           "true",
                           "null",
                           "[]",
                           "{}",
                           "[[1,2],[3.5,[4]],[],{}]",
                           "{\"b\":[{\"b\":null}],\"a b\":{\"\":{\"c\":1},\"d\":[]},\"a\":2}",
                           "\"a/b {[,]} \\u00e9\\n\"",
                           " [1\t,\r\n2 ] "})
    EXPECT_EQ(parse(text).compact(), nlohmann::json::parse(text).dump()) << text;
  for (const char* wrong : {"01", "-", "1.", ".5", "1e", "+1", "tru", "nulls", "[1 2]", "{\"a\" 1}",
                            "{1:2}", "[1,]", "{\"a\":1,}", "1 2", "\"\t\"", "\"a", "1e999"})
    EXPECT_NE(parse_error(wrong), "no error") << wrong;
}

TEST(JsonValueErrors, BrokenDocuments) {
  EXPECT_EQ(parse_error(""), "a.json: is empty; write a JSON object");
  for (const char* cut : {"{", "{\"a\"", "{\"a\": ", "{\"a\": [1, 2", "\"text", " \n"})
    EXPECT_NE(parse_error(cut).find("ends in the middle of a value"), std::string::npos) << cut;
  EXPECT_EQ(parse_error("{\"a\": 1,\n \"b\": "),
            "a.json: ends in the middle of a value (line 2); the file is cut off; fetch it again");
  const std::string advice = "; check commas, quotes and brackets there";
  EXPECT_EQ(parse_error("{\"a\": 1,\n \"b\" 2}"),
            "a.json: is not valid JSON at line 2, column 6" + advice);
  EXPECT_EQ(parse_error("{\"a\": 1}}"), "a.json: is not valid JSON at line 1, column 9" + advice);
  EXPECT_EQ(parse_error("{\"a\": nan}"), "a.json: is not valid JSON at line 1, column 8" + advice);
  EXPECT_EQ(parse_error("[1, 2,]"), "a.json: is not valid JSON at line 1, column 7" + advice);
  EXPECT_EQ(parse_error("[\"\xff\xfe\"]"),
            "a.json: is not valid JSON at line 1, column 3" + advice);
  EXPECT_EQ(parse_error("{\"a\": 1e999}"),
            "a.json: holds a number that is too large; no value here exceeds 1e300");
}

TEST(JsonValueErrors, EveryPrefixOfADocumentIsCutOff) {
  const std::string whole = R"({"a": [1, -2.5e3, true, null], "b": {"c": "\u00e9x"}})";
  ASSERT_EQ(parse_error(whole), "no error");
  for (std::size_t length = 1; length < whole.size(); ++length)
    EXPECT_NE(parse_error(whole.substr(0, length)).find("ends in the middle of a value"),
              std::string::npos)
        << whole.substr(0, length);
}

TEST(JsonValueErrors, DuplicateKeys) {
  EXPECT_EQ(parse_error(R"({"a": {"b": 1, "c": 2, "b": 3}})"),
            "a.json: has the key 'b' twice in one object; keep one of them");
  EXPECT_EQ(parse_error(R"({"a": {"b": 1}, "c": {"b": 1}})"), "no error");
}

TEST(JsonValueErrors, DeepNestingIsRefusedNotRecursedInto) {
  const std::string refusal =
      "a.json: nests more than 100 levels deep; no model, system or plan does; check the file";
  EXPECT_EQ(parse_error(std::string(100'000, '[')), refusal);
  EXPECT_EQ(parse_error(std::string(100'000, '[') + std::string(100'000, ']')), refusal);
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(parse_error(objects), refusal);
  EXPECT_EQ(parse_error(std::string(100, '[') + std::string(100, ']')), "no error");
  EXPECT_EQ(parse_error(std::string(101, '[') + std::string(101, ']')), refusal);
}

TEST(JsonValueErrors, WrongKinds) {
  const JsonValue json = parse(R"({"n": "96", "x": 0.5, "o": {"p": 1}, "l": [1], "b": 1})");
  const auto of = [&](auto action) { return error_text(action); };
  EXPECT_EQ(of([&] { json.at("n").integer(1, 9); }),
            "a.json: /n: \"96\" is not a whole number; write a whole number from 1 to 9");
  EXPECT_EQ(of([&] { json.at("x").integer(1, 9); }),
            "a.json: /x: 0.5 is not a whole number; write a whole number from 1 to 9");
  EXPECT_EQ(of([&] { json.at("n").number(0, 1); }),
            "a.json: /n: \"96\" is not a number; write a plain number");
  EXPECT_EQ(of([&] { json.at("x").number(0, 0.25); }),
            "a.json: /x: 0.5 is out of range; write a number from 0 to 0.25");
  EXPECT_EQ(of([&] { json.at("b").boolean(); }),
            "a.json: /b: 1 is neither true nor false; write one of the two");
  EXPECT_EQ(of([&] { json.at("b").text(); }), "a.json: /b: 1 is not text; write it in quotes");
  EXPECT_EQ(of([&] { json.at("o").elements(); }),
            "a.json: /o: {\"p\":1} is not a list; write [value, ...]");
  EXPECT_EQ(of([&] { json.at("l").keys(); }),
            "a.json: /l: [1] is not an object; write {\"key\": value, ...}");
  EXPECT_EQ(of([&] { json.at("b").sourced(); }),
            "a.json: /b: 1 names no source; write {\"value\": ..., \"source\": \"where the number "
            "is from\"}");
}

TEST(JsonValueErrors, MissingAndUnknownKeys) {
  const JsonValue json = parse(R"({"layer": 3, "zz": 1})");
  EXPECT_EQ(error_text([&] { json.at("layers"); }),
            "a.json: the key 'layers' is missing; add it (is 'layer' a misspelling of it?)");
  EXPECT_EQ(error_text([&] { json.at("vocabulary"); }),
            "a.json: the key 'vocabulary' is missing; add it");
  EXPECT_EQ(error_text([&] { parse(R"({"fabric": null})").at("fabric"); }),
            "a.json: the key 'fabric' is null; give it a value");
  EXPECT_EQ(error_text([&] {
              json.allow_only({"layers", "zz"});
            }),
            "a.json: the key 'layer' is unknown; did you mean 'layers'?");
  // A key from a hostile file stays one short line.
  const JsonValue hostile = parse("{\"\\u001b[2J\\n" + std::string(100'000, 'k') + "\": 1}");
  const std::string message = error_text([&] { hostile.allow_only({"a"}); });
  EXPECT_TRUE(message.starts_with("a.json: the key '\\u001b[2J\\nkkk")) << message.substr(0, 80);
  EXPECT_LT(message.size(), 150u);
}

TEST(JsonValueErrors, IntegersKeepTheirLastDigit) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(parse("9223372036854775807").integer(0, most), most);
  EXPECT_EQ(error_text([] { parse("9223372036854775808").integer(0, most); }),
            "a.json: 9223372036854775808 is out of range; write a whole number from 0 to "
            "9223372036854775807");
  EXPECT_EQ(error_text([] { parse("18446744073709551615").integer(-5, 5); }),
            "a.json: 18446744073709551615 is out of range; write a whole number from -5 to 5");
  // 2^53 + 1 is no double: compared as one it would pass for 2^53.
  EXPECT_NE(error_text([] { parse("9007199254740993").integer(0, 9007199254740992); }), "no error");
  EXPECT_NE(error_text([] { parse("1e300").integer(0, most); }), "no error");
  EXPECT_NE(error_text([] { parse("9223372036854775808.0").integer(0, most); }), "no error");
}

class JsonFile : public testing::Test {
 protected:
  JsonFile() {
    folder_ =
        std::filesystem::temp_directory_path() / ("orrery-json-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~JsonFile() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

TEST_F(JsonFile, ReadsARegularFile) {
  std::ofstream{path("a.json")} << "\xef\xbb\xbf{\"a\": 1}";  // A byte order mark is allowed.
  EXPECT_EQ(JsonValue::read_file(path("a.json")).at("a").integer(0, 9), 1);
}

TEST_F(JsonFile, RefusesWhatIsNoRegularFile) {
  EXPECT_EQ(error_text([&] { JsonValue::read_file(path("none.json")); }),
            path("none.json") + ": no such file; check the path");
  EXPECT_EQ(error_text([&] { JsonValue::read_file(folder_.string()); }),
            folder_.string() + ": is a directory; name a JSON file in it");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);  // Reading it would wait for ever.
  EXPECT_EQ(error_text([&] { JsonValue::read_file(path("pipe")); }),
            path("pipe") + ": is not a regular file; name a JSON file");
  std::ofstream{path("empty.json")};
  EXPECT_EQ(error_text([&] { JsonValue::read_file(path("empty.json")); }),
            path("empty.json") + ": is empty; write a JSON object");
}

TEST_F(JsonFile, RefusesAHugeFileUnread) {
  std::ofstream{path("huge.json")};
  std::filesystem::resize_file(path("huge.json"), std::uintmax_t{1} << 40);  // Sparse.
  EXPECT_EQ(error_text([&] { JsonValue::read_file(path("huge.json")); }),
            path("huge.json") +
                ": has 1048576 MiB, more than the 64 MiB allowed; no model, system or plan is "
                "that large; check the path");
}

}  // namespace
}  // namespace orrery::json_value_test
