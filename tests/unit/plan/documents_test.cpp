#include "sim/plan/documents.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "sim/core/value_list.hpp"
#include "tests/support/error_text.hpp"

namespace orrery {
namespace {

Documents of(const std::string& text) { return read_documents(value_of_flag("documents", text)); }

// Equal documents: what a token attends to is their length, and no sequence differs.
TEST(Documents, EqualOnes) {
  for (const std::int64_t length : {1, 128, 1000, 8192}) {
    const PackedLengths some = packed(of("fixed:" + std::to_string(length)), 8192);
    EXPECT_DOUBLE_EQ(some.attended, static_cast<double>(length));
    EXPECT_DOUBLE_EQ(some.variation, 0.0);
  }
  // A longer one is cut at the ends of sequences: 2 x 4096 and 1808.
  const PackedLengths cut = packed(of("fixed:10000"), 4096);
  EXPECT_DOUBLE_EQ(cut.attended, (2.0 * 4096 * 4096 + 1808.0 * 1808) / 10000);
  EXPECT_GT(cut.variation, 0.0);
  EXPECT_EQ(packed(of("none"), 4096).attended, 4096.0);
  EXPECT_EQ(packed(of("none"), 4096).variation, 0.0);
}

// m (1 + c^2), with 1 + c^2 = 4/3 of (0, 2 m) and exp(sigma^2) of a log-normal one.
TEST(Documents, MeanTimesOnePlusSquaredVariation) {
  EXPECT_NEAR(packed(of("uniform:1,2000"), 1 << 20).attended, 1000.5 * 4.0 / 3.0, 2.0);
  const double mean = 500.0 * std::exp(0.125);
  EXPECT_NEAR(packed(of("lognormal:500,0.5"), 1 << 20).attended, mean * std::exp(0.25), 3.0);
  // More sequences' worth of documents in one sequence differ less: by 1 / sqrt of their number.
  const Documents some = of("lognormal:200,0.5");
  const double one = packed(some, 1 << 16).variation, four = packed(some, 1 << 18).variation;
  EXPECT_NEAR(one / four, 2.0, 1e-9);
}

// Two kinds, by hand: lengths 1 and 3 attend to 10/4 on average; l^2 - 2.5 l is -1.5 and 1.5, so
// that a sequence of 100 tokens has the variance 50 x 2.25 about 250.
TEST(Documents, VariationByHand) {
  const std::string path = testing::TempDir() + "lengths.txt";
  std::ofstream{path} << "1\n\n3\n";
  const PackedLengths two = packed(of(path), 100);
  EXPECT_DOUBLE_EQ(two.attended, 2.5);
  EXPECT_DOUBLE_EQ(two.variation, std::sqrt(50.0 * 2.25) / 250.0);
}

// Tables of order statistics: 0.5642, 0.8463, 1.5388, 2.7460.
TEST(Documents, LargestOfNormals) {
  EXPECT_EQ(largest_of_normals(1), 0.0);
  EXPECT_NEAR(largest_of_normals(2), 0.5642, 1e-4);
  EXPECT_NEAR(largest_of_normals(3), 0.8463, 1e-4);
  EXPECT_NEAR(largest_of_normals(10), 1.5388, 1e-4);
  EXPECT_NEAR(largest_of_normals(200), 2.7460, 1e-4);
}

TEST(Documents, BadOnesAreNamed) {
  const auto error = [](const std::string& text) { return error_text([&] { of(text); }); };
  EXPECT_NE(error("fixed:0").find("'0' is not a length from 1"), std::string::npos);
  EXPECT_NE(error("uniform:9,3").find("falls"), std::string::npos);
  EXPECT_NE(error("lognormal:5").find("is no distribution"), std::string::npos);
  EXPECT_NE(error("lognormal:5,9").find("no sigma from 0 to 4"), std::string::npos);
  EXPECT_NE(error("nowhere.txt").find("nowhere.txt"), std::string::npos);
  const std::string path = testing::TempDir() + "broken.txt";
  std::ofstream{path} << "12\n-4\n";
  EXPECT_NE(error(path).find("line 2: '-4' is not a length"), std::string::npos);
  std::ofstream{path} << "\n";
  EXPECT_NE(error(path).find("holds no length"), std::string::npos);
}

}  // namespace
}  // namespace orrery
