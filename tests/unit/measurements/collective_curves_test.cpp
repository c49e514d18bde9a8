#include "sim/measurements/collective_curves.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "sim/core/catalog.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::collective_curves_test {
namespace {

std::string file(const std::string& points, const std::string& collective = "all_reduce",
                 const std::string& schema = "orrery.curves/1") {
  return R"({"schema": ")" + schema + R"(", "measured_on": "x", "curves": [{"id": "one",
    "source": {"title": "a log"}, "system": {"gpu": "X"}, "collective": ")" +
         collective + R"(", "ranks": 8, "nodes": 1, "columns": ["bytes", "time_us"], "points": )" +
         points + "}]}";
}

std::vector<MeasuredCurve> parse(const std::string& text) {
  return parse_collective_curves(JsonValue::parse(text, "x.json"));
}

TEST(CollectiveCurves, ReadsWhatIsWritten) {
  const auto curves = parse(file("[[8, 2.5], [1024, 3]]"));
  ASSERT_EQ(curves.size(), 1u);
  EXPECT_EQ(curves[0].id, "one");
  EXPECT_EQ(curves[0].collective, CollectiveKind::all_reduce);
  EXPECT_EQ(curves[0].ranks, 8);
  ASSERT_EQ(curves[0].points.size(), 2u);
  EXPECT_EQ(curves[0].points[1].bytes, Bytes{1024});
  EXPECT_DOUBLE_EQ(curves[0].points[0].time.si(), 2.5e-6);
}

TEST(CollectiveCurves, SaysWhatCannotBeMeant) {
  const auto error = [](const std::string& text) { return error_text([&] { parse(text); }); };
  EXPECT_EQ(error(file("[[8, 1], [8, 2]]")),
            "x.json: /curves/0/points: sizes must be positive and rise, but row 1 does not; sort "
            "the rows by their bytes and keep one of each size");
  EXPECT_EQ(error(file("[[8, 0]]")),
            "x.json: /curves/0/points: the time in row 0 is not positive; write microseconds, or "
            "leave the row out");
  EXPECT_EQ(error(file("[]")), "x.json: /curves/0/points: holds no points; leave the table out");
  EXPECT_EQ(error(file("[[8, 1]]", "all_reduc")),
            "x.json: /curves/0/collective: 'all_reduc' is unknown; did you mean 'all_reduce'?");
  EXPECT_EQ(error(file("[[8, 1]]", "all_reduce", "orrery.curves/2")),
            "x.json: /schema: 'orrery.curves/2' is not what is read here; write "
            "\"orrery.curves/1\"");
}

TEST(CollectiveCurves, MissingMeasurementsAreNoError) {
  EXPECT_TRUE(read_collective_curves("no-such-gpu").empty());
}

TEST(CollectiveCurves, EveryFileOfTheCatalogReadsAndStaysSmall) {
  const std::string folder = data_folder() + "/calibration/data/collectives";
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator{folder}) {
    bytes += entry.file_size();
    if (entry.path().extension() != ".json") continue;
    EXPECT_FALSE(read_collective_curves(entry.path().stem().string()).empty()) << entry.path();
  }
  EXPECT_GT(bytes, 50'000u);
  EXPECT_LT(bytes, 300'000u);
}

}  // namespace
}  // namespace orrery::collective_curves_test
