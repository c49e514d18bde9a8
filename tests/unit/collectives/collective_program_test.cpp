#include "sim/collectives/collective_program.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_text.hpp"

namespace orrery::collective_program_test {
namespace {

CollectiveProgram read(const std::string& text) {
  return parse_collective_program(JsonValue::parse(text, "p.json"));
}

TEST(CollectiveProgram, IsAListOfMessages) {
  const CollectiveProgram program =
      read(R"([{"step": 0, "src": 1, "dst": 3, "bytes": 7}, )"
           R"({"step": 2, "src": 0, "dst": 1, "bytes": 0, "recv_step": 5}])");
  ASSERT_EQ(program.messages.size(), 2u);
  EXPECT_EQ(program.ranks, 4);
  EXPECT_EQ(program.messages[0].src, 1);
  EXPECT_EQ(program.messages[0].dst, 3);
  EXPECT_EQ(program.messages[0].bytes, Bytes{7.0});
  EXPECT_EQ(program.messages[0].recv_step, 0);
  EXPECT_EQ(program.messages[1].step, 2);
  EXPECT_EQ(program.messages[1].recv_step, 5);
}

TEST(CollectiveProgram, SaysWhatCannotBeMeant) {
  const auto error = [](const std::string& text) { return error_text([&] { read(text); }); };
  EXPECT_EQ(error("[]"),
            "p.json: has no message; write [{\"step\": 0, \"src\": 0, \"dst\": 1, \"bytes\": "
            "4096}]");
  EXPECT_EQ(error(R"([{"step": 0, "src": 2, "dst": 2, "bytes": 1}])"),
            "p.json: /0/dst: rank 2 sends to itself; leave out what a rank keeps");
  EXPECT_NE(error(R"({"step": 0})"), "no error");
  EXPECT_NE(error(R"([{"step": 0, "src": 0, "dst": 1}])"), "no error");
  EXPECT_NE(error(R"([{"step": 0, "src": 0, "dst": 1, "bytes": 1, "recvstep": 1}])"), "no error");
  EXPECT_NE(error(R"([{"step": -1, "src": 0, "dst": 1, "bytes": 1}])"), "no error");
  EXPECT_NE(error(R"([{"step": 0, "src": 0, "dst": 1, "bytes": 0.5}])"), "no error");
}

}  // namespace
}  // namespace orrery::collective_program_test
