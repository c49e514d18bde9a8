#include "sim/formats/requests/read_requests.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_text.hpp"

namespace orrery::read_requests_test {
namespace {

RequestTrace parse(const std::string& text, const TraceReading& reading = {}) {
  return parse_request_trace(text, "trace", reading);
}

std::string error_of(const std::string& text, const TraceReading& reading = {}) {
  return error_text([&] { parse(text, reading); });
}

void expect_request(const Request& request, double arrival, std::uint32_t prompt,
                    std::uint32_t output) {
  EXPECT_NEAR(request.arrival.si(), arrival, 1e-6);
  EXPECT_EQ(request.prompt_tokens, prompt);
  EXPECT_EQ(request.output_tokens, output);
}

TEST(ReadRequests, OfMooncakeWithItsHashes) {
  const RequestTrace trace = parse(
      R"({"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]})"
      "\n\n"
      R"({"timestamp": 30535, "input_length": 6472, "output_length": 26, "hash_ids": [46, 9, 8]})");
  EXPECT_EQ(trace.format, RequestFormat::mooncake);
  EXPECT_EQ(trace.list.hash_tokens, 512u);
  ASSERT_EQ(trace.list.requests.size(), 2u);
  expect_request(trace.list.requests[0], 0.0, 6955, 52);
  expect_request(trace.list.requests[1], 3.053, 6472, 26);
  EXPECT_EQ(trace.list.requests[1].first_hash, 2u);
  EXPECT_EQ(trace.list.requests[1].hashes, 3u);
  EXPECT_EQ(trace.list.hashes[2], 46u);
}

TEST(ReadRequests, OfAzureWithItsTimestamps) {
  const RequestTrace trace = parse(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2023-11-16 23:59:59.6805900,374,44\r\n"
      "2023-11-17 00:00:01.0000000,396,109\r\n");
  EXPECT_EQ(trace.format, RequestFormat::azure);
  expect_request(trace.list.requests[0], 0.0, 374, 44);
  expect_request(trace.list.requests[1], 1.31941, 396, 109);
}

TEST(ReadRequests, OfBurstGptWithoutThoseThatFailed) {
  for (const char* sessions : {"", "Session ID,Elapsed time,"}) {
    const std::string between = *sessions ? "7,1.5," : "";
    const RequestTrace trace = parse(
        "Timestamp," + std::string{sessions} +
        "Model,Request tokens,Response tokens,Total tokens,Log Type\n5," + between +
        "ChatGPT,472,18,490,Conversation log\n45," + between +
        "ChatGPT,1087,0,1087,Conversation log\n118.5," + between + "GPT-4,417,276,693,API log\n");
    EXPECT_EQ(trace.format, RequestFormat::burstgpt);
    EXPECT_EQ(trace.list.failed, 1);
    ASSERT_EQ(trace.list.requests.size(), 2u);
    expect_request(trace.list.requests[0], 0.0, 472, 18);
    expect_request(trace.list.requests[1], 113.5, 417, 276);
  }
}

TEST(ReadRequests, OfOurLinesOfLengthsAndOfVllm) {
  const RequestTrace own =
      parse(R"({"arrival_s": 2.5, "input": 10, "output": 3, "prefix_blocks": [1], "session": 4})"
            "\n"
            R"({"arrival_s": 1.5, "input": 20, "output": 5})");
  expect_request(own.list.requests[0], 0.0, 20, 5);  // By arrival, whatever the rows' order.
  expect_request(own.list.requests[1], 1.0, 10, 3);
  EXPECT_EQ(own.list.requests[1].session, 4u);
  const RequestTrace lengths = parse("input_length,output_length\n7,8\n");
  EXPECT_FALSE(lengths.has_times);
  expect_request(lengths.list.requests[0], 0.0, 7, 8);
  const RequestTrace vllm =
      parse(R"({"backend": "vllm", "input_lens": [100, 90, 80], "output_lens": [10, 0, 9]})");
  EXPECT_EQ(vllm.list.failed, 1);
  EXPECT_FALSE(vllm.has_times);
  expect_request(vllm.list.requests[1], 0.0, 80, 9);
}

TEST(ReadRequests, FasterAndOnlyTheFirst) {
  const std::string text = R"({"timestamp": 0, "input_length": 1, "output_length": 1})"
                           "\n"
                           R"({"timestamp": 4000, "input_length": 2, "output_length": 1})"
                           "\n"
                           R"({"timestamp": 9000, "input_length": 3, "output_length": 1})";
  const RequestTrace trace = parse(text, {.speed = 2.0, .first = 2});
  ASSERT_EQ(trace.list.requests.size(), 2u);
  EXPECT_EQ(trace.list.requests[1].arrival.si(), 2.0);
}

TEST(ReadRequests, RefusesBadRowsByTheirLine) {
  const std::string burst = "Timestamp,Model,Request tokens,Response tokens\n";
  EXPECT_EQ(error_of(burst + "1,GPT-4,5,6\n-3,GPT-4,5,6\n"),
            "trace: line 3: Timestamp -3 is negative; write the seconds since the trace began");
  EXPECT_EQ(error_of(burst + "1,GPT-4,0,6\n"),
            "trace: line 2: Request tokens is 0; a request has a prompt and an answer of at least "
            "one token; leave it out");
  EXPECT_EQ(error_of(burst + "1,GPT-4,5.5,6\n"),
            "trace: line 2: Request tokens '5.5' is not a number of tokens; write a whole number "
            "up to 16777216");
  EXPECT_EQ(error_of(burst + "1,GPT-4\n"),
            "trace: line 2: has 2 fields, fewer than the first line names; the file was cut, or "
            "is another one");
  EXPECT_EQ(error_of("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-01 00:00:00,1,1\n"),
            "trace: line 2: TIMESTAMP '2023-13-01 00:00:00' is not a time; write like 2023-11-16 "
            "18:15:46.6805900");
  EXPECT_EQ(error_of("Timestamp,Request tokens\n1,2\n"),
            "trace: line 1: the column 'Response tokens' is missing; give the trace with its first "
            "line as it was published");
  EXPECT_EQ(error_of(burst + "1,GPT-4,5,0\n"),
            "trace: holds no request that was answered; give a trace with requests");
  EXPECT_EQ(
      error_of(R"({"timestamp": -1, "input_length": 1, "output_length": 1})"),
      "trace: line 1: /timestamp: -1 is out of range; write a number from 0 to 1000000000000");
  EXPECT_EQ(error_of("hello"),
            "trace: looks like none of the traces that are read; name its form with "
            "--trace-format: mooncake, azure, burstgpt, lengths, vllm or lines");
  EXPECT_EQ(error_of(burst, {.format = "burst"}),
            "--trace-format: 'burst' is unknown; write one of: lines, mooncake, azure, burstgpt, "
            "lengths, vllm");
}

TEST(Timestamp, CountsSecondsSince1970) {
  EXPECT_EQ(seconds_of_timestamp("1970-01-02 00:00:01"), 86401.0);
  EXPECT_EQ(seconds_of_timestamp("2024-05-10T00:00:00Z"), 1715299200.0);
  EXPECT_NEAR(seconds_of_timestamp("2024-05-10 00:00:00.25+00:00"), 1715299200.25, 1e-6);
  for (const char* text : {"", "2024", "2024-02-30 00:00:00", "2024-02-03 24:00:00", "2024-02-03",
                           "2024-02-03 00:00:00 x", "2024-02-03 00:00:0"})
    EXPECT_TRUE(std::isnan(seconds_of_timestamp(text))) << text;
}

}  // namespace
}  // namespace orrery::read_requests_test
