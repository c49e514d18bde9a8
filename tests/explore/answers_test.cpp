// A page shows what the command that it copies prints, and the values that it offers are legal.

#include <fstream>
#include <random>
#include <sstream>

#include "tests/explore/view_agreement.hpp"
#include "tests/support/explorer.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::answers_test {
namespace {

using Json = nlohmann::json;

struct Answered {
  Json answer, parameters;
  std::string timeline;
};

Answered answer_to(const Explorer& explorer, const Json& state) {
  const HttpReply reply = explorer.post("answer", state.dump());
  EXPECT_EQ(reply.status, 200) << state << reply.body;
  const std::size_t first = reply.body.find('\n');
  const std::size_t second = reply.body.find('\n', first + 1);
  if (reply.status != 200 || second == reply.body.npos) return {};
  return {Json::parse(reply.body.substr(0, first)),
          Json::parse(reply.body.substr(first + 1, second - first - 1))["knobs"],
          reply.body.substr(second + 1)};
}

const std::vector<Json>& beginnings() {
  static const std::vector<Json> states{
      {{"model", "gpt3-175b"},
       {"system", "dgx-a100-80gb"},
       {"gpus", "512"},
       {"tp", "8"},
       {"pp", "8"},
       {"gbs", "768"},
       {"recompute", "full"},
       {"tokens", "300B"}},
      {{"model", "llama3-8b"}, {"system", "dgx-h100"}, {"gpus", "16"}, {"tp", "2"}, {"gbs", "64"}},
      {{"model", "mixtral-8x7b"},
       {"system", "dgx-h100"},
       {"gpus", "64"},
       {"tp", "2"},
       {"pp", "2"},
       {"ep", "8"},
       {"gbs", "128"},
       {"tokens", "1T"}},
      {{"model", "llama3-70b"},
       {"system", "gb200-nvl72"},
       {"gpus", "72"},
       {"tp", "4"},
       {"pp", "2"},
       {"gbs", "144"},
       {"dtype", "fp8"}}};
  return states;
}

Json changed(Json state, const std::string& key, const Json& value) {
  Json changes = value.value("also", Json::object());
  if (!changes.contains(key)) changes[key] = value["word"];
  for (const auto& [name, word] : changes.items())
    if (word == "")
      state.erase(name);
    else
      state[name] = word;
  return state;
}

// Of the program, the object without what it was made of; or its message.
struct Printed {
  Json result;
  std::string message;
};
Printed printed_by(const std::string& command) {
  const std::string arguments = command.substr(std::string{"orrery "}.size());
  const Outcome outcome = run_orrery(arguments + " --json --no-timing");
  if (outcome.code == 0) {
    Json result = Json::parse(outcome.out);
    result.erase("inputs");
    return {result, ""};
  }
  return {nullptr,
          run_shell("('" ORRERY_TEST_BINARY_FOLDER "/orrery' " + arguments + " 2>&1)").out};
}

// The words of the address that `orrery explore` prints, behind its '#'.
Json state_of(const std::string& address) {
  Json state = Json::object();
  std::istringstream words{address.substr(address.find('#') + 1)};
  for (std::string word; std::getline(words, word, '&');)
    state[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  return state;
}

// An imported run holds its model, and a result or a search its model and its system.
TEST(Answers, ShowThePlansOwnModelAndSystem) {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  const auto changed_copy = [&](const char* from, const char* to, const Json& changes) {
    Json document = Json::parse(std::ifstream{std::string{ORRERY_TEST_SOURCE} + from});
    document.update(changes);
    std::ofstream{path(to)} << document;
    return document;
  };
  const Json model = changed_copy("/workloads/models/llama3-8b.json", "model.json",
                                  {{"name", "mine"}, {"layers", 16}});
  changed_copy("/topologies/systems/dgx-h100.json", "system.json", {{"name", "my-cluster"}});
  std::ofstream{path("plan.json")} << Json{
      {"model", model}, {"system", path("system.json")}, {"gpus", 16}, {"gbs", 64}, {"tp", 2}};
  const std::string orrery = "'" ORRERY_TEST_BINARY_FOLDER "/orrery' ";
  const auto printed = [&](const std::string& words) { return run_shell(orrery + words).out; };
  const std::string plan = "--plan " + path("plan.json");
  std::ofstream{path("result.json")} << printed("estimate " + plan + " --json");
  std::ofstream{path("search.json")} << printed("search " + plan + " --fix tp=2 --top 1 --json");
  for (const char* file : {"plan.json", "result.json", "search.json"}) {
    const Explorer explorer{{"--plan", path(file)}};
    ASSERT_GT(explorer.port, 0) << file;
    const Json result = answer_to(explorer, state_of(explorer.address)).answer["result"];
    const Json wanted = Json::parse(printed("estimate --plan " + path(file) + " --json"));
    EXPECT_EQ(result["model"], "mine") << file;
    EXPECT_EQ(result["system"], "my-cluster") << file;
    EXPECT_EQ(result["step_time_s"], wanted["step_time_s"]) << file;
  }
}

std::string without_notes(std::string message) {
  while (message.starts_with("orrery: note: ")) message.erase(0, message.find('\n') + 1);
  return message;
}

TEST(Answers, AreThoseOfTheCopiedCommand) {
  const Explorer explorer;
  ASSERT_GT(explorer.port, 0);
  std::mt19937 random{19};  // NOLINT: the same states with every run.
  const auto one_of = [&](const Json& list) { return list[random() % list.size()]; };
  int ran = 0, refused = 0;
  for (int sequence = 0; sequence < 20; ++sequence) {
    Json state = beginnings()[static_cast<std::size_t>(sequence) % beginnings().size()];
    for (int step = 0; step < 10; ++step) {
      SCOPED_TRACE(state.dump());
      const Answered got = answer_to(explorer, state);
      const Printed printed = printed_by(got.answer["command"]);
      EXPECT_EQ(got.answer["state"], state);
      EXPECT_EQ(got.answer["result"], printed.result);
      if (got.answer["result"].is_null()) {
        ++refused;
        EXPECT_EQ("orrery: error: " + got.answer["refused"]["message"].get<std::string>() + "\n",
                  without_notes(printed.message));
        EXPECT_EQ(got.timeline, "");
      } else {
        ++ran;
        EXPECT_TRUE(got.timeline.starts_with("ORT1"));
        for (const char* view : {"memory", "cluster"}) {
          const HttpReply reply = explorer.post(view, state.dump());
          ASSERT_EQ(reply.status, 200) << view << reply.body;
          (view == std::string{"memory"} ? expect_memory_agrees : expect_cluster_agrees)(
              Json::parse(reply.body), got.answer["result"]);
        }
      }
      // A change of one parameter, mostly to a legal value, on clusters that are quickly simulated.
      for (int tries = 0; tries < 50; ++tries) {
        const Json parameter = one_of(got.parameters);
        ASSERT_FALSE(parameter["values"].empty()) << parameter;
        const Json value = one_of(parameter["values"]);
        const bool large =
            parameter["key"] == "gpus" && std::stoi(value["word"].get<std::string>()) > 4096;
        const bool slow =
            parameter["key"] == "routing" || large ||
            (parameter["key"] == "gbs" && value["word"].get<std::string>().size() > 4);
        if (slow || (value.contains("why_not") && random() % 20 != 0)) continue;
        if (value.value("memory", 0.0) > 1.5) continue;
        state = changed(state, parameter["key"], value);
        break;
      }
    }
  }
  EXPECT_GE(ran, 120);
  EXPECT_GE(refused, 5);
}

// Every value of every parameter: a legal one makes a plan, and the message of an illegal one is
// that which the plan gets.
TEST(Parameters, OfferWhatIsLegalAndSayWhyNot) {
  const Explorer explorer;
  ASSERT_GT(explorer.port, 0);
  for (const std::size_t of : {std::size_t{1}, std::size_t{2}}) {
    const Json state = beginnings()[of];
    const Answered got = answer_to(explorer, state);
    int legal = 0, not_legal = 0;
    for (const Json& parameter : got.parameters) {
      EXPECT_FALSE(parameter["values"].empty()) << parameter;
      for (const Json& value : parameter["values"]) {
        if (parameter["key"] == "routing" || parameter["values"].size() > 20) continue;
        const Json next = changed(state, parameter["key"], value);
        SCOPED_TRACE(next.dump());
        const Answered there = answer_to(explorer, next);
        const Json& refused = there.answer["refused"];
        if (value.contains("why_not")) {
          ++not_legal;
          ASSERT_FALSE(refused.is_null());
          EXPECT_EQ(refused["message"], value["why_not"]);
        } else {
          ++legal;
          // Memory alone may still rule it out.
          if (!refused.is_null()) {
            EXPECT_TRUE(refused.contains("memory")) << refused;
            EXPECT_GT(value["memory"].get<double>(), 1.0);
          }
        }
      }
    }
    EXPECT_GT(legal, 60);
    EXPECT_GT(not_legal, 10);
  }
}

TEST(Refusals, NameAWayThatRuns) {
  const Explorer explorer;
  ASSERT_GT(explorer.port, 0);
  const std::vector<Json> cannot{
      {{"model", "gpt3-175b"}, {"system", "dgx-a100-80gb"}, {"gpus", "64"}, {"gbs", "64"}},
      {{"model", "gpt3-175b"},
       {"system", "dgx-a100-80gb"},
       {"gpus", "1024"},
       {"tp", "5"},
       {"gbs", "1536"}},
      {{"model", "gpt3-175b"},
       {"system", "dgx-a100-80gb"},
       {"gpus", "1024"},
       {"tp", "8"},
       {"pp", "8"},
       {"gbs", "1000"},
       {"recompute", "full"}},
      {{"model", "deepseek-v3"}, {"system", "hgx-h800"}, {"gpus", "256"}, {"gbs", "1024"}}};
  for (const Json& state : cannot) {
    SCOPED_TRACE(state.dump());
    const Json refused = answer_to(explorer, state).answer["refused"];
    ASSERT_FALSE(refused.is_null());
    bool one_runs = false;
    for (const Json& remedy : refused["remedies"]) {
      Json next = state;
      for (const auto& [key, word] : remedy["changes"].items())
        if (word == "")
          next.erase(key);
        else
          next[key] = word;
      const bool runs = answer_to(explorer, next).answer["refused"].is_null();
      if (remedy["runs"]) {
        EXPECT_TRUE(runs) << remedy;
      }
      one_runs = one_runs || runs;
    }
    EXPECT_TRUE(one_runs) << refused;
  }
}

TEST(Refusals, AnotherModelGetsAPlanThatRuns) {
  const Explorer explorer;
  ASSERT_GT(explorer.port, 0);
  Json state = beginnings()[0];
  for (const char* model : {"deepseek-v3", "llama3-8b", "mixtral-8x7b", "gemma-3-27b"}) {
    state["model"] = model;
    const HttpReply reply = explorer.post("answer?repair=1", state.dump());
    ASSERT_EQ(reply.status, 200);
    const Json answer = Json::parse(reply.body.substr(0, reply.body.find('\n')));
    EXPECT_TRUE(answer["refused"].is_null()) << model << answer["refused"];
    for (const char* key : {"model", "system", "gpus", "gbs", "tokens"})
      EXPECT_EQ(answer["state"][key], state[key]) << model;
  }
}

TEST(Questions, ThatMakeNoSenseAreAnswered) {
  const Explorer explorer;
  ASSERT_GT(explorer.port, 0);
  const auto said = [&](const std::string& body) {
    const HttpReply reply = explorer.post("answer", body);
    EXPECT_EQ(reply.status, 400) << body;
    return Json::parse(reply.body)["error"].get<std::string>();
  };
  EXPECT_EQ(said(R"({"model":3})"), "state: /model: 3 is not text; write it in quotes");
  EXPECT_EQ(said("[]"), "state: is no object; write {\"model\": \"gpt3-175b\", ...}");
  EXPECT_EQ(said("{}"), "state: the key 'model' is missing; name one");
  EXPECT_TRUE(said(R"({"modle":"x"})").starts_with("state: the key 'modle' is unknown"));
  EXPECT_TRUE(said(R"({"gpus":"many"})").find("many") != std::string::npos);
  EXPECT_TRUE(said(R"({"tp":"0"})").find("--tp") != std::string::npos);
  EXPECT_TRUE(said(R"({"tokens":"x"})").find("--tokens") != std::string::npos);
  for (const char* broken : {"", "{", "{\"model\":", "\xff\xfe", "nul", "{\"a\":1}}", "\"x\""})
    EXPECT_FALSE(said(broken).empty());
  std::string deep = "{\"model\":";
  for (int i = 0; i < 20'000; ++i) deep += "[";
  EXPECT_FALSE(said(deep).empty());
}

TEST(Questions, OpenNoFileThatTheCommandLineDidNotName) {
  const Explorer explorer;
  ASSERT_GT(explorer.port, 0);
  const std::vector<std::pair<const char*, std::vector<std::string>>> tries{
      {"model",
       {"/etc/passwd", "../models/gpt2.json", "./x", ".", "..", "gpt2.json", "gpt2/../gpt2"}},
      {"system", {"/dev/stdin", "topologies/systems/dgx-h100.json"}},
      {"software", {"/etc/hostname", "./a.json"}},
      {"routing", {"/etc/passwd", "x.jsonl", "zipf:/etc/passwd", "example.jsonl"}},
      {"schedule", {"/etc/passwd", "a.txt", "./schedule"}},
      {"calibration", {"/etc/passwd", "a.json"}},
      {"economics", {"/etc/passwd", "a.json"}}};
  for (const auto& [key, words] : tries)
    for (const std::string& word : words) {
      Json state = beginnings()[1];
      state["tokens"] = "1T";
      state[key] = word;
      for (const char* question : {"answer", "report", "trace", "result", "megatron"}) {
        const HttpReply reply = explorer.post(question, state.dump());
        EXPECT_EQ(reply.status, 400) << key << " " << word;
        EXPECT_NE(reply.body.find("is neither of the catalog nor given"), std::string::npos)
            << reply.body;
      }
    }
}

// Bytes changed at random in a sound question: an answer or a message, and never the end.
TEST(Questions, SurviveNoise) {
  const Explorer explorer;
  ASSERT_GT(explorer.port, 0);
  std::mt19937 random{7};
  const std::string sound = beginnings()[1].dump();
  const std::string letters = "{}[]\",:0123456789eE+-.\\/ \n\x00\x7f\xc3truefalsnul";
  std::map<int, int> met;
  for (int i = 0; i < 400; ++i) {
    std::string body = sound;
    for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes) {
      const std::size_t at = random() % body.size();
      const char letter = letters[random() % letters.size()];
      if (random() % 2)
        body[at] = letter;
      else
        body.insert(at, 1, letter);
    }
    const int status = explorer.post("answer", body).status;
    ++met[status];
    EXPECT_TRUE(status == 200 || status == 400 || status == 422) << status << " " << body;
  }
  EXPECT_GT(met[400], 100);
}

TEST(Downloads, AreThoseOfTheCommands) {
  const Explorer explorer;
  ASSERT_GT(explorer.port, 0);
  const Json state = beginnings()[0];
  const std::string command = answer_to(explorer, state).answer["command"];
  const std::string plan = command.substr(std::string{"orrery estimate "}.size());
  Json result = Json::parse(explorer.post("result", state.dump()).body);
  Json printed = Json::parse(run_orrery("estimate " + plan + " --json").out);
  result.erase("simulation_wall_s");
  printed.erase("simulation_wall_s");
  EXPECT_EQ(result, printed);
  const std::string flags =
      run_orrery("export megatron " + plan.substr(0, plan.find(" --tokens"))).out;
  EXPECT_TRUE(explorer.post("megatron", state.dump()).body.starts_with(flags));
  EXPECT_TRUE(explorer.post("report", state.dump()).body.starts_with("<!DOCTYPE html>"));
  const Json trace = Json::parse(explorer.post("trace", state.dump()).body);
  EXPECT_GT(trace["traceEvents"].size(), 1000u);
}

// The list of --changes; taken, each leads to the step that it says.
TEST(SingleChanges, AreThoseOfTheCommand) {
  const Explorer explorer;
  ASSERT_GT(explorer.port, 0);
  const Json state = beginnings()[0];
  const Json list = Json::parse(explorer.post("changes", state.dump()).body)["changes"];
  const std::string command = answer_to(explorer, state).answer["command"];
  const std::string printed = run_orrery(command.substr(7) + " --changes").out;
  EXPECT_GE(list.size(), 3u);
  for (const Json& change : list) {
    EXPECT_NE(printed.find(change["flags"].get<std::string>() + "  "), std::string::npos)
        << change << printed;
    Json next = state;
    for (const auto& [key, word] : change["changes"].items())
      if (word == "")
        next.erase(key);
      else
        next[key] = word;
    const Json result = answer_to(explorer, next).answer["result"];
    ASSERT_FALSE(result.is_null()) << change;
    EXPECT_NEAR(result["step_time_s"].get<double>(), change["step_time_s"].get<double>(), 1e-8)
        << change;
  }
}

TEST(Comparisons, AreThoseOfCompare) {
  const Explorer explorer;
  ASSERT_GT(explorer.port, 0);
  Json other = beginnings()[1];
  other["tp"] = "4";
  const HttpReply reply =
      explorer.post("compare", Json{{"from", beginnings()[1]}, {"to", other}}.dump());
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json found = Json::parse(reply.body);
  EXPECT_EQ(found["schema"], "orrery.compare/1");
  ASSERT_EQ(found["differences"].size(), 1u);
  double sum = 0.0;
  for (const auto& [part, time] : found["differences"][0]["critical_path_s"].items())
    sum += time.get<double>();
  EXPECT_NEAR(sum, found["differences"][0]["step_time_s"].get<double>(), 1e-6);
  other["model"] = "llama3-70b";
  other["tp"] = "8";
  EXPECT_EQ(explorer.post("compare", Json{{"from", beginnings()[1]}, {"to", other}}.dump()).status,
            422);
}

}  // namespace
}  // namespace orrery::answers_test
