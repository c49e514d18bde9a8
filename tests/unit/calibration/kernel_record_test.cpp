#include "sim/profile/kernel_record.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "sim/calibration/fit.hpp"
#include "sim/kernels/gemm_time.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/synthetic_step.hpp"

namespace orrery::kernel_record_test {
namespace {

KinetoTrace parse(const std::string& text, const std::string& file = "trace.json") {
  std::istringstream stream{text};
  return parse_kineto(stream, file);
}

TracedKernels kernels(const TraceText& text) {
  return kernels_of_traces({parse(text.text())}, KernelNames{});
}

const std::string bf16 = R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"])";

// An operation at `at` that launches a kernel, which runs a microsecond later.
void launched(TraceText& text, const std::string& operation, const std::string& shapes,
              const std::string& kernel, std::int64_t at, std::int64_t length,
              const std::string& types = bf16, const std::string& values = "[]") {
  text.operation(operation, at, 500, shapes, types, values);
  text.launch(at, at + 100, 100);
  text.kernel(kernel, at + 1'000, length, 7, at);
}

std::vector<std::string> ids(const TracedKernels& traced) {
  std::vector<std::string> ids;
  for (const calibration::Measurement& one : traced.record.measurements)
    ids.push_back(one.what.id());
  return ids;
}

TEST(KernelRecord, ShapesAreThoseOfTheOperationAroundTheLaunch) {
  TraceText text{TraceText::h100};
  // linear() holds mm, which launches; its own shapes are not the product's.
  text.operation("aten::linear", 0, 2'000, "[[4096, 512], [1024, 512]]", bf16);
  launched(text, "aten::mm", "[[4096, 512], [512, 1024]]", "nvjet", 100, 30'000);
  launched(text, "aten::addmm", "[[1024], [4096, 512], [512, 1024]]", "nvjet", 50'000, 20'000);
  launched(text, "aten::mm", "[[512, 4096], [4096, 1024]]", "nvjet", 90'000, 40'000,
           R"(["c10::Half", "c10::Half"])");
  const TracedKernels traced = kernels(text);
  EXPECT_EQ(ids(traced), (std::vector<std::string>{"gemm forward bf16 m=4096 n=1024 k=512",
                                                   "gemm forward fp16 m=512 n=1024 k=4096"}));
  const calibration::TimingSummary& both = *traced.record.measurements[0].warm;
  EXPECT_EQ(both.samples, 2);
  EXPECT_DOUBLE_EQ(both.median_us, 25.0);
  EXPECT_DOUBLE_EQ(traced.record.measurements[1].warm->median_us, 40.0);
  EXPECT_TRUE(traced.notes.empty());
  EXPECT_EQ(traced.record.machine.gpu, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(traced.record.machine.multiprocessors, 132);
  EXPECT_EQ(traced.record.machine.compute_capability, "9.0");
}

// A split-k product is two kernels of one operation.
TEST(KernelRecord, KernelsOfOneOperationAreOneTime) {
  TraceText text{TraceText::h100};
  text.operation("aten::mm", 0, 900, "[[256, 8192], [8192, 512]]", bf16);
  text.launch(1, 100, 50);
  text.kernel("nvjet_splitK", 1'000, 7'000, 7, 1);
  text.launch(2, 300, 50);
  text.kernel("void cublasLt::splitKreduce_kernel", 8'000, 2'000, 7, 2);
  const TracedKernels traced = kernels(text);
  ASSERT_EQ(traced.record.measurements.size(), 1u);
  EXPECT_DOUBLE_EQ(traced.record.measurements[0].warm->median_us, 9.0);
}

TEST(KernelRecord, LeavesOutWhatOverlapsCommunication) {
  TraceText text{TraceText::h100};
  launched(text, "aten::mm", "[[4096, 512], [512, 1024]]", "nvjet", 0, 10'000);       // 1 to 11 us
  launched(text, "aten::mm", "[[4096, 512], [512, 1024]]", "nvjet", 20'000, 50'000);  // 21 to 71
  text.kernel("ncclDevKernel_AllReduce_Sum_bf16", 70'999, 5'000, 20);
  launched(text, "aten::bmm", "[[2, 64, 64], [2, 64, 64]]", "nvjet", 90'000, 3'000);
  const TracedKernels traced = kernels(text);
  ASSERT_EQ(traced.record.measurements.size(), 1u);
  EXPECT_DOUBLE_EQ(traced.record.measurements[0].warm->median_us, 10.0);
  ASSERT_EQ(traced.notes.size(), 2u);
  EXPECT_TRUE(traced.notes[0].starts_with("1 kernels concurrent with collectives"))
      << traced.notes[0];
  EXPECT_TRUE(traced.notes[1].starts_with("1 kernels of products")) << traced.notes[1];
}

TEST(KernelRecord, ReadsFusedCausalAttention) {
  TraceText text{TraceText::h100};
  const std::string q = "[2, 32, 4096, 128]", k = "[2, 8, 4096, 128]";
  const std::string qkv = q + ", " + k + ", " + k, seven = R"(["", "", "", "0.", "True", "", ""])";
  launched(text, "aten::_scaled_dot_product_flash_attention", "[" + qkv + "]",
           "pytorch_flash::flash_fwd_kernel", 0, 100'000, bf16, seven);
  launched(text, "aten::_scaled_dot_product_cudnn_attention", "[" + qkv + "]",
           "cudnn_sdpa_sm90_fprop", 200'000, 80'000, bf16,
           R"(["", "", "", "", "True", "0.", "True", "False", ""])");
  launched(text, "aten::_scaled_dot_product_flash_attention_backward", "[" + q + ", " + qkv + "]",
           "pytorch_flash::flash_bwd_kernel", 400'000, 250'000,
           R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "c10::BFloat16"])",
           R"(["", "", "", "", "", "", "", "", "", "", "", "True"])");
  // All keys are seen, and keys of another length: no table has such rows.
  launched(text, "aten::_scaled_dot_product_flash_attention", "[" + qkv + "]",
           "pytorch_flash::flash_fwd_kernel", 700'000, 190'000, bf16,
           R"(["", "", "", "0.", "False", "", ""])");
  launched(text, "aten::_scaled_dot_product_flash_attention",
           "[[2, 32, 1, 128], " + k + ", " + k + "]", "pytorch_flash::flash_fwd_kernel", 900'000,
           9'000, bf16, seven);
  const TracedKernels traced = kernels(text);
  ASSERT_EQ(ids(traced),
            (std::vector<std::string>{
                "attention backward bf16 batch=2 sequence=4096 heads=32 kv_heads=8 head_dim=128",
                "attention forward bf16 batch=2 sequence=4096 heads=32 kv_heads=8 head_dim=128"}));
  EXPECT_DOUBLE_EQ(traced.record.measurements[0].warm->median_us, 250.0);
  EXPECT_DOUBLE_EQ(traced.record.measurements[1].warm->median_us, 90.0);
  ASSERT_EQ(traced.notes.size(), 1u);
  EXPECT_TRUE(traced.notes[0].starts_with("2 kernels")) << traced.notes[0];
}

TEST(KernelRecord, RefusesWhatNoRecordCanBeMadeOf) {
  TraceText bare;
  launched(bare, "aten::mm", "[[4096, 512], [512, 1024]]", "nvjet", 0, 10'000);
  EXPECT_EQ(error_text([&] { kernels(bare); }),
            "trace.json: /deviceProperties: does not say which GPU it is of; write the trace with "
            "a PyTorch of 2023 or later");
  TraceText shapeless{TraceText::h100};
  shapeless.kernel("nvjet", 0, 10'000);
  EXPECT_EQ(error_text([&] { kernels(shapeless); }),
            "trace.json: has no product or attention with a known shape that runs alone; "
            "profile with record_shapes=True");
  TraceText other{R"("deviceProperties": [{"id": 0, "name": "NVIDIA B200", "numSms": 148, )"
                  R"("totalGlobalMem": 1000000}],)"};
  other.kernel("nvjet", 0, 10'000);
  EXPECT_EQ(
      error_text([&] {
        kernels_of_traces({parse(shapeless.text()), parse(other.text(), "b.json")}, KernelNames{});
      }),
      "b.json: /deviceProperties: is of 'NVIDIA B200', but trace.json of 'NVIDIA H100 80GB "
      "HBM3'; import each kind of GPU by itself");
}

// What is written is read again, and a clock of 0.9 of the tables' comes out as 0.9.
TEST(KernelRecord, AFitLearnsTheStepsClock) {
  const Gpu gpu = read_gpu("h100-sxm", {"test", ""});
  const auto tables = read_kernel_tables(gpu.name);
  ASSERT_TRUE(tables);
  const GemmTime table{gpu, Dtype::bf16, &*tables};
  TraceText text{TraceText::h100};
  std::int64_t at = 0;
  for (const std::int64_t n : {1024, 4096, 8192, 12288}) {
    const double full_s =
        table.without_cast(8192, n, 4096).time.si() / table.throttle(8192, n, 4096);
    for (int i = 0; i < 8; ++i, at += 10'000'000)
      launched(text, "aten::mm", "[[8192, 4096], [4096, " + std::to_string(n) + "]]", "nvjet", at,
               std::llround(1e9 * full_s / 0.9));
  }
  const TracedKernels traced = kernels(text);
  const calibration::Record read =
      calibration::parse_record(calibration::record_json(traced.record), "record.json");
  const CalibrationFit fit = fit_calibration({{"record.json", read}}, {}, {});
  ASSERT_TRUE(fit.kernels);
  EXPECT_EQ(fit.gpu.name, "h100-sxm");
  EXPECT_TRUE(fit.kernels->sustained.measured);
  EXPECT_NEAR(fit.kernels->sustained.value, 0.9, 1e-4);  // Whole nanoseconds.
  EXPECT_TRUE(fit.kernels->tables.gemm.empty());  // A step's clock says nothing of a benchmark's.
}

TEST(KernelRecord, TimesOfAWholeStepAreTheFormulas) {
  const TracedKernels traced = kernels_of_traces({parse(SyntheticStep::text())}, KernelNames{});
  EXPECT_EQ(traced.record.measurements.size(), 16u);
  for (const calibration::Measurement& one : traced.record.measurements) {
    if (one.what.kind != "gemm") continue;
    const std::int64_t ns =
        SyntheticStep::product_ns(one.what.size("m"), one.what.size("n"), one.what.size("k"));
    EXPECT_DOUBLE_EQ(one.warm->median_us, 1e-3 * static_cast<double>(ns)) << one.what.id();
    EXPECT_EQ(one.warm->noise, one.warm->samples > 1 ? 0.0 : 1.0);
  }
}

}  // namespace
}  // namespace orrery::kernel_record_test
