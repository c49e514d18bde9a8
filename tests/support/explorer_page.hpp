#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/chromium.hpp"
#include "tests/support/explorer.hpp"

namespace orrery {

/// A test with a page of the explorer, 1400 pixels wide.
class Page : public testing::Test {
 protected:
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
  // Whatever a test did: the page had nothing to complain of, and asked nobody else.
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

  using Json = nlohmann::json;
  Json evaluate(const std::string& expression) { return browser_->evaluate(expression); }
  std::string text(const std::string& selector) {
    return evaluate("document.querySelector('" + selector + "')?.innerText ?? ''");
  }
  std::string word(const std::string& key) {
    return evaluate("explorer.answer.state['" + key + "'] ?? ''");
  }
  // Until a turn of a knob is answered whole.
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
  // What is shown says what the JSON says.
  void expect_consistent() {
    const double step = evaluate("explorer.answer.result.step_time_s");
    char shown[32];
    std::snprintf(shown, sizeof shown, step >= 10.0 ? "%.2f s" : "%.3f s", step);
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

}  // namespace orrery
