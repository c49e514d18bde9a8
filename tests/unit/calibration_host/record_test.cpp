#include "calibration/host/record.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_text.hpp"

namespace orrery::calibration::record_test {
namespace {

Record sample() {
  Record record;
  record.machine = {"NVIDIA Paper",    "0123",   "9.0", "13.0", "13.0", "13.1.0", "2.28.9", 8, 132,
                    int64_t{80} << 30, 50 << 20, 1.98e9};
  record.command = "orrery-gpu measure --kinds gemm";
  record.program = "orrery-gpu 0.1.0";
  record.started = "2026-11-21T18:00:00Z";
  record.reference = {{0.0, 700.5}, {10.0, 701.0}};
  Measurement one;
  one.what = make_case("gemm", {"forward", "bf16"}, {4096, 4096, 4096});
  one.implementation = "cublasLt, choice 2 of 8";
  one.cold = summarize({200.0, 201.0, 202.0});
  one.warm = summarize({195.0, 196.0});
  one.stopped = Stopped::time;
  one.relative_error = 0.0017;
  one.reference_slowdown = 1.01;
  one.figures = {{"flop_per_s", 6.8e14}};
  one.series = {{0.001, 200.0, {1.98e9, 650.5, 51.0, 0u}}, {20.0, 230.0, {1.7e9, {}, {}, 4u}}};
  record.measurements.push_back(one);
  Measurement other;
  other.what = make_case("launch", {"chain"}, {});
  other.outcome = Outcome::skipped;
  other.reason = "no time";
  record.measurements.push_back(other);
  return record;
}

TEST(Record, IsReadAsItWasWritten) {
  const std::string text = record_json(sample());
  const Record read = parse_record(text, "r.json");
  EXPECT_EQ(record_json(read), text);
  EXPECT_EQ(read.machine, sample().machine);
  ASSERT_NE(read.find("gemm forward bf16 m=4096 n=4096 k=4096"), nullptr);
  EXPECT_EQ(read.find("gemm forward fp16 m=4096 n=4096 k=4096"), nullptr);
  EXPECT_EQ(read.measurements[0].stopped, Stopped::time);
  EXPECT_DOUBLE_EQ(*read.measurements[0].relative_error, 0.0017);
  EXPECT_EQ(read.measurements[1].reason, "no time");
}

TEST(Record, KeepsAMeasurementALine) {
  const std::string text = record_json(sample());
  EXPECT_NE(
      text.find("\n {\"kind\": \"gemm\", \"pass\": \"forward\", \"dtype\": \"bf16\", \"m\": 4096"),
      text.npos);
}

// `from` becomes `to` in a record that is sound otherwise, its digest made anew.
std::string refusal(const std::string& from, const std::string& to) {
  std::string text = record_json(sample());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  text.replace(at, from.size(), to);
  return error_text([&] { parse_record(text, "r.json"); });
}

TEST(Record, RefusesWhatCannotHaveBeenMeasured) {
  EXPECT_EQ(refusal("\"median_us\": 201", "\"median_us\": -201"),
            "r.json: /measurements/0/cold/median_us: -201 is out of range; write a number from "
            "0.001 to 10000000000");
  EXPECT_EQ(refusal("\"median_us\": 201", "\"median_us\": NaN"),
            "r.json: line 9: is not valid JSON; check commas, quotes and brackets there");
  EXPECT_EQ(refusal("\"median_us\": 201", "\"median_us\": 300"),
            "r.json: /measurements/0/cold: p10, median and p90 are out of order; measure again");
  EXPECT_EQ(refusal("\"median_us\": 201", "\"median\": 201"),
            "r.json: /measurements/0/cold: the key 'median' is unknown; write one of: median_us, "
            "p10_us, p90_us, noise_ratio, drift_ratio, samples");
  EXPECT_EQ(
      refusal("flop_per_s", "speed"),
      "r.json: /measurements/0/figures: a figure's name ends in no unit; add one, such as _us "
      "or _bytes");
  EXPECT_EQ(
      refusal("\"reason\": \"no time\", ", ""),
      "r.json: /measurements/1: was not measured: it needs a reason and has no times; measure "
      "again");
  EXPECT_EQ(refusal("\"outcome\": \"skipped\"", "\"outcome\": \"measured\""),
            "r.json: /measurements/1: was measured, but has no times; add cold or warm");
  EXPECT_EQ(refusal("\"kind\": \"launch\"", "\"kind\": \"lunch\""),
            "r.json: /measurements/1/kind: 'lunch' is unknown; did you mean 'launch'?");
  EXPECT_EQ(refusal("calibration-record/1", "calibration-record/2"),
            "r.json: /schema: is not a calibration record; write \"orrery.calibration-record/1\"");
}

TEST(Record, NoticesThatItWasEdited) {
  EXPECT_EQ(refusal("\"median_us\": 201", "\"median_us\": 201.5"),
            "r.json: is not as it was written (its digest differs); it was edited or damaged; "
            "measure again");
}

// Wherever it is cut, down to its last character but the newline.
TEST(Record, NoticesThatItWasCutOff) {
  const std::string text = record_json(sample());
  for (std::size_t length = 0; length + 1 < text.size(); ++length)
    ASSERT_THROW(parse_record(text.substr(0, length), "r.json"), Error) << length;
}

TEST(Record, RefusesACaseThatComesTwice) {
  Record record = sample();
  record.measurements.push_back(record.measurements[0]);
  EXPECT_EQ(error_text([&] { parse_record(record_json(record), "r.json"); }),
            "r.json: /measurements/2: repeats a case; keep one of them");
}

// From before the driver's limits and the host were written.
TEST(Record, MayLackWhatOlderOnesDid) {
  std::string text = record_json(sample());
  for (const char* member :
       {", \"power_limit_w\": 0", ", \"ecc\": \"\"", ", \"mig\": \"\"", ", \"cpu\": \"\""}) {
    const std::size_t at = text.find(member);
    ASSERT_NE(at, text.npos) << member;
    text.erase(at, std::string{member}.size());
  }
  text = with_digest(text.substr(0, text.rfind(",\n\"digest\"")));
  EXPECT_EQ(parse_record(text, "r.json").machine, sample().machine);
}

TEST(Record, KeepsTheSeriesInOrder) {
  const Record read = parse_record(record_json(sample()), "r.json");
  ASSERT_EQ(read.measurements[0].series.size(), 2u);
  EXPECT_EQ(read.measurements[0].series[1].state.held_by, 4u);
  EXPECT_FALSE(read.measurements[0].series[1].state.power_w.has_value());
  EXPECT_EQ(refusal("\"at_s\": 20,", "\"at_s\": 0.0001,"),
            "r.json: /measurements/0/series/1/at_s: is before the one in front of it; measure "
            "again");
}

TEST(Record, HoldsOneMachine) {
  const Record record = sample();
  require_same_machine(record, record.machine, "r.json");
  Machine other = record.machine;
  other.driver = "13.1";
  EXPECT_EQ(error_text([&] { require_same_machine(record, other, "r.json"); }),
            "r.json: /machine/driver: is \"13.0\", but here it is \"13.1\"; name another output "
            "file with -o and this one with --besides: one record holds one machine, and orrery "
            "calibrate fit joins several");
}

}  // namespace
}  // namespace orrery::calibration::record_test
