#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temporary_folder.hpp"

namespace orrery {

/// A headless Chromium with one page, driven over a pipe by the Chrome DevTools Protocol: messages
/// of JSON, each ended by a zero byte. No further driver is needed.
class Chromium {
 public:
  using Json = nlohmann::json;

  static std::string program() {
    for (const char* path : {"/usr/bin/chromium", "/usr/bin/chromium-browser"})
      if (std::filesystem::exists(path)) return path;
    return "";
  }

  Chromium() {
    int orders[2], replies[2];
    if (::pipe(orders) != 0 || ::pipe(replies) != 0) return;
    process_ = ::fork();
    if (process_ == 0) {
      ::setpgid(0, 0);
      // Away from 3 and 4, where Chromium looks for its ends.
      const int in = ::fcntl(orders[0], F_DUPFD, 10), out = ::fcntl(replies[1], F_DUPFD, 10);
      ::dup2(in, 3);
      ::dup2(out, 4);
      for (const int other : {in, out, orders[0], orders[1], replies[0], replies[1]})
        if (other > 4) ::close(other);
      const int null = ::open("/dev/null", O_WRONLY);
      ::dup2(null, STDERR_FILENO);
      const std::string path = program();
      const std::string folder = "--user-data-dir=" + profile_.path().string();
      ::execl(path.c_str(), path.c_str(), "--headless=new", "--no-sandbox", "--disable-gpu",
              "--remote-debugging-pipe", "--no-first-run", "--disable-dev-shm-usage",
              "--disable-background-networking", "--disable-component-update",
              "--force-prefers-reduced-motion", folder.c_str(), "about:blank", nullptr);
      ::_exit(127);
    }
    ::close(orders[0]);
    ::close(replies[1]);
    in_ = orders[1];
    out_ = replies[0];
    Json target = call("Target.createTarget", {{"url", "about:blank"}}, false);
    if (!target.contains("targetId")) return;
    session_ = call("Target.attachToTarget", {{"targetId", target["targetId"]}, {"flatten", true}},
                    false)["sessionId"];
    for (const char* domain : {"Page", "Runtime", "Network", "Log"})
      call(std::string{domain} + ".enable");
  }
  Chromium(const Chromium&) = delete;
  Chromium& operator=(const Chromium&) = delete;
  ~Chromium() {
    if (process_ <= 0) return;
    call("Browser.close", Json::object(), false);
    // Its helpers are of its group.
    ::kill(-process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    ::close(in_);
    ::close(out_);
  }

  bool started() const { return !session_.empty(); }

  /// Errors are the test's.
  Json call(const std::string& method, const Json& parameters = Json::object(),
            bool of_page = true) {
    const int id = ++last_id_;
    Json order{{"id", id}, {"method", method}, {"params", parameters}};
    if (of_page) order["sessionId"] = session_;
    const std::string text = order.dump() + '\0';
    if (::write(in_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) return {};
    for (Json message = next(30.0); !message.is_null(); message = next(30.0)) {
      if (message.value("id", 0) != id) continue;
      if (message.contains("error")) {
        ADD_FAILURE() << method << ": " << message["error"];
      }
      return message.value("result", Json::object());
    }
    if (method != "Browser.close") ADD_FAILURE() << method << " is not answered";
    return Json::object();
  }

  /// The value of an expression, of a promise what it brings.
  Json evaluate(const std::string& expression) {
    const Json result =
        call("Runtime.evaluate",
             {{"expression", expression}, {"awaitPromise", true}, {"returnByValue", true}});
    if (result.contains("exceptionDetails")) {
      ADD_FAILURE() << expression << ": " << result["exceptionDetails"].dump();
    }
    return result.contains("result") ? result["result"].value("value", Json{}) : Json{};
  }
  bool wait_for(const std::string& condition, double most_s = 60.0) {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::chrono::duration<double>(most_s);
    while (Clock::now() < until) {
      // A page that is on its way has not got what is asked about.
      const std::string now = "(() => { try { return !!(" + condition + ") } catch { } })()";
      if (evaluate(now) == true) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ADD_FAILURE() << "does not come: " << condition << "\npage says: "
                  << evaluate("document.querySelector('main')?.innerText.slice(0, 600)");
    return false;
  }

  void open(const std::string& address) {
    call("Page.navigate", {{"url", "about:blank"}});
    call("Page.navigate", {{"url", address}});
  }
  void set_size(int width, int height) {
    call("Emulation.setDeviceMetricsOverride",
         {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", false}});
  }
  void set_dark(bool dark) {
    call("Emulation.setEmulatedMedia",
         {{"features", {{{"name", "prefers-color-scheme"}, {"value", dark ? "dark" : "light"}}}}});
  }
  /// "ArrowRight", "z" with control.
  void press(const std::string& key, int modifiers = 0) {
    static const std::map<std::string, int> codes{
        {"ArrowLeft", 37}, {"ArrowRight", 39}, {"Enter", 13}, {"Tab", 9}, {"z", 90}, {"Z", 90}};
    Json event{{"type", "keyDown"}, {"key", key}, {"modifiers", modifiers}};
    if (codes.contains(key)) event["windowsVirtualKeyCode"] = codes.at(key);
    if (key.size() == 1 && modifiers == 0) event["text"] = key;
    if (key == "Enter") event["text"] = "\r";
    call("Input.dispatchKeyEvent", event);
    event["type"] = "keyUp";
    call("Input.dispatchKeyEvent", event);
  }
  void mouse(const char* type, double x, double y, int clicks = 0, int buttons = 0) {
    call("Input.dispatchMouseEvent", {{"type", type},
                                      {"x", x},
                                      {"y", y},
                                      {"button", clicks || buttons ? "left" : "none"},
                                      {"clickCount", clicks},
                                      {"buttons", buttons}});
  }

  /// Complaints of the page, and addresses that it asked for, since the last call.
  std::vector<std::string> take_complaints() { return std::exchange(complaints_, {}); }
  std::vector<std::string> take_requests() { return std::exchange(requests_, {}); }

 private:
  // Null: none came.
  Json next(double most_s) {
    while (true) {
      const std::size_t end = received_.find('\0');
      if (end != received_.npos) {
        Json message = Json::parse(received_.substr(0, end));
        received_.erase(0, end + 1);
        note(message);
        return message;
      }
      pollfd polled{out_, POLLIN, 0};
      if (::poll(&polled, 1, static_cast<int>(1e3 * most_s)) <= 0) return nullptr;
      char buffer[1 << 16];
      const ssize_t count = ::read(out_, buffer, sizeof buffer);
      if (count <= 0) return nullptr;
      received_.append(buffer, static_cast<std::size_t>(count));
    }
  }

  void note(const Json& message) {
    const std::string method = message.value("method", "");
    if (method == "Network.requestWillBeSent")
      requests_.push_back(message["params"]["request"]["url"]);
    if (method == "Runtime.exceptionThrown" || method == "Log.entryAdded")
      complaints_.push_back(message["params"].dump());
    if (method == "Runtime.consoleAPICalled" && message["params"]["type"] != "log")
      complaints_.push_back(message["params"].dump());
  }

  TemporaryFolder profile_;
  pid_t process_ = -1;
  int in_ = -1, out_ = -1, last_id_ = 0;
  std::string session_, received_;
  std::vector<std::string> complaints_, requests_;
};

}  // namespace orrery
