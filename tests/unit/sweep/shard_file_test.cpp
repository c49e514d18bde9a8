#include "sim/sweep/shard_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::shard_file_test {
namespace {

namespace fs = std::filesystem;

constexpr Shard shard{3, 10};

ShardHeader header_of(std::int64_t rows, const std::string& sweep = "one") {
  return {sealed(R"({"sweep":")" + sweep + R"("})"), rows};
}

std::string row_of(int number) { return "{\"n\":" + std::to_string(number) + "}"; }

// Of rows 0 to `rows` - 1.
std::string text_of(const ShardHeader& header, int rows) {
  const RowSeal seal{header};
  std::string text = header.line + "\n";
  for (int row = 0; row < rows; ++row) text += seal.seal(row, row_of(row)) + "\n";
  return text;
}

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream{path, std::ios::binary}.rdbuf();
  return text.str();
}

void write(const std::string& path, const std::string& text) {
  std::ofstream{path, std::ios::binary} << text;
}

std::vector<std::string> read(const std::string& path, const ShardHeader& header,
                              std::size_t chunk) {
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
  const ShardHeader header = header_of(2);
  ShardWriter writer{folder(), shard, header};
  writer.append(row_of(0));
  EXPECT_EQ(contents(partial()), text_of(header, 1));  // Row by row, not at the end.
  writer.append(row_of(1));
  writer.complete();
  EXPECT_FALSE(fs::exists(partial()));
  EXPECT_EQ(contents(whole()), text_of(header, 2));
  EXPECT_TRUE(read_shard(whole(), header).complete);
}

// Cut after every byte: what was whole stays, and the same rows make the same file again.
TEST_F(ShardFile, GoesOnAfterTheLastWholeRow) {
  const ShardHeader header = header_of(4);
  const std::string text = text_of(header, 4);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    SCOPED_TRACE(cut);
    write(partial(), text.substr(0, cut));
    const auto lines =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(cut), '\n');
    const auto there = static_cast<int>(std::max<std::ptrdiff_t>(0, lines - 1));
    ShardWriter writer{folder(), shard, header};
    EXPECT_EQ(writer.rows(), there);
    EXPECT_EQ(writer.damage(), "");
    EXPECT_EQ(writer.last_row(), there > 0 ? row_of(there - 1) : "");
    for (int row = there; row < 4; ++row) writer.append(row_of(row));
    EXPECT_EQ(contents(partial()), text);
  }
}

// Every byte in turn says something else: no row from there on counts, and it is said.
TEST_F(ShardFile, ADamagedRowIsNone) {
  const ShardHeader header = header_of(3);
  const std::string text = text_of(header, 3);
  for (std::size_t at = 0; at < text.size(); ++at)
    for (const char flip : {'\1', '\x80'}) {
      SCOPED_TRACE(at);
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      write(whole(), damaged);
      std::vector<std::string> rows;
      const ShardContents found = read_shard(
          whole(), header, [&](std::int64_t, const std::string& row) { rows.push_back(row); });
      EXPECT_FALSE(found.complete);
      EXPECT_NE(found.damage, "");
      const auto before =
          std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
      EXPECT_EQ(found.rows, std::max<std::ptrdiff_t>(0, before - 1));
      for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], row_of(static_cast<int>(i)));
      EXPECT_NE(error_text([&] { read(whole(), header, 64); }), "");
      write(partial(), damaged);
      EXPECT_EQ((ShardWriter{folder(), shard, header}.rows()), found.rows);
    }
}

// A file that was complete once, cut anywhere, also to nothing.
TEST_F(ShardFile, ACompleteFileHasAllItsRows) {
  const ShardHeader header = header_of(3);
  const std::string text = text_of(header, 3);
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    SCOPED_TRACE(cut);
    write(whole(), text.substr(0, cut));
    EXPECT_FALSE(read_shard(whole(), header).complete);
    EXPECT_NE(read_shard(whole(), header).damage, "");
    EXPECT_NE(error_text([&] { read(whole(), header, 64); }), "");
  }
  write(whole(), text + row_of(3) + "\n");
  EXPECT_EQ(read_shard(whole(), header).damage, "row 4 is damaged");
}

TEST_F(ShardFile, RowsOfAnotherSweepAreNotMixedIn) {
  const ShardHeader header = header_of(3), other = header_of(3, "two");
  { ShardWriter{folder(), shard, other}.append(row_of(0)); }
  const std::string message =
      ": holds rows of another sweep, of another version of it or of the program; name another "
      "--output folder, or remove this one";
  EXPECT_EQ(error_text([&] { (ShardWriter{folder(), shard, header}); }), partial() + message);
  EXPECT_EQ(error_text([&] { (ShardReader{partial(), header, 64}); }), partial() + message);
  EXPECT_EQ(error_text([&] { read_shard(partial(), header); }), partial() + message);
  EXPECT_EQ(contents(partial()), text_of(other, 1));
  // Single rows of it, and rows in another place, are no rows.
  const RowSeal own{header}, others{other};
  for (const std::string& row : {others.seal(0, row_of(0)), own.seal(1, row_of(0))}) {
    write(partial(), header.line + "\n" + row + "\n");
    EXPECT_EQ(read_shard(partial(), header).damage, "row 1 is damaged");
  }
}

// A pipe without a writer would block.
TEST_F(ShardFile, APipeIsNotWaitedFor) {
  ASSERT_EQ(mkfifo(whole().c_str(), 0600), 0);
  EXPECT_EQ(error_text([&] { read_shard(whole(), header_of(3)); }),
            whole() + ": is no file; remove it; its points will be computed again");
}

TEST_F(ShardFile, IsReadInChunksOfAnySize) {
  const ShardHeader header = header_of(9);
  ShardWriter writer{folder(), shard, header};
  std::vector<std::string> rows;
  for (int row = 0; row < 4; ++row) {
    rows.push_back(row_of(row == 2 ? 1'000'000 : row));
    writer.append(rows.back());
  }
  std::ofstream{partial(), std::ios::app} << "cut of";
  for (std::size_t chunk = 1; chunk < 100; ++chunk)
    EXPECT_EQ(read(partial(), header, chunk), rows) << chunk;
}

TEST_F(ShardFile, IsReadOnWhenItIsCompletedMeanwhile) {
  const ShardHeader header = header_of(2);
  ShardWriter writer{folder(), shard, header};
  writer.append(row_of(0));
  writer.append(row_of(1));
  ShardReader reader{partial(), header, 4};
  EXPECT_EQ(reader.next(), row_of(0));
  writer.complete();
  EXPECT_EQ(reader.next(), row_of(1));
  EXPECT_EQ(reader.next(), std::nullopt);
}

// The limit holds for a whole process, so a child runs this.
TEST_F(ShardFile, AFullDiskLeavesWholeRows) {
  const ShardHeader header = header_of(100);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{200, 200};
    setrlimit(RLIMIT_FSIZE, &limit);
    const std::string error = error_text([&] {
      ShardWriter writer{folder(), shard, header};
      for (int i = 0; i < 100; ++i) writer.append(row_of(i));
    });
    const bool right = error == partial() +
                                    ": cannot be written: File too large; make room and run the "
                                    "same command again; what is written counts";
    _exit(right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  // 42 bytes of header and 35 a row: 4 rows fit in 200 bytes.
  EXPECT_EQ(contents(partial()), text_of(header, 4));
}

TEST_F(ShardFile, IsWrittenByOneProcessAtATime) {
  const ShardHeader header = header_of(1);
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
}  // namespace orrery::shard_file_test
