#include "sim/plan/parameter_formats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/plan/plan_keys.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::parameter_formats_test {
namespace {

Scenario trained(const std::string& flags_dtype, const std::string& software) {
  PlanRequest request = plan_request(1, 1, 1, 8, 256, software);
  set_plan_flag(request, "dtype", flags_dtype);
  return make_scenario(small_gpt(4, 512, 8, 1024), read_system("dgx-h100", test_place), request, 8,
                       test_place);
}

TEST(ParameterFormats, SixteenBitsAreAsTheFileSays) {
  for (const char* name : {"megatron-core", "megatron-2021", "hf-trainer", "torchtitan"})
    EXPECT_EQ(trained("bf16", name).software, read_software(name, test_place)) << name;
}

// Weights are their own masters: 4 bytes, a gradient of 4 and two moments of 4. Adam's step reads
// the gradient for its norm (4), clips it (4+4), reads it (4), and reads and writes weight and two
// moments (24).
TEST(ParameterFormats, Fp32OfEverySoftwareThatHasIt) {
  for (const char* dtype : {"fp32", "tf32"})
    for (const char* name : {"megatron-core", "megatron-core-fp32-reduce", "megatron-2021",
                             "megatron-2022", "megatron-2023"}) {
      const Software software = trained(dtype, name).software;
      SCOPED_TRACE(name);
      EXPECT_EQ(software.held_weight_bytes, 4.0);
      EXPECT_EQ(software.main_gradient_bytes, 4.0);
      EXPECT_EQ(software.state_bytes, 8.0);
      EXPECT_EQ(software.weight_bytes, 4.0);
      EXPECT_EQ(software.gradient_bytes, 4.0);
      EXPECT_EQ(software.optimizer_bytes, 40.0);
    }
  // ZeRO-3 holds shards of the weights in addition to those that a pass has gathered.
  for (const char* name : {"deepspeed", "hf-trainer", "torchtitan"})
    EXPECT_EQ(trained("fp32", name).software.state_bytes, 12.0) << name;
}

// Into fp32 gradients: read and written (8) by the product, and what 2021's products write (2) and
// read (2) besides is twice as wide. A buffer that is set to zero in 16 bits is one of 32.
TEST(ParameterFormats, MainGradientsOfFourBytes) {
  EXPECT_EQ(trained("fp32", "megatron-core").software.accumulate_bytes, 8.0);
  EXPECT_EQ(trained("fp32", "megatron-2021").software.accumulate_bytes, 16.0);
  EXPECT_EQ(trained("fp32", "hf-trainer").software.accumulate_bytes, 0.0);
  EXPECT_EQ(trained("fp32", "megatron-core").software.gradient_pass_bytes, 4.0);
  EXPECT_EQ(trained("fp32", "megatron-2021").software.gradient_pass_bytes, 4.0);
}

// FlashAttention and cuDNN have kernels for sm_80 and later, and Volta is sm_70.
TEST(ParameterFormats, AttentionAsTheGpuCan) {
  const auto fuses = [](const char* system, const char* attention) {
    PlanRequest request = plan_request(1, 1, 1, 8, 256, "megatron-core");
    set_plan_flag(request, "dtype", "fp16");
    if (*attention) set_plan_flag(request, "attention", attention);
    return make_scenario(small_gpt(4, 512, 8, 1024), read_system(system, test_place), request, 8,
                         test_place)
        .plan.fused_attention;
  };
  EXPECT_FALSE(fuses("dgx-1-v100", ""));
  EXPECT_FALSE(fuses("dgx-1-v100", "unfused"));
  EXPECT_TRUE(fuses("dgx-a100-80gb", ""));
  EXPECT_TRUE(fuses("dgx-h100", "flash"));
  EXPECT_THROW(fuses("dgx-1-v100", "flash"), Error);
}

// Transformer Engine has no fused attention in 32 bits, scaled_dot_product_attention has one.
TEST(ParameterFormats, AttentionAsTheSoftwareCan) {
  EXPECT_FALSE(trained("tf32", "megatron-core").plan.fused_attention);
  EXPECT_TRUE(trained("bf16", "megatron-core").plan.fused_attention);
  EXPECT_TRUE(trained("tf32", "torchtitan").plan.fused_attention);
}

TEST(ParameterFormats, TheNearestSoftwareIsTakenWhereNoneIsNamed) {
  PlanRequest request = plan_request(1, 2, 1, 8, 256, "");
  set_plan_flag(request, "dtype", "fp32");
  set_plan_flag(request, "schedule", "gpipe");
  const Scenario scenario = make_scenario(
      small_gpt(4, 512, 8, 1024), read_system("dgx-h100", test_place), request, 8, test_place);
  EXPECT_TRUE(scenario.software.fp32);
  EXPECT_NE(scenario.why_software, "");
}

// A plan changes its scenario's software once, however often it is made again.
TEST(ParameterFormats, ScenariosMadeFromOneAreLikeFreshOnes) {
  const auto made = [](const std::vector<std::pair<const char*, const char*>>& keys) {
    PlanRequest request = plan_request(1, 1, 1, 8, 256, "megatron-core");
    for (const auto& [key, value] : keys) set_plan_flag(request, key, value);
    return make_scenario(small_gpt(4, 512, 8, 1024), read_system("dgx-h100", test_place), request,
                         8, test_place);
  };
  for (const auto& keys : std::vector<std::vector<std::pair<const char*, const char*>>>{
           {{"exp_avg", "bf16"}},
           {{"exp_avg", "fp8"}, {"exp_avg_sq", "fp8"}},
           {{"main_params", "remainders"}},
           {{"main_params", "fp16"}},
           {{"dtype", "fp8"}, {"fp8_params", "true"}},
           {{"dtype", "fp32"}},
           {{"cuda_graphs", "step"}},
           {{"cuda_graphs", "step"}, {"main_params", "fp16"}}}) {
    const Scenario scenario = made(keys);
    const Scenario again = make_scenario(scenario, plan_again(scenario.plan), 8, test_place);
    EXPECT_EQ(again.software, scenario.software) << keys.front().first;
    EXPECT_EQ(software_as_read(again), read_software("megatron-core", test_place));
    PlanRequest usual = plan_again(scenario.plan);
    for (const auto& [key, value] :
         std::vector<std::pair<const char*, const char*>>{{"exp_avg", "fp32"},
                                                          {"exp_avg_sq", "fp32"},
                                                          {"main_params", "fp32"},
                                                          {"fp8_params", "false"},
                                                          {"dtype", "bf16"},
                                                          {"cuda_graphs", "none"}})
      set_plan_flag(usual, key, value);
    EXPECT_EQ(make_scenario(scenario, usual, 8, test_place).software, made({}).software)
        << keys.front().first;
  }
}

}  // namespace
}  // namespace orrery::parameter_formats_test
