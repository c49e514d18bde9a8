#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <stdexcept>

#include "sim/training/result.hpp"

namespace orrery::sound_test {
namespace {

// One second of kernels, on a GPU that is half full.
Result sound_result() {
  Result result;
  result.stages.resize(1);
  result.step_time = result.lower_bound = result.stages[0].compute = Seconds{1.0};
  result.critical.parts.at(StepPart::products, StepPhase::forward) = Seconds{1.0};
  result.range.step = Seconds{1.0};
  result.range.path.at(PriceKind::gemm, Tag::measured) = Seconds{1.0};
  result.tokens_per_s = result.tokens_per_s_per_gpu = 1e3;
  result.mfu = result.mfu_full = 0.5;
  result.provenance = {1.0, 0.0, 0.0};
  result.memory.capacity = Bytes{2e9};
  result.memory.stages = {{Bytes{1e9}, {}, {}, {}, {}}};
  return result;
}

std::string fault_of(const Result& result) {
  try {
    require_sound(result);
  } catch (const std::logic_error& fault) {
    return fault.what();
  }
  return "";
}

TEST(Sound, TakesWhatAStepCanBe) { EXPECT_EQ(fault_of(sound_result()), ""); }

TEST(Sound, NamesTheFigureThatNoStepCanHave) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  struct Case {
    std::function<void(Result&)> spoil;
    std::string fault;
  };
  for (const Case& one : std::initializer_list<Case>{
           {[](Result& r) { r.step_time = Seconds{none}; },
            "the step time is nan, and has to be more than nothing"},
           {[](Result& r) { r.lower_bound = Seconds{1.1}; },
            "the lower bound is 1.1, more than the step"},
           {[](Result& r) { r.range.path.at(PriceKind::host, Tag::measured) = Seconds{none}; },
            "the short end of the range is nan, and has to be more than nothing"},
           {[](Result& r) { r.range.path.at(PriceKind::host, Tag::measured) = Seconds{0.5}; },
            "the sum of the range's prices is 1.5, which is not the step"},
           {[](Result& r) { r.stages[0].imbalance = Seconds{-0.1}; },
            "imbalance is -0.1, and cannot be negative"},
           {[](Result& r) { r.stages[0].other = Seconds{0.1}; },
            "the sum of the breakdown is 1.1, which is not the step"},
           {[](Result& r) { r.critical.parts.at(StepPart::norm, StepPhase::once) = Seconds{1.0}; },
            "the sum of the critical path's parts is 2, which is not the step"},
           {[](Result& r) { r.mfu = 1.01; }, "MFU is 1.01, more than the GPU can do"},
           {[](Result& r) { r.provenance[1] = 0.5; },
            "the sum of the prices' shares is 1.5, and not 1"},
           {[](Result& r) { r.memory.stages[0].activations = Bytes{none}; },
            "memory of activations is nan, and cannot be negative"}}) {
    Result result = sound_result();
    one.spoil(result);
    EXPECT_EQ(fault_of(result), "the answer is not sound: " + one.fault);
  }
}

}  // namespace
}  // namespace orrery::sound_test
