#include "sim/validation/kernel_case.hpp"

#include <gtest/gtest.h>

namespace orrery::kernel_case_test {
namespace {

std::string like(const std::string& written) {
  return gpu_like(JsonValue::parse("\"" + written + "\"", "test"));
}

TEST(KernelCase, KnowsGpusAsOthersWriteThem) {
  EXPECT_EQ(like("H100-SXM 80GB"), "h100-sxm");
  EXPECT_EQ(like("A100-SXM4-80GB"), "a100-sxm-80gb");
  EXPECT_EQ(like("NVIDIA B200 SXM"), "b200-sxm");
  EXPECT_EQ(like("NVIDIA A100 PCIe"), "a100-pcie-80gb");
  EXPECT_EQ(like("GB300"), "gb300");
  EXPECT_EQ(like("gb200"), "gb200");
}

TEST(KernelCase, DoesNotGuessGpus) {
  EXPECT_THROW(like("MI300X"), Error);
  EXPECT_THROW(like("A100-SXM"), Error) << "of 40 or of 80 GB";
  EXPECT_THROW(like(""), Error);
}

constexpr const char* exported = R"({"id": "t", "kind": "gemm_table", "gpu": "H100-SXM 80GB",
  "dtype": "bfloat16", "columns": ["n", "m", "achieved_tflops", "k", "time_us"],
  "rows": [[512, 256, 63.06, 1024, 4.257], [4096, 8192, 700, 2048, 196.3]]})";

TEST(KernelCase, ReadsExportedTablesByTheirColumns) {
  const JsonValue json = JsonValue::parse(exported, "t.json");
  ASSERT_TRUE(is_kernel_cases(json));
  const KernelCases all = read_kernel_cases(json);
  ASSERT_EQ(all.cases.size(), 2u);
  EXPECT_FALSE(all.tables);
  const KernelCase& one = all.cases[0];
  EXPECT_EQ(one.id, "h100-sxm gemm bf16 256 x 512 x 1024");
  EXPECT_EQ(one.group, "h100-sxm gemm bf16");
  EXPECT_EQ(one.measured, microseconds(4.257));
  EXPECT_EQ(one.volume(), 256.0 * 512 * 1024);
}

// 2 ng M N K = 2 x 160 x 154 x 3072 x 5120 operations at 449.3 TFLOP/s.
TEST(KernelCase, TimesOfOperatorsAreTheirOperationsOverTheirRate) {
  const JsonValue json = JsonValue::parse(
      R"([{"id": "a", "gpu": "B200-SXM", "op": "group_matmul", "achieved_tflops": 449.3,
           "shape": {"ng": 160, "M": 154, "N": 3072, "K": 5120, "main_grad_dtype": "fp32",
                     "stage": "bwd_grad_w"}},
          {"id": "b", "gpu": "B200-SXM", "op": "sdp_bwd", "achieved_tflops": 1641.15,
           "shape": {"batch": 1, "seq_len": 4096, "head_num": 64, "kv_head_num": 8,
                     "qk_head_dim": 128, "v_head_dim": 128}},
          {"id": "c", "gpu": "B200-SXM", "op": "sdp_bwd", "achieved_tflops": 1641.15,
           "shape": {"batch": 1, "seq_len": 4096, "head_num": 64, "kv_head_num": 8,
                     "qk_head_dim": 192, "v_head_dim": 128}},
          {"id": "d", "gpu": "Gaudi 3", "shape_mnk": "1x2x3", "dtype": "bf16",
           "achieved_tflops": 1}])",
      "t.json");
  const KernelCases all = read_kernel_cases(json);
  ASSERT_EQ(all.cases.size(), 2u);
  EXPECT_NEAR(all.cases[0].measured.si(), 2.0 * 160 * 154 * 3072 * 5120 / 449.3e12, 1e-12);
  const auto& experts = std::get<KernelCase::Grouped>(all.cases[0].kernel);
  EXPECT_EQ(experts.tokens, std::vector<std::int64_t>(160, 154));
  EXPECT_EQ(experts.layer.accumulate, 8.0);
  // docs/notes/kernel-errors.md: 838 us, from 10 b a s^2 d operations.
  EXPECT_NEAR(all.cases[1].measured.si(), 838e-6, 1e-6);
  ASSERT_EQ(all.refused.size(), 2u);
  EXPECT_EQ(all.refused[0].id, "c");
  EXPECT_EQ(all.refused[1].id, "d");
}

TEST(KernelCase, RefusesColumnsAndSizesThatAreNone) {
  const auto read = [](std::string text, const std::string& what, const std::string& by) {
    text.replace(text.find(what), what.size(), by);
    return read_kernel_cases(JsonValue::parse(text, "t.json"));
  };
  EXPECT_THROW(read(exported, "\"time_us\"", "\"time\""), Error);
  EXPECT_THROW(read(exported, "512, 256", "512.5, 256"), Error);
  EXPECT_THROW(read(exported, "4.257", "-4.257"), Error);
  EXPECT_THROW(read(exported, "bfloat16", "bfloat15"), Error);
}

}  // namespace
}  // namespace orrery::kernel_case_test
