#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "sim/core/catalog.hpp"
#include "sim/serving/fitted_table.hpp"

namespace orrery::left_out_rows_test {
namespace {

struct Errors {
  std::vector<double> all;

  double mean() const {
    double sum = 0.0;
    for (const double error : all) sum += error;
    return sum / static_cast<double>(all.size());
  }
  double median() {
    const auto middle = all.begin() + std::ssize(all) / 2;
    std::nth_element(all.begin(), middle, all.end());
    return *middle;
  }
};

// Every fourth row of every table of the catalog, from the other three quarters.
TEST(LeftOutRows, AreMissedByNoMoreThanTheGoals) {
  std::map<std::string, Errors> by_op;
  const std::filesystem::path tables{data_folder() + "/calibration/data/serving"};
  for (const auto& file : std::filesystem::recursive_directory_iterator{tables}) {
    if (file.path().extension() != ".json") continue;
    const ServingTable table = parse_serving_table(JsonValue::read_file(file.path().string()));
    for (const double error : left_out_errors(table, read_gpu(table.gpu, {})))
      by_op[table.op].all.push_back(std::abs(error));
  }
  const auto within = [&](const std::string& op, double mean, double median) {
    EXPECT_GT(by_op[op].all.size(), 100u) << op;
    EXPECT_LT(by_op[op].mean(), mean) << op;
    EXPECT_LT(by_op[op].median(), median) << op;
  };
  within("gemm", 0.043, 0.026);
  within("decode_attention", 0.055, 0.033);
  within("experts", 0.080, 0.050);
  within("all_reduce", 0.100, 0.050);
  within("latent_decode", 0.080, 0.045);
  within("latent_prefill", 0.065, 0.040);
  within("prefill_attention", 0.065, 0.045);
  within("delta_rule", 0.085, 0.040);
  within("delta_rule_step", 0.060, 0.025);
  within("channel_delta_rule", 0.065, 0.035);
  within("convolution", 0.045, 0.020);
  within("convolution_step", 0.045, 0.020);
  within("sparse_decode", 0.085, 0.055);
  within("sparse_prefill", 0.150, 0.090);
  within("msa_decode", 0.085, 0.055);
  within("msa_prefill", 0.150, 0.090);
}

}  // namespace
}  // namespace orrery::left_out_rows_test
