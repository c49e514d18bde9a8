// A search and batches that a page starts: their answers are those of the copied commands, and
// their processes end when the page does.

#include <algorithm>
#include <fstream>
#include <thread>

#include "tests/support/explorer.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::search_test {
namespace {

using Json = nlohmann::json;

const Json small{
    {"model", "llama3-8b"}, {"system", "dgx-h100"}, {"gpus", "16"}, {"tp", "2"}, {"gbs", "64"}};

std::vector<Json> lines_of(const std::string& body) {
  std::vector<Json> lines;
  std::istringstream text{body};
  for (std::string line; std::getline(text, line);)
    if (!line.empty()) lines.push_back(Json::parse(line));
  return lines;
}

std::string words_behind_orrery(const std::string& command) {
  return command.substr(std::string{"orrery "}.size());
}

TEST(Search, IsThatOfTheCopiedCommand) {
  const Explorer explorer;
  ASSERT_GT(explorer.port, 0);
  Json trained = small;
  trained["tokens"] = "1T";
  trained["dtype"] = "fp8";
  trained["dp_overlap"] = "true";
  const std::vector<Json> searches{
      {{"state", small}},
      {{"state", small}, {"hold", {"tp"}}, {"top", 3}},
      {{"state", trained},
       {"gpus", "8..32"},
       {"gbs", "64,128"},
       {"hold", {"dp_overlap"}},
       {"objective", "cost_per_token"}},
      {{"state", trained}, {"hold", {"tp", "dp_overlap"}}, {"pareto", true}}};
  for (const Json& asked : searches) {
    SCOPED_TRACE(asked.dump());
    const HttpReply reply = explorer.post("search", asked.dump());
    ASSERT_EQ(reply.status, 200) << reply.body;
    const std::vector<Json> lines = lines_of(reply.body);
    ASSERT_GE(lines.size(), 3u);
    const Outcome printed = run_orrery(words_behind_orrery(lines.front()["command"]) + " --json");
    ASSERT_EQ(printed.code, 0) << printed.out;
    const Json found = lines.back()["search"];
    EXPECT_EQ(found, Json::parse(printed.out));
    EXPECT_TRUE(found["optimal"]);
    ASSERT_FALSE(found["plans"].empty());

    // The list filled up to the one that was proven, and each of its plans was simulated before.
    std::map<int, Json> simulated;
    Json leading;
    for (const Json& line : lines)
      if (line.contains("progress")) {
        for (const Json& plan : line["progress"]["plans"]) simulated[plan["number"]] = plan;
        leading = line["progress"]["leading"];
      }
    EXPECT_EQ(static_cast<std::int64_t>(simulated.size()), found["space"]["simulated"]);
    ASSERT_EQ(leading.size(), found["plans"].size());
    ASSERT_EQ(lines.back()["states"].size(), found["plans"].size());
    for (std::size_t i = 0; i < leading.size(); ++i) {
      const Json& plan = simulated[leading[i]];
      const Json& result = found["plans"][i];
      // But for the digits that a result writes.
      EXPECT_NEAR(plan["step_time_s"], result["step_time_s"], 1e-9);
      EXPECT_NEAR(plan["tokens_per_s_per_gpu"], result["tokens_per_s_per_gpu"], 1e-4);
      EXPECT_NEAR(plan["memory"],
                  result["memory"]["peak_bytes"].get<double>() /
                      result["memory"]["capacity_bytes"].get<double>(),
                  1e-10);
      EXPECT_EQ(plan["state"], lines.back()["states"][i]);
    }
    // A click on the last of the list shows that plan.
    const HttpReply there = explorer.post("answer", lines.back()["states"].back().dump());
    ASSERT_EQ(there.status, 200) << there.body;
    const Json answer = Json::parse(there.body.substr(0, there.body.find('\n')));
    const Json& last = found["plans"].back();
    EXPECT_EQ(answer["result"]["plan"], last["plan"]);
    EXPECT_EQ(answer["result"]["step_time_s"], last["step_time_s"]);
    EXPECT_EQ(answer["result"].value("bill", Json{}), last.value("bill", Json{}));
  }
}

TEST(Search, SaysWhyThereIsNone) {
  const Explorer explorer;
  ASSERT_GT(explorer.port, 0);
  Json none = small;
  none["gpus"] = "1";
  none["model"] = "gpt3-175b";
  none.erase("tp");
  const HttpReply reply = explorer.post("search", Json{{"state", none}}.dump());
  ASSERT_EQ(reply.status, 200);
  const std::vector<Json> lines = lines_of(reply.body);
  ASSERT_GE(lines.size(), 2u);
  const std::string arguments = words_behind_orrery(lines.front()["command"]);
  const Outcome printed =
      run_shell("('" ORRERY_TEST_BINARY_FOLDER "/orrery' " + arguments + " 2>&1)");
  EXPECT_EQ("orrery: error: " + lines.back()["error"].get<std::string>() + "\n", printed.out);

  const auto refused = [&](const Json& body, const std::string& why) {
    const HttpReply bad = explorer.post("search", body.dump());
    EXPECT_EQ(bad.status, 400) << body;
    EXPECT_NE(bad.body.find(why), std::string::npos) << bad.body;
  };
  refused(Json::array(), "is no object");
  refused({{"state", small}, {"holds", {"tp"}}}, "holds");
  refused({{"state", small}, {"hold", {"tpp"}}}, "no key of a plan");
  refused({{"state", small}, {"gpus", "64..8"}}, "--gpus");
  refused({{"state", small}, {"objective", "beauty"}}, "beauty");
  refused({{"state", small}, {"objective", "training_time"}}, "--tokens");
  refused({{"state", small}, {"objective", "gpus"}}, "deadline");
  refused({{"state", {{"model", "/etc/passwd"}}}}, "/etc/passwd");
  Json bare = small;
  bare.erase("gbs");
  refused({{"state", bare}}, "'gbs' is missing");
}

// Minutes of work: many sizes of a cluster.
const Json long_search{
    {"state",
     {{"model", "deepseek-v3"}, {"system", "hgx-h800"}, {"gpus", "2048"}, {"gbs", "15360"}}},
    {"gpus", "512..16384"}};

class LongSearch : public testing::Test {
 protected:
  // Without requests only the reader runs.
  bool reaches(std::size_t processes, bool at_least, double most_s = 20.0) const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(most_s);
    while (std::chrono::steady_clock::now() < until) {
      const std::size_t now = explorer_.children().size();
      if (at_least ? now >= processes : now <= processes) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }
  std::string question(const std::string& page) const {
    return explorer_.request("POST", "/" + explorer_.token + "/api/search?page=" + page,
                             long_search.dump());
  }
  void SetUp() override { ASSERT_GT(explorer_.port, 0); }

  Explorer explorer_;
};

TEST_F(LongSearch, EndsWithItsPage) {
  {
    const RawConnection page{explorer_.port};
    page.send(question("one"));
    ASSERT_TRUE(reaches(3, true));  // The reader, the search, and workers of it.
    // The parameters are answered meanwhile.
    EXPECT_EQ(explorer_.post("answer", small.dump()).status, 200);
  }
  EXPECT_TRUE(reaches(1, false));
  EXPECT_EQ(explorer_.post("answer", small.dump()).status, 200);
}

TEST_F(LongSearch, IsDroppedForANewerOne) {
  std::string older;
  std::thread asking{[&] { older = explorer_.ask(question("one")).body; }};
  EXPECT_TRUE(reaches(3, true));
  const std::string path = "/" + explorer_.token + "/api/search?page=one";
  const HttpReply newer =
      explorer_.ask(explorer_.request("POST", path, Json{{"state", small}}.dump()));
  EXPECT_TRUE(lines_of(newer.body).back().contains("search")) << newer.body.substr(0, 300);
  asking.join();
  EXPECT_TRUE(lines_of(older).back().contains("error"));
  EXPECT_TRUE(reaches(1, false));
}

TEST_F(LongSearch, EndsWithTheExplorer) {
  for (const int signal : {SIGINT, SIGKILL}) {
    Explorer explorer;
    ASSERT_GT(explorer.port, 0);
    const RawConnection page{explorer.port};
    page.send(explorer.request("POST", "/" + explorer.token + "/api/search?page=one",
                               long_search.dump()));
    std::vector<pid_t> others;
    for (int i = 0; i < 500 && others.size() < 3; ++i) {
      others = explorer.children();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ASSERT_GE(others.size(), 3u);
    EXPECT_EQ(explorer.end(signal), signal == SIGINT ? 0 : 128 + SIGKILL);
    // Each has gone or is a zombie: none works on.
    const auto works = [](pid_t process) {
      std::ifstream stat{"/proc/" + std::to_string(process) + "/stat"};
      std::string text;
      std::getline(stat, text);
      const std::size_t behind = text.rfind(") ");
      return behind != text.npos && text[behind + 2] != 'Z' && text[behind + 2] != 'X';
    };
    for (int i = 0; i < 200 && std::any_of(others.begin(), others.end(), works); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    for (const pid_t other : others) EXPECT_FALSE(works(other)) << "after signal " << signal;
  }
}

TEST(Batches, AreThoseOfTheSweep) {
  const Explorer explorer;
  ASSERT_GT(explorer.port, 0);
  Json state = small;
  state["tokens"] = "1T";  // Which no step depends on.
  const HttpReply reply = explorer.post("batches", state.dump());
  ASSERT_EQ(reply.status, 200) << reply.body;
  const std::vector<Json> lines = lines_of(reply.body);
  ASSERT_EQ(lines.size(), 1 + lines.front()["batches"].get<std::size_t>());
  ASSERT_GE(lines.size(), 9u);
  bool now_is_there = false;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const Json& line = lines[i];
    now_is_there = now_is_there || line["gbs"] == 64;
    Json one = small;
    one["gbs"] = std::to_string(line["gbs"].get<int>());
    const HttpReply alone = explorer.post("result", one.dump());
    if (line.contains("why_not")) {
      EXPECT_EQ(alone.status, 422);
      EXPECT_EQ(Json::parse(alone.body)["error"], line["why_not"]);
      continue;
    }
    const Json result = Json::parse(alone.body);
    EXPECT_EQ(line["step_time_s"], result["step_time_s"]);
    EXPECT_EQ(line["tokens_per_s_per_gpu"], result["tokens_per_s_per_gpu"]);
    EXPECT_EQ(line["memory_bytes"], result["memory"]["peak_bytes"]);
    EXPECT_EQ(line["capacity_bytes"], result["memory"]["capacity_bytes"]);
  }
  EXPECT_TRUE(now_is_there);

  const TemporaryFolder folder;
  std::string command = words_behind_orrery(lines.front()["command"]);
  command.replace(command.rfind("batches"), 7, (folder.path() / "batches").string());
  const Outcome swept = run_orrery(command + " -j 1");
  EXPECT_EQ(swept.code, 0) << swept.out;
  EXPECT_NE(swept.out.find(std::to_string(lines.size() - 1) + " points"), std::string::npos)
      << swept.out;
}

}  // namespace
}  // namespace orrery::search_test
