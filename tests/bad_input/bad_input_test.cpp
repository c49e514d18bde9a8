// Every folder <command>/<mistake> next to this file is a test: `cmd` has the program's arguments
// in one line, `expected` the exit code and, from its second line on, stderr. The program runs in a
// copy of the folder. A refusal also has an empty stdout and leaves no file behind. The line
// `name MiB` in a file `make` asks for a file of blanks. UPDATE_GOLDEN=1 rewrites `expected`; read
// what it wrote.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "tests/support/temporary_folder.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

std::set<std::string> names_below(const fs::path& folder) {
  std::set<std::string> names;
  for (const fs::path& path : fs::recursive_directory_iterator{folder})
    names.insert(path.lexically_relative(folder).string());
  return names;
}

bool golden_is_rewritten() {
  const char* update = std::getenv("UPDATE_GOLDEN");
  return update && std::string{update} == "1";
}

class BadInput : public testing::Test {
 public:
  explicit BadInput(fs::path folder) : folder_{std::move(folder)} {}

  void TestBody() override {
    ASSERT_TRUE(fs::exists(folder_ / "cmd")) << "a mistake is a folder <command>/<mistake> in "
                                                "tests/bad_input, with the arguments in `cmd`";
    const std::string arguments = text_of(folder_ / "cmd");
    expect_to_lie_with_its_command(arguments);

    const TemporaryFolder there;
    const fs::path work = there.path() / "case";
    lay_out(work);
    const std::set<std::string> before = names_below(work);
    const std::string line = "cd '" + work.string() +
                             "' && exec '" ORRERY_TEST_BINARY_FOLDER
                             "/orrery' >../stdout "
                             "2>../stderr </dev/null " +
                             arguments;
    const int code = WEXITSTATUS(std::system(line.c_str()));
    const std::string actual = std::to_string(code) + "\n" + text_of(there.path() / "stderr");

    ASSERT_TRUE(code == 2 || code == 3)
        << "exit code; bad input is 2, an infeasible plan 3:\n" + actual;
    EXPECT_EQ(text_of(there.path() / "stdout"), "");
    EXPECT_EQ(names_below(work), before) << "files were left behind";
    if (golden_is_rewritten()) std::ofstream{folder_ / "expected", std::ios::binary} << actual;
    ASSERT_TRUE(fs::exists(folder_ / "expected")) << "record it with UPDATE_GOLDEN=1";
    EXPECT_EQ(actual, text_of(folder_ / "expected")) << folder_ << ": the refusal differs";
  }

 private:
  /// orrery/ has what is no command.
  void expect_to_lie_with_its_command(const std::string& arguments) const {
    const std::string command = folder_.parent_path().filename().string();
    if (command != "orrery") {
      EXPECT_EQ(arguments.substr(0, arguments.find_first_of(" \n")), command);
    }
  }

  void lay_out(const fs::path& work) const {
    fs::copy(folder_, work);
    for (const char* name : {"cmd", "expected", "make"}) fs::remove(work / name);
    std::ifstream make{folder_ / "make"};
    std::string name;
    std::size_t mebibytes = 0;
    if (make >> name >> mebibytes)
      std::ofstream{work / name} << std::string(mebibytes * 1024 * 1024, ' ');
  }

  fs::path folder_;
};

void register_mistakes() {
  std::set<fs::path> mistakes;  // The order does not depend on the disk.
  for (const auto& command : fs::directory_iterator{ORRERY_TEST_SOURCE "/tests/bad_input"})
    if (command.is_directory())
      for (const auto& mistake : fs::directory_iterator{command}) mistakes.insert(mistake.path());
  for (const fs::path& mistake : mistakes)
    testing::RegisterTest(mistake.parent_path().filename().c_str(), mistake.filename().c_str(),
                          nullptr, nullptr, __FILE__, __LINE__,
                          [mistake]() -> testing::Test* { return new BadInput{mistake}; });
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  ::unsetenv("ORRERY_DATA");
  testing::InitGoogleTest(&argc, argv);
  orrery::register_mistakes();
  const int failed = RUN_ALL_TESTS();
  return testing::UnitTest::GetInstance()->test_to_run_count() > 0 ? failed : 1;
}
