#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "sim/core/number_text.hpp"
#include "sim/serving/serving_step_text.hpp"

namespace orrery::memory_text_test {
namespace {

std::string text_of(const std::string& model, const std::string& engine) {
  const ServingSetup setup = make_serving_setup(model, "dgx-h200", engine, {}, 1, {"", ""});
  Iteration iteration;
  iteration.decodes = iteration.heads = 1;
  iteration.context = 1000;
  return serving_step_text(serving_step(setup, iteration, {"", ""}), {});
}

// The lines of the table of memory add up to its last, but for their rounding to 0.01 GB.
TEST(MemoryText, ItsLinesAddUp) {
  for (const char* engine : {"vllm", "sglang", "trtllm"})
    for (const char* model : {"llama3.1-8b", "gpt-oss-120b", "gemma-3-27b"}) {
      std::istringstream lines{text_of(model, engine)};
      double sum = 0.0, all = 0.0;
      int rows = 0;
      for (std::string line; all == 0.0 && std::getline(lines, line);) {
        const std::size_t end = line.find("  ", 2);
        if (!line.starts_with("  ") || line[2] == ' ' || end == line.npos) continue;
        const double gigabytes = std::strtod(line.c_str() + end, nullptr);
        ++rows;
        (line.starts_with("  all ") ? all : sum) += gigabytes;
      }
      EXPECT_GE(rows, 5);
      EXPECT_NEAR(sum, all, 0.005 * rows) << model << " " << engine;
    }
}

// Layers with a window hold no more of a request than it, so that the cache holds a request of more
// tokens than it has; where all layers keep all tokens, it is as long as the cache.
TEST(MemoryText, SaysTheLongestRequestWhereWindowsMakeItLonger) {
  const ServingSetup setup =
      make_serving_setup("gpt-oss-120b", "dgx-h100", "vllm", {}, 1, {"", ""});
  const KvCapacity kv = kv_capacity(setup.model, setup.system, setup.deployment, setup.engine);
  const std::int64_t longest = kv.longest(at_once(setup.deployment));
  EXPECT_GT(longest, kv.tokens);
  EXPECT_EQ(kv.requests(longest, at_once(setup.deployment)), 1);
  EXPECT_EQ(kv.requests(longest + kv.block, at_once(setup.deployment)), 0);
  EXPECT_EQ(longest_text(setup.deployment, kv),
            "requests of up to " + plural(longest, "token") + ": some layers keep only a window");
  EXPECT_THAT(text_of("gpt-oss-120b", "vllm"), testing::HasSubstr("requests of up to"));
  for (const auto& [model, engine] :
       {std::pair{"llama3.1-8b", "vllm"}, std::pair{"gpt-oss-120b", "sglang"}})
    EXPECT_THAT(text_of(model, engine), testing::Not(testing::HasSubstr("requests of up to")));
}

}  // namespace
}  // namespace orrery::memory_text_test
