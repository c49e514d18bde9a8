// Pages that a reader can trust: none is too long, each is listed, and what they name is there.
#include <cctype>
#include <regex>
#include <set>

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

// Words outside of fenced blocks: examples and what they print are not read from end to end.
int words_of_prose(const std::string& file) {
  std::istringstream text{contents(source_tree() / file)};
  int words = 0;
  bool fenced = false;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("```")) {
      fenced = !fenced;
      continue;
    }
    if (fenced) continue;
    std::istringstream rest{line};
    for (std::string word; rest >> word;) ++words;
  }
  return words;
}

// Programs write the pages of docs/reference/generated.
bool is_generated(const std::string& file) { return file.starts_with("docs/reference/generated/"); }

bool is_note(const std::string& file) {
  return file.starts_with("docs/notes/") || file == "docs/ARCHITECTURE.md" ||
         file == "docs/DEVELOPING.md" || file == "docs/ROADMAP.md";
}

TEST(Pages, AnswerOneQuestion) {
  for (const std::string& file : pages()) {
    if (is_generated(file)) continue;
    EXPECT_LE(words_of_prose(file), 2500) << file << ": cut it by topic";
  }
}

// Readers find the page that they want, and can read all of them.
TEST(Pages, AreFewEnoughToRead) {
  int count = 0, words = 0;
  for (const std::string& file : files_below("docs", {".md"})) {
    if (is_generated(file) || is_note(file)) continue;
    ++count;
    words += words_of_prose(file);
  }
  EXPECT_LE(count, 40) << "merge pages, or move what contributors need to docs/notes";
  EXPECT_LE(words, 60000) << "cut pages, or move what contributors need to docs/notes";
}

TEST(Pages, HaveNamesInLowerCase) {
  const std::regex name{"[a-z0-9]+(-[a-z0-9]+)*\\.md"};
  for (const std::string& file : files_below("docs", {".md"})) {
    if (fs::path{file}.parent_path() == "docs") continue;
    EXPECT_TRUE(std::regex_match(fs::path{file}.filename().string(), name)) << file;
  }
}

// Each page is listed in the map, each page of a command in the list of commands.
TEST(Pages, AreListed) {
  const std::string map = contents(source_tree() / "docs/README.md");
  const std::string commands = contents(source_tree() / "docs/reference/generated/commands.md");
  for (const std::string& file : files_below("docs", {".md"})) {
    if (file == "docs/README.md") continue;
    const bool of_command = file.starts_with("docs/reference/generated/commands/");
    const std::string list = of_command ? "docs/reference/generated/commands.md" : "docs/README.md";
    const std::string name =
        fs::path{file}.lexically_relative(fs::path{list}.parent_path()).string();
    EXPECT_NE((of_command ? commands : map).find("(" + name + ")"), std::string::npos)
        << list << " does not list " << file;
  }
}

// The anchor that GitHub gives a heading.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading)
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_')
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (c == ' ')
      anchor += '-';
  return anchor;
}

bool has_heading(const fs::path& page, const std::string& anchor) {
  std::istringstream text{contents(page)};
  for (std::string line; std::getline(text, line);)
    if (line.starts_with("#") && anchor_of(line.substr(line.find_first_not_of("# "))) == anchor)
      return true;
  return false;
}

TEST(Pages, LinksLeadSomewhere) {
  const std::regex link{R"(\]\(([^):\s]+)\))"};
  int links = 0;
  for (const std::string& file : pages())
    for (const std::string& target : named_in(file, link)) {
      ++links;
      const std::size_t hash = target.find('#');
      const std::string path = target.substr(0, hash);
      const fs::path page =
          path.empty() ? source_tree() / file : (source_tree() / file).parent_path() / path;
      ASSERT_TRUE(fs::exists(page)) << file << " links to " << target;
      if (hash == std::string::npos) continue;
      EXPECT_TRUE(has_heading(page, target.substr(hash + 1))) << file << " links to " << target;
    }
  EXPECT_GT(links, 300);
}

// The pages that a file names, as docs/guides/serve.md. Those of other projects have other folders.
std::vector<std::string> pages_named_in(const std::string& file) {
  static const std::regex page{
      R"(docs/([A-Z]+|(tutorials|guides|reference|explanation|notes)/[a-z/-]+)\.md)"};
  const std::string text = contents(source_tree() / file);
  const std::string in_paths = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
  std::vector<std::string> names;
  for (std::size_t at = text.find("docs/"); at != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_not_of(in_paths, at), text.size());
    std::string name = text.substr(at, end - at);
    while (name.ends_with('.')) name.pop_back();
    if (std::regex_match(name, page)) names.push_back(name);
    at = text.find("docs/", end);
  }
  return names;
}

TEST(Pages, AreWhereCodeSaysTheyAre) {
  int mentions = 0;
  for (const char* folder : {"sim", "tests", "calibration", "topologies", "workloads"})
    for (const std::string& file :
         files_below(folder, {".hpp", ".cpp", ".ts", ".py", ".sh", ".json", ".md"})) {
      if (file.starts_with("tests/fuzz/corpus/")) continue;  // Texts as fuzzers found them.
      for (const std::string& name : pages_named_in(file)) {
        ++mentions;
        EXPECT_TRUE(fs::exists(source_tree() / name)) << file << " names " << name;
      }
    }
  EXPECT_GT(mentions, 200);
}

// Words of a dialect of our own, for which the field has others.
TEST(Pages, SpeakTheLanguageOfTheField) {
  const std::regex word{"\\b(whoever|storey|mended|spelt|sleeping|knobs?|twins?)\\b"};
  for (const std::string& file : files_below("docs", {".md"}))
    if (!is_note(file) && !is_generated(file))
      for (const std::string& used : named_in(file, word))
        ADD_FAILURE() << file << " says '" << used << "'";
}

// A source that is named without its folder.
TEST(Pages, NameSourcesThatExist) {
  std::set<std::string> sources;
  for (const char* folder : {"sim", "tests", "calibration"})
    for (const std::string& file : files_below(folder, {".hpp", ".cpp", ".cu"}))
      sources.insert(fs::path{file}.filename().string());
  const std::regex bare{"`([a-z_0-9]+\\.(?:hpp|cpp|cu))`"};
  int names = 0;
  for (const std::string& file : pages())
    for (const std::string& name : named_in(file, bare)) {
      ++names;
      EXPECT_TRUE(sources.contains(name)) << file << " names " << name;
    }
  EXPECT_GT(names, 10);
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
