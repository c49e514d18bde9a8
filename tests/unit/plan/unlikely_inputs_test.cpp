#include "sim/plan/unlikely_inputs.hpp"

#include <gtest/gtest.h>

#include "sim/core/catalog.hpp"
#include "tests/support/key_samples.hpp"

namespace orrery::unlikely_inputs_test {
namespace {

using Doubt = std::optional<std::string>;

TEST(UnlikelyInputs, BatchesInTokens) {
  EXPECT_EQ(unlikely_batch(4'194'304, 8192, 16),
            Doubt{"--gbs 4194304 is in sequences, 34,359,738,368 tokens a step; if it is meant in "
                  "tokens, write --gbs 512"});
  EXPECT_EQ(unlikely_batch(1'000'000, 2048, 8),
            Doubt{"--gbs 1000000 is in sequences, 2,048,000,000 tokens a step"});
  // Batches of published runs: DeepSeek-V3, Llama 3 405B, BERT in MLPerf, GPT-3 on one node.
  EXPECT_EQ(unlikely_batch(15'360, 4096, 2048), Doubt{});
  EXPECT_EQ(unlikely_batch(2048, 8192, 16'384), Doubt{});
  EXPECT_EQ(unlikely_batch(65'536, 512, 8), Doubt{});
  EXPECT_EQ(unlikely_batch(1536, 2048, 8), Doubt{});
  // A sequence of 8,192 tokens for each of many GPUs.
  EXPECT_EQ(unlikely_batch(262'144, 8192, 262'144), Doubt{});
}

TEST(UnlikelyInputs, TokensWithoutTheirUnit) {
  EXPECT_EQ(unlikely_tokens(15, 8192),
            Doubt{"--tokens 15 is less than one sequence; 15 trillion are 15T"});
  EXPECT_EQ(unlikely_tokens(8192, 8192), Doubt{});
}

TEST(UnlikelyInputs, SequencesBeyondTheModel) {
  const Model model = read_model("llama2-7b", test_place);
  EXPECT_EQ(unlikely_sequence(model, 8192),
            Doubt{"--seq 8192 is longer than the 4,096 positions of llama2-7b"});
  EXPECT_EQ(unlikely_sequence(model, 4096), Doubt{});
  for (const std::string& name : list_catalog("workloads/models")) {
    const Model known = read_model(name, test_place);
    EXPECT_EQ(unlikely_sequence(known, default_sequence(known)), Doubt{}) << name;
  }
}

TEST(UnlikelyInputs, NetworksWithAnotherUnit) {
  for (const std::string& name : list_catalog("topologies/systems")) {
    const System system = read_system(name, test_place);
    EXPECT_EQ(unlikely_nic(system), Doubt{}) << name;
    EXPECT_EQ(unlikely_latency(system), Doubt{}) << name;
  }
  System system = read_system("dgx-h100", test_place);
  system.nic = 8.0 * system.nic;
  system.network_latency = Seconds{5e-3};
  EXPECT_EQ(unlikely_nic(system),
            Doubt{"nic_bandwidth 400 GB/s is more than a slot carries, as the GPU's PCIe has 64 "
                  "GB/s; NICs are sold by Gb/s"});
  EXPECT_EQ(unlikely_latency(system),
            Doubt{"network_latency 5.000 ms is that of another city; within a cluster it is some "
                  "microseconds, written us"});
}

}  // namespace
}  // namespace orrery::unlikely_inputs_test
