#include "sim/validation/measured_steps.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/model/model.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/synthetic_record.hpp"

namespace orrery::measured_steps_test {
namespace {

using calibration::make_case;
using calibration::Measurement;
using calibration::Record;
using calibration::StepModel;

StepModel model() {
  StepModel m;
  m.layers = 2, m.hidden = 2048, m.ffn = 8192, m.heads = 16, m.kv_heads = 4;
  m.vocab = 32000, m.sequence = 4096, m.batch = 1;
  return m;
}

// A made-up step: round numbers of ms.
Measurement step(const std::string& launch, double forward, double backward, double optimizer) {
  Measurement one =
      synthetic(calibration::step_case(model(), launch), 1e3 * (forward + backward + optimizer));
  one.implementation = "made up";
  one.cold.reset();
  one.figures = {{"forward_us", 1e3 * forward},
                 {"backward_us", 1e3 * backward},
                 {"optimizer_us", 1e3 * optimizer},
                 {"launches_count", 96},
                 {"host_forward_us", launch == "eager" ? 100.0 : 10.0},
                 {"host_backward_us", launch == "eager" ? 250.0 : 15.0},
                 {"host_optimizer_us", 5}};
  return one;
}

// An empty kernel each 2.5 us in a stream and 1.25 us in a graph; 4 us of the host for a launch.
Record record() {
  Record made = synthetic_record();
  made.measurements.clear();
  made.command = "none: made up in tests/unit/validation/measured_steps_test.cpp";
  Measurement host = synthetic(make_case("launch", {"kernel"}, {}), 3.0);
  host.figures = {{"host_us", 4.0}};
  made.measurements = {synthetic(make_case("launch", {"chain"}, {}), 2.5),
                       synthetic(make_case("launch", {"graph"}, {}), 1.25), host,
                       step("eager", 28, 57, 11), step("graph", 27, 55, 11)};
  return made;
}

System system() { return read_system("two-gpus", {}); }

TEST(MeasuredSteps, TheModelIsTheOneThatRan) {
  EXPECT_EQ(count_parameters(model_of(model())).total, model().parameters());
}

TEST(MeasuredSteps, TakeTheRecordsLaunches) {
  const LaunchCosts costs = launch_costs_of(record());
  EXPECT_DOUBLE_EQ(costs.eager_gap->si(), 2.5e-6);
  EXPECT_DOUBLE_EQ(costs.graph_gap->si(), 1.25e-6);
  EXPECT_DOUBLE_EQ(costs.host_launch->si(), 4e-6);
  EXPECT_FALSE(launch_costs_of(synthetic_record()).eager_gap);
}

TEST(MeasuredSteps, PartsAddUpAndGraphsSaveGaps) {
  const std::vector<MeasuredStep> steps = predict_steps(record(), "r.json", system());
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].name, "2 layers of 2048, 4096 tokens, eager");
  EXPECT_DOUBLE_EQ(steps[0].measured.step.si(), 96e-3);
  EXPECT_DOUBLE_EQ(steps[0].host->si(), 355e-6);
  EXPECT_EQ(steps[0].launches, 96);
  for (const MeasuredStep& one : steps) {
    const StepParts& parts = one.predicted;
    EXPECT_NEAR((parts.forward + parts.backward + parts.optimizer) / parts.step, 1.0, 1e-9);
    EXPECT_GT(parts.backward, 1.5 * parts.forward);
  }
  // Gradients are zeroed and Adam runs alike; passes differ by 1.25 us for each streaming kernel.
  const Seconds saved = steps[0].predicted.forward - steps[1].predicted.forward;
  EXPECT_NEAR(saved.si() / 1.25e-6, std::round(saved.si() / 1.25e-6), 1e-6);
  EXPECT_GE(saved.si() / 1.25e-6, 2 * 6);  // Two norms, rope, two sums, SwiGLU in each layer.
}

// A host of 10 ms a launch decides alone; in graphs it has nothing to do.
TEST(MeasuredSteps, TheHostBoundsWhatIsLaunchedOneByOne) {
  Record slow = record();
  slow.measurements[2].figures["host_us"] = 1e4;
  const std::vector<MeasuredStep> steps = predict_steps(slow, "r.json", system());
  const double launches = steps[0].predicted.forward.si() / 1e-2;
  EXPECT_NEAR(launches, std::round(launches), 1e-9);
  EXPECT_GT(launches, 20.0);
  EXPECT_LT(steps[1].predicted.forward.si(), 0.1);
}

TEST(MeasuredSteps, ARecordWithoutAnyIsRefused) {
  EXPECT_EQ(error_text([] { predict_steps(synthetic_record(), "r.json", system()); }),
            "r.json: holds no measured training step; measure some: orrery-gpu measure --resume "
            "--kinds training_step -o r.json");
  Record partly = record();
  partly.measurements[3].figures.erase("backward_us");
  EXPECT_NE(error_text([&] {
              predict_steps(partly, "r.json", system());
            }).find("has no figure 'backward_us'"),
            std::string::npos);
}

// The prediction of docs/guides/calibrate.md.
TEST(MeasuredSteps, TheExampleIsThisRecord) {
  expect_golden("synthetic-steps.json", calibration::record_json(record()));
}

}  // namespace
}  // namespace orrery::measured_steps_test
