#include "sim/profile/kineto_trace.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/support/error_text.hpp"
#include "tests/support/synthetic_step.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::kineto_trace_test {
namespace {

KinetoTrace parse(const std::string& text) {
  std::istringstream stream{text};
  return parse_kineto(stream, "trace.json");
}

std::string refusal(const std::string& text) {
  return error_text([&] { parse(text); });
}

TEST(KinetoTrace, KeepsWhatItSays) {
  TraceText text{std::string{TraceText::h100} +
                 R"("distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 16, )"
                 R"("pg_config": [{"pg_name": "0"}], "nccl_version": "2.27.5"},)"};
  text.add(R"({"ph": "M", "name": "process_name", "args": {"name": "python"}})");
  text.kernel("gemm", 5'000, 2'001, 7, 12);
  text.kernel("ncclDevKernel_SendRecv", 1'000, 500, 20, 11,
              R"(, "Collective name": "all_to_allv", "Process Group Name": "5", )"
              R"("Process Group Description": "mesh_ep", "In msg nelems": 77)");
  text.kernel("Memset (Device)", 500, 100, 7, -1, "", "gpu_memset");
  text.kernel("Memcpy HtoD", 700, 100, 7, -1, "", "gpu_memcpy");
  text.launch(12, 400, 50);
  text.operation("aten::mm", 300, 200, "[[2, 3], [3, 4]]", R"(["c10::Half", "c10::Half"])");
  text.step(4, 0, 10'000);
  const KinetoTrace trace = parse(text.text());
  EXPECT_EQ(trace.device.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(trace.device.multiprocessors, 132);
  EXPECT_EQ(trace.device.memory_bytes, 84'942'979'072);
  EXPECT_EQ(trace.rank, 3);
  EXPECT_EQ(trace.ranks, 16);
  EXPECT_EQ(trace.nccl, "2.27.5");
  EXPECT_EQ(trace.cuda_runtime, "12.4");
  EXPECT_EQ(trace.events, 8);
  ASSERT_EQ(trace.activities.size(), 4u);
  EXPECT_EQ(trace.activities[0].kind, GpuActivity::Kind::fill);
  EXPECT_EQ(trace.activities[1].kind, GpuActivity::Kind::copy);
  const GpuActivity &sends = trace.activities[2], &product = trace.activities[3];
  EXPECT_EQ(trace.names[sends.name], "ncclDevKernel_SendRecv");
  EXPECT_EQ(trace.names[sends.group], "mesh_ep");
  EXPECT_EQ(trace.names[sends.collective], "all_to_allv");
  EXPECT_EQ(sends.stream, 20);
  EXPECT_EQ(product.begin_ns, synthetic_epoch_ns + 5'000);
  EXPECT_EQ(product.end_ns - product.begin_ns, 2'001);
  EXPECT_EQ(product.correlation, 12);
  ASSERT_EQ(trace.launches.size(), 1u);
  EXPECT_EQ(trace.launches[0].correlation, 12);
  ASSERT_EQ(trace.operations.size(), 1u);
  EXPECT_EQ(trace.names[trace.operations[0].shapes], "[[2,3],[3,4]]");
  EXPECT_EQ(trace.names[trace.operations[0].types], R"(["c10::Half","c10::Half"])");
  ASSERT_EQ(trace.steps.size(), 1u);
  EXPECT_EQ(trace.steps[0].number, 4);
}

// PyTorch before 1.12, and times in whole microseconds.
TEST(KinetoTrace, ReadsOlderFiles) {
  const KinetoTrace trace =
      parse(R"({"traceEvents": [{"ph": "X", "cat": "Kernel", "name": "k", "ts": 10, "dur": 5},)"
            R"({"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "tid": "stream 7",)"
            R"( "ts": 1, "dur": 2, "args": {"correlation": 9}}]})");
  ASSERT_EQ(trace.activities.size(), 1u);
  EXPECT_EQ(trace.activities[0].begin_ns, 10'000);
  EXPECT_EQ(trace.activities[0].end_ns, 15'000);
  EXPECT_EQ(trace.launches.size(), 1u);
  EXPECT_EQ(trace.rank, -1);
}

TEST(KinetoTrace, RefusesWhatIsNoTrace) {
  EXPECT_EQ(refusal(""),
            "trace.json: is no valid JSON at byte 1; it may be cut off: write the "
            "trace again");
  EXPECT_EQ(refusal("{}"),
            "trace.json: has no traceEvents; name a trace that PyTorch's profiler wrote");
  EXPECT_EQ(refusal(R"({"traceEvents": []})"),
            "trace.json: has no work of a GPU; profile with ProfilerActivity.CUDA");
  EXPECT_NE(refusal(R"({"traceEvents": [{"ph": "X", )").find("is no valid JSON at byte"),
            std::string::npos);
  EXPECT_EQ(refusal(std::string(200, '[')),
            "trace.json: is nested over 64 levels deep; name a trace that PyTorch's profiler "
            "wrote");
  TraceText two;
  two.kernel("a", 0, 1);
  two.add(R"({"ph": "X", "cat": "kernel", "name": "b", "ts": 1, "dur": 1, "args": {"device": 1}})");
  EXPECT_EQ(refusal(two.text()),
            "trace.json: has work of the GPUs 0 and 1; trace one process a GPU");
}

TEST(KinetoTrace, RefusesTimesThatCannotBeMeant) {
  const auto with = [](const std::string& times) {
    return refusal(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k)"
                   "\\u001b[2J"
                   R"(")" +
                   times + "}]}");
  };
  const std::string text =
      "trace.json: event 1 ('k\\u001b[2J') has no time, or one that cannot be meant; write the "
      "trace again";
  EXPECT_EQ(with(""), text);
  EXPECT_EQ(with(R"(, "ts": 1)"), text);
  EXPECT_EQ(with(R"(, "ts": -1, "dur": 1)"), text);
  EXPECT_EQ(with(R"(, "ts": 1, "dur": 1e15)"), text);
  EXPECT_EQ(with(R"(, "ts": "1", "dur": 1)"), text);
}

TEST(KinetoTrace, AnyOrderOfEventsIsTheSameTrace) {
  TraceText text;
  for (int i = 0; i < 50; ++i) {
    text.kernel("k" + std::to_string(i % 7), (i * 37) % 50, 10 + i % 3, 7 + i % 2, i);
    text.launch(i, i, 3);
  }
  const KinetoTrace one = parse(text.text()), other = parse(text.backwards().text());
  ASSERT_EQ(one.activities.size(), other.activities.size());
  for (std::size_t i = 0; i < one.activities.size(); ++i) {
    EXPECT_EQ(one.activities[i].begin_ns, other.activities[i].begin_ns);
    EXPECT_EQ(one.activities[i].correlation, other.activities[i].correlation);
    EXPECT_EQ(one.names[one.activities[i].name], other.names[other.activities[i].name]);
    EXPECT_EQ(one.launches[i].begin_ns, other.launches[i].begin_ns);
  }
}

// What documents show is what the generator writes, gzipped.
TEST(KinetoTrace, ReadsGzip) {
  const std::string path = ORRERY_TEST_SOURCE "/tests/golden/synthetic-rank0.json.gz";
  const std::string written = SyntheticStep::text();
  const char* update = std::getenv("UPDATE_GOLDEN");
  TemporaryFolder folder;
  const std::string plain = (folder.path() / "plain.json").string();
  std::ofstream{plain} << written;
  if (update && std::string{update} == "1") {
    const std::string command = "gzip -9 -n -c '" + plain + "' > '" + path + "'";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  const KinetoTrace zipped = read_kineto(path), read = read_kineto(plain), text = parse(written);
  for (const KinetoTrace* one : {&zipped, &read}) {
    EXPECT_EQ(one->events, text.events);
    EXPECT_EQ(one->names, text.names);
    ASSERT_EQ(one->activities.size(), text.activities.size());
    for (std::size_t i = 0; i < text.activities.size(); ++i) {
      EXPECT_EQ(one->activities[i].begin_ns, text.activities[i].begin_ns);
      EXPECT_EQ(one->activities[i].end_ns, text.activities[i].end_ns);
    }
  }
}

TEST(KinetoTrace, RefusesDamagedFiles) {
  TemporaryFolder folder;
  const auto text_of = [&](const std::string& name, const std::string& bytes) {
    const std::string path = (folder.path() / name).string();
    std::ofstream{path, std::ios::binary} << bytes;
    std::string text = error_text([&] { read_kineto(path); });
    return text.substr(std::min(text.size(), path.size()));
  };
  std::ifstream file{ORRERY_TEST_SOURCE "/tests/golden/synthetic-rank0.json.gz", std::ios::binary};
  const std::string whole{std::istreambuf_iterator<char>{file}, {}};
  ASSERT_GT(whole.size(), 5'000u);
  EXPECT_EQ(text_of("cut.json.gz", whole.substr(0, whole.size() / 2)),
            ": is cut off within its gzip stream; copy it again, or write the trace again");
  std::string damaged = whole;
  for (std::size_t i = 0; i < 200; ++i) damaged[damaged.size() / 2 + i] ^= 0x55;
  const std::string said = text_of("damaged.json.gz", damaged);
  EXPECT_TRUE(said.find("damaged gzip") != said.npos || said.find("no valid JSON") != said.npos)
      << said;
  EXPECT_EQ(text_of("long.json", "[" + std::string(std::size_t{65} << 20, '1') + "]"),
            ": has 64 MiB of text without a quotation mark; name a trace that PyTorch's profiler "
            "wrote");
  EXPECT_EQ(error_text([&] { read_kineto(folder.path().string()); }),
            folder.path().string() + ": is not a file; name a trace that PyTorch's profiler wrote");
}

}  // namespace
}  // namespace orrery::kineto_trace_test
