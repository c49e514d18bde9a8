#include "sim/analysis/sweep/shard_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

const std::string header = R"({"schema":"test"})";
constexpr Shard shard{3, 10};

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream{path, std::ios::binary}.rdbuf();
  return text.str();
}

std::vector<std::string> read(const std::string& path, std::size_t chunk) {
  ShardReader reader{path, header, chunk};
  std::vector<std::string> rows;
  while (auto row = reader.next()) rows.push_back(*row);
  return rows;
}

class ShardFile : public testing::Test {
 protected:
  std::string folder() const { return folder_.path().string(); }
  std::string partial() const { return partial_shard_path(folder(), shard); }
  std::string whole() const { return shard_path(folder(), shard); }

 private:
  TemporaryFolder folder_;
};

TEST_F(ShardFile, IsNamedAfterItsShard) {
  EXPECT_EQ(whole(), folder() + "/shard-00003-of-00010.jsonl");
  EXPECT_EQ(partial(), folder() + "/shard-00003-of-00010.jsonl.part");
}

TEST_F(ShardFile, GetsItsNameWhenItIsComplete) {
  ShardWriter writer{folder(), shard, header};
  writer.append("one");
  EXPECT_EQ(contents(partial()), header + "\none\n");  // Row by row, not at the end.
  writer.append("two");
  writer.complete();
  EXPECT_FALSE(fs::exists(partial()));
  EXPECT_EQ(contents(whole()), header + "\none\ntwo\n");
}

// Cut after every byte: what was whole stays, and the same rows make the same file again.
TEST_F(ShardFile, GoesOnAfterTheLastWholeRow) {
  const std::vector<std::string> rows{"first", "2", "", "the fourth row"};
  std::string text = header + "\n";
  for (const std::string& row : rows) text += row + "\n";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    SCOPED_TRACE(cut);
    std::ofstream{partial(), std::ios::binary} << text.substr(0, cut);
    const std::string kept = text.substr(0, text.rfind('\n', cut - 1) + 1);
    std::size_t there = 0;
    for (std::size_t i = 0; i < cut; ++i) there += text[i] == '\n';
    there = there > 0 ? there - 1 : 0;
    ShardWriter writer{folder(), shard, header};
    EXPECT_EQ(writer.rows(), static_cast<std::int64_t>(there));
    EXPECT_EQ(writer.last_row(), there > 0 ? rows[there - 1] : "");
    for (std::size_t i = there; i < rows.size(); ++i) writer.append(rows[i]);
    EXPECT_EQ(contents(partial()), text);
  }
}

TEST_F(ShardFile, RowsOfAnotherSweepAreNotMixedIn) {
  { ShardWriter{folder(), shard, "{}"}.append("row"); }
  const std::string message =
      ": holds rows of another sweep, of another version of it or of the program; name another "
      "--out folder, or remove this one";
  EXPECT_EQ(error_text([&] { (ShardWriter{folder(), shard, header}); }), partial() + message);
  EXPECT_EQ(error_text([&] { (ShardReader{partial(), header, 64}); }), partial() + message);
  EXPECT_EQ(contents(partial()), "{}\nrow\n");
}

TEST_F(ShardFile, IsReadInChunksOfAnySize) {
  const std::vector<std::string> rows{"first", "2", "", "a longer row than the others"};
  ShardWriter writer{folder(), shard, header};
  for (const std::string& row : rows) writer.append(row);
  std::ofstream{partial(), std::ios::app} << "cut of";
  for (std::size_t chunk = 1; chunk < 100; ++chunk)
    EXPECT_EQ(read(partial(), chunk), rows) << chunk;
  EXPECT_EQ(count_lines(partial()), 5);
}

TEST_F(ShardFile, IsReadOnWhenItIsCompletedMeanwhile) {
  ShardWriter writer{folder(), shard, header};
  writer.append("one");
  writer.append("two");
  ShardReader reader{partial(), header, 4};
  EXPECT_EQ(reader.next(), "one");
  writer.complete();
  EXPECT_EQ(reader.next(), "two");
  EXPECT_EQ(reader.next(), std::nullopt);
}

// In a child, as the limit holds for the whole process.
TEST_F(ShardFile, AFullDiskLeavesWholeRows) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{64, 64};
    setrlimit(RLIMIT_FSIZE, &limit);
    const std::string error = error_text([&] {
      ShardWriter writer{folder(), shard, header};
      for (int i = 0; i < 100; ++i) writer.append("row " + std::to_string(1000 + i));
    });
    const bool right = error == partial() +
                                    ": cannot be written: File too large; make room and run the "
                                    "same command again; what is written counts";
    _exit(right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  // 18 bytes of header and 9 a row: 5 rows fit in 64 bytes.
  EXPECT_EQ(contents(partial()), header + "\nrow 1000\nrow 1001\nrow 1002\nrow 1003\nrow 1004\n");
}

TEST_F(ShardFile, IsWrittenByOneProcessAtATime) {
  const ShardWriter writer{folder(), shard, header};
  const pid_t child = fork();
  if (child == 0) {
    const std::string error = error_text([&] { (ShardWriter{folder(), shard, header}); });
    _exit(error == partial() +
                       ": is being written by another process; wait until it ends, or give "
                       "this one another --shard"
              ? 0
              : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace orrery
