#include "sim/measurements/kernel_tables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::kernel_tables_test {
namespace {

const std::string gemm_columns = R"(["m", "n", "k", "time_us"])";
const std::string attention_columns =
    R"(["batch", "sequence", "heads", "kv_heads", "head_dim", "time_us"])";

struct Parts {
  std::string schema = "orrery.kernels/1";
  std::string sustained = R"({"value": 0.9, "measured": true, "source": "a paper"})";
  std::string gemm_source = "a benchmark";
  std::string dtype = "bf16";
  std::string columns = gemm_columns;
  std::string rows = "[[256, 512, 1024, 4.5], [512, 512, 1024, 5.5]]";
  std::string attention_rows = "[[1, 512, 8, 8, 128, 20.5]]";
  std::string more = "";
  std::string left_out = R"({"count": 2, "median_error": 0.02, "p90_error": 0.05, "bias": -0.01})";
};

std::string file(const Parts& parts) {
  return R"({"schema": ")" + parts.schema + R"(", "gpu": "tiny", "reference": {"source": "s",
    "peak_16bit": "100 TFLOP/s", "memory_bandwidth": "1 TB/s", "multiprocessors": 100},
    "sustained": )" +
         parts.sustained +
         R"(, "wgrad_efficiency": {"value": 0.95, "measured": false, "source": "assumed"},
    "copy_efficiency": {"value": 0.8, "measured": true, "source": "a copy"},
    "attention_backward": {"value": 2.9, "measured": false, "source": "assumed"},
    "gemm": [{"dtype": ")" +
         parts.dtype + R"(", "source": ")" + parts.gemm_source +
         R"(", "base": {"source": "a fit", "overhead": "2 us", "tile_overhead": "0.5 us",
      "compute_efficiency": 0.8, "memory_efficiency": 0.7, "hard": 0.4, "throttle": 0.08},
      "left_out": )" +
         parts.left_out + R"(, "columns": )" + parts.columns + R"(, "rows": )" + parts.rows + R"(}],
    "attention_forward": {"source": "a benchmark", "bases": [{"head_dim": 128, "source": "a fit",
      "overhead": "12 us", "efficiency": 0.5, "diagonal": 100, "query_traffic": 3,
      "key_traffic": 1.5, "hard": 0.5, "lone": 0.3}], "columns": )" +
         attention_columns + R"(, "rows": )" + parts.attention_rows + "}" + parts.more + "}";
}

KernelTables parse(const Parts& parts) {
  return parse_kernel_tables(JsonValue::parse(file(parts), "tiny.json"));
}

std::string error_of(const Parts& parts) {
  try {
    parse(parts);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::bad_input);
    return error.what();
  }
  return "no error";
}

TEST(KernelTables, ReadsWhatIsWritten) {
  const KernelTables tables = parse({});
  EXPECT_EQ(tables.gpu, "tiny");
  EXPECT_EQ(tables.used_for, "tiny");
  EXPECT_EQ(tables.sustained, 0.9);
  EXPECT_EQ(tables.wgrad_efficiency, 0.95);
  EXPECT_EQ(tables.copy_efficiency, 0.8);
  EXPECT_TRUE(tables.copy_measured);
  EXPECT_EQ(tables.attention_backward, 2.9);
  ASSERT_EQ(tables.gemm.size(), 1u);
  const GemmTable& gemm = tables.gemm[0];
  EXPECT_EQ(gemm.dtype, Dtype::bf16);
  EXPECT_EQ(gemm.source, "a benchmark");
  EXPECT_EQ(gemm.measured_on.name, "tiny");
  EXPECT_EQ(gemm.measured_on.peak_16bit.si(), 100e12);
  EXPECT_EQ(gemm.measured_on.memory_bandwidth.si(), 1e12);
  EXPECT_EQ(gemm.measured_on.multiprocessors, 100);
  EXPECT_DOUBLE_EQ(gemm.base.overhead.si(), 2e-6);
  EXPECT_EQ(gemm.base.hard, 0.4);
  ASSERT_EQ(gemm.rows.size(), 2u);
  EXPECT_EQ(gemm.rows[1].m, 512);
  EXPECT_DOUBLE_EQ(gemm.rows[1].time.si(), 5.5e-6);
  ASSERT_TRUE(tables.attention.has_value());
  EXPECT_EQ(tables.attention->bases[0].diagonal, 100);
  EXPECT_EQ(tables.attention->rows[0].sequence, 512);
}

TEST(KernelTables, ColumnsMayStandInAnyOrder) {
  const KernelTables tables = parse(
      {.columns = R"(["time_us", "k", "n", "m"])", .rows = "[[4.5, 3, 2, 1], [4.6, 4, 2, 1]]"});
  EXPECT_EQ(tables.gemm[0].rows[0].m, 1);
  EXPECT_EQ(tables.gemm[0].rows[0].n, 2);
  EXPECT_EQ(tables.gemm[0].rows[0].k, 3);
  EXPECT_DOUBLE_EQ(tables.gemm[0].rows[0].time.si(), 4.5e-6);
}

TEST(KernelTables, ErrorsAreThoseOfAllRows) {
  const KernelTables tables = parse({});
  ASSERT_TRUE(tables.gemm[0].left_out.has_value());
  EXPECT_EQ(tables.gemm[0].left_out->rows, 2);
  EXPECT_EQ(tables.gemm[0].left_out->median, 0.02);
  EXPECT_EQ(tables.gemm[0].left_out->p90, 0.05);
  EXPECT_EQ(tables.gemm[0].left_out->bias, -0.01);
  EXPECT_FALSE(tables.attention->bases[0].left_out.has_value());
  EXPECT_EQ(error_of({.rows = "[[256, 512, 1024, 4.5]]"}),
            "tiny.json: /gemm/0/left_out/count: is 2, but there are 1; fit the table again");
  EXPECT_EQ(
      error_of({.left_out = R"({"count": 2, "median_error": 0.06, "p90_error": 0.05, "bias": 0})"}),
      "tiny.json: /gemm/0/left_out: the median is above the 90th percentile; fit the table again");
}

TEST(KernelTables, EveryNumberNeedsASource) {
  EXPECT_EQ(error_of({.sustained = "0.9"}),
            "tiny.json: /sustained: names no source; write {\"value\": ..., \"measured\": true or "
            "false, \"source\": \"...\"}");
  EXPECT_EQ(error_of({.sustained = R"({"value": 0.9, "measured": true})"}),
            "tiny.json: /sustained: the key 'source' is missing; add it");
  EXPECT_EQ(error_of({.gemm_source = ""}), "tiny.json: /gemm/0/source: is empty; write the source");
}

TEST(KernelTables, RefusesRowsThatCannotBeMeant) {
  EXPECT_EQ(error_of({.rows = "[[256, 512, 1024, -4.5]]"}),
            "tiny.json: /gemm/0/rows/0/3: a kernel takes from 0.01 to 1e9 us; write a time in "
            "microseconds");
  EXPECT_EQ(error_of({.rows = "[[256, 512, 1024, null]]"}),
            "tiny.json: /gemm/0/rows/0/3: null is not a number; write a plain number");
  for (const std::string size : {"0.5", "0", "-1", "4294967297"})
    EXPECT_EQ(error_of({.rows = "[[256, 512, " + size + ", 4.5]]"}),
              "tiny.json: /gemm/0/rows/0/2: a size must be a whole number from 1 to 2^32; write "
              "what was measured");
  EXPECT_EQ(error_of({.rows = "[7]"}),
            "tiny.json: /gemm/0/rows/0: 7 is not a list; write [value, ...]");
  EXPECT_EQ(error_of({.rows = "7"}),
            "tiny.json: /gemm/0/rows: 7 is not a list; write [[value, ...], ...]");
  EXPECT_EQ(error_of({.rows = "[[256, 512, 4.5]]"}),
            "tiny.json: /gemm/0/rows/0: has 3 values for 4 columns; write one value a column");
  EXPECT_EQ(error_of({.rows = "[[1, 2, 3, 4], [9, 9, 9, 9], [1, 2, 3, 5]]"}),
            "tiny.json: /gemm/0/rows/2: repeats the sizes of row 0; keep one of them, or their "
            "median");
  EXPECT_EQ(error_of({.attention_rows = "[[1, 512, 8, 8, 20.5]]"}),
            "tiny.json: /attention_forward/rows/0: has 5 values for 6 columns; write one value a "
            "column");
}

TEST(KernelTables, RefusesColumnsThatItDoesNotKnow) {
  EXPECT_EQ(error_of({.columns = R"(["m", "n", "k", "time_ms"])"}),
            "tiny.json: /gemm/0/columns/3: the column 'time_ms' is unknown; did you mean "
            "'time_us'?");
  EXPECT_EQ(error_of({.columns = R"(["m", "n", "k"])"}),
            "tiny.json: /gemm/0/columns: the column 'time_us' is missing; add it");
  EXPECT_EQ(error_of({.columns = R"(["m", "m", "n", "k", "time_us"])"}),
            "tiny.json: /gemm/0/columns: names a column twice; keep one of them");
}

TEST(KernelTables, RefusesOtherKindsOfFile) {
  EXPECT_EQ(error_of({.schema = "orrery.kernels/2"}),
            "tiny.json: /schema: 'orrery.kernels/2' is not what is read here; write "
            "\"orrery.kernels/1\"");
  EXPECT_EQ(error_of({.more = R"(, "attention_forwards": 1)"}),
            "tiny.json: the key 'attention_forwards' is unknown; did you mean "
            "'attention_forward'?");
  EXPECT_EQ(error_of({.dtype = "bf17"}),
            "tiny.json: /gemm/0/dtype: 'bf17' is unknown; did you mean 'bf16'?");
  EXPECT_EQ(error_of({.dtype = "fp8"}),
            "tiny.json: /gemm/0/dtype: an fp8 table needs the fp8 peak of its GPU; add "
            "/reference/peak_fp8");
}

TEST(KernelTables, GpusWithoutTablesHaveProxies) {
  struct Case {
    std::string gpu, gemm_of, attention_of;
  };
  const std::vector<Case> cases{{"a100-sxm-80gb", "a100-sxm-80gb", "a100-sxm-80gb"},
                                {"a100-sxm-40gb", "a100-sxm-80gb", "a100-sxm-80gb"},
                                {"a100-pcie-80gb", "a100-sxm-80gb", "a100-sxm-80gb"},
                                {"h100-sxm", "h100-sxm", "h100-sxm"},
                                {"h100-96gb-hbm2e", "h100-sxm", "h100-sxm"},
                                {"h800-sxm", "h100-sxm", "h100-sxm"},
                                {"h200-sxm", "h200-sxm", "h200-sxm"},
                                {"b200-sxm", "b200-sxm", "b200-sxm"},
                                {"b300-sxm", "b300-sxm", "b200-sxm"},
                                {"gb200", "gb200", "gb200"},
                                {"gb300", "gb300", "gb200"}};
  for (const Case& expected : cases) {
    SCOPED_TRACE(expected.gpu);
    const auto tables = read_kernel_tables(expected.gpu);
    ASSERT_TRUE(tables.has_value());
    EXPECT_EQ(tables->used_for, expected.gpu);
    EXPECT_EQ(tables->gpu, expected.gemm_of);
    ASSERT_FALSE(tables->gemm.empty());
    EXPECT_EQ(tables->gemm[0].measured_on.name, expected.gemm_of);
    ASSERT_TRUE(tables->attention.has_value());
    EXPECT_EQ(tables->attention->measured_on.name, expected.attention_of);
  }
  // SimuMax measured the A100 PCIe itself: 1/1.133 of the SXM rows, which its stand-in says.
  EXPECT_EQ(read_kernel_tables("a100-pcie-80gb")->sustained, 0.881);
  EXPECT_EQ(read_kernel_tables("a100-sxm-40gb")->sustained,
            read_kernel_tables("a100-sxm-80gb")->sustained);
}

TEST(KernelTables, OtherGpusHaveNone) {
  for (const std::string gpu : {"v100-sxm-32gb", "l40s", "rtx-pro-6000-blackwell", "test-gpu", "",
                                "stand_ins", "../kernels/h100-sxm", "unheard-of"})
    EXPECT_FALSE(read_kernel_tables(gpu).has_value()) << gpu;
}

}  // namespace
}  // namespace orrery::kernel_tables_test
