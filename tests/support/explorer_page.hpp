#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/chromium.hpp"
#include "tests/support/explorer.hpp"

namespace orrery {

/// The page in a Chromium without a screen; skipped where there is none.
class ExplorerPage : public testing::Test {
 protected:
  using Json = nlohmann::json;
  /// Of keys (DevTools Protocol, Input domain).
  static constexpr int control = 2, control_shift = 10;

  /// Texts whose contrast to what is behind them is below 4.5 to 1 (WCAG 2.1, 1.4.3).
  static constexpr const char* poor_contrast = R"js((() => {
      const rgb = (c) => (c.match(/[\d.]+/g) ?? []).map(Number);
      const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
        .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
      const ground = (e) => {
        for (; e; e = e.parentElement) {
          const c = rgb(getComputedStyle(e).backgroundColor);
          if (c.length === 3 || c[3] > 0) return c;
        }
        return [255, 255, 255];
      };
      const poor = [];
      for (const e of document.querySelectorAll('main *, aside *, header *')) {
        const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
        if (!own || !e.checkVisibility({opacityProperty: true}) || e.closest(':disabled')) continue;
        if (e.closest('.idle, option, .choice')) continue;
        const a = light(rgb(getComputedStyle(e).color)), b = light(ground(e));
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) poor.push([e.tagName, e.className, e.innerText.slice(0, 30), ratio]);
      }
      return poor;
    })())js";

  void SetUp() override {
    if (Chromium::program().empty()) GTEST_SKIP() << "needs apt-get install chromium";
    begin();
  }
  void begin(const std::vector<std::string>& arguments = {}) {
    explorer_ = std::make_unique<Explorer>(arguments);
    ASSERT_GT(explorer_->port, 0);
    browser_ = std::make_unique<Chromium>();
    ASSERT_TRUE(browser_->started());
    browser_->set_size(1400, 1000);
    load(explorer_->address);
  }
  void load(const std::string& address) {
    browser_->open(address);
    browser_->wait_for("window.explorer && explorer.settled > 0 && explorer.answer");
  }
  // Invariant of all tests: the page logged no error, and sent requests to no other server.
  void TearDown() override {
    if (!browser_) return;
    for (const std::string& complaint : browser_->take_complaints()) ADD_FAILURE() << complaint;
    for (const std::string& address : browser_->take_requests()) {
      const bool own = address.starts_with("http://" + explorer_->host() + "/") ||
                       address.starts_with("blob:http://" + explorer_->host() + "/") ||
                       address.starts_with("data:") || address == "about:blank";
      EXPECT_TRUE(own) << address;
    }
  }

  Json evaluate(const std::string& expression) { return browser_->evaluate(expression); }
  std::string text(const std::string& selector) {
    return evaluate("document.querySelector('" + selector + "')?.innerText ?? ''");
  }
  std::string word(const std::string& key) {
    return evaluate("explorer.answer.state['" + key + "'] ?? ''");
  }
  // Waits until a change of a parameter is answered whole.
  void settle(const std::string& turn) {
    const int before = evaluate("explorer.settled");
    evaluate(turn + "; undefined");
    browser_->wait_for("explorer.settled > " + std::to_string(before) +
                       " && !document.body.classList.contains('working')");
  }
  void click(const std::string& id) { evaluate("document.getElementById('" + id + "').click()"); }
  static std::string slide(const std::string& key, int by) {
    return "{ const s = document.getElementById('knob-" + key + "'); s.value = Number(s.value) + " +
           std::to_string(by) + "; s.dispatchEvent(new Event('input', {bubbles: true})) }";
  }
  // The page shows the values of the JSON.
  void expect_consistent() {
    const double step = evaluate("explorer.answer.result.step_time_s");
    char shown[32];
    const char* four_digits = step >= 100.0 ? "%.1f s" : step >= 10.0 ? "%.2f s" : "%.3f s";
    std::snprintf(shown, sizeof shown, four_digits, step);
    if (step >= 1.0) {
      EXPECT_EQ(text("#figure-step .value"), shown);
    }
    EXPECT_EQ(text("#command"), evaluate("explorer.answer.command"));
    // The parts of the bar are the whole step.
    EXPECT_NEAR(evaluate("Object.values(explorer.answer.result.critical_path_s)"
                         ".reduce((a, b) => a + b)")
                    .get<double>(),
                step, 1e-6 * step);
  }

  std::unique_ptr<Explorer> explorer_;
  std::unique_ptr<Chromium> browser_;
};

using Page = ExplorerPage;

}  // namespace orrery
