#include "sim/core/write_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::write_file_test {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

long entries(const fs::path& folder) {
  return std::distance(fs::directory_iterator{folder}, fs::directory_iterator{});
}

TEST(WriteFile, WritesAllAndLeavesNothingElse) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "out.json";
  write_file(path.string(), "first\n");
  EXPECT_EQ(content(path), "first\n");
  const std::string long_text(3'000'000, 'x');
  write_file(path.string(), long_text);
  EXPECT_EQ(content(path), long_text);
  write_file(path.string(), "");
  EXPECT_EQ(content(path), "");
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(WriteFile, KeepsPermissionsAndFollowsLinks) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "out.json";
  std::ofstream{path} << "old";
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(path, folder.path() / "link");
  write_file((folder.path() / "link").string(), "new");
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
  EXPECT_EQ(content(path), "new");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

// Renaming onto /dev/null would take the device away from the whole machine.
TEST(WriteFile, WritesToDevicesDirectly) {
  write_file("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(error_text([] { write_file("/dev/full", "text"); }),
            "/dev/full: cannot be written: No space left on device; free some space, or choose "
            "another disk");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST(WriteFile, WritesToPipesThatAreRead) {
  const TemporaryFolder folder;
  const std::string pipe = (folder.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_text([&] { write_file(pipe, "text"); }),
            pipe + ": is a pipe without a reader; start its reader first, or name a file");
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_file(pipe, "text");
  char read[8] = {};
  EXPECT_EQ(::read(reader, read, sizeof read), 4);
  EXPECT_STREQ(read, "text");
  ::close(reader);
}

TEST(WriteFile, SaysWhyItCannot) {
  const TemporaryFolder folder;
  const std::string base = folder.path().string();
  EXPECT_EQ(error_text([&] { write_file(base + "/none/out.json", "text"); }),
            base +
                "/none/out.json: cannot be written: No such file or directory; name a file in a "
                "folder that exists");
  EXPECT_EQ(error_text([&] { write_file(base, "text"); }),
            base + ": cannot be written: Is a directory; name a file in it, such as " + base +
                "/out.json");
  std::ofstream{base + "/file"} << "old";
  EXPECT_EQ(error_text([&] { write_file(base + "/file/out.json", "text"); }),
            base +
                "/file/out.json: cannot be written: Not a directory; name a file in a folder "
                "that exists");
}

// A limit on file sizes stops the write half-way, as a full disk does.
TEST(WriteFile, KeepsTheOldFileWhenTheNewOneCannotBeFinished) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "out.json").string();
  write_file(path, "old");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error = error_text([&] { write_file(path, std::string(5000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(error, path + ": cannot be written: File too large; choose another file or folder");
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(entries(folder.path()), 1);
}

// A process that was killed leaves its temporary file; one that still writes keeps it.
TEST(WriteFile, RemovesWhatKilledProcessesLeft) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "out.json").string();
  std::ofstream{path + ".123-0.part"} << "half";
  std::ofstream{path + ".notes.part"} << "somebody's";
  FileWriter other{path};
  other.append("other");
  write_file(path, "whole");
  EXPECT_FALSE(fs::exists(path + ".123-0.part"));
  EXPECT_TRUE(fs::exists(path + ".notes.part"));
  EXPECT_EQ(content(path), "whole");
  other.commit();
  EXPECT_EQ(content(path), "other");
}

}  // namespace
}  // namespace orrery::write_file_test
