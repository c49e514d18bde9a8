// A grid of plans from the page, and what the server says of one. The page's tests are skipped
// where there is no Chromium: apt-get install chromium.

#include "tests/support/explorer_page.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::sweep_page_test {
namespace {

using Json = nlohmann::json;

std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream all{text};
  for (std::string line; std::getline(all, line);)
    if (!line.empty()) lines.push_back(Json::parse(line));
  return lines;
}

const Json small{{"model", "llama3-8b"}, {"system", "dgx-h100"}, {"gpus", "16"}, {"gbs", "64"}};

// Each point is what an estimate of its state says, and the points are those of the command.
TEST(Sweep, IsThatOfTheCommand) {
  const Explorer explorer;
  ASSERT_GT(explorer.port, 0);
  Json state = small;
  state["tokens"] = "1T";
  const Json question{{"state", state}, {"axes", {{"tp", "1..16"}, {"mbs", "1,2,4,64"}}}};
  const HttpReply reply = explorer.post("sweep", question.dump());
  ASSERT_EQ(reply.status, 200) << reply.body;
  const std::vector<Json> lines = lines_of(reply.body);
  const Json& head = lines.front();
  // The values of 1..16 that divide 16 GPUs.
  EXPECT_EQ(head["points"], 5 * 4);
  ASSERT_EQ(lines.size(), 1 + 20 + 1);
  double best = 0.0;
  Json best_at;
  int run = 0;
  for (std::size_t i = 1; i + 1 < lines.size(); ++i) {
    const Json& line = lines[i];
    Json one = state;
    for (std::size_t axis = 0; axis < 2; ++axis)
      one[head["axes"][axis]["key"].get<std::string>()] =
          head["axes"][axis]["values"][line["at"][axis].get<std::size_t>()];
    const HttpReply alone = explorer.post("result", one.dump());
    if (line.contains("why_not")) {
      EXPECT_EQ(Json::parse(alone.body)["error"], line["why_not"]);
      continue;
    }
    ++run;
    const Json result = Json::parse(alone.body);
    EXPECT_EQ(line["state"], one);
    for (const char* figure : {"step_time_s", "tokens_per_s_per_gpu", "mfu"})
      EXPECT_EQ(line[figure], result[figure]);
    EXPECT_EQ(line["memory_bytes"], result["memory"]["peak_bytes"]);
    EXPECT_EQ(line["rent_usd"], result["bill"]["rent_usd"]);
    EXPECT_EQ(line["training_time_s"], result["bill"]["training_time_s"]);
    if (result["tokens_per_s_per_gpu"] > best) {
      best = result["tokens_per_s_per_gpu"];
      best_at = line["at"];
    }
  }
  EXPECT_GE(run, 5);
  EXPECT_LT(run, 20);
  EXPECT_EQ(lines.back()["best"], best_at);

  const TemporaryFolder folder;
  std::string command = head["command"];
  command = command.substr(command.find(' ') + 1);
  command.replace(command.rfind("sweep"), 5, (folder.path() / "sweep").string());
  const Outcome swept = run_orrery(command + " -j 1");
  EXPECT_EQ(swept.code, 0) << swept.out;
  EXPECT_NE(swept.out.find("20 points: " + std::to_string(run) + " ok"), std::string::npos)
      << swept.out;
}

TEST(Sweep, RefusesWhatIsNone) {
  const Explorer explorer;
  ASSERT_GT(explorer.port, 0);
  const auto refused = [&](const Json& axes, const std::string& why) {
    const HttpReply reply = explorer.post("sweep", Json{{"state", small}, {"axes", axes}}.dump());
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_NE(reply.body.find(why), std::string::npos) << reply.body;
  };
  refused(Json::object(), "names no key to vary");
  refused({{"tpp", "1,2"}}, "tp");
  refused({{"tp", "8..1"}}, "--tp");
  refused({{"model", "llama3-8b,/etc/passwd"}}, "neither of the catalog nor given");
  refused({{"gbs", "64..4096+64"}, {"mbs", "1..64+1"}}, "at most 2,000");
}

class SweepPage : public Page {
 protected:
  static constexpr double most_s = 120.0;
  void show(const std::string& state) {
    load(explorer_->address.substr(0, explorer_->address.find('#')) + "#" + state);
    browser_->wait_for("document.getElementById('sweep-key-0').options.length > 5");
  }
  void vary(int index, const std::string& key, const std::string& values) {
    const std::string at = std::to_string(index);
    evaluate("(k => { k.value = '" + key +
             "'; k.dispatchEvent(new Event('change')) })(document.getElementById('sweep-key-" + at +
             "')); (v => { v.value = '" + values +
             "'; v.dispatchEvent(new Event('input')) })(document.getElementById('sweep-values-" +
             at + "')); undefined");
  }
  void compute() {
    click("sweep");
    browser_->wait_for("explorer.sweep.stage !== 'running'", most_s);
    EXPECT_EQ(evaluate("explorer.sweep.stage"), "done") << text("#sweep-said");
  }
};

TEST_F(SweepPage, DrawsAMapAndLoadsItsPlans) {
  show("model=llama3-8b&system=dgx-h100&gpus=16&tp=2&gbs=64&tokens=1T");
  // Suggested are legal values.
  EXPECT_EQ(evaluate("document.getElementById('sweep-key-0').value"), "tp");
  EXPECT_NE(
      evaluate("document.getElementById('sweep-values-0').value").get<std::string>().find("2"),
      std::string::npos);
  vary(0, "tp", "1,2,4,8");
  vary(1, "gbs", "64,128");
  vary(2, "", "");
  compute();
  EXPECT_EQ(evaluate("document.getElementById('sweep-command').textContent"),
            "orrery sweep run --model llama3-8b --system dgx-h100 --gpus 16 --sweep "
            "'tp=1,2,4,8 gbs=64,128' --tokens 1T --output sweep");
  const int run = evaluate("explorer.sweep.rows.length");
  EXPECT_GE(run, 4);
  EXPECT_EQ(evaluate("document.querySelectorAll('#sweep-drawings .grid-map td button').length"),
            run);
  EXPECT_EQ(evaluate("document.querySelectorAll('#sweep-drawings .grid-map td.now').length"), 1);
  EXPECT_EQ(evaluate("document.querySelectorAll('#sweep-drawings .grid-map td.best').length"), 1);
  // Step and memory; days and rent.
  EXPECT_EQ(evaluate("document.querySelectorAll('#sweep-drawings .chart .mark').length"), 2 * run);
  EXPECT_TRUE(text("#sweep-said").starts_with("8 points: " + std::to_string(run) + " run"))
      << text("#sweep-said");
  // Ties are marked in the list and in the plot.
  const int ties = evaluate("explorer.sweep.rows.filter(r => r.tie).length");
  EXPECT_EQ(text("#sweep-said").find(" = may in truth") != std::string::npos, ties > 0);
  for (const bool dark : {false, true}) {
    browser_->set_dark(dark);
    EXPECT_EQ(evaluate(poor_contrast), Json::array());
  }
  browser_->set_dark(false);
  // A click sets the controls to the best plan.
  settle("document.getElementById('swept-1').click()");
  EXPECT_EQ(evaluate("explorer.answer.result.tokens_per_s_per_gpu"),
            evaluate("Math.max(...explorer.sweep.rows.map(r => r.tokens_per_s_per_gpu))"));
  expect_consistent();
  settle("document.getElementById('undo').click()");
  EXPECT_EQ(word("tp"), "2");
}

TEST_F(SweepPage, OneKeyIsACurve) {
  show("model=llama3-8b&system=dgx-h100&gpus=16&tp=2&gbs=64");
  vary(0, "gbs", "16..256*2");
  vary(1, "", "");
  vary(2, "", "");
  compute();
  EXPECT_TRUE(evaluate("document.querySelector('#sweep-drawings .grid-map').hidden").get<bool>());
  EXPECT_EQ(evaluate("document.querySelectorAll('#sweep-drawings .curve').length"), 1);
  vary(0, "gbs", "nonsense");
  click("sweep");
  browser_->wait_for("explorer.sweep.stage === 'failed'");
  EXPECT_NE(text("#sweep-said").find("nonsense"), std::string::npos) << text("#sweep-said");
  browser_->take_complaints();  // Chromium notes the reply 400.
}

TEST_F(SweepPage, StopsAndIsReadableOnNarrowScreens) {
  show("model=gpt3-175b&system=dgx-a100-80gb&gpus=1024&tp=8&pp=8&gbs=1536");
  vary(0, "tp", "1,2,4,8");
  vary(1, "pp", "1,2,4,8,16,32");
  vary(2, "gbs", "512,1024,1536,2048,3072,4096");
  click("sweep");
  browser_->wait_for("explorer.sweep.rows.length > 5", most_s);
  click("sweep");
  EXPECT_EQ(evaluate("explorer.sweep.stage"), "stopped");
  EXPECT_TRUE(text("#sweep-said").starts_with("Stopped after")) << text("#sweep-said");
  browser_->set_size(420, 900);
  EXPECT_LE(evaluate("document.documentElement.scrollWidth").get<int>(), 420);
  for (const bool dark : {false, true}) {
    browser_->set_dark(dark);
    EXPECT_EQ(evaluate(poor_contrast), Json::array());
  }
}

}  // namespace
}  // namespace orrery::sweep_page_test
