#include "sim/output/report/html_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "sim/output/report/result_json.hpp"
#include "sim/output/trace/timeline_chart.hpp"
#include "sim/output/trace/trace_slices.hpp"
#include "tests/unit/output/answers/cases.hpp"

namespace orrery {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string report_of(const Scenario& scenario) {
  const Estimate answer = estimate(scenario);
  return html_report(answer.result, answer.step, answer.timeline);
}

int count(const std::string& text, const std::string& part) {
  int times = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++times;
  return times;
}

// Every pass of two stages and every transfer between them is drawn, and says what it is under the
// pointer.
TEST(HtmlReport, DrawsEveryPass) {
  const std::string html = report_of(two_stages());
  for (int microbatch = 0; microbatch < 4; ++microbatch)
    for (const char* pass : {"F ", "B "})
      EXPECT_EQ(count(html, std::string{"<title>"} + pass + std::to_string(microbatch) + ": "), 2)
          << pass << microbatch;
  EXPECT_EQ(count(html, ", between stages: "), 8);
}

TEST(HtmlReport, LoadsNothingAndRunsNothing) {
  std::string html = report_of(interleaved_replicas());
  for (std::size_t at; (at = html.find(" xmlns=\"http://www.w3.org/2000/svg\"")) != html.npos;)
    html.erase(at, 36);
  for (const char* outside : {"http:", "https:", "src=", "href=", "url(", "@import"})
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  EXPECT_EQ(count(html, "<script"), 1);
  EXPECT_EQ(count(html, "<script type=\"application/json\""), 1);
}

TEST(HtmlReport, HoldsTheResult) {
  const Scenario scenario = interleaved_replicas();
  const std::string html = report_of(scenario);
  const std::size_t begin = html.find('\n', html.find("<script")) + 1;
  const std::string json = html.substr(begin, html.find("</script>") - begin);
  EXPECT_EQ(
      nlohmann::json::parse(json),
      nlohmann::json::parse(result_json(estimate(scenario).result, {.about_this_run = false})));
}

// Tags that are opened are closed, in order.
TEST(HtmlReport, IsWellFormed) {
  const std::string html = report_of(interleaved_replicas());
  std::vector<std::string> open;
  const std::regex tag{"<(/?)([a-z][a-z0-9]*)([^>]*)>"};
  for (std::sregex_iterator at{html.begin(), html.end(), tag}, end; at != end; ++at) {
    const std::string name = (*at)[2];
    const std::string rest = (*at)[3];
    if (name == "meta" || rest.ends_with("/")) continue;
    if ((*at)[1].length() == 0) {
      open.push_back(name);
    } else {
      ASSERT_FALSE(open.empty()) << name;
      ASSERT_EQ(open.back(), name) << "at " << at->position();
      open.pop_back();
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(HtmlReport, NamesAreNoMarkup) {
  Scenario scenario = two_stages();
  scenario.model.name = "</script><b>\"&'";
  const std::string html = report_of(scenario);
  EXPECT_EQ(count(html, "</script>"), 1);
  EXPECT_EQ(count(html, "<b>"), 0);
  EXPECT_THAT(html, HasSubstr("&lt;/script&gt;&lt;b&gt;&quot;&amp;"));
}

// What each colour covers in a lane, in pixels of its whole height: from rectangles and paths.
std::map<std::string, double> covered(const std::string& svg, double height) {
  std::map<std::string, double> area;
  const std::regex rectangle{
      "<rect x=\"[0-9.]+\" y=\"[0-9.]+\" width=\"([0-9.]+)\" height=\"([0-9.]+)\" "
      "fill=\"([^\"]+)\""};
  for (std::sregex_iterator at{svg.begin(), svg.end(), rectangle}, end; at != end; ++at)
    if (std::stod((*at)[2]) == height) area[(*at)[3]] += std::stod((*at)[1]);
  // Paths have tens of thousands of letters, and std::regex needs stack for each.
  const std::string before = "<path d=\"", between = "\" fill=\"";
  const std::regex box{"h([0-9.]+)v([0-9.]+)h"};
  for (std::size_t at = svg.find(before); at != svg.npos; at = svg.find(before, at)) {
    at += before.size();
    const std::size_t end = svg.find(between, at);
    const std::size_t colour = end + between.size();
    const std::string boxes = svg.substr(at, end - at);
    const std::string fill = svg.substr(colour, svg.find('"', colour) - colour);
    for (std::sregex_iterator one{boxes.begin(), boxes.end(), box}, last; one != last; ++one)
      area[fill] += std::stod((*one)[1]) * std::stod((*one)[2]) / height;
  }
  return area;
}

// Nothing gets lost however narrow it is: what is drawn in a colour is the time that it takes. With
// 4 micro-batches each pass is wide, with 2,000 each is a third of a pixel.
TEST(TimelineChart, AreaIsTime) {
  for (const int microbatches : {4, 60, 2000}) {
    Scenario scenario = two_stages();
    scenario.plan.gbs = scenario.plan.microbatches = microbatches;
    const Estimate answer = estimate(scenario);
    std::map<std::string_view, double> time;
    const Slices all = slices_of(answer.step, answer.timeline, scenario, {{0, 1}, false, 1 << 30});
    int passes = 0;
    for (const Slice& slice : all.slices)
      if (slice.track == Track::compute && slice.category != "kernels") {
        time[slice.category] += 1e-9 * static_cast<double>(slice.finish_ns - slice.start_ns);
        ++passes;
      }
    ASSERT_GE(passes, 4 * microbatches);
    const TimelineChart chart = timeline_chart(answer.step, answer.timeline, scenario);
    EXPECT_EQ(chart.ranks, 2);
    const double pixels_per_s = 990.0 / answer.timeline.makespan.seconds().si();
    auto area = covered(chart.svg, 16.0);
    // A gap of 0.4 pixels parts passes that are wide enough to be seen.
    const double gaps = 0.4 * 2.0 * microbatches;
    EXPECT_NEAR(area["#0072b2"], pixels_per_s * time["forward"], gaps + 3.0) << microbatches;
    EXPECT_NEAR(area["#e69f00"], pixels_per_s * time["backward"],
                (microbatches > 1000 ? 0.0 : gaps) + 3.0)
        << microbatches;
  }
}

// No bar stands for several micro-batches and says that it is one of them.
TEST(TimelineChart, NamesNoRunOfPasses) {
  Scenario scenario = two_stages();
  scenario.plan.schedule = &gpipe();
  scenario.plan.gbs = scenario.plan.microbatches = 2000;
  const Estimate answer = estimate(scenario);
  const TimelineChart chart = timeline_chart(answer.step, answer.timeline, scenario);
  EXPECT_EQ(count(chart.svg, "<title>F "), 0);
  EXPECT_EQ(count(chart.svg, "<title>B "), 0);
}

// Of many ranks some are drawn, the first and the last stage among them.
TEST(TimelineChart, DrawsAtMost32Ranks) {
  const Scenario scenario =
      scenario_of(small_gpt(48, 256, 4, 256), read_system("two-gpus", test_place),
                  plan_request(1, 48, 1, 48, 128, "megatron-core"), 48);
  const Estimate answer = estimate(scenario);
  const TimelineChart chart = timeline_chart(answer.step, answer.timeline, scenario);
  EXPECT_EQ(chart.ranks, 32);
  EXPECT_THAT(chart.svg, HasSubstr(">stage 0, rank 0<"));
  EXPECT_THAT(chart.svg, HasSubstr(">stage 47, rank 47<"));
}

}  // namespace
}  // namespace orrery
