#include "sim/cluster/dtype.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sim/cluster/system.hpp"
#include "sim/core/json_value.hpp"

namespace orrery::dtype_test {
namespace {

using testing::ElementsAre;

TEST(Dtype, RowsStandInTheOrderOfTheEnumerators) {
  using enum Dtype;
  for (const auto& [dtype, word] :
       std::initializer_list<std::pair<Dtype, const char*>>{{fp16, "fp16"},
                                                            {bf16, "bf16"},
                                                            {fp8, "fp8"},
                                                            {mxfp8, "mxfp8"},
                                                            {nvfp4, "nvfp4"},
                                                            {tf32, "tf32"},
                                                            {fp32, "fp32"},
                                                            {fp8_block, "fp8_block"},
                                                            {mxfp4, "mxfp4"},
                                                            {int8, "int8"},
                                                            {int8_block, "int8"},
                                                            {int4, "int4"},
                                                            {nf4, "nf4"},
                                                            {nf4_dq, "nf4_dq"},
                                                            {nvfp4a16, "nvfp4a16"}})
    EXPECT_EQ(name(dtype), word);
}

TEST(Dtype, EveryFormatHasAUseAndAWordForEach) {
  std::set<Dtype> used;
  for (const FormatUse use :
       {FormatUse::products, FormatUse::weights, FormatUse::kv_cache, FormatUse::moments}) {
    const std::vector<std::string>& names = format_names(use);
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
    ASSERT_EQ(formats_for(use).size(), names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      used.insert(formats_for(use)[i]);
      EXPECT_EQ(format_named(names[i], use), formats_for(use)[i]);
    }
  }
  EXPECT_EQ(used.size(), std::size(number_formats));
}

TEST(Dtype, BytesHoldTheScales) {
  EXPECT_EQ(element_bytes(Dtype::fp16), 2.0);
  EXPECT_EQ(element_bytes(Dtype::bf16), 2.0);
  EXPECT_EQ(element_bytes(Dtype::tf32), 4.0);
  EXPECT_EQ(element_bytes(Dtype::fp32), 4.0);
  EXPECT_EQ(element_bytes(Dtype::fp8), 1.0);
  EXPECT_EQ(element_bytes(Dtype::mxfp8), 1.0 + 1.0 / 32.0);
  EXPECT_EQ(element_bytes(Dtype::fp8_block), 1.0 + 4.0 / (128.0 * 128.0));
  EXPECT_EQ(element_bytes(Dtype::nvfp4), 0.5 + 1.0 / 16.0);
  EXPECT_EQ(element_bytes(Dtype::nvfp4a16), element_bytes(Dtype::nvfp4));
  EXPECT_EQ(element_bytes(Dtype::mxfp4), 0.5 + 1.0 / 32.0);
  EXPECT_EQ(element_bytes(Dtype::int8), 1.0);
  EXPECT_EQ(element_bytes(Dtype::int8_block), 1.0 + 4.0 / 256.0);
  EXPECT_EQ(element_bytes(Dtype::int4), 0.5 + 2.5 / 128.0);
  // QLoRA (arXiv 2305.14314, section 3): double quantisation saves 0.373 bits a parameter.
  EXPECT_EQ(8.0 * element_bytes(Dtype::nf4), 4.0 + 32.0 / 64.0);
  EXPECT_EQ(8.0 * element_bytes(Dtype::nf4_dq), 4.0 + 8.0 / 64.0 + 32.0 / (64.0 * 256.0));
  EXPECT_NEAR(8.0 * (element_bytes(Dtype::nf4) - element_bytes(Dtype::nf4_dq)), 0.373, 5e-4);
}

TEST(Dtype, WeightsAloneAreMultipliedIn16Bits) {
  for (const NumberFormat& format : number_formats)
    if (format.weight_only) {
      EXPECT_EQ(format.peak, &Peaks::peak_16bit) << format.name;
      EXPECT_LT(format.bits, 16.0) << format.name;
    }
}

// A format's kernels were measured, or are priced by those of one that was.
TEST(Dtype, MeasuredKernelsAreTheirOwn) {
  for (std::size_t i = 0; i < std::size(number_formats); ++i) {
    const Dtype measured = measured_as(static_cast<Dtype>(i));
    EXPECT_EQ(measured_as(measured), measured);
    const Dtype cached = cache_measured_as(static_cast<Dtype>(i));
    EXPECT_EQ(cache_measured_as(cached), cached);
  }
  EXPECT_EQ(measured_as(Dtype::fp16), Dtype::bf16);
  EXPECT_EQ(measured_as(Dtype::mxfp8), Dtype::fp8);
  EXPECT_EQ(measured_as(Dtype::nvfp4), Dtype::nvfp4);
  EXPECT_EQ(cache_measured_as(Dtype::nvfp4), Dtype::fp8);
}

TEST(Dtype, AUnitIsNamedAfterAFormatThatItMultiplies) {
  for (const PeakKey& peak : peak_keys) EXPECT_EQ(facts(peak.format).peak, peak.peak) << peak.key;
}

TEST(Dtype, AnUnknownWordIsRefusedWithThoseOfItsUse) {
  const auto refusal = [](const char* word, FormatUse use) -> std::string {
    try {
      read_format(JsonValue::parse(word, "f.json"), use);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(refusal(R"("mxfp4")", FormatUse::kv_cache),
            "f.json: 'mxfp4' is no format of a KV cache; write one of: bf16, fp16, fp8, nvfp4");
  EXPECT_EQ(refusal(R"("nf4")", FormatUse::kv_cache),
            "f.json: 'nf4' is no format of a KV cache; write one of: bf16, fp16, fp8, nvfp4");
  EXPECT_EQ(refusal(R"("nf")", FormatUse::weights), "f.json: 'nf' is unknown; did you mean 'nf4'?");
  EXPECT_EQ(refusal(R"("posit")", FormatUse::weights),
            "f.json: 'posit' is unknown; write one of: bf16, fp16, fp8, fp8_block, nvfp4, mxfp4, "
            "mxfp8, int8, int4, int4_g32, nf4, nf4_dq, nvfp4a16");
  EXPECT_THAT(names_of_products(8), ElementsAre("fp8", "mxfp8"));
}

TEST(Dtype, AGpuMultipliesWhatItsPeaksAndItsArchitectureSay) {
  const auto lacks = [](const char* gpu, Dtype dtype) {
    const auto no = read_gpu(gpu, {}).lacks(dtype);
    return no ? no->remedy : "nothing";
  };
  EXPECT_EQ(lacks("b200-sxm", Dtype::nvfp4), "nothing");
  EXPECT_EQ(lacks("b200-sxm", Dtype::mxfp8), "nothing");
  EXPECT_EQ(lacks("h100-sxm", Dtype::mxfp8), "use fp8");
  EXPECT_EQ(lacks("h100-sxm", Dtype::nvfp4), "use fp8");
  EXPECT_EQ(lacks("a100-sxm-80gb", Dtype::nvfp4), "use bf16 or fp16");
  EXPECT_EQ(lacks("v100-sxm-32gb", Dtype::mxfp8), "use fp16");
  EXPECT_EQ(lacks("v100-sxm-32gb", Dtype::tf32), "use fp32, or add peak_tf32 to its file");
}

}  // namespace
}  // namespace orrery::dtype_test
