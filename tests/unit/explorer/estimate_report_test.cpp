#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "sim/explorer/page/page_files.hpp"
#include "sim/explorer/reports.hpp"
#include "sim/explorer/timeline_bytes.hpp"
#include "sim/training/result_json.hpp"
#include "tests/support/golden.hpp"
#include "tests/unit/training/cases.hpp"

namespace orrery::estimate_report_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string report_of(const Scenario& scenario) {
  EstimateContext context{scenario.system};
  return estimate_report(estimate(scenario, context), context, {"orrery estimate --model 'a b'"});
}

int count(const std::string& text, const std::string& part) {
  int times = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++times;
  return times;
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t at = text.find(begin);
  if (at == text.npos) return "";
  const std::size_t from = at + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

// What is of every report, and no part of what this one says.
std::string without_script_and_style(std::string html) {
  for (const auto& [begin, end] :
       {std::pair{"<style>", "</style>"}, {"<script>", "</script>"}, {"'sha256-", "'"}}) {
    const std::size_t at = html.find(begin);
    if (at == html.npos) continue;
    const std::size_t from = at + std::string{begin}.size();
    html.erase(from, html.find(end, from) - from);
  }
  return html;
}

std::string from_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned held = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    held = held << 6 | static_cast<unsigned>(digits.find(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(held >> bits & 255);
  }
  return bytes;
}

// The drawing's data are those that the explorer gets.
TEST(EstimateReport, HoldsTheTimeline) {
  for (const Scenario& scenario : {two_stages(), interleaved_replicas()}) {
    const std::string html = report_of(scenario);
    const std::string bytes = timeline_bytes(estimate(scenario));
    const std::string begin = "<script type=\"text/plain\" id=\"timeline-data\">";
    EXPECT_EQ(from_base64(between(html, begin, "<")), bytes);
  }
}

TEST(EstimateReport, LoadsNothingAndRunsItsOwnScriptAlone) {
  std::string html = report_of(interleaved_replicas());
  EXPECT_EQ(count(html, "<script>"), 1);
  EXPECT_EQ(count(html, "</script>"), 6);  // The result, its timeline and three more drawings.
  EXPECT_EQ(count(html, "<script type=\"application/json\" id=\"result\""), 1);
  EXPECT_EQ(between(html, "<meta http-equiv=\"Content-Security-Policy\" content=\"", "\""),
            "default-src 'none'; script-src 'sha256-" + std::string{report_parts().hash} +
                "'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action "
                "'none'");
  EXPECT_EQ(between(html, "<script>", "</script>"), report_parts().script);
  EXPECT_EQ(between(html, "<style>", "</style>"), report_parts().style);
  html = without_script_and_style(html);
  for (std::size_t at; (at = html.find(" xmlns=\"http://www.w3.org/2000/svg\"")) != html.npos;)
    html.erase(at, 36);
  for (const char* outside : {"http:", "https:", "src=", "href=", "url(", "@import", "onload"})
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  for (const char* outside : {"http:", "https:", "url(", "@import"})
    EXPECT_EQ(std::string{report_parts().style}.find(outside), std::string::npos) << outside;
}

TEST(EstimateReport, HoldsTheResult) {
  const Scenario scenario = interleaved_replicas();
  const std::string json = between(report_of(scenario), "id=\"result\">\n", "</script>");
  EXPECT_EQ(
      nlohmann::json::parse(json),
      nlohmann::json::parse(result_json(estimate(scenario).result, {.about_this_run = false})));
}

TEST(EstimateReport, SaysWhatItIsOf) {
  const std::string html = report_of(two_stages());
  for (const char* said : {"Orrery ", "<pre id=\"command\">orrery estimate --model 'a b'</pre>",
                           "What it rests on", "all inputs"})
    EXPECT_THAT(html, HasSubstr(said));
}

// Same inputs, same bytes. Figures stand in the file as text, whatever a viewer draws.
TEST(EstimateReport, IsAsItWas) {
  for (const auto& [name, scenario] :
       {std::pair{"two_stages", two_stages()}, {"interleaved_replicas", interleaved_replicas()}}) {
    const std::string html = report_of(scenario);
    EXPECT_EQ(html, report_of(scenario));
    expect_golden(std::string{name} + "/report.html", without_script_and_style(html));
  }
}

// Tags that are opened are closed, in order.
TEST(EstimateReport, IsWellFormed) {
  const std::string html = without_script_and_style(report_of(interleaved_replicas()));
  std::vector<std::string> open;
  const std::regex tag{"<(/?)([a-z][a-z0-9]*)([^>]*)>"};
  for (std::sregex_iterator at{html.begin(), html.end(), tag}, end; at != end; ++at) {
    const std::string name = (*at)[2];
    const std::string rest = (*at)[3];
    if (name == "meta" || name == "!DOCTYPE" || rest.ends_with("/")) continue;
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

TEST(EstimateReport, NamesAreNoMarkup) {
  Scenario scenario = two_stages();
  scenario.model.name = "</script><b>\"&'\u202E";
  const std::string html = without_script_and_style(report_of(scenario));
  EXPECT_EQ(count(html, "</script>"), 6);
  EXPECT_EQ(count(html, "<b>"), 0);
  EXPECT_THAT(html, HasSubstr("&lt;/script&gt;&lt;b&gt;&quot;&amp;"));
  // It turns nothing around; the JSON keeps it.
  EXPECT_EQ(between(html, "<h1>", "</h1>").find("\u202E"), std::string::npos);
}

}  // namespace
}  // namespace orrery::estimate_report_test
