// A search from the page, in a Chromium without a screen. Skipped where there is none:
// apt-get install chromium.

#include "tests/support/explorer_page.hpp"

namespace orrery::search_page_test {
namespace {

class SearchPage : public Page {
 protected:
  static constexpr double most_s = 240.0;  // A search lets all others on the machine go first.
  void show(const std::string& state) {
    load(explorer_->address.substr(0, explorer_->address.find('#')) + "#" + state);
  }
  void search() {
    click("search");
    browser_->wait_for("explorer.search.stage !== 'running'", most_s);
    EXPECT_EQ(evaluate("explorer.search.stage"), "done") << text("#search-proof");
  }
};

constexpr const char* small = "model=llama3-8b&system=dgx-h100&gpus=16&tp=2&gbs=64&recompute=full";

TEST_F(SearchPage, FillsTheListAndProvesIt) {
  show(small);
  click("search");
  browser_->wait_for("explorer.search.stage === 'running'");
  EXPECT_EQ(text("#search"), "Stop");
  browser_->wait_for("explorer.search.stage === 'done'", most_s);
  EXPECT_EQ(text("#search"), "Search");
  const Json found = evaluate("explorer.search.found");
  EXPECT_EQ(evaluate("document.querySelectorAll('#search-list tbody tr').length"),
            found["plans"].size());
  EXPECT_TRUE(text("#search-proof").starts_with("Proven: of ")) << text("#search-proof");
  EXPECT_EQ(evaluate("document.getElementById('search-command').textContent"),
            "orrery search --model llama3-8b --system dgx-h100 --gpus 16 --gbs 64");
  // Every plan of the list is a mark of the chart, ties with a ring; the plan of the controls is
  // there if it is not far away.
  EXPECT_EQ(
      evaluate("document.querySelectorAll('#search-memory-chart .first').length").get<int>() >= 1,
      true);
  int ties = 0;
  for (const Json& of : found["ranking"]) ties += of["tie"] ? 1 : 0;
  EXPECT_EQ(evaluate("document.querySelectorAll('#search-memory-chart .ring').length"), ties - 1);
  EXPECT_GT(evaluate("document.querySelectorAll('#search-memory-chart .seen').length").get<int>(),
            5);
  EXPECT_TRUE(evaluate("document.getElementById('search-cost-chart').hidden").get<bool>());

  // A click sets the controls to a plan, and undo brings back the one before.
  settle("document.getElementById('found-1').click()");
  EXPECT_EQ(evaluate("explorer.answer.result.step_time_s"), found["plans"][0]["step_time_s"]);
  EXPECT_EQ(word("recompute"), "none");
  EXPECT_EQ(evaluate("document.querySelectorAll('#search-list tbody tr').length"),
            found["plans"].size());
  expect_consistent();
  settle("document.getElementById('undo').click()");
  EXPECT_EQ(word("recompute"), "full");
}

TEST_F(SearchPage, KeepsTheFixedValues) {
  show(std::string{small} + "&tokens=1T&dtype=fp8");
  EXPECT_NE(text("#search-holds").find("Kept: Format fp8"), std::string::npos)
      << text("#search-holds");
  click("hold-tp");
  evaluate("document.getElementById('search-gpus').value = '8,16'; undefined");
  search();
  EXPECT_EQ(evaluate("document.getElementById('search-command').textContent"),
            "orrery search --model llama3-8b --system dgx-h100 --gpus 8,16 --gbs 64 --fix tp=2 "
            "--fix dtype=fp8 --tokens 1T");
  EXPECT_EQ(evaluate("explorer.search.found.plans.every(p => p.plan.tp === 2)"), true);
  // With tokens: what it takes and costs, and a drawing of it.
  EXPECT_NE(text("#search-list thead").find("rent"), std::string::npos);
  EXPECT_FALSE(evaluate("document.getElementById('search-cost-chart').hidden").get<bool>());
  // By the keyboard as well, and with another objective.
  evaluate(
      "document.getElementById('search-objective').value = 'cost_per_token';"
      "document.getElementById('search-gpus').focus(); undefined");
  browser_->press("Enter");
  browser_->wait_for(
      "explorer.search.stage === 'done' && "
      "explorer.search.found.objective === 'cost_per_token'",
      most_s);
}

TEST_F(SearchPage, StopsOnRequest) {
  show("model=deepseek-v3&system=hgx-h800&gpus=2048&gbs=15360");
  click("search");
  browser_->wait_for("document.getElementById('search-said').textContent.includes('divide')");
  const std::size_t most = explorer_->children().size();
  EXPECT_GE(most, 2u);
  click("search");
  EXPECT_EQ(evaluate("explorer.search.stage"), "stopped");
  EXPECT_TRUE(text("#search-proof").starts_with("Stopped: not proven.")) << text("#search-proof");
  for (int i = 0; i < 500 && explorer_->children().size() > 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(explorer_->children().size(), 1u);  // The reader.
}

TEST_F(SearchPage, SaysWhatIsWrong) {
  show(small);
  evaluate("document.getElementById('search-gpus').value = '64..8'; undefined");
  click("search");
  browser_->wait_for("explorer.search.stage === 'failed'");
  EXPECT_NE(text("#search-proof").find("--gpus"), std::string::npos) << text("#search-proof");
  browser_->take_complaints();  // Chromium notes the reply 400.
  // A plan that cannot run may be searched from.
  show("model=gpt3-175b&system=dgx-a100-80gb&gpus=64&gbs=64&tp=1&pp=1");
  EXPECT_FALSE(evaluate("document.getElementById('refusal').hidden").get<bool>());
  EXPECT_FALSE(evaluate("document.getElementById('search-section').hidden").get<bool>());
  search();
  settle("document.getElementById('found-1').click()");
  EXPECT_TRUE(evaluate("!!explorer.answer.result").get<bool>());
}

TEST_F(SearchPage, BatchesFollowTheParameters) {
  show(small);
  EXPECT_EQ(evaluate("explorer.batches.settled"), 0) << "nobody looks at them yet";
  evaluate("document.getElementById('batches-section').scrollIntoView(); undefined");
  browser_->wait_for("explorer.batches.settled === 1");
  const auto now_marked = [&] {
    return evaluate(
               "[...document.querySelectorAll('#batches-speed-chart .first title')]"
               ".map(t => t.textContent).join()")
        .get<std::string>();
  };
  EXPECT_TRUE(now_marked().starts_with("batch 64: ")) << now_marked();
  EXPECT_EQ(evaluate("explorer.batches.points.find(p => p.gbs === 64).speed"),
            evaluate("explorer.answer.result.tokens_per_s_per_gpu"));
  // Another batch is another mark of the same curve, and nothing is asked.
  settle(
      "[...document.querySelectorAll('#batches-speed-chart .listed')].pop()"
      ".dispatchEvent(new Event('click'))");
  EXPECT_EQ(word("gbs"), "1024");
  EXPECT_TRUE(now_marked().starts_with("batch 1,024: ")) << now_marked();
  EXPECT_EQ(evaluate("explorer.batches.settled"), 1);
  // Another plan is another curve.
  settle(slide("tp", 1));
  browser_->wait_for("explorer.batches.settled === 2");
  EXPECT_EQ(evaluate("explorer.batches.points.find(p => p.gbs === 1024).speed"),
            evaluate("explorer.answer.result.tokens_per_s_per_gpu"));
}

}  // namespace
}  // namespace orrery::search_page_test
