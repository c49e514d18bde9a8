#include "sim/measurements/serving_table.hpp"

#include <gtest/gtest.h>

namespace orrery::serving_table_test {
namespace {

std::string file(const std::string& rows, const std::string& columns = R"(["n", "k"])",
                 const std::string& along = "m") {
  return R"({"schema": "orrery.serving_kernels/1", "gpu": "tiny", "op": "gemm", "weights": "fp8",
    "engine": "vllm", "version": "1", "source": "a benchmark", "columns": )" +
         columns + R"(, "along": ")" + along + R"(", "at": [1, 2, 4], "rows": )" + rows + "}";
}

ServingTable parse(const std::string& text) {
  return parse_serving_table(JsonValue::parse(text, "t.json"));
}

std::string error_of(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ServingTable, ARowHoldsATimeForEachSizeAndZerosAreHoles) {
  const ServingTable table = parse(file("[[512, 1024, 3.5, 0, 4], [512, 2048, 0, 5, 0]]"));
  ASSERT_EQ(table.rows(), 3u);
  EXPECT_EQ(std::vector<std::int64_t>(table.row(1).begin(), table.row(1).end()),
            (std::vector<std::int64_t>{512, 1024, 4}));
  EXPECT_EQ(table.times[1], microseconds(4));
  EXPECT_EQ(table.times[2], microseconds(5));
  EXPECT_EQ(table.title(), "gemm of vllm 1");
  EXPECT_EQ(table.weights, "fp8");
}

TEST(ServingTable, RefusesWhatCannotBeMeant) {
  EXPECT_EQ(error_of(file("[[512, 1024, 3.5, -1, 4]]")),
            "t.json: /rows/0/3: a kernel takes from 0.01 to 1e9 us, or 0 where none was measured; "
            "write a time in microseconds");
  EXPECT_EQ(error_of(file("[[512, 1.5, 3.5, 0, 4]]")),
            "t.json: /rows/0/1: a size must be a whole number from 1 to 2^32; write what was "
            "measured");
  EXPECT_EQ(error_of(file("[[512, 1024, 0, 0, 0]]")),
            "t.json: /rows: holds no time; write what was measured");
  EXPECT_EQ(error_of(file("[[512, 1024, 1, 1, 1]]", R"(["k", "n"])")),
            "t.json: /columns: with 'along' they are not those of 'gemm'; write \"columns\": "
            "[\"n\", \"k\"], \"along\": \"m\"");
}

TEST(ServingTable, ReadsNothingOutsideItsFolder) {
  EXPECT_FALSE(read_serving_table("../kernels", "h100-sxm"));
  EXPECT_FALSE(read_serving_table("h100-sxm", "gemm-fp8-nobody"));
  EXPECT_TRUE(has_serving_tables("h100-sxm"));
  EXPECT_FALSE(has_serving_tables("v100-sxm-32gb"));
}

}  // namespace
}  // namespace orrery::serving_table_test
