// Pages that a reader can trust: none is too long, each is listed, and what they name is there.
#include <regex>

#include "tests/architecture/source_tree.hpp"

namespace orrery::pages_test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> pages() {
  std::vector<std::string> files = files_below("docs", {".md"});
  files.emplace_back("README.md");
  files.emplace_back("topologies/README.md");
  return files;
}

// Every match of `expression` in the text of `file`: its first group.
std::vector<std::string> named_in(const std::string& file, const std::regex& expression) {
  const std::string text = contents(source_tree() / file);
  std::vector<std::string> names;
  for (std::sregex_iterator match{text.begin(), text.end(), expression}, end; match != end; ++match)
    names.push_back((*match)[1]);
  return names;
}

TEST(Pages, AnswerOneQuestion) {
  for (const std::string& file : pages()) {
    // Rows that a program writes.
    if (file == "docs/reference/accuracy-rows.md" || file == "docs/explanation/famous-runs.md")
      continue;
    std::istringstream text{contents(source_tree() / file)};
    int words = 0;
    for (std::string word; text >> word;) ++words;
    EXPECT_LE(words, 2500) << file << ": cut it by topic";
  }
}

TEST(Pages, AreListed) {
  const std::string list = contents(source_tree() / "docs/README.md");
  for (const std::string& file : files_below("docs", {".md"})) {
    const std::string name = fs::path{file}.lexically_relative("docs").string();
    if (name == "README.md") continue;
    EXPECT_NE(list.find("(" + name + ")"), list.npos) << "docs/README.md does not list " << name;
  }
}

TEST(Pages, LinksLeadSomewhere) {
  int links = 0;
  for (const std::string& file : pages())
    for (const std::string& target : named_in(file, std::regex{R"(\]\(([^)#:]+)\))"})) {
      ++links;
      const fs::path page = source_tree() / file;
      EXPECT_TRUE(fs::exists(page.parent_path() / target)) << file << " links to " << target;
    }
  EXPECT_GT(links, 100);
}

// A path in backticks that begins with a folder of the source: a file, a folder, or without its
// extension a header. Patterns and names to be filled in are no paths.
TEST(Pages, NameFilesThatExist) {
  const std::regex path{"`((?:sim|tests|calibration|topologies|workloads)/[\\w./-]+)`"};
  int paths = 0;
  for (const std::string& file : pages())
    for (const std::string& name : named_in(file, path)) {
      ++paths;
      bool exists = false;
      for (const char* extension : {"", ".hpp", ".json"})
        exists = exists || fs::exists(source_tree() / (name + extension));
      EXPECT_TRUE(exists) << file << " names " << name;
    }
  EXPECT_GT(paths, 50);
}

}  // namespace
}  // namespace orrery::pages_test
