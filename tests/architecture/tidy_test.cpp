// Conventions that a review should not have to point out.
#include <map>
#include <regex>
#include <set>

#include "tests/architecture/source_tree.hpp"

namespace orrery::tidy_test {
namespace {

namespace fs = std::filesystem;

// Columns, not bytes: every byte of UTF-8 but those that continue a character.
std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::vector<std::string> own_text() {
  std::vector<std::string> files;
  for (const char* folder : {"sim", "tests", "docs", "calibration"})
    for (const std::string& file :
         files_below(folder, {".cpp", ".hpp", ".cu", ".cuh", ".md", ".sh", ".cmake"}))
      files.push_back(file);
  for (const auto& entry : fs::directory_iterator{source_tree()})
    if (entry.path().extension() == ".md" || entry.path().extension() == ".sh")
      files.push_back(entry.path().filename().string());
  for (const char* file : {"CMakeLists.txt", "sim/CMakeLists.txt", "tests/CMakeLists.txt",
                           "calibration/CMakeLists.txt"})
    files.emplace_back(file);
  return files;
}

TEST(Tidy, LinesFitAScreen) {
  for (const std::string& file : own_text()) {
    const bool prose = file.ends_with(".md");
    const std::vector<std::string> lines = lines_of(source_tree() / file);
    bool fenced = false;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::string& line = lines[i];
      if (prose && line.starts_with("```")) fenced = !fenced;
      // Rows of tables, addresses and what a command prints cannot be broken.
      const bool unbreakable =
          line.find("https://") != line.npos || (prose && (fenced || line[0] == '|'));
      if (!unbreakable) {
        EXPECT_LE(columns(line), 100u) << file << ":" << i + 1;
      }
      EXPECT_EQ(line.find('\t'), line.npos) << file << ":" << i + 1 << " has a tab";
      EXPECT_EQ(line.find('\r'), line.npos) << file << ":" << i + 1 << " ends as on Windows";
      EXPECT_FALSE(line.ends_with(' ')) << file << ":" << i + 1 << " ends in a blank";
    }
  }
}

TEST(Tidy, EverySourceIsBuilt) {
  const std::string sim = contents(source_tree() / "sim/CMakeLists.txt");
  for (const std::string& file : files_below("sim", {".cpp"})) {
    const std::string module = std::next(fs::path{file}.begin())->string();
    EXPECT_NE(sim.find("orrery_module(" + module), sim.npos)
        << file << " is in a folder that sim/CMakeLists.txt does not name";
  }
  // Folders of tests are named one by one or in the list of foreach; other sources by file.
  std::string tests;
  for (const std::string& file : files_below("tests", {".txt", ".cmake"}))
    tests += contents(source_tree() / file);
  for (const std::string& file : files_below("tests", {".cpp"})) {
    const fs::path path{file};
    const bool is_unit = file.starts_with("tests/unit/");
    if (is_unit && sim.find("orrery_module(" + std::next(path.begin(), 2)->string()) != sim.npos)
      continue;  // Each module has a folder of tests.
    const std::string folder =
        is_unit ? std::next(path.begin(), 2)->string() : path.parent_path().filename().string();
    const std::string by_folder = "orrery_test_folder\\((unit/)?" + folder;
    const std::string by_file = "\\b" + path.stem().string();
    const std::regex named{(file.ends_with("_test.cpp") ? by_folder + "\\b|" : "") + by_file +
                           "\\b"};
    EXPECT_TRUE(std::regex_search(tests, named)) << file << " is built by no CMakeLists.txt";
  }
}

// Two files of one name would differ by their folder alone.
TEST(Tidy, FilesOfSimHaveDifferentNames) {
  std::map<std::string, std::string> first;
  for (const std::string& file : files_below("sim", {".cpp", ".hpp"})) {
    const auto [known, fresh] = first.emplace(fs::path{file}.filename().string(), file);
    EXPECT_TRUE(fresh) << known->second << " and " << file;
  }
}

TEST(Tidy, HeadersAreIncludedOnce) {
  for (const char* folder : {"sim", "tests", "calibration"})
    for (const std::string& file : files_below(folder, {".hpp", ".cuh"}))
      EXPECT_NE(contents(source_tree() / file).find("#pragma once\n"), std::string::npos) << file;
}

// All of sim/ is one namespace and ends up in one program, where two types of one name are
// undefined behaviour ([basic.def.odr]) that neither compiler nor linker notices.
TEST(Tidy, NoTwoTypesHaveOneName) {
  const std::regex definition{"(?:struct|class|enum class|union) ([\\w:]+)[^;]*\\{.*"};
  std::map<std::string, std::string> file_of;
  for (const std::string& file : files_below("sim", {".cpp", ".hpp"})) {
    bool shared = true;  // Names in an unnamed namespace are the file's own.
    for (const std::string& line : lines_of(source_tree() / file)) {
      if (line == "namespace {") shared = false;
      if (line == "}  // namespace") shared = true;
      std::smatch match;
      if (!shared || !std::regex_match(line, match, definition)) continue;
      const auto [known, fresh] = file_of.emplace(match[1], file);
      EXPECT_TRUE(fresh) << match[1] << " is defined in " << known->second << " and " << file;
    }
  }
  EXPECT_GT(file_of.size(), 200u);
}

TEST(Tidy, TheReadmeNamesEveryFolder) {
  ASSERT_TRUE(fs::exists(source_tree() / "README.md")) << "there is no README.md";
  const std::string readme = contents(source_tree() / "README.md");
  for (const auto& entry : fs::directory_iterator{source_tree()}) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory() || name.starts_with('.') || name == "build" || fs::is_empty(entry))
      continue;
    EXPECT_NE(readme.find(name + "/"), readme.npos) << "README.md does not name " << name << "/";
  }
}

// Paths of one machine, and promises to be kept later. Written in halves so that this file passes.
TEST(Tidy, NothingIsLeftBehind) {
  std::set<std::string> files;
  for (const char* folder : {"sim", "tests", "docs", "topologies", "workloads", "calibration"})
    for (const std::string& file :
         files_below(folder, {".cpp", ".hpp", ".md", ".json", ".py", ".sh", ".cmake", ".txt"}))
      files.insert(file);
  for (const std::string& file : own_text()) files.insert(file);
  const std::regex banned{std::string{"(^|[^\\w.])/(wo"} + "rk|ho" + "me|ro" + "ot)/|\\bTO" +
                          "DO\\b|\\bFIX" + "ME\\b|\\bX" + "XX\\b"};
  for (const std::string& file : files) {
    const std::string text = contents(source_tree() / file);
    for (const char* start : {"/wo", "/ho", "/ro", "TO", "FIX", "XX"})
      if (text.find(start) != text.npos) {  // The expression is slow on megabytes of figures.
        const std::vector<std::string> lines = lines_of(source_tree() / file);
        for (std::size_t i = 0; i < lines.size(); ++i)
          EXPECT_FALSE(lines[i].size() < 10'000 && std::regex_search(lines[i], banned))
              << file << ":" << i + 1 << ": " << lines[i].substr(0, 120);
        break;
      }
  }
}

}  // namespace
}  // namespace orrery::tidy_test
