// The server from outside: whom it serves, whom it refuses, what it survives and how it ends.

#include <future>
#include <set>
#include <thread>

#include "sim/core/process.hpp"
#include "sim/explorer/http/http_server.hpp"
#include "tests/support/explorer.hpp"

namespace orrery::server_test {
namespace {

using Json = nlohmann::json;

const std::string small_plan =
    R"({"model":"llama3-8b","system":"dgx-h100","gpus":"8","tp":"2","gbs":"64"})";

double seconds_of(const std::function<void()>& work) {
  const auto begun = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

// Until a question is in work: the reader has a child.
bool wait_for_answerer(const Explorer& explorer, std::size_t answerers = 1) {
  for (int i = 0; i < 10'000; ++i) {
    if (explorer.children().size() == 1 + answerers) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

class Served : public testing::Test {
 protected:
  void SetUp() override { ASSERT_GT(explorer.port, 0) << "orrery explore does not start"; }
  std::string page() const { return "/" + explorer.token + "/"; }
  void expect_alive() const { EXPECT_EQ(explorer.post("answer", small_plan).status, 200); }
  Explorer explorer;
};

TEST_F(Served, ThePageAndItsParts) {
  const HttpReply page_reply = explorer.ask(explorer.request("GET", page(), ""));
  EXPECT_EQ(page_reply.status, 200);
  EXPECT_NE(page_reply.body.find("<title>Orrery</title>"), std::string::npos);
  // Nothing but itself may be loaded or asked, whatever a name in a file says.
  EXPECT_NE(page_reply.head.find("Content-Security-Policy: default-src 'none'; script-src 'self'"),
            std::string::npos);
  EXPECT_NE(page_reply.head.find("X-Content-Type-Options: nosniff"), std::string::npos);
  for (const char* part : {"explorer.js", "explorer.css"})
    EXPECT_EQ(explorer.ask(explorer.request("GET", page() + part, "")).status, 200) << part;
  EXPECT_EQ(explorer.ask(explorer.request("GET", page() + "../../etc/passwd", "")).status, 404);
  EXPECT_EQ(explorer.ask(explorer.request("GET", page() + "api/nothing", "")).status, 404);
  EXPECT_EQ(explorer.post("nothing", "{}").status, 404);
}

TEST_F(Served, OnlyThisMachineListens) {
  // /proc/net/tcp: addresses and ports in hexadecimal, the address in the host's byte order.
  FILE* table = ::fopen("/proc/net/tcp", "r");
  ASSERT_TRUE(table);
  char line[512];
  int listening = 0;
  while (::fgets(line, sizeof line, table)) {
    unsigned address = 0, port = 0, other = 0, other_port = 0, state = 0;
    if (::sscanf(line, " %*d: %X:%X %X:%X %X", &address, &port, &other, &other_port, &state) != 5)
      continue;
    if (static_cast<int>(port) != explorer.port || state != 0x0A) continue;
    ++listening;
    EXPECT_EQ(address, htonl(INADDR_LOOPBACK));
  }
  ::fclose(table);
  EXPECT_EQ(listening, 1);
}

TEST_F(Served, RequestsWithoutTheSecretAreRefused) {
  std::string other = explorer.token;
  other.back() = other.back() == '0' ? '1' : '0';
  for (const std::string& path :
       {std::string{"/"}, std::string{"/explorer.js"}, "/" + other + "/",
        "/" + other + "/api/catalog", "/" + explorer.token.substr(1) + "/", "/" + explorer.token,
        std::string{"//"}})
    EXPECT_EQ(explorer.ask(explorer.request("GET", path, "")).status, 403) << path;
  EXPECT_EQ(explorer.ask(explorer.request("POST", "/" + other + "/api/answer", small_plan)).status,
            403);
}

TEST_F(Served, ForeignHostsAndOriginsAreRefused) {
  const std::string at = std::to_string(explorer.port);
  const auto status = [&](const Explorer::Headers& headers) {
    return explorer.ask(explorer.request("GET", page(), "", headers)).status;
  };
  for (const std::string& host :
       {std::string{"evil.example"}, "evil.example:" + at, std::string{"127.0.0.1"},
        "127.0.0.1:" + at + ".evil.example", "127.0.0.1:1" + at, "[::1]:" + at})
    EXPECT_EQ(status({{"Host", host}}), 403) << host;
  EXPECT_EQ(status({{"Host", ""}}), 403);
  EXPECT_EQ(status({{"Host", "localhost:" + at}}), 200);
  for (const std::string& origin : {std::string{"http://evil.example"}, std::string{"null"},
                                    "https://127.0.0.1:" + at, std::string{"http://127.0.0.1:1"}})
    EXPECT_EQ(status({{"Origin", origin}}), 403) << origin;
  EXPECT_EQ(status({{"Origin", "http://127.0.0.1:" + at}}), 200);
  EXPECT_EQ(status({{"Sec-Fetch-Site", "cross-site"}}), 403);
  EXPECT_EQ(status({{"Sec-Fetch-Site", "same-site"}}), 403);
  EXPECT_EQ(status({{"Sec-Fetch-Site", "same-origin"}}), 200);
}

TEST_F(Served, OtherMethodsAndMediaTypesAreRefused) {
  for (const char* method : {"PUT", "DELETE", "OPTIONS", "PATCH"})
    EXPECT_EQ(explorer.ask(explorer.request(method, page(), "")).status, 405) << method;
  // Requests that a form of another page can send without preflight (Fetch, CORS-safelisted).
  for (const char* type : {"text/plain", "application/x-www-form-urlencoded", ""})
    EXPECT_EQ(explorer
                  .ask(explorer.request("POST", page() + "api/answer", small_plan,
                                        {{"Content-Type", type}}))
                  .status,
              415)
        << type;
}

TEST_F(Served, LargeBodiesAreRefused) {
  for (const std::size_t size : {std::size_t{70'000}, std::size_t{1} << 20, std::size_t{3} << 20})
    EXPECT_EQ(explorer.post("answer", std::string(size, ' ')).status, 413) << size;
  // One that only says that it is large, and an address without end.
  for (const std::string& endless :
       {explorer.request("POST", page() + "api/answer", "",
                         {{"Content-Length", "99999999999999999999"}}),
        explorer.request("GET", page() + std::string(100'000, 'a'), "")}) {
    const RawConnection connection{explorer.port};
    connection.send(endless);
    EXPECT_NE(parse_reply(connection.receive(0.5)).status, 200);
  }
  expect_alive();
}

TEST_F(Served, NoiseIsNoRequest) {
  for (const std::string& noise :
       {std::string{"\r\n\r\n"}, std::string(5000, '\0'), std::string{"GET\r\n\r\n"},
        std::string{"GET / HTTP/9.9\r\n\r\n"}, std::string{"\x16\x03\x01\x02\x00\x01"},
        "POST " + page() + "api/answer HTTP/1.1\r\nHost: " + explorer.host() +
            "\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\nzz\r\n"}) {
    const RawConnection connection{explorer.port};
    connection.send(noise);
    EXPECT_NE(parse_reply(connection.receive(0.3)).status, 200);
  }
  expect_alive();
}

// A byte now and then keeps no connection open for longer than ten seconds.
TEST_F(Served, SlowClientsAreLeft) {
  const RawConnection slow{explorer.port};
  const double held = seconds_of([&] {
    for (int i = 0; i < 40 && slow.send(i == 0 ? "GET " : "a"); ++i)
      if (slow.receive(0.5).find("HTTP") != std::string::npos) break;
  });
  EXPECT_GE(held, 8.0);
  EXPECT_LE(held, 20.0);
  expect_alive();
}

TEST_F(Served, TwoHundredConnectionsAtOnce) {
  // Half of the connections send nothing, and delay no other.
  std::vector<RawConnection> silent;
  for (int i = 0; i < 200; ++i) silent.emplace_back(explorer.port);
  for (const RawConnection& one : silent) ASSERT_TRUE(one.connected());
  EXPECT_LE(seconds_of([&] { expect_alive(); }), 5.0);
  std::vector<std::thread> threads;
  std::vector<int> status(200);
  const std::string question = explorer.request("GET", page() + "api/catalog", "");
  for (std::size_t i = 0; i < status.size(); ++i)
    threads.emplace_back([&, i] { status[i] = explorer.ask(question).status; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::count(status.begin(), status.end(), 200), 200);
}

TEST_F(Served, ANewerQuestionDropsAnOlderOne) {
  // Uneven routing over many GPUs is sampled token by token.
  const std::string long_work =
      R"({"model":"deepseek-v3","system":"hgx-h800","gpus":"2048","pp":"16","ep":"64",)"
      R"("gbs":"15360","recompute":"full","routing":"zipf:1.2"})";
  const auto ask = [&](const std::string& kind, const std::string& plan) {
    return explorer.ask(explorer.request("POST", page() + "api/" + kind + "?page=one", plan))
        .status;
  };
  // Drawings belong to the answer before.
  for (const auto& [before, after] :
       {std::pair{"answer", "answer"}, {"memory", "memory"}, {"cluster", "answer"}}) {
    int first = 0;
    std::thread older{[&, before = before] { first = ask(before, long_work); }};
    ASSERT_TRUE(wait_for_answerer(explorer));
    EXPECT_EQ(ask(after, small_plan), 200);
    older.join();
    EXPECT_EQ(first, 409) << before << " " << after;
    ASSERT_TRUE(wait_for_answerer(explorer, 0));
  }
}

TEST_F(Served, AnAnswerThatDiesFailsAlone) {
  const std::string long_work =
      R"({"model":"deepseek-v3","system":"hgx-h800","gpus":"2048","pp":"16","ep":"64",)"
      R"("gbs":"15360","recompute":"full","routing":"zipf:1.2"})";
  HttpReply reply;
  std::thread asking{[&] { reply = explorer.post("answer", long_work); }};
  ASSERT_TRUE(wait_for_answerer(explorer));
  const pid_t answering = explorer.children()[1];
  ::kill(answering, SIGSEGV);
  asking.join();
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(Json::parse(reply.body)["error"],
            "the process that answered ended by signal 11 (Segmentation fault)");
  expect_alive();
}

bool is_gone(pid_t process) {
  for (int i = 0; i < 200; ++i) {
    if (::kill(process, 0) != 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(Ending, LeavesNoProcessBehind) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGKILL}) {
    Explorer explorer;
    ASSERT_GT(explorer.port, 0);
    const RawConnection idle{explorer.port};
    // One question is in work.
    const RawConnection asking{explorer.port};
    asking.send(explorer.request(
        "POST", "/" + explorer.token + "/api/answer",
        R"({"model":"deepseek-v3","system":"hgx-h800","gpus":"2048","pp":"16","ep":"64",)"
        R"("gbs":"15360","recompute":"full","routing":"zipf:1.2"})"));
    ASSERT_TRUE(wait_for_answerer(explorer));
    const std::vector<pid_t> others = explorer.children();
    EXPECT_EQ(others.size(), 2u);
    int code = -1;
    EXPECT_LE(seconds_of([&] { code = explorer.end(signal); }), 3.0);
    EXPECT_EQ(code, signal == SIGKILL ? 128 + SIGKILL : 0);
    for (const pid_t other : others) EXPECT_TRUE(is_gone(other)) << "after signal " << signal;
  }
}

TEST(Ending, TheLossOfTheReaderIsReported) {
  Explorer explorer;
  ASSERT_GT(explorer.port, 0);
  ASSERT_EQ(explorer.children().size(), 1u);
  ::kill(explorer.children()[0], SIGKILL);
  EXPECT_EQ(explorer.end(0), 1);
}

// An immediate end may come before the serving thread starts.
TEST(Ending, BeforeItServes) {
  void* const entry = module_entry("liborrery_http.so", "orrery_http_server");
  const std::unique_ptr<HttpServer> server{reinterpret_cast<HttpServerEntry*>(entry)({})};
  ASSERT_TRUE(server);
  server->stop();
  auto serving = std::async(std::launch::async, [&] { server->serve(); });
  if (serving.wait_for(std::chrono::seconds(30)) != std::future_status::ready) {
    ADD_FAILURE() << "it serves for ever";
    std::_Exit(1);  // Else the thread would be waited for.
  }
}

TEST(Starting, EachTimeWithAnotherSecret) {
  std::set<std::string> tokens;
  for (int i = 0; i < 3; ++i) {
    const Explorer explorer;
    EXPECT_EQ(explorer.token.size(), 32u);
    tokens.insert(explorer.token);
  }
  EXPECT_EQ(tokens.size(), 3u);
}

}  // namespace
}  // namespace orrery::server_test
