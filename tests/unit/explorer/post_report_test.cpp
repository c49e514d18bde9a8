#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "sim/explorer/reports.hpp"

namespace orrery::post_report_test {
namespace {

using testing::HasSubstr;
using testing::Not;

RlStep step_of(int rollout_gpus, int max_staleness) {
  RlRequest request;
  request.prompts = 32;
  request.samples = 8;
  request.prompt_length = LengthDistribution{LengthDistribution::Kind::fixed, 128, 128};
  request.mean_response = 600.0;
  request.max_response = 1920;
  request.training.recompute = Recompute::full;
  if (rollout_gpus > 0) request.rollout_gpus = rollout_gpus;
  request.max_staleness = max_staleness;
  return rl_step(make_rl_job(read_model("llama3.1-8b", {}), read_system("dgx-h100", {}),
                             read_rl_framework("nemo-rl", {}), request, 16, {"", ""}));
}

struct Part {
  double from = 0.0, to = 0.0, seconds = 0.0;
  std::string phase;
};

// The parts of the row of that label, with their tool tips.
std::vector<Part> row_of(const std::string& html, const std::string& label) {
  const std::size_t begin = html.find("<span>" + label + "</span><svg");
  if (begin == html.npos) return {};
  const std::string row = html.substr(begin, html.find("</svg>", begin) - begin);
  static const std::regex path{
      "M([0-9.]+) 0H([0-9.]+)V100H[0-9.]+z\"[^>]*><title>([^,]*), ([0-9.]+) s"};
  std::vector<Part> parts;
  for (std::sregex_iterator i{row.begin(), row.end(), path}, end; i != end; ++i)
    parts.push_back({std::stod((*i)[1]), std::stod((*i)[2]), std::stod((*i)[4]), (*i)[3]});
  return parts;
}

// All phases follow each other without a gap, each as wide as it is long.
TEST(PostReport, GpusThatDoBothAreNeverBlank) {
  const RlStep step = step_of(0, 0);
  const std::string html = post_report(step, {}, {}, {});
  const std::vector<Part> row = row_of(html, "all GPUs");
  ASSERT_EQ(row.size(), step.phases.size());
  double at = 0.0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    EXPECT_EQ(row[i].phase, phase_text(step.phases[i].phase));
    EXPECT_NEAR(row[i].from, at, 0.02);
    EXPECT_NEAR(row[i].to - row[i].from, 900.0 * (step.phases[i].time / step.time), 0.02);
    at = row[i].to;
  }
  EXPECT_NEAR(at, 900.0, 0.02);
  EXPECT_THAT(html, HasSubstr("<span>samples</span>"));
  EXPECT_THAT(html, HasSubstr("those that run, 256 at most"));
  EXPECT_THAT(html, Not(HasSubstr("What a change brings")));
  EXPECT_THAT(html, HasSubstr("\n\n  phase  "));  // The text keeps its lines and blanks.
}

// One of two pools works at all times, except where weights travel, when both do.
TEST(PostReport, PoolsThatTakeTurns) {
  const RlStep step = step_of(8, 0);
  const std::string html = post_report(step, {}, {}, {});
  double width = 0.0, refit = 0.0;
  for (const char* pool : {"training", "rollout"})
    for (const Part& part : row_of(html, pool)) {
      width += part.to - part.from;
      if (part.phase == phase_text(RlPhase::refit)) refit += part.to - part.from;
    }
  EXPECT_NEAR(width - refit / 2.0, 900.0, 0.1);
}

// The slower pool never waits.
TEST(PostReport, PoolsThatWorkAtATime) {
  const RlStep step = step_of(8, 1);
  const std::string html = post_report(step, {}, rl_changes(step), {});
  double longest = 0.0;
  for (const char* pool : {"training", "rollout"}) {
    double width = 0.0;
    for (const Part& part : row_of(html, pool)) width += part.to - part.from;
    longest = std::max(longest, width);
  }
  EXPECT_NEAR(longest, 900.0, 0.1);
  EXPECT_THAT(html, HasSubstr("What a change brings"));
  EXPECT_THAT(html, HasSubstr("orrery.post-result/1"));
}

}  // namespace
}  // namespace orrery::post_report_test
