#include "sim/measurements/price_errors.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_text.hpp"

namespace orrery::price_errors_test {
namespace {

// Every kind at 30 %, products as `gemm` says.
std::string document(const std::string& gemm, const std::string& training = "") {
  std::string prices = R"({"kind": "gemm", "source": "s", )" + gemm + "}";
  for (std::size_t kind = 1; kind < price_kinds; ++kind)
    prices += R"(, {"kind": ")" + name(static_cast<PriceKind>(kind)) +
              R"(", "source": "s", "default": 0.3})";
  std::string all = training;
  if (all.empty())
    for (const char* experts : {"false", "true"})
      for (const char* narrow : {"false", "true"})
        all += std::string{all.empty() ? "" : ", "} + R"({"experts": )" + experts +
               R"(, "narrow": )" + narrow + R"(, "source": "s", "error": )" +
               (std::string{experts} == "true" ? "0.2}" : "0.1}");
  return R"({"schema": "orrery.price_errors/1", "prices": [)" + prices + R"(], "training": [)" +
         all + R"(], "own": {"source": "s", "error": 0.05}})";
}

PriceErrors read(const std::string& text, const std::string& gpu = "g", Dtype dtype = Dtype::bf16,
                 StepClass step = {}) {
  return parse_price_errors(JsonValue::parse(text, "e.json"), gpu, dtype, step);
}

using Three = std::array<double, 3>;

TEST(PriceErrorsFile, WhatIsOutsideOfATableMayBeSaid) {
  EXPECT_EQ(read(document(R"("default": 0.4)")).outside[0], 0.0);
  EXPECT_EQ(read(document(R"("outside": 0.07, "default": 0.4)")).outside[0], 0.07);
  EXPECT_EQ(read(document(R"("outside": 0.07, "default": 0.4)")).of[0], (Three{0.4, 0.4, 0.4}));
}

TEST(PriceErrorsFile, WhatIsNotSaidIsAsUncertainAsTheNextBasis) {
  EXPECT_EQ(read(document(R"("default": 0.4)")).of[0], (Three{0.4, 0.4, 0.4}));
  EXPECT_EQ(read(document(R"("interpolated": 0.2, "default": 0.4)")).of[0], (Three{0.2, 0.2, 0.4}));
  EXPECT_EQ(read(document(R"("measured": 0.1, "interpolated": 0.2, "default": 0.4)")).of[0],
            (Three{0.1, 0.2, 0.4}));
}

TEST(PriceErrorsFile, AGpuHasItsOwn) {
  const std::string text =
      document(R"("default": 0.4, "own": [{"gpu": "g", "dtype": "bf16", "error": 0.05}])");
  EXPECT_EQ(read(text).of[0], (Three{0.05, 0.05, 0.4}));
  EXPECT_EQ(read(text, "g", Dtype::fp16).of[0], (Three{0.05, 0.05, 0.4}));
  EXPECT_EQ(read(text, "g", Dtype::fp8).of[0], (Three{0.4, 0.4, 0.4}));
  EXPECT_EQ(read(text, "h").of[0], (Three{0.4, 0.4, 0.4}));
}

TEST(PriceErrorsFile, AKindOfNetworkHasItsOwn) {
  const std::string text =
      document(R"("measured": 0.1, "default": 0.4, "own": [{"network": "n", "error": 0.2}])");
  const auto on = [&](const std::string& network) {
    return parse_price_errors(JsonValue::parse(text, "e.json"), "g", Dtype::bf16, {}, network)
        .of[0];
  };
  EXPECT_EQ(on("n"), (Three{0.1, 0.2, 0.2}));
  EXPECT_EQ(on("m"), (Three{0.1, 0.4, 0.4}));
}

TEST(PriceErrorsFile, TrainingDependsOnTheStep) {
  EXPECT_EQ(read(document(R"("default": 0.4)")).training, 0.1);
  EXPECT_EQ(read(document(R"("default": 0.4)"), "g", Dtype::bf16, {true, false}).training, 0.2);
}

TEST(PriceErrorsFile, SaysWhatIsMissing) {
  EXPECT_EQ(error_text([] {
              read(R"({"schema": "orrery.price_errors/1", "prices": [], "training": [],
                       "own": {"source": "s", "error": 0.05}})");
            }),
            "e.json: /prices: says nothing of 'gemm'; add an object");
  EXPECT_EQ(error_text([] {
              read(document(R"("default": 0.4)",
                            R"({"experts": true, "narrow": true, "source": "s", "error": 0.1})"));
            }),
            "e.json: /training: lacks a combination of experts and narrow; add all four of them");
  EXPECT_NE(error_text([] { read(document(R"("default": 3.4)")); }), "no error");
}

TEST(PriceErrorsFile, TheShippedOneIsRead) {
  for (const char* gpu : {"h100-sxm", "b200-sxm", "test-gpu"})
    for (bool experts : {false, true})
      for (Dtype dtype : {Dtype::bf16, Dtype::fp8})
        for (const auto& kind : read_price_errors(gpu, dtype, {experts, dtype == Dtype::fp8}).of) {
          EXPECT_GT(kind[0], 0.0) << gpu;
          EXPECT_LE(kind[0], kind[1]) << gpu;
          EXPECT_LE(kind[1], kind[2]) << gpu;
        }
}

}  // namespace
}  // namespace orrery::price_errors_test
