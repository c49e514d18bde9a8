#include "calibration/host/step_model.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "calibration/kernels/random_value.hpp"

namespace orrery::calibration::step_model_test {
namespace {

StepModel tiny() {
  StepModel model;
  model.layers = 2, model.hidden = 8, model.ffn = 6, model.heads = 2, model.kv_heads = 1;
  model.vocab = 5, model.sequence = 3, model.batch = 2;
  return model;
}

Doubles weights_of(const StepModel& model) {
  Doubles weights;
  for (std::int64_t i = 0; i < model.parameters(); ++i)
    weights.push_back(0.5 * random_value(1, static_cast<std::uint64_t>(i)));
  return weights;
}

// 5 * 8 for each end; qkv (8 + 2 * 4) * 8, proj 8 * 8, fc1 12 * 8, fc2 8 * 6; norms of 8.
TEST(StepModel, CountsItsParameters) {
  EXPECT_EQ(tiny().parameters(), 2 * (8 + 128 + 64 + 8 + 96 + 48) + 8 + 2 * 40);
}

// 6 tokens, three passes' worth of 2 flop a weight: 2 * (128 + 64 + 96 + 48) + 40 of them;
// attention 4 s h a token, half of it hidden by the mask, in each layer.
TEST(StepModel, CountsItsFlop) {
  EXPECT_DOUBLE_EQ(tiny().flop(), 3.0 * 6 * (2.0 * (2 * 336 + 40) + 2 * 2.0 * 3 * 8));
}

// Every gradient against the difference of two losses. Tokens 0, 3 and 4 occur, some twice.
TEST(StepModel, GradientsAreSlopesOfTheLoss) {
  const StepModel model = tiny();
  const std::vector<int> tokens{0, 3, 3, 4, 0, 3}, targets{1, 2, 0, 4, 4, 3};
  Doubles weights = weights_of(model);
  const StepGradients step = reference_step(model, weights, tokens, targets);
  constexpr double change = 1e-5;
  Doubles slopes;
  for (double& weight : weights) {
    const double at = weight;
    weight = at + change;
    const double above = reference_step(model, weights, tokens, targets).loss;
    weight = at - change;
    slopes.push_back((above - reference_step(model, weights, tokens, targets).loss) /
                     (2.0 * change));
    weight = at;
  }
  EXPECT_LT(relative_error(step.gradients, slopes), 1e-7);
  // Without weights all five words are as likely: ln 5 a token.
  const Doubles nothing(weights.size(), 0.0);
  EXPECT_NEAR(reference_step(model, nothing, tokens, targets).loss, std::log(5.0), 1e-12);
}

TEST(StepModel, BecomesACaseAndComesBack) {
  StepModel model = tiny();
  model.hidden = 64, model.ffn = 72, model.vocab = 80, model.sequence = 96, model.batch = 5;
  const Case what = step_case(model, "graph", 3.0);
  EXPECT_EQ(what.choice("launch"), "graph");
  EXPECT_EQ(what.weight, 3.0);
  const StepModel back = step_model_of(what);
  EXPECT_EQ(step_case(back, "graph").id(), what.id());
  EXPECT_EQ(back.parameters(), model.parameters());
  EXPECT_EQ(back.tokens(), model.tokens());
}

}  // namespace
}  // namespace orrery::calibration::step_model_test
