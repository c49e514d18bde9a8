#include <gtest/gtest.h>

#include "sim/moe/routing_trace.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::trace_test {
namespace {

const std::string two_ranks =
    "{\"layer\": 0, \"micro_batch\": 0, \"rank\": 0, \"tokens\": [3, 1, 0, 4]}\n"
    "\n"
    "{\"layer\": 0, \"micro_batch\": 0, \"rank\": 1, \"tokens\": [2, 2, 2, 2]}\n";
const std::string two_ranks_csv =
    "layer,micro_batch,rank,expert,tokens\r\n"
    "0,0,0,0,3\n0,0,0,1,1\n0,0,0,3,4\n"
    "0,0,1,0,2\n0,0,1,1,2\n0,0,1,2,2\n0,0,1,3,2\n";

TEST(Trace, BothFormsSayTheSame) {
  for (const std::string& text : {two_ranks, two_ranks_csv}) {
    const RoutingTrace trace = parse_trace(text, "t", {1, 2, 4, 4, 2});
    EXPECT_EQ(trace.layers, 1);
    EXPECT_EQ(trace.micro_batches, 1);
    EXPECT_EQ(trace.ranks, 2);
    EXPECT_EQ(trace.experts, 4);
    const auto first = trace.of(0, 0, 0);
    EXPECT_EQ(std::vector<std::uint32_t>(first.begin(), first.end()),
              (std::vector<std::uint32_t>{3, 1, 0, 4}));
    EXPECT_EQ(trace.totals(0), (std::vector<double>{5, 3, 2, 6}));
  }
}

std::string refusal(const std::string& text, const TraceExpectation& expected = {}) {
  return error_text([&] { parse_trace(text, "t.jsonl", expected); });
}

std::string line(const std::string& rank, const std::string& tokens) {
  return "{\"layer\": 0, \"micro_batch\": 0, \"rank\": " + rank + ", \"tokens\": " + tokens + "}\n";
}

TEST(Trace, RefusalsNameTheLine) {
  EXPECT_EQ(refusal(""), "t.jsonl: the trace is empty; give a line for each rank's counts");
  EXPECT_EQ(
      refusal(line("0", "[1, -2]")),
      "t.jsonl: line 1: /tokens/1: -2 is out of range; write a whole number from 0 to 4294967295");
  EXPECT_EQ(refusal(line("0", "[1, 2]") + line("1", "[1, 0.5]")),
            "t.jsonl: line 2: /tokens/1: 0.5 is not a whole number; write a whole number from 0 to "
            "4294967295");
  EXPECT_EQ(refusal(line("0", "[1, 2]") + line("1", "[1, 2, 3]")),
            "t.jsonl: line 2: counts for 3 experts, but the first line has 2; give every line as "
            "many");
  EXPECT_EQ(refusal(line("0", "[1, 2]") + line("2", "[1, 2]")),
            "t.jsonl: line 2: the trace ends without layer 0, micro-batch 0, rank 1; number "
            "layers, micro-batches and ranks from 0, and give a line for each");
  EXPECT_EQ(refusal(line("0", "[1, 2]") + line("0", "[1, 2]")),
            "t.jsonl: line 2: layer 0, micro-batch 0, rank 0 is there twice; keep one of them");
  EXPECT_EQ(refusal("0,0,0,0,1\n"),
            "t.jsonl: line 1: '0,0,0,0,1' is not a routing trace; begin with "
            "layer,micro_batch,rank,expert,tokens, or write JSON lines");
  const std::string head = "layer,micro_batch,rank,expert,tokens\n";
  EXPECT_EQ(refusal(head + "0,0,0,0,1.5\n"),
            "t.jsonl: line 2: tokens '1.5' is not a count; write a whole number from 0 on");
  EXPECT_EQ(refusal(head + "0,0,0,1\n"),
            "t.jsonl: line 2: there are not five numbers; write "
            "layer,micro_batch,rank,expert,tokens");
  EXPECT_EQ(refusal(head + "0,0,0,1,1\n0,0,0,1,1\n"),
            "t.jsonl: line 3: layer 0, micro-batch 0, rank 0, expert 1 is there twice; keep one of "
            "them");
}

TEST(Trace, AnotherRunIsRefused) {
  EXPECT_EQ(refusal(two_ranks, {.experts = 8}),
            "t.jsonl: 4 experts, but the model has 8; trace the run that is estimated");
  EXPECT_EQ(refusal(two_ranks, {.ranks = 4}),
            "t.jsonl: 2 ranks, but the expert-parallel group has 4; trace the run that is "
            "estimated");
  EXPECT_EQ(refusal(two_ranks, {.layers = 3}),
            "t.jsonl: 1 layers with experts, but the model has 3; trace the run that is estimated");
  EXPECT_EQ(refusal(two_ranks, {.tokens = 3}),
            "t.jsonl: line 1: layer 0, micro-batch 0, rank 0: 4 tokens for one expert, but a rank "
            "has 3 in a micro-batch; trace the batch that is estimated");
  EXPECT_EQ(refusal(two_ranks, {.tokens = 5, .per_token = 2}),
            "t.jsonl: line 1: layer 0, micro-batch 0, rank 0: the counts sum to 8, but 5 tokens "
            "with 2 experts each are 10; trace what the router chose, before anything is dropped");
}

TEST(Trace, LastExpertsOfACsvMayBeIdle) {
  const std::string text = "layer,micro_batch,rank,expert,tokens\n0,0,0,0,4\n";
  EXPECT_EQ(parse_trace(text, "t", {.experts = 8}).of(0, 0, 0).size(), 8u);
}

}  // namespace
}  // namespace orrery::trace_test
