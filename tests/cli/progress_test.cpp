// Long commands report progress on a terminal, and nowhere else.
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "tests/support/program.hpp"

namespace orrery::progress_test {
namespace {

const std::string slow =
    "collective all_to_all --system dgx-h100 --gpus 72 --unfolded --bytes 1MiB --simulator simgrid";

// The output on a terminal that is the command's stderr alone.
std::string stderr_on_a_terminal(const std::string& arguments) {
  int master = -1, slave = -1;
  if (::openpty(&master, &slave, nullptr, nullptr, nullptr) != 0) return "no terminal";
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(slave, STDERR_FILENO);
    const std::string command =
        "'" ORRERY_TEST_BINARY_FOLDER "/orrery' " + arguments + " >/dev/null";
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(slave);
  std::string text;
  char buffer[4096];
  for (ssize_t count; (count = ::read(master, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(count));
  ::close(master);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << text;
  return text;
}

TEST(Progress, ATerminalSeesHowFarItIs) {
  const std::string text = stderr_on_a_terminal(slow);
  EXPECT_NE(text.find("0 of 1 sizes, 0 of 1 tasks, 0 of 5,000 flows"), text.npos) << text;
  EXPECT_TRUE(text.ends_with("\r\033[K")) << text;  // Nothing stays.
  EXPECT_EQ(stderr_on_a_terminal("list gpus"), "");
}

TEST(Progress, AProgramThatAsksReadsLines) {
  const Outcome outcome =
      run_shell("(ORRERY_PROGRESS=lines '" ORRERY_TEST_BINARY_FOLDER "/orrery' " + slow +
                " 2>&1 >/dev/null)");
  EXPECT_TRUE(outcome.out.starts_with("orrery: progress: 0 of 1 sizes, ")) << outcome.out;
  EXPECT_EQ(outcome.out.find_first_of("\r\033"), outcome.out.npos) << outcome.out;
  EXPECT_TRUE(outcome.out.ends_with("flows\n")) << outcome.out;
}

TEST(Progress, NoOtherStreamDoes) {
  const Outcome outcome =
      run_shell("('" ORRERY_TEST_BINARY_FOLDER "/orrery' " + slow + " 2>&1 >/dev/null)");
  EXPECT_EQ(outcome.out, "");
}

}  // namespace
}  // namespace orrery::progress_test
