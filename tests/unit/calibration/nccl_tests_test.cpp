#include "sim/calibration/nccl_tests.hpp"

#include <gmock/gmock.h>

#include "sim/core/json_value.hpp"
#include "sim/core/text_file.hpp"
#include "tests/unit/calibration/sample.hpp"

namespace orrery::nccl_tests_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

Curve only_curve(const std::string& text, const std::string& file,
                 const NcclTestsAnswers& answers = {}) {
  const std::vector<Curve> curves = read_nccl_tests(text, file, answers);
  EXPECT_EQ(curves.size(), 1u);
  return curves.at(0);
}

std::string error_of(const std::string& text, const std::string& file = "log.txt",
                     const NcclTestsAnswers& answers = {}) {
  return refusal_of([&] { read_nccl_tests(text, file, answers); });
}

// The five rows of all_reduce_2_17.txt, out of place.
const auto five_points =
    ElementsAre(Pair(1048576, 45.17), Pair(4194304, 60.70), Pair(16777216, 122.78),
                Pair(67108864, 371.13), Pair(268435456, 1364.52));

TEST(NcclTests, ReadsTheUniformLayout) {
  const Curve curve = only_curve(sample("all_reduce_2_17.txt"), "folder/all_reduce_2_17.txt");
  EXPECT_EQ(curve.collective, "all_reduce");
  EXPECT_EQ(curve.ranks, 16);  // Ranks 0 to 15 ...
  EXPECT_EQ(curve.nodes, 2);   // ... on node1 and node2.
  EXPECT_EQ(curve.gpu, "H100 80GB HBM3");
  EXPECT_EQ(curve.nccl, "2.28.3");  // nccl-library=22803
  EXPECT_EQ(curve.file, "all_reduce_2_17.txt");
  EXPECT_EQ(curve.id, "all_reduce_2_17-all_reduce-16x2");
  EXPECT_THAT(curve.points, five_points);
  EXPECT_THAT(curve.warnings, IsEmpty());
}

TEST(NcclTests, LaunchersPrefixesAndForeignLinesDoNotMatter) {
  for (const char* name : {"tagged.txt", "labelled.txt"}) {
    SCOPED_TRACE(name);
    const Curve curve = only_curve(sample(name), name);
    EXPECT_EQ(curve.ranks, 16);
    EXPECT_THAT(curve.points, five_points);
  }
}

// Open MPI 4 and 5, Hydra (which repeats its own wherever nccl-tests flushes), srun --label, pdsh,
// docker compose, stern, kubectl --timestamps, a quotation, and a page that takes # for a heading.
// A log may begin with the command that wrote it.
TEST(NcclTests, TheCommandSaysWhichCollective) {
  const std::string plain =
      replaced_everywhere(sample("all_reduce_2_17.txt"), "all_reduce_perf", "program");
  for (const char* command : {"+ srun -N 2 /opt/nccl-tests/build/all_reduce_perf -b 8M -e 8G",
                              "mpirun -np 16 ./build/all_reduce_perf -b 8", "$ all_reduce_perf"})
    EXPECT_EQ(only_curve(std::string{command} + "\n" + plain, "log.txt").collective, "all_reduce");
}

TEST(NcclTests, AnyPrefixThatDiffersInDigitsAloneIsNoPartOfALine) {
  const std::string plain = sample("all_reduce_2_17.txt");
  for (const std::string prefix :
       {"[1,7]<stdout>:", "[prterun-node-1-77@1,7]<stdout>: ", "[7] ", "[7]",
        " 7: ", "node7: ", "worker-7  | ", "nccl-launcher-x7f nccl-test ",
        "2024-11-05T12:00:07.123Z ", "> ", "    "}) {
    SCOPED_TRACE(prefix);
    std::string text;
    int number = 0;
    for (const std::string_view line : lines_of(plain)) {
      for (const char c : prefix) text += c == '7' ? std::to_string(number % 12) : std::string{c};
      text += std::string{line} + "\n";
      ++number;
    }
    const Curve curve = only_curve(text, "log.txt");
    EXPECT_EQ(curve.ranks, 16);
    EXPECT_EQ(curve.nodes, 2);
    EXPECT_EQ(curve.nccl, "2.28.3");
    EXPECT_THAT(curve.points, five_points);
    EXPECT_THAT(curve.warnings, IsEmpty());
  }
  std::string flushed, heading;
  const std::string with_marks = replaced_everywhere(plain, "      -1 ", "      -1[0] ");
  for (const std::string_view line : lines_of(with_marks))
    flushed += "[0] " + std::string{line} + "\n";
  for (const std::string_view line : lines_of(plain)) {
    for (const std::string_view word : words_of(line))
      if (word != "#") heading += std::string{word} + " ";
    heading += "\n";
  }
  ASSERT_NE(flushed.find("-1[0]"), flushed.npos);
  EXPECT_THAT(only_curve(flushed, "log.txt").points, five_points);
  EXPECT_EQ(only_curve(heading, "log.txt").ranks, 16);
  EXPECT_THAT(only_curve(heading, "log.txt").points, five_points);
}

TEST(NcclTests, WindowsLineEndsDoNotMatter) {
  const std::string text = replaced_everywhere(sample("all_reduce_2_17.txt"), "\n", "\r\n");
  EXPECT_THAT(only_curve(text, "log.txt").points, five_points);
}

TEST(NcclTests, ReadsTheColumnsOfEachProgramBefore213) {
  const Curve curve = only_curve(sample("all_gather_2_8.txt"), "all_gather_2_8.txt");
  EXPECT_EQ(curve.collective, "all_gather");
  EXPECT_EQ(curve.ranks, 8);
  EXPECT_EQ(curve.nodes, 1);
  EXPECT_EQ(curve.nccl, "");
  EXPECT_THAT(curve.points,
              ElementsAre(Pair(1048576, 29.59), Pair(2097152, 34.18), Pair(4194304, 43.35)));
  EXPECT_THAT(curve.warnings, ElementsAre("the collective is taken from the file's name"));
}

// Version 1 printed milliseconds: 0.450 ms are 450 us, and 10 MB / 450 us = 22.22 GB/s, as it says.
TEST(NcclTests, ReadsMillisecondsOfVersion1) {
  const Curve curve = only_curve(sample("all_reduce_1_0.txt"), "all_reduce_1_0.txt");
  EXPECT_THAT(curve.points, ElementsAre(Pair(10000000, 450.0), Pair(20000000, 700.0)));
}

TEST(NcclTests, ReadsJson) {
  const Curve curve = only_curve(sample("run.json"), "run.json");
  EXPECT_EQ(curve.collective, "all_to_all");  // args[0] is ./build/alltoall_perf.
  EXPECT_EQ(curve.ranks, 8);
  EXPECT_EQ(curve.nodes, 1);
  EXPECT_EQ(curve.gpu, "H200");
  EXPECT_EQ(curve.nccl, "2.29.7");
  EXPECT_THAT(curve.points, ElementsAre(Pair(1048576, 32.29), Pair(16777216, 66.7)));
}

TEST(NcclTests, TimestampsAreTwoWordsOfARow) {
  std::string text = replaced(sample("all_reduce_2_17.txt"), "#       size", "# timestamp size");
  for (const char* size :
       {"     1048576 ", "     4194304 ", "    16777216 ", "    67108864 ", "   268435456 "})
    text = replaced(text, size, std::string{"2026-03-02 10:00:00"} + size);
  EXPECT_THAT(only_curve(text, "log.txt").points, five_points);
}

TEST(NcclTests, LargeNumbersMayBeWrittenWithAnExponent) {
  const std::string text = replaced(sample("all_reduce_2_17.txt"), "1364.52", "1.36452e+03");
  EXPECT_THAT(only_curve(text, "log.txt").points, five_points);
}

// 40.00, 45.17 and 60.00 us for 1 MiB: the middle one. 45.17 and 60.00: half way, 52.585.
TEST(NcclTests, RepeatedSizesHaveTheMedian) {
  const std::string text = sample("all_reduce_2_17.txt");
  const std::string row =
      "     1048576        262144     float     sum      -1    45.17   23.21   43.52       0    "
      "50.17   20.90   39.19       0\n";
  const std::string slow = replaced(replaced(row, "45.17", "60.00"), "23.21   43.52", "0 0");
  const std::string fast = replaced(replaced(row, "45.17", "40.00"), "23.21   43.52", "0 0");
  EXPECT_EQ(only_curve(replaced(text, row, slow + row + fast), "l").points[0].second, 45.17);
  EXPECT_EQ(only_curve(replaced(text, row, slow + row), "l").points[0].second, 52.585);
}

TEST(NcclTests, RunsOfOneFileAreTakenTogetherByCollective) {
  const std::string first = sample("all_reduce_2_17.txt");
  const std::string second = replaced(first, "45.17   23.21   43.52", "47.17   22.23   41.68");
  const Curve both = only_curve(first + second, "log.txt");
  EXPECT_EQ(both.points[0].second, 46.17);  // Half way between 45.17 and 47.17.
  EXPECT_EQ(both.points[1].second, 60.70);

  // Its bus bandwidth would be that of an all-reduce, so it is taken out of the second run.
  std::string other = replaced(first, "starting: all_reduce_perf", "starting: reduce_perf");
  for (const char* bus : {"43.52", "129.57", "256.20", "339.04", "368.86"})
    other = replaced(other, bus, "0");
  const std::vector<Curve> curves = read_nccl_tests(first + other, "log.txt", {});
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_EQ(curves[0].collective, "all_reduce");
  EXPECT_EQ(curves[1].collective, "reduce");
}

TEST(NcclTests, TimesInPlaceServeWhereThereAreNoOthers) {
  const std::string text = replaced(sample("all_reduce_2_17.txt"), "45.17   23.21   43.52       0",
                                    "  N/A     N/A     N/A     N/A");
  const Curve curve = only_curve(text, "log.txt");
  EXPECT_EQ(curve.points[0].second, 50.17);
  EXPECT_THAT(curve.warnings, ElementsAre("1 time in place: no others"));
}

// 64 MiB in 371.13 us are 339.0 GB/s of bus bandwidth (67108864 / 371.13 us x 1.875), 256 MiB in
// 2000 us are 251.7 GB/s: 25.8 % less. At 1600 us they are 314.6, 7.2 % less: noise.
TEST(NcclTests, WarnsOfADegradedRun) {
  const std::string text = sample("all_reduce_2_17.txt");
  const std::string row = "1364.52  196.73  368.86";
  EXPECT_THAT(
      only_curve(replaced(text, row, "2000.00  134.22  251.66"), "log.txt").warnings,
      ElementsAre("bus bandwidth falls by 26 % from 339.0 GB/s at 67108864 bytes to 251.7 GB/s at "
                  "268435456 bytes: the run looks degraded"));
  EXPECT_THAT(only_curve(replaced(text, row, "1600.00  167.77  314.57"), "log.txt").warnings,
              IsEmpty());
}

TEST(NcclTests, WarnsOfALogWithoutItsEnd) {
  const std::string text = sample("all_reduce_2_17.txt");
  const Curve curve = only_curve(text.substr(0, text.find("# Out of bounds")), "log.txt");
  EXPECT_THAT(curve.points, five_points);
  EXPECT_THAT(curve.warnings,
              ElementsAre("the log lacks nccl-tests' summary; sizes may be missing"));
}

TEST(NcclTests, ACutLogIsRefused) {
  const std::string text = sample("all_reduce_2_17.txt");
  EXPECT_EQ(error_of(text.substr(0, text.find("196.73"))),
            "log.txt: line 30: the log ends in the middle of a row (6 of 13 fields); it was cut "
            "off; fetch the whole log, or remove the line");
  EXPECT_EQ(error_of(text.substr(0, text.find("     1048576"))),
            "log.txt: line 1: the run that starts here has no row of results; the log was cut off "
            "or the run failed; fetch the whole log");
}

TEST(NcclTests, WhatIsNoLogIsRefused) {
  EXPECT_EQ(error_of(" \n"), "log.txt: is empty; give a log of nccl-tests");
  EXPECT_EQ(error_of(std::string{"\x7f"} + std::string("ELF\0\1", 5)),
            "log.txt: is a binary file; give a log of nccl-tests");
  EXPECT_EQ(error_of("\xff\xfe#\0"), "log.txt: is UTF-16 text; convert it to UTF-8");
  EXPECT_EQ(error_of("# OSU MPI Allreduce Latency Test\n# Size       Avg Latency(us)\n8  1.5\n"),
            "log.txt: has no table of nccl-tests (no header with size, time and busbw); give the "
            "whole output of one of its programs, such as all_reduce_perf");
  EXPECT_EQ(error_of("{\"traceEvents\": []}"),
            "log.txt: is JSON, but not what nccl-tests writes with -J (no 'config' and 'results'); "
            "give the file that all_reduce_perf -J FILE wrote, or its text output");
  const std::string json = sample("run.json");
  EXPECT_EQ(error_of(json.substr(0, json.find("\"hostname\""))),
            "log.txt: ends in the middle of a value (line 21); the file is cut off; fetch it "
            "again");
}

TEST(NcclTests, RowsThatDoNotFitTheHeaderAreRefused) {
  EXPECT_EQ(error_of(replaced(sample("all_reduce_2_17.txt"), "  129.57", "")),
            "log.txt: line 27: has 12 fields where the header names 13; the lines of several "
            "processes may be mixed; import the output of rank 0 alone");
  // 1048576 bytes in 45.17 us are 23.21 GB/s.
  EXPECT_EQ(error_of(replaced(sample("all_reduce_2_17.txt"), "45.17", "75.17")),
            "log.txt: line 26: 1048576 bytes in 75.17 us are 13.95 GB/s, but the algorithm "
            "bandwidth is 23.21 GB/s; the row is damaged, or of a version that counts otherwise");
}

TEST(NcclTests, WrongResultsAreRefused) {
  const std::string end =
      "the run computed wrong results; its times cannot be trusted; repair the machine and run "
      "again";
  const std::string text = sample("all_reduce_2_17.txt");
  EXPECT_EQ(error_of(replaced(text, "43.52       0", "43.52       3")), "log.txt: line 26: " + end);
  EXPECT_EQ(error_of(replaced(text, "39.19       0", "39.19       1")), "log.txt: line 26: " + end);
  EXPECT_EQ(error_of(replaced(text, "values : 0 OK", "values : 1 FAILED")),
            "log.txt: line 31: " + end);
  EXPECT_EQ(error_of(replaced(sample("run.json"), "\"nwrong\": 0", "\"nwrong\": 2")),
            "log.txt: /results/0/out_of_place: " + end);
  EXPECT_EQ(error_of(replaced(sample("run.json"), "\"okay\": \"true\"", "\"okay\": \"false\"")),
            "log.txt: /out_of_bounds: " + end);
}

TEST(NcclTests, RanksMustBeCountable) {
  const std::string text = sample("all_reduce_2_17.txt");
  EXPECT_EQ(error_of(text + replaced_everywhere(text, "node2", "node3") +
                     replaced_everywhere(sample("all_gather_2_8.txt"), "gpu01", "node1")),
            "log.txt: line 69: a run of 8 ranks on 1 node follows one of 16 ranks on 2 nodes; give "
            "each its own file");
  EXPECT_EQ(error_of(replaced(text, "Rank  3", "Rank  2")),
            "log.txt: line 1: rank 2 is listed twice; the processes ran apart; build nccl-tests "
            "with MPI=1 and run again");
  EXPECT_EQ(error_of(replaced(text, "#  Rank  3", "#  rank  3")),
            "log.txt: line 1: lists 15 of 16 ranks; lines are missing; fetch the whole log");
  EXPECT_EQ(error_of(replaced(text, "Group  0", "Group  1")),
            "log.txt: line 1: 2 groups of ranks ran at once; run again without NCCL_TESTS_SPLIT");
  EXPECT_EQ(error_of(replaced_everywhere(text, "node2", "node1")),
            "log.txt: line 1: several ranks have the same host and device, as in containers; give "
            "--nodes");
  const std::string without = replaced_everywhere(text, "#  Rank", "#  rank");
  EXPECT_EQ(
      error_of(without),
      "log.txt: line 1: no line names a rank, so that ranks and nodes cannot be counted; give "
      "--ranks and --nodes");
  EXPECT_EQ(only_curve(without, "log.txt", {"", "", 16, 4}).nodes, 4);
  EXPECT_EQ(only_curve(replaced_everywhere(text, "node2", "node1"), "l", {"", "", 0, 2}).nodes, 2);
  EXPECT_EQ(error_of(text, "log.txt", {"", "", 8, 0}),
            "--ranks: is 8, but log.txt lists 16 ranks; leave it out");
  EXPECT_EQ(error_of(text, "log.txt", {"", "", 0, 4}),
            "--nodes: is 4, but log.txt lists 2 hosts; leave it out");
}

// Sixteen ranks: 2 x 15 / 16 = 1.875 for all_reduce, 15 / 16 = 0.938 for all_gather. Twelve:
// 2 x 11 / 12 = 1.833, 2.2 % less, which is within what two decimals can tell; eight: 1.75.
TEST(NcclTests, AGuessThatTheBusBandwidthContradictsIsRefused) {
  const std::string named = sample("all_reduce_2_17.txt");
  const std::string text = replaced(named, "# Collective test starting: all_reduce_perf\n", "");
  EXPECT_EQ(error_of(text),
            "log.txt: line 1: neither the log nor the file's name says which collective ran; give "
            "--collective NAME, such as all_reduce");
  EXPECT_EQ(
      error_of(text, "log.txt", {"all_gather", "", 0, 0}),
      "log.txt: line 25: the bus bandwidth is 1.875 of the algorithm bandwidth, but 0.938 for "
      "all_gather of 16 ranks; check the collective and the ranks");
  EXPECT_EQ(only_curve(text, "log.txt", {"all_reduce", "", 0, 0}).collective, "all_reduce");
  EXPECT_EQ(error_of(named, "log.txt", {"all_gather", "", 0, 0}),
            "--collective: is 'all_gather', but log.txt is a run of 'all_reduce'; leave it out");
  EXPECT_EQ(error_of(named, "log.txt", {"all_reduces", "", 0, 0}),
            "--collective: 'all_reduces' is not a collective of nccl-tests; did you mean "
            "'all_reduce'?");
  const std::string without = replaced_everywhere(named, "#  Rank", "#  rank");
  EXPECT_EQ(
      error_of(without, "log.txt", {"", "", 8, 1}),
      "log.txt: line 26: the bus bandwidth is 1.875 of the algorithm bandwidth, but 1.750 for "
      "all_reduce of 8 ranks; check the collective and the ranks");
}

TEST(NcclTests, TheDocumentHasTheSchemaOfTheCatalog) {
  Curve curve = only_curve(sample("run.json"), "run.json", {"", "my-cluster", 0, 0});
  const JsonValue json = JsonValue::parse(curves_json({curve, curve}), "curves.json");
  EXPECT_EQ(json.at("schema").text(), "orrery.curves/1");
  const std::vector<JsonValue> curves = json.at("curves").elements();
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_EQ(curves[0].at("id").text(), "my-cluster-all_to_all-8x1");
  EXPECT_EQ(curves[1].at("id").text(), "my-cluster-all_to_all-8x1-2");  // Ids differ.
  EXPECT_EQ(curves[0].at("system").at("name").text(), "my-cluster");
  EXPECT_EQ(curves[0].at("source").at("file").text(), "run.json");
  EXPECT_EQ(curves[0].at("ranks").integer(1, 100), 8);
  EXPECT_EQ(curves[0].at("points").number_table(2),
            (std::vector<double>{1048576, 32.29, 16777216, 66.7}));
  // The environment, which -J records, stays where it is.
  EXPECT_EQ(curves_json({curve}).find("SECRET"), std::string::npos);
}

}  // namespace
}  // namespace orrery::nccl_tests_test
