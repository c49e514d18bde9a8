#include "calibration/host/work_list.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/error_text.hpp"

namespace orrery::calibration::work_list_test {
namespace {

TEST(WorkList, IsReadAsItWasWritten) {
  for (const int gpus : {1, 2, 8}) {
    const std::vector<Case> cases = default_work_list(gpus);
    const std::string text = work_list_json(cases);
    const std::vector<Case> read = parse_work_list(text, "w.json");
    EXPECT_EQ(work_list_json(read), text);
    ASSERT_EQ(read.size(), cases.size());
    for (std::size_t i = 0; i < read.size(); ++i) EXPECT_EQ(read[i].id(), cases[i].id());
  }
}

TEST(WorkList, TheDefaultCoversEveryKindThatTheMachineHas) {
  const auto kinds = [](int gpus) {
    std::set<std::string> met;
    for (const Case& one : default_work_list(gpus)) met.insert(one.kind);
    return met;
  };
  EXPECT_EQ(kinds(2).size(), case_kinds().size());
  EXPECT_EQ(kinds(1).size(), case_kinds().size() - 2);
  EXPECT_FALSE(kinds(1).contains("collective"));
}

// A tenth of the list, and four kinds of equal weight: a fair hand leaves none out, and
// a tenth of each within the spread of drawing without replacement.
TEST(WorkList, ARunThatIsCutShortHasSomeOfEverything) {
  std::vector<Case> cases;
  for (int i = 1; i <= 100; ++i) {
    cases.push_back(make_case("gemm", {"forward", "bf16"}, {64 * i, 512, 512}));
    cases.push_back(make_case("gemm", {"wgrad", "fp8"}, {64 * i, 512, 512}));
    cases.push_back(make_case("memory", {"copy"}, {i, 512}));
    cases.push_back(make_case("transfer", {"host_to_device"}, {i * 1024}));
  }
  std::map<std::string, int> met;
  const std::vector<Case> ordered = in_running_order(cases);
  for (int i = 0; i < 40; ++i) ++met[ordered[i].kind + ordered[i].choices.begin()->second];
  EXPECT_EQ(met.size(), 4u);
  for (const auto& [kind, count] : met) EXPECT_GE(count, 3) << kind;
}

// Three of each weight go in, and come out by weight; none is lost or met twice.
TEST(WorkList, HeavierCasesComeFirst) {
  std::vector<Case> cases;
  for (int i = 1; i <= 9; ++i)
    cases.push_back(make_case("gemm", {"forward", "bf16"}, {i, 8, 8}, i % 3));
  std::vector<double> weights;
  std::set<std::string> ids;
  for (const Case& one : in_running_order(cases)) {
    weights.push_back(one.weight);
    ids.insert(one.id());
  }
  EXPECT_EQ(weights, (std::vector<double>{2, 2, 2, 1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(ids.size(), 9u);
}

std::string refusal(const std::string& cases) {
  return error_text([&] {
    parse_work_list("{\"schema\": \"orrery.calibration-shapes/1\", \"cases\": [" + cases + "]}",
                    "w.json");
  });
}

TEST(WorkList, RefusesWhatCannotBeMeasured) {
  EXPECT_EQ(refusal(""), "w.json: /cases: is empty; list what to measure");
  EXPECT_EQ(refusal(R"({"kind": "gem"})"),
            "w.json: /cases/0/kind: 'gem' is unknown; did you mean 'gemm'?");
  EXPECT_EQ(
      refusal(R"({"kind": "gemm", "pass": "forward", "dtype": "bf16", "m": 0, "n": 1, "k": 1})"),
      "w.json: /cases/0/m: 0 is out of range; write a number from 1 to 16777216");
  EXPECT_EQ(refusal(R"({"kind": "gemm", "pass": "forward", "dtype": "bf16", "m": 1, "n": 1})"),
            "w.json: /cases/0: the key 'k' is missing; add it (is 'm' a misspelling of it?)");
  EXPECT_EQ(refusal(R"({"kind": "launch", "op": "graph"}, {"kind": "launch", "op": "graph"})"),
            "w.json: /cases/1: is listed twice; keep one of them");
  EXPECT_EQ(
      refusal(R"({"kind": "attention", "pass": "forward", "dtype": "bf16", "batch": 1,
                        "sequence": 64, "heads": 8, "kv_heads": 3, "head_dim": 128})"),
      "w.json: /cases/0/kv_heads: does not divide the heads; each kv head serves as many heads");
  EXPECT_EQ(refusal(R"({"kind": "launch", "op": "graph", "bytes": 3})"),
            "w.json: /cases/0: the key 'bytes' is unknown; write one of: kind, op, weight");
}

TEST(WorkList, KindsCanBeChosen) {
  for (const Case& one : of_kinds(default_work_list(2), {"launch", "collective"}))
    EXPECT_TRUE(one.kind == "launch" || one.kind == "collective");
  EXPECT_EQ(of_kinds(default_work_list(1), {}).size(), default_work_list(1).size());
}

}  // namespace
}  // namespace orrery::calibration::work_list_test
