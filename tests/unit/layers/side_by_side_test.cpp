// Layers with attention and a mixer with a state side by side do the work of both.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "sim/layers/layer_activations.hpp"
#include "sim/layers/layer_ops.hpp"
#include "sim/layers/rank_parameters.hpp"
#include "sim/model/layer_pattern.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::side_by_side_test {
namespace {

constexpr std::int64_t hidden = 2048, sequence = 4096;

const std::string mamba =
    R"({"kind": "mamba2", "heads": 64, "head_dim": 64, "state": 128, "groups": 8, "conv": 4,
        "chunk": 128})";
const std::string attention =
    R"({"kind": "attention", "heads": 16, "kv_heads": 8, "head_dim": 128})";

// Layers of a mixer alone.
Model model_of(const std::string& mixer) {
  return parse_model(
      JsonValue::parse(R"({"hidden": 2048, "vocab": 32768, "seq": 4096, "mixers": {"m": )" + mixer +
                           R"(}, "pattern": [[2, ["m+none"]]]})",
                       "model.json"));
}
Model both() {
  return model_of(R"({"kind": "parallel", "of": [)" + mamba + "," + attention + "]}");
}

Scenario scenario_with(const Model& model, int tp, int cp = 1) {
  PlanRequest request;
  request.tp = tp;
  request.cp = cp;
  request.cp_comm = ContextExchange::a2a;
  request.gbs = 8;
  request.mbs = 1;
  request.seq = sequence;
  request.sp = tp > 1;
  return scenario_of(model, read_system("dgx-h100", test_place), request, 8);
}

std::vector<std::string> names_of(const Ops& ops) {
  std::vector<std::string> names;
  for (const Op& op : ops) names.emplace_back(op.name);
  std::sort(names.begin(), names.end());
  return names;
}

// The operations of a layer of each mixer alone, with one norm, one residual, and their like.
void expect_ops_of_both(const Ops& together, Ops apart, const Ops& shared) {
  std::vector<std::string> names = names_of(apart), twice = names_of(shared), left;
  std::set_difference(names.begin(), names.end(), twice.begin(), twice.end(),
                      std::back_inserter(left));
  EXPECT_EQ(names_of(together), left);
}

Ops joined(Ops one, const Ops& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

TEST(SideBySide, DoesTheWorkOfBoth) {
  for (const int tp : {1, 2, 8}) {
    const Scenario s = scenario_with(both(), tp), a = scenario_with(model_of(attention), tp),
                   m = scenario_with(model_of(mamba), tp);
    const auto kind = [](const Scenario& one) { return one.kind_of(0); };
    Ops norms, back;
    for (const Op& op : layer_forward(a, kind(a)))
      if (op.name == "norm" || op.name == "residual") norms.push_back(op);
    for (const Op& op : layer_backward(a, kind(a)))
      if (op.name == "norm_bwd" || op.name == "residual_bwd") back.push_back(op);
    EXPECT_EQ(norms.size(), 2u);
    expect_ops_of_both(layer_forward(s, kind(s)),
                       joined(layer_forward(a, kind(a)), layer_forward(m, kind(m))), norms);
    expect_ops_of_both(layer_backward(s, kind(s)),
                       joined(layer_backward(a, kind(a)), layer_backward(m, kind(m))), back);
  }
}

TEST(SideBySide, HoldsWhatBothHold) {
  for (const int tp : {1, 4}) {
    const Scenario s = scenario_with(both(), tp), a = scenario_with(model_of(attention), tp),
                   m = scenario_with(model_of(mamba), tp);
    const auto held = [](const Scenario& one) { return parameters_on_rank(one, 0).dense; };
    // Two layers of each, with a norm of `hidden`; tables and the last norm are of each model.
    const auto tables = [&](const Scenario& one) {
      return 2 * one.padded_vocab / tp * hidden + hidden;
    };
    EXPECT_EQ(held(s) - tables(s), held(a) - tables(a) + held(m) - tables(m) - 2 * hidden);
    // One input and one norm's output.
    const double shared = 2.0 * 2.0 * static_cast<double>(sequence * hidden) / (tp > 1 ? tp : 1);
    const auto kept = [](const Scenario& one) {
      return layer_activations(one, Recompute::none, one.kind_of(0)).si();
    };
    EXPECT_NEAR(kept(s), kept(a) + kept(m) - shared, 0.01 * shared);
  }
}

TEST(SideBySide, RanksDivideTheHeadsOfBoth) {
  EXPECT_THROW(scenario_with(both(), 16), Error);
  EXPECT_NO_THROW(scenario_with(both(), 2, 4));
}

}  // namespace
}  // namespace orrery::side_by_side_test
