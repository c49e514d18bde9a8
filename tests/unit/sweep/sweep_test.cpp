#include "sim/sweep/sweep.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_text.hpp"

namespace orrery::sweep_test {
namespace {

Place option(const std::string& name) { return {"", "--" + name}; }

JsonValue parsed(const std::string& json) { return JsonValue::parse(json, "sweep.json"); }

std::string error_of(const std::string& json) {
  return error_text([&] {
    SweepBuilder builder;
    builder.read(parsed(json));
    builder.sweep();
  });
}

TEST(Sweep, AFileAndFlagsSayTheSame) {
  SweepBuilder file;
  file.read(parsed(R"({"schema": "orrery.sweep/1",
                       "axes": {"tp": [1, 2], "system": "dgx-h100", "model": "llama3-8b",
                                "mbs": "1,2"},
                       "zip": [{"gpus": "8..32*2", "gbs": [64, 128, 256]}],
                       "where": ["tp <= mbs", "gpus > 8 or mbs == 1"]})"));
  SweepBuilder flags;
  flags.add_axis("model", "llama3-8b", option("model"));
  flags.add_axis("system", "dgx-h100", option("system"));
  flags.add_zip("gpus=8,16,32 gbs=64..256*2", option("zip"));
  flags.add_axes("mbs=1,2 tp=1,2", option("sweep"));
  flags.add_conditions("tp <= mbs and (gpus > 8 or mbs == 1)", option("where"));
  const std::string text = sweep_json(file.sweep());
  std::string of_flags = sweep_json(flags.sweep());
  // A condition is kept as it is written, with its brackets.
  const std::string brackets = "(gpus > 8 or mbs == 1)";
  of_flags.replace(of_flags.find(brackets), brackets.size(), "gpus > 8 or mbs == 1");
  EXPECT_EQ(of_flags, text);
  EXPECT_EQ(text, R"({
  "schema": "orrery.sweep/1",
  "memory_only": false,
  "axes": {
    "model": "llama3-8b",
    "system": "dgx-h100",
    "tp": [1, 2],
    "mbs": [1, 2]
  },
  "zip": [
    {"gpus": [8, 16, 32], "gbs": [64, 128, 256]}
  ],
  "where": ["tp <= mbs", "gpus > 8 or mbs == 1"]
}
)");
  // A written sweep is read as the same one.
  SweepBuilder again;
  again.read(parsed(sweep_json(file.sweep(), "  \"shards\": 12,\n")));
  EXPECT_EQ(sweep_json(again.sweep()), text);
  EXPECT_EQ(again.shards(), 12);
}

// Whether the GPUs stand before or behind the degree, in a file or in flags.
// In an array a comma is part of a name.
TEST(Sweep, ANameWithACommaStaysOne) {
  SweepBuilder file;
  file.read(parsed(
      R"({"schema": "orrery.sweep/1",
                       "axes": {"model": ["./a,b.json"], "system": "s", "gpus": 8, "gbs": 8}})"));
  const std::string text = sweep_json(file.sweep());
  SweepBuilder again;
  again.read(parsed(text));
  EXPECT_EQ(sweep_json(again.sweep()), text);
}

TEST(Sweep, ARangeOfDegreesHasThoseThatDivideTheGpus) {
  const auto degrees = [](const std::string& axes) {
    SweepBuilder builder;
    builder.add_axes("model=m system=s gbs=8 " + axes, option("sweep"));
    const std::string text = sweep_json(builder.sweep());
    const std::size_t begin = text.find("\"tp\": ") + 6;
    return text.substr(begin, text.find(']', begin) + 1 - begin);
  };
  EXPECT_EQ(degrees("gpus=64 tp=1..8"), "[1, 2, 4, 8]");
  EXPECT_EQ(degrees("tp=2..6 gpus=96"), "[2, 3, 4, 6]");
  EXPECT_EQ(degrees("gpus=64,96 tp=2..8"), "[2, 3, 4, 6, 8]");
  EXPECT_EQ(degrees("gpus=64 tp=1..8+1"), "[1, 2, 3, 4, 5, 6, 7, 8]");
  EXPECT_EQ(degrees("gpus=64 tp=3,4..8"), "[3, 4, 8]");
  EXPECT_EQ(degrees("gpus=1024 tp=1..1024"), "[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]");
  EXPECT_EQ(degrees("dp=2 tp=1..4"), "[1, 2, 3, 4]");  // The number of GPUs is missing.
}

TEST(Sweep, AFlagWinsOverTheFile) {
  SweepBuilder builder;
  builder.read(parsed(R"({"schema": "orrery.sweep/1",
                          "axes": {"model": "m", "system": "s", "gpus": 8, "gbs": [8, 16]}})"));
  builder.add_axis("gbs", "32", option("gbs"));
  EXPECT_NE(sweep_json(builder.sweep()).find("\"gbs\": 32\n"), std::string::npos);
  EXPECT_EQ(error_text([&] { builder.add_axes("gbs=64", option("sweep")); }),
            "--sweep: the key 'gbs' is given twice; keep one of them");
}

TEST(Sweep, RefusesWhatCannotBeMeant) {
  const std::string head = R"({"schema": "orrery.sweep/1", )";
  EXPECT_EQ(error_of(head + R"("axes": {"model": "m", "gbss": 8}})"),
            "sweep.json: /axes: the key 'gbss' is unknown; did you mean 'gbs'?");
  EXPECT_EQ(error_of(head + R"("axis": {}})"),
            "sweep.json: the key 'axis' is unknown; did you mean 'axes'?");
  EXPECT_EQ(error_of(R"({"schema": "orrery.sweep/2", "axes": {}})"),
            "sweep.json: /schema: 'orrery.sweep/2' is not what is read here; write "
            "\"orrery.sweep/1\"");
  EXPECT_EQ(error_of(head + R"("axes": {"gbs": [8, "16..4"]}})"),
            "sweep.json: /axes/gbs: '16..4' ends before it begins; write a range as 256..8192*2 or "
            "8..64+8");
  EXPECT_EQ(error_of(head + R"("axes": {"gbs": [8, {}]}})"),
            "sweep.json: /axes/gbs/1: is not a value of an axis; write a number, a word, true or "
            "false");
  EXPECT_EQ(error_of(head + R"("axes": {}, "zip": [{"gpus": [8, 16], "gbs": [8]}]})"),
            "sweep.json: /zip/0: 'gbs' has 1 values and 'gpus' 2; axes that move together need as "
            "many values each");
  EXPECT_EQ(error_of(head + R"("axes": {"tp": 1}, "zip": [{"tp": 2, "pp": 2}]})"),
            "sweep.json: /zip/0: the key 'tp' is given twice; keep one of them");
  EXPECT_EQ(error_of(head + R"("axes": {"model": "m"}})"),
            "the sweep names no system; add --system: orrery list systems");
  EXPECT_EQ(error_of(head + R"("axes": {"model": "m", "system": "s", "gbs": 8}})"),
            "the sweep names neither gpus nor dp; add --gpus (dp follows from it)");
  EXPECT_EQ(error_of(head + R"("axes": {"model": "m", "system": "s", "gbs": 8, "gpus": 8},
                               "where": ["tp >"]})"),
            "sweep.json: /where/0: the condition 'tp >' ends where a value is expected (column 5); "
            "write a key, a number or a word in quotes");
  EXPECT_EQ(error_text([] { SweepBuilder{}.add_axes("gbs", option("sweep")); }),
            "--sweep: 'gbs' is not an axis; write it like gbs=256..8192*2");
  EXPECT_EQ(error_text([] { SweepBuilder{}.add_axes("gbs=0", option("sweep")); }),
            "--sweep gbs: 0 is out of range; write a whole number from 1 to 1073741824");
}

}  // namespace
}  // namespace orrery::sweep_test
