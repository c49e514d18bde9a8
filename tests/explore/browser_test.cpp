// The page as people use it, in a Chromium without a screen. Skipped where there is none:
// apt-get install chromium.

#include <fstream>

#include "tests/support/explorer_page.hpp"

namespace orrery::browser_test {
namespace {

using Json = nlohmann::json;

TEST_F(Page, ShowsThePlanOfTheAddress) {
  EXPECT_EQ(word("model"), "gpt3-175b");
  EXPECT_EQ(text("#figure-throughput dt"), "Tokens/s/GPU");
  expect_consistent();
  EXPECT_GT(evaluate("explorer.slices").get<int>(), 1000);
  EXPECT_EQ(evaluate("document.querySelectorAll('#memory .bars .bar').length"), 9);
  EXPECT_TRUE(evaluate("document.getElementById('refusal').hidden").get<bool>());
}

TEST_F(Page, EverySliderMovesItsKey) {
  const Json keys = evaluate(
      "[...document.querySelectorAll('#knobs input[type=range]')].filter(s => !s.disabled)"
      ".map(s => s.id.slice(5))");
  EXPECT_GE(keys.size(), 8u);
  for (const std::string key : keys) {
    SCOPED_TRACE(key);
    const std::string before = evaluate("document.getElementById('knob-" + key + "-typed').value");
    const bool at_the_end =
        evaluate("(s => s.value === s.max)(document.getElementById('knob-" + key + "'))");
    settle(slide(key, at_the_end ? -1 : 1));
    EXPECT_NE(evaluate("document.getElementById('knob-" + key + "-typed').value"), before);
    EXPECT_NE(word(key), before);
    if (evaluate("!!explorer.answer.result") == true) expect_consistent();
    settle("document.getElementById('undo').click()");
  }
}

TEST_F(Page, ChoicesAndListsOfferTheLegalAlone) {
  // Every radio button that can be pressed, and every entry of every list that can be chosen.
  const Json choices = evaluate(
      "[...document.querySelectorAll('#knobs input[type=radio]:not(:disabled):not(:checked)')]"
      ".map(r => r.id)");
  EXPECT_GE(choices.size(), 5u);
  for (const std::string id : choices) {
    SCOPED_TRACE(id);
    settle("document.getElementById('" + id + "').click()");
    EXPECT_TRUE(
        evaluate("!explorer.answer.refused || !!explorer.answer.refused.memory").get<bool>())
        << evaluate("explorer.answer.refused");
    settle("document.getElementById('undo').click()");
  }
  const Json lists = evaluate(
      "[...document.querySelectorAll('#knobs select')].flatMap(s => [...s.options]"
      ".filter(o => !o.disabled && o.value !== s.value).slice(0, 3).map(o => [s.id, o.value]))");
  EXPECT_GE(lists.size(), 5u);
  for (const Json& one : lists) {
    SCOPED_TRACE(one.dump());
    settle("{ const s = document.getElementById(" + one[0].dump() +
           "); s.value = " + one[1].dump() + "; s.dispatchEvent(new Event('change')) }");
    EXPECT_TRUE(
        evaluate("!explorer.answer.refused || !!explorer.answer.refused.memory").get<bool>())
        << evaluate("explorer.answer.refused");
    settle("document.getElementById('undo').click()");
  }
  // Those that are not legal say why.
  EXPECT_GT(evaluate("document.querySelectorAll('#knobs .why').length").get<int>(), 3);
  evaluate("document.querySelector('#knob-schedule-why').click()");
  EXPECT_TRUE(browser_->wait_for("document.querySelectorAll('[data-key=schedule] dd').length > 0"));
}

TEST_F(Page, ARefusedPlanSaysWhyAndWhatWouldRun) {
  settle(
      "{ const t = document.getElementById('knob-gbs-typed'); t.value = '1000';"
      "t.dispatchEvent(new Event('change')) }");
  EXPECT_NE(text("#refusal").find("gbs=1000 is not a multiple of mbs x dp"), std::string::npos);
  EXPECT_TRUE(evaluate("document.getElementById('results').hidden").get<bool>());
  settle("document.getElementById('remedy-0').click()");
  EXPECT_TRUE(evaluate("document.getElementById('refusal').hidden").get<bool>());
  EXPECT_EQ(word("gbs"), "992");
  // The refusal shows the memory that the plan would need.
  settle(
      "document.getElementById('option').value = 'tp=1 pp=1 gbs=1024';"
      "document.getElementById('option-form').requestSubmit()");
  EXPECT_NE(text("#refusal").find("The plan does not fit"), std::string::npos);
  EXPECT_FALSE(evaluate("document.getElementById('memory-section').hidden").get<bool>());
  settle(
      "[...document.querySelectorAll('.remedies button')].find(b => "
      "b.innerText.includes('runs')).click()");
  EXPECT_TRUE(evaluate("!!explorer.answer.result").get<bool>());
}

TEST_F(Page, AnotherModelAndSystemGetAPlan) {
  for (const auto& [key, name] :
       {std::pair{"model", "deepseek-v3"}, {"system", "hgx-h200-roce"}, {"model", "llama3-8b"}}) {
    settle("{ const s = document.getElementById('" + std::string{key} + "'); s.value = '" + name +
           "'; s.dispatchEvent(new Event('change')) }");
    EXPECT_EQ(word(key), name);
    EXPECT_TRUE(evaluate("!!explorer.answer.result").get<bool>()) << name;
    expect_consistent();
  }
}

TEST_F(Page, UndoAndRedoGoThroughAllStates) {
  std::vector<std::string> seen{evaluate("location.hash")};
  for (const char* key : {"mbs", "pp", "gbs"}) {
    settle(slide(key, 1));
    seen.push_back(evaluate("location.hash"));
  }
  evaluate("document.body.focus()");
  for (std::size_t i = seen.size() - 1; i-- > 0;) {
    const int before = evaluate("explorer.settled");
    browser_->press("z", control);
    browser_->wait_for("explorer.settled > " + std::to_string(before));
    EXPECT_EQ(evaluate("location.hash"), seen[i]);
  }
  EXPECT_TRUE(evaluate("document.getElementById('undo').disabled").get<bool>());
  for (std::size_t i = 1; i < seen.size(); ++i) {
    const int before = evaluate("explorer.settled");
    browser_->press("Z", control_shift);
    browser_->wait_for("explorer.settled > " + std::to_string(before));
    EXPECT_EQ(evaluate("location.hash"), seen[i]);
  }
  EXPECT_TRUE(evaluate("document.getElementById('redo').disabled").get<bool>());
}

TEST_F(Page, APinnedPlanIsHeldAgainstTheMovingOne) {
  const double a = evaluate("explorer.answer.result.step_time_s");
  click("pin");
  EXPECT_EQ(text("#pin"), "Unpin A");
  settle(slide("tp", -1));
  browser_->wait_for("!document.getElementById('comparison').hidden");
  EXPECT_NE(text("#pinned-text").find("Tensor parallel 8 → 4"), std::string::npos);
  EXPECT_NE(text("#figure-step .delta"), "");
  EXPECT_EQ(evaluate("document.querySelectorAll('#critical .bar').length"), 2);
  // Part by part, B - A makes up the difference of the steps.
  const double difference = evaluate(
      "(r => r.reduce((a, b) => a + b))([...document.querySelectorAll('#critical tbody tr')]"
      ".map(row => row.cells[4].innerText).map(t => t === 'same' ? 0 : "
      "(t.startsWith('−') ? -1 : 1) * parseFloat(t.slice(1)) * "
      "(t.endsWith('ms') ? 1e-3 : t.endsWith('µs') ? 1e-6 : 1)))");
  EXPECT_NEAR(difference, evaluate("explorer.answer.result.step_time_s").get<double>() - a, 0.02);
  // A link holds both.
  const std::string link = evaluate("location.href");
  load(link);
  browser_->wait_for("!document.getElementById('comparison').hidden");
  EXPECT_EQ(word("tp"), "4");
  settle("document.getElementById('pinned-swap').click()");
  EXPECT_EQ(word("tp"), "8");
  click("pin");
  EXPECT_TRUE(evaluate("document.getElementById('pinned').hidden").get<bool>());
}

TEST_F(Page, TheTimelineZoomsFromTheStepToOneKernel) {
  const double whole = evaluate("explorer.timeline.looks[1]");
  // The timeline has all of the step but the waiting for others.
  const double step = evaluate(
      "explorer.answer.result.step_time_s - explorer.answer.result.breakdown_s.waiting_for_others");
  EXPECT_NEAR(whole, 1e9 * step, 1e6);
  evaluate(
      "document.getElementById('timeline').scrollIntoView({block: 'center'});"
      "document.getElementById('timeline').focus()");
  browser_->press("]");  // The first slice.
  browser_->press("]");
  browser_->press("Enter");
  browser_->wait_for("explorer.timeline.looks[1] - explorer.timeline.looks[0] < " +
                     std::to_string(whole / 10));
  for (int i = 0; i < 40; ++i) browser_->press("+");
  EXPECT_LT(evaluate("explorer.timeline.looks[1] - explorer.timeline.looks[0]").get<double>(),
            100.0);
  EXPECT_NE(text("#timeline-details strong"), "");
  browser_->press("0");
  EXPECT_EQ(evaluate("explorer.timeline.looks[1] - explorer.timeline.looks[0]"), whole);

  // With the mouse: what is under it is said, and a double click fills the width with it.
  const Json box = evaluate(
      "(b => [b.left, b.top, b.width])("
      "document.getElementById('timeline').getBoundingClientRect())");
  const double x = box[0].get<double>() + 0.6 * box[2].get<double>();
  const double y = box[1].get<double>() + 22.0;  // Passes of the first rank.
  evaluate("explorer.timeline.select(-1)");
  browser_->mouse("mouseMoved", x, y);
  browser_->wait_for("document.querySelector('#timeline-details strong')");
  EXPECT_NE(text("#timeline-details").find("rank 0, stage 0"), std::string::npos);
  for (int click = 1; click <= 2; ++click) {
    browser_->mouse("mousePressed", x, y, click, 1);
    browser_->mouse("mouseReleased", x, y, click);
  }
  browser_->wait_for("explorer.timeline.looks[1] - explorer.timeline.looks[0] < " +
                     std::to_string(whole / 20));
  // A drag pans.
  const double from = evaluate("explorer.timeline.looks[0]");
  browser_->mouse("mousePressed", x, y, 1, 1);
  browser_->mouse("mouseMoved", x - 100, y, 0, 1);
  browser_->mouse("mouseReleased", x - 100, y, 1);
  EXPECT_GT(evaluate("explorer.timeline.looks[0]").get<double>(), from);
}

TEST_F(Page, SingleChangesAreTriedAndTaken) {
  settle(
      "document.getElementById('option').value = 'tp=2 pp=32';"
      "document.getElementById('option-form').requestSubmit()");
  click("try-changes");
  browser_->wait_for("document.querySelectorAll('#changes tbody tr').length > 2", 60.0);
  const std::string flags = text("#change-0"), step = text("#changes tbody td");
  settle("document.getElementById('change-0').click()");
  EXPECT_EQ(text("#figure-step .value"), step);
  const std::string key = flags.substr(2, flags.find(' ') - 2);
  EXPECT_TRUE(text("#command").find("--" + key + " ") != std::string::npos) << flags;
  // They were of the plan before.
  EXPECT_EQ(evaluate("document.querySelectorAll('#changes tbody tr').length"), 0);
}

TEST_F(Page, DownloadsArrive) {
  const TemporaryFolder folder;
  browser_->call("Browser.setDownloadBehavior",
                 {{"behavior", "allow"}, {"downloadPath", folder.path().string()}}, false);
  for (const auto& [id, name, begins] :
       {std::tuple{"report", "orrery-report.html", "<!DOCTYPE html>"},
        {"trace", "orrery-trace.json", "{\"displayTimeUnit\""},
        {"result", "orrery-result.json", "{\n  \"schema\": \"orrery.result/1\""},
        {"megatron", "megatron-arguments.txt", "--tensor-model-parallel-size 8"}}) {
    click(id);
    std::string text;
    for (int i = 0; i < 400 && text.empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
      std::ifstream file{folder.path() / name};
      text.assign(std::istreambuf_iterator<char>{file}, {});
    }
    EXPECT_TRUE(text.find(begins) < 40) << name << ": " << text.substr(0, 60);
  }
}

TEST_F(Page, AnyOptionCanBeTyped) {
  settle(
      "document.getElementById('option').value = '--recompute selective:core_attn+mlp';"
      "document.getElementById('option-form').requestSubmit()");
  EXPECT_EQ(word("recompute"), "selective:core_attn+mlp");
  settle(
      "document.getElementById('tokens').value = '2T';"
      "document.getElementById('tokens').dispatchEvent(new Event('change'))");
  EXPECT_NE(text("#figure-days"), "");
  // A word that is no option gives a message, and the plan stays.
  evaluate(
      "document.getElementById('option').value = 'tpp=3';"
      "document.getElementById('option-form').requestSubmit()");
  browser_->wait_for("!document.getElementById('failure').hidden");
  EXPECT_NE(text("#failure").find("'tpp' is unknown"), std::string::npos);
  EXPECT_EQ(word("recompute"), "selective:core_attn+mlp");
  settle(
      "{ const t = document.getElementById('knob-pp-typed'); t.value = '4';"
      "t.dispatchEvent(new Event('change')) }");
  EXPECT_EQ(word("pp"), "4");
  EXPECT_TRUE(evaluate("document.getElementById('failure').hidden").get<bool>());
  const auto complaints = browser_->take_complaints();  // The browser's own, of the status 400.
  EXPECT_EQ(complaints.size(), 1u);
}

TEST_F(Page, ControlsWorkWithoutAMouse) {
  evaluate("document.getElementById('knob-pp').focus()");
  const int before = evaluate("explorer.settled");
  browser_->press("ArrowRight");
  browser_->wait_for("explorer.settled > " + std::to_string(before));
  EXPECT_EQ(word("pp"), "16");
  // The control keeps the keyboard focus though all controls were made anew.
  EXPECT_EQ(evaluate("document.activeElement.id"), "knob-pp");
  // Whatever can be turned has a name.
  EXPECT_EQ(evaluate("[...document.querySelectorAll('input, select, button, canvas[tabindex]')]"
                     ".filter(e => !(e.labels?.length || e.getAttribute('aria-label') || "
                     "e.textContent.trim() || e.closest('[role=radiogroup]'))).map(e => e.id)"),
            Json::array());
}

TEST_F(Page, TextCanBeRead) {
  for (const bool dark : {false, true}) {
    browser_->set_dark(dark);
    const Json poor = evaluate(poor_contrast);
    EXPECT_EQ(poor, Json::array()) << (dark ? "dark" : "light");
  }
}

TEST_F(Page, NarrowScreensNeedNoScrollingSideways) {
  for (const int width : {420, 700, 1000, 1400}) {
    browser_->set_size(width, 900);
    load(explorer_->address);
    EXPECT_LE(evaluate("document.documentElement.scrollWidth").get<int>(), width);
  }
  browser_->set_size(420, 900);
  EXPECT_TRUE(evaluate("document.getElementById('strip').innerText")
                  .get<std::string>()
                  .find("tokens/s/GPU") != std::string::npos);
}

TEST_F(Page, HostileNamesAreInert) {
  const std::string name = "<img src=x onerror=alert(1)></script>\"'&\u202Eevil";
  const TemporaryFolder folder;
  std::ifstream known{ORRERY_TEST_SOURCE "/workloads/models/llama3-8b.json"};
  Json model = Json::parse(known);
  model["name"] = name;
  const std::string file = (folder.path() / (name.substr(0, 12) + "'\"<b>.json")).string();
  std::ofstream{file} << model;
  begin({"--model", file, "--system", "dgx-h100", "--gpus", "8", "--tp", "2", "--gbs", "64"});
  EXPECT_EQ(word("model"), file);
  EXPECT_EQ(evaluate("document.querySelectorAll('img').length"), 0);
  EXPECT_TRUE(evaluate("document.title").get<std::string>().find("<img") != std::string::npos);
  expect_consistent();
  for (const char* view : {"memory", "cluster", "roofline"}) {
    evaluate("document.getElementById('view-" + std::string{view} + "').open = true; undefined");
    browser_->wait_for("explorer.views.took('" + std::string{view} + "').length > 0");
  }
  EXPECT_EQ(evaluate("document.querySelectorAll('img').length"), 0);
  // A fragment from elsewhere.
  browser_->open(explorer_->address + "&%3Cimg%3E=1&layers=%3Cb%3E&pin=%22%3E%3Cimg");
  browser_->wait_for("!document.getElementById('failure').hidden");
  EXPECT_NE(text("#failure").find("the key '<img>' is unknown"), std::string::npos);
  EXPECT_EQ(evaluate("document.querySelectorAll('img').length"), 0);
  browser_->take_complaints();  // The browser's own, of the status 400.
}

}  // namespace
}  // namespace orrery::browser_test
