#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/core/text_file.hpp"
#include "sim/core/write_file.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::output_files_test {
namespace {

namespace fs = std::filesystem;

const std::string ours = R"({"schema": "orrery.test/1"})";

class OutputFilesTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  void lay(const std::string& name, const std::string& text) const {
    std::ofstream{path(name)} << text;
  }
  std::string content(const std::string& name) const {
    std::ifstream file{path(name), std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  std::string refusal(const std::string& name, bool force = false) const {
    return error_text([&] {
      OutputFiles files{force};
      files.add(path(name), ours);
      files.commit();
    });
  }

  TemporaryFolder folder_;
};

TEST_F(OutputFilesTest, AreThereTogetherOrNotAtAll) {
  lay("theirs", "Dear reader");
  const std::string error = error_text([&] {
    OutputFiles files{false};
    files.add(path("one"), ours);
    files.add(path("theirs"), ours);
    files.commit();
  });
  EXPECT_EQ(error, path("theirs") +
                       ": is there, and Orrery did not write it; name another file, or say --force "
                       "to replace it");
  EXPECT_FALSE(fs::exists(path("one")));
  {
    OutputFiles files{false};
    files.add(path("one"), "first");
    EXPECT_FALSE(fs::exists(path("one")));
    files.add(path("two"), "second");
    files.commit();
  }
  EXPECT_EQ(content("one") + content("two"), "firstsecond");
  EXPECT_EQ(std::distance(fs::directory_iterator{folder_.path()}, {}), 3);
}

TEST_F(OutputFilesTest, ReplaceWhatOrreryWrote) {
  for (const std::string& text : {ours, std::string{}, std::string{"<svg>\n<!-- orrery -->"},
                                  std::string{"// orrery\ngraph {"},
                                  std::string{R"(<head><meta name="generator" content="orrery">)"},
                                  std::string{"point,model\n"}, std::string{R"({"point":0})"}}) {
    lay("file", text);
    EXPECT_EQ(refusal("file"), "no error") << text;
    EXPECT_EQ(content("file"), ours);
  }
  lay("theirs", "Dear reader");
  EXPECT_EQ(refusal("theirs", true), "no error");
  EXPECT_EQ(content("theirs"), ours);
}

TEST_F(OutputFilesTest, NeverReplaceWhatWasRead) {
  lay("input", ours);
  fs::create_symlink(path("input"), path("link"));
  fs::create_hard_link(path("input"), path("hard"));
  const FilesRead files;
  read_input_file(path("input"));
  for (const std::string& name : std::initializer_list<std::string>{
           "input", "link", "hard", "../" + folder_.path().filename().string() + "/input"})
    for (const bool force : {false, true})
      EXPECT_EQ(refusal(name, force), path(name) + ": is also what is read; name another file");
}

TEST_F(OutputFilesTest, EachHasAFileOfItsOwn) {
  const std::string error = error_text([&] {
    OutputFiles files{true};
    files.add(path("one"), ours);
    files.add((folder_.path() / "." / "one").string(), ours);
  });
  EXPECT_NE(error.find("is named for two outputs; name a file for each"), error.npos) << error;
  OutputFiles devices{false};
  devices.add("/dev/null", ours);
  devices.add("/dev/null", ours);
  devices.commit();
}

}  // namespace
}  // namespace orrery::output_files_test
