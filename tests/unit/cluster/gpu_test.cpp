#include <gtest/gtest.h>

#include "sim/cluster/system.hpp"
#include "sim/core/catalog.hpp"

namespace orrery::gpu_test {
namespace {

const Place flag{"command line", "--gpu"};

std::string gpu_text() {
  return R"({"schema": "orrery.gpu/1", "name": "g", "title": "G", "architecture": "ampere",
    "peak_16bit": {"value": "312 TFLOP/s", "source": "s"},
    "peak_fp32": {"value": "19.5 TFLOP/s", "source": "s"},
    "memory_bandwidth": {"value": "2039 GB/s", "source": "s"},
    "memory": {"value": "80 GiB", "source": "s"},
    "multiprocessors": {"value": 108, "source": "s"},
    "pcie_bandwidth": {"value": "32 GB/s", "source": "s"},
    "power": {"value": "400 W", "source": "s"}})";
}

// Each mistake is one replacement in a file that is sound otherwise.
std::string error_with(const std::string& right, const std::string& wrong) {
  std::string text = gpu_text();
  const std::size_t at = text.find(right);
  if (at == text.npos) return "'" + right + "' is not in the sound file";
  text.replace(at, right.size(), wrong);
  try {
    parse_gpu(JsonValue::parse(text, "g.json"));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::bad_input);
    return error.what();
  }
  return "no error";
}

TEST(Gpu, EveryCatalogFileIsReadAndCarriesItsFilesName) {
  const std::vector<std::string> names = list_catalog("topologies/gpus");
  EXPECT_GE(names.size(), 15u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Gpu gpu = read_gpu(name, flag);
    EXPECT_EQ(gpu.name, name);
    // Not of any product, but what no slip of a unit survives.
    EXPECT_GE(gpu.peak_16bit, FlopPerSecond{100e12});
    EXPECT_LE(gpu.peak_16bit, FlopPerSecond{5e15});
    EXPECT_LT(gpu.peak_fp32, gpu.peak_16bit);
    EXPECT_GE(gpu.memory, Bytes{24e9});
    EXPECT_LE(gpu.memory, Bytes{300e9});
    EXPECT_LT(gpu.pcie, gpu.memory_bandwidth);
    if (gpu.peak_fp8 != FlopPerSecond{}) {
      // fp8 doubles 16-bit speed on every GPU that has it; the L40S's data sheet rounds 1 % up.
      EXPECT_NEAR(gpu.peak_fp8 / gpu.peak_16bit, 2.0, 0.03);
    }
  }
}

TEST(Gpu, A100IsAsItsDatasheetSays) {
  const Gpu gpu = read_gpu("a100-sxm-80gb", flag);
  EXPECT_EQ(name(gpu.architecture), "ampere");
  EXPECT_EQ(gpu.peak_16bit, FlopPerSecond{312e12});
  EXPECT_EQ(gpu.peak_fp8, FlopPerSecond{});
  EXPECT_EQ(gpu.peak_fp4, FlopPerSecond{});
  EXPECT_EQ(gpu.peak_fp32, FlopPerSecond{19.5e12});
  EXPECT_EQ(gpu.memory_bandwidth, BytesPerSecond{2039e9});
  EXPECT_EQ(gpu.memory, Bytes{79.15 * 1024 * 1024 * 1024});
  EXPECT_EQ(gpu.multiprocessors, 108);
  EXPECT_EQ(gpu.nvlink, BytesPerSecond{300e9});  // 12 links x 25 GB/s each way.
  EXPECT_EQ(gpu.pcie, BytesPerSecond{32e9});
  EXPECT_EQ(gpu.watts, 400.0);
}

TEST(Gpu, LeavesOutWhatItHasNot) {
  const Gpu gpu = parse_gpu(JsonValue::parse(gpu_text(), "g.json"));
  EXPECT_EQ(gpu.peak_fp8, FlopPerSecond{});
  EXPECT_EQ(gpu.nvlink, BytesPerSecond{});
}

std::string peak_error(const std::string& gpu, Dtype dtype) {
  try {
    read_gpu(gpu, flag).peak(dtype, Place{"command line", "--dtype"});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::infeasible);
    return error.what();
  }
  return "no error";
}

TEST(Gpu, PeakIsThatOfTheUnitsOrAReason) {
  const Gpu h100 = read_gpu("h100-sxm", flag);
  EXPECT_EQ(h100.peak(Dtype::fp16, flag), FlopPerSecond{989e12});
  EXPECT_EQ(h100.peak(Dtype::bf16, flag), FlopPerSecond{989e12});
  EXPECT_EQ(h100.peak(Dtype::fp8, flag), FlopPerSecond{1978e12});
  EXPECT_EQ(h100.peak(Dtype::fp32, flag), FlopPerSecond{67e12});
  EXPECT_EQ(read_gpu("v100-sxm-32gb", flag).peak(Dtype::fp16, flag), FlopPerSecond{125e12});
  EXPECT_EQ(peak_error("a100-sxm-80gb", Dtype::fp8),
            "command line: --dtype: the GPU 'a100-sxm-80gb' has no fp8 units; use bf16 or fp16");
  EXPECT_EQ(peak_error("v100-sxm-32gb", Dtype::fp8),
            "command line: --dtype: the GPU 'v100-sxm-32gb' has no fp8 units; use fp16");
  EXPECT_EQ(peak_error("v100-sxm-32gb", Dtype::bf16),
            "command line: --dtype: the GPU 'v100-sxm-32gb' has no bf16 units; use fp16");
}

TEST(GpuErrors, SayPlaceProblemAndRemedy) {
  EXPECT_EQ(error_with("\"orrery.gpu/1\"", "\"orrery.system/1\""),
            "g.json: /schema: 'orrery.system/1' is not what is read here; "
            "write \"orrery.gpu/1\"");
  EXPECT_EQ(error_with("\"g\"", "\"\""), "g.json: /name: is empty; write the name");
  EXPECT_EQ(error_with("\"ampere\"", "\"amper\""),
            "g.json: /architecture: 'amper' is unknown; did you mean 'ampere'?");
  EXPECT_EQ(error_with("\"peak_16bit\"", "\"peak_16bits\""),
            "g.json: the key 'peak_16bits' is unknown; did you mean 'peak_16bit'?");
  EXPECT_EQ(error_with("\"2039 GB/s\"", "\"0 GB/s\""),
            "g.json: /memory_bandwidth/value: '0 GB/s' is not a positive bandwidth; "
            "write it like \"400 GB/s\"");
  EXPECT_EQ(error_with("\"2039 GB/s\"", "\"2039 GB\""),
            "g.json: /memory_bandwidth/value: '2039 GB' has no known unit; "
            "use GB/s, MB/s, TB/s or GiB/s (bytes), or Gb/s or Tb/s (bits)");
  EXPECT_EQ(error_with("\"80 GiB\"", "\"0 B\""),
            "g.json: /memory/value: a GPU without memory; write it like \"80 GiB\"");
  EXPECT_EQ(error_with("{\"value\": 108, \"source\": \"s\"}", "6912"),
            "g.json: /multiprocessors: 6912 is out of range; "
            "write a whole number from 1 to 2000");
  EXPECT_EQ(error_with("108", "6912"),
            "g.json: /multiprocessors/value: 6912 is out of range; "
            "write a whole number from 1 to 2000");
}

TEST(GpuErrors, PowerIsPositiveAndInWatts) {
  for (const std::string wrong : {"-400 W", "0 W", "400", "400 kW", "nan W", "W", "400  W"})
    EXPECT_EQ(error_with("400 W", wrong),
              "g.json: /power/value: '" + wrong + "' is not a power; write it like \"400 W\"");
}

TEST(GpuErrors, AnUnknownNameGetsTheNearest) {
  try {
    read_gpu("h100-sx", flag);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "command line: --gpu: 'h100-sx' is not in the catalog; did you mean 'h100-sxm'? "
                 "(a path needs a '/' or ends in .json)");
  }
}

}  // namespace
}  // namespace orrery::gpu_test
