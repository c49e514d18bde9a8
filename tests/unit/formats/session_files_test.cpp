#include "sim/formats/requests/session_files.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_text.hpp"

namespace orrery::session_files_test {
namespace {

SessionTrace parsed(const std::string& text, const std::string& format = "") {
  return parse_sessions(text, "s.jsonl", format);
}

// As kv-cache-tester records it: the parent sends a turn while its sub-agent runs, and the next one
// when that has ended.
TEST(SessionFiles, WekaWithASubAgent) {
  const SessionTrace trace =
      parsed(R"({"id":"a","block_size":64,"hash_id_scope":"local","requests":[
{"t":0.0,"type":"n","in":200,"out":30,"hash_ids":[1,2,3],"api_time":2.0,"think_time":0.0},
{"t":5.0,"type":"subagent","duration_ms":20000,"requests":[
 {"t":0.0,"in":130,"out":9,"hash_ids":[50,51],"think_time":0.0,"api_time":1.0},
 {"t":4.0,"in":260,"out":8,"hash_ids":[50,51,52,53],"think_time":3.0,"api_time":1.0}]},
{"t":10.0,"type":"n","in":270,"out":5,"hash_ids":[1,2,3,4],"api_time":3.0,"think_time":8.0},
{"t":40.0,"type":"n","in":330,"out":0,"hash_ids":[1,2,3,4,5],"api_time":3.0,"think_time":27.0}]})");
  ASSERT_EQ(trace.sessions.size(), 1u);
  ASSERT_EQ(trace.turns.size(), 5u);
  EXPECT_EQ(trace.list.hash_tokens, 64u);
  EXPECT_TRUE(trace.list.hashes_of_sessions);
  EXPECT_TRUE(trace.turns[1].by_sub_agent && trace.turns[2].by_sub_agent);
  const auto waits = [&](std::uint32_t of, std::uint32_t turn) {
    for (const Follower& next : trace.followers_of(trace.turns[of]))
      if (next.turn == turn) return next.wait.si();
    return -1.0;
  };
  EXPECT_DOUBLE_EQ(waits(0, 1), 3.0);  // The sub-agent began 3 s after the answer.
  EXPECT_DOUBLE_EQ(waits(1, 2), 3.0);
  EXPECT_DOUBLE_EQ(waits(0, 3), 8.0);
  // It ended at 25 s. Of the parent's 27 s after 13 s, 12 are its.
  EXPECT_DOUBLE_EQ(waits(3, 4), 15.0);
  EXPECT_DOUBLE_EQ(waits(2, 4), 15.0);
  EXPECT_EQ(trace.turns[4].waits_for, 2u);
  EXPECT_EQ(trace.list.requests[4].output_tokens, 1u);  // It broke off.
  EXPECT_EQ(trace.turns[3].known, 192u);
  EXPECT_EQ(trace.turns[4].known, 256u);
  EXPECT_EQ(trace.turns[2].known, 128u);
}

// One a line, with runs of hashes; without think times the waits follow from the times.
TEST(SessionFiles, WekaLinesWithRuns) {
  const SessionTrace trace = parsed(
      R"({"id":"a","block":64,"requests":[{"t":0,"in":640,"out":3,"runs":[[7,10]],"api":1.5},)"
      R"({"t":4.0,"in":700,"out":3,"runs":[[7,9],[40,1]],"api":1.5}]})"
      "\n\n"
      R"({"id":"b","block":64,"requests":[{"t":0,"in":64,"out":3,"runs":[[7,1]]}]})");
  ASSERT_EQ(trace.sessions.size(), 2u);
  EXPECT_DOUBLE_EQ(trace.followers[0].wait.si(), 2.5);
  EXPECT_EQ(trace.turns[1].known, 576u);
  EXPECT_EQ(trace.turns[2].known, 0u);  // Hashes count within a session.
}

TEST(SessionFiles, BailianByParents) {
  const SessionTrace trace =
      parsed(R"({"chat_id":1,"parent_chat_id":-1,"timestamp":10.5,"input_length":40,)"
             R"("output_length":9,"hash_ids":[1,2,3]})"
             "\n"
             R"({"chat_id":2,"parent_chat_id":-1,"timestamp":11.0,"input_length":40,)"
             R"("output_length":9,"hash_ids":[1,2]})"
             "\n"
             R"({"chat_id":3,"parent_chat_id":1,"timestamp":31.0,"input_length":80,)"
             R"("output_length":9,"hash_ids":[1,2,3,4,5]})");
  ASSERT_EQ(trace.sessions.size(), 2u);
  EXPECT_EQ(trace.sessions[0].turns, 2u);
  EXPECT_EQ(trace.list.hash_tokens, 16u);
  EXPECT_FALSE(trace.list.hashes_of_sessions);
  EXPECT_DOUBLE_EQ(trace.followers[0].wait.si(), 20.5);
}

TEST(SessionFiles, DynamoByDelays) {
  const SessionTrace trace = parsed(
      R"({"session_id":"x","input_length":600,"output_length":9,"hash_ids":[1]})"
      "\n"
      R"({"session_id":"y","timestamp":100,"input_length":600,"output_length":9,"hash_ids":[1]})"
      "\n"
      R"({"session_id":"x","delay":1500,"input_length":1200,"output_length":9,"hash_ids":[1,2]})"
      "\n"
      R"({"session_id":"y","timestamp":4100,"input_length":1200,"output_length":9,)"
      R"("hash_ids":[1,2]})");
  ASSERT_EQ(trace.sessions.size(), 2u);
  EXPECT_EQ(trace.list.hash_tokens, 512u);
  EXPECT_DOUBLE_EQ(trace.followers[0].wait.si(), 1.5);
  EXPECT_DOUBLE_EQ(trace.followers[1].wait.si(), 4.0);
}

TEST(SessionFiles, RefusesWhatIsNoSession) {
  const auto says = [](const std::string& text, const std::string& what) {
    const std::string message = error_text([&] { parsed(text); });
    EXPECT_NE(message.find(what), std::string::npos) << message;
  };
  says("", "sessions");
  says("{}", "looks like none");
  says(R"({"requests":[]})", "block_size");
  says(R"({"block":64,"requests":[]})", "no request");
  says(R"({"block":0,"requests":[{"in":1,"out":1}]})", "block");
  says(R"({"block":64,"requests":[{"in":0,"out":1}]})", "in");
  says(R"({"block":64,"requests":[{"in":1,"out":1,"think":-1}]})", "think");
  says(R"({"block":64,"requests":[{"in":1,"out":1,"hash_ids":[0.5]}]})", "hash_ids");
  says(R"({"block":64,"requests":[{"in":1,"out":1,"runs":[[1,-2]]}]})", "run");
  says(R"({"block":64,"requests":[{"in":64,"out":1,"runs":[[1,1e15]]}]})", "more hashes");
  says(R"({"block":64,"requests":[{"in":64,"out":1,"hash_ids":[1,2]}]})", "more hashes");
  says(R"({"block":64,"hash_id_scope":"global","requests":[{"in":1,"out":1}]})", "global");
  says(
      "{\"block\":64,\"requests\":[{\"in\":1,\"out\":1}]}\n{\"block\":16,\"requests\":[{\"in\":1,"
      "\"out\":1}]}",
      "blocks of 16");
  says(R"({"chat_id":1,"parent_chat_id":-1,"timestamp":1,"input_length":1,"output_length":1})"
       "\n"
       R"({"chat_id":1,"parent_chat_id":-1,"timestamp":1,"input_length":1,"output_length":1})",
       "twice");
  says(R"({"session_id":1,"input_length":1,"output_length":1})"
       "\n"
       R"({"session_id":1,"input_length":1,"output_length":1})",
       "delay");
  says(R"({"session_id":1,"timestamp":9,"input_length":1,"output_length":1})"
       "\n"
       R"({"session_id":1,"timestamp":8,"input_length":1,"output_length":1})",
       "before the turn");
}

}  // namespace
}  // namespace orrery::session_files_test
