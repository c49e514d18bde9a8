#include "sim/explorer/timeline_bytes.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "sim/plan/scenario.hpp"
#include "sim/training/trace_slices.hpp"

namespace orrery::timeline_bytes_test {
namespace {

template <class T>
std::vector<T> column(const std::string& bytes, std::size_t& at, std::size_t count) {
  at = (at + 7) / 8 * 8;
  std::vector<T> values(count);
  std::memcpy(values.data(), bytes.data() + at, count * sizeof(T));
  at += count * sizeof(T);
  return values;
}

// Read back, the columns are the slices of the trace.
TEST(TimelineBytes, HoldEverySlice) {
  PlanRequest request;
  request.tp = 2;
  request.pp = 4;
  request.gbs = 32;
  const Scenario scenario =
      make_scenario(read_model("llama3-8b", {}), read_system("dgx-h100", {}), request, 16, {});
  const Estimate answer = estimate(scenario);
  const std::string bytes = timeline_bytes(answer);
  ASSERT_EQ(bytes.substr(0, 4), "ORT1");
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 4, 4);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));

  std::vector<int> reps{0, 1, 2, 3};
  ASSERT_EQ(answer.step.classes.reps().size(), reps.size());
  sort_by_place(reps, answer.step.classes);
  const Slices expected =
      slices_of(answer.step, answer.timeline, scenario, {reps, true, most_slices_shown});
  const std::size_t count = expected.slices.size();
  ASSERT_EQ(header["slices"], count);
  EXPECT_EQ(header["ranks"].size(), 4u);
  EXPECT_EQ(header["simulated"], 4);

  std::size_t at = 8 + length;
  const auto start = column<double>(bytes, at, count);
  const auto finish = column<double>(bytes, at, count);
  const auto name = column<std::uint32_t>(bytes, at, count);
  column<float>(bytes, at, count);
  column<float>(bytes, at, count);
  const auto category = column<std::uint8_t>(bytes, at, count);
  const std::size_t arrows = header["arrows"];
  const auto from = column<std::uint32_t>(bytes, at, arrows);
  const auto to = column<std::uint32_t>(bytes, at, arrows);
  EXPECT_EQ((at + 7) / 8 * 8, bytes.size());
  for (std::size_t i = 0; i < count; ++i) {
    const Slice& slice = expected.slices[i];
    ASSERT_EQ(start[i], static_cast<double>(slice.start_ns));
    ASSERT_EQ(finish[i], static_cast<double>(slice.finish_ns));
    ASSERT_EQ(header["names"][name[i]], slice.name);
    ASSERT_EQ(header["categories"][category[i]], std::string{slice.category});
  }
  // Tracks follow each other and hold all; each transfer ends before what waits for it begins.
  std::size_t next = 0;
  for (const auto& track : header["tracks"]) {
    EXPECT_EQ(track["first"], next);
    next += track["count"].get<std::size_t>();
  }
  EXPECT_EQ(next, count);
  // Of 16 micro-batches at dp 2: each crosses three borders, forward and backward.
  EXPECT_EQ(arrows, 2u * 3u * 16u);
  for (std::size_t i = 0; i < arrows; ++i) {
    EXPECT_LE(finish[from[i]], start[to[i]] + 1.0);
  }
}

}  // namespace
}  // namespace orrery::timeline_bytes_test
