// Data flows one way: sim/CMakeLists.txt says which folder may include which. A library that is
// linked would also compile includes of what *it* uses, so the linker does not keep this; here
// every include is held against the list itself.
#include <map>
#include <regex>
#include <set>

#include "tests/architecture/source_tree.hpp"

namespace orrery {
namespace {

using Folders = std::set<std::string>;

// From lines such as: orrery_library(cost USES core input PRIVATE_LIBRARIES Boost::headers)
std::map<std::string, Folders> include_table() {
  const std::string text = contents(source_tree() / "sim/CMakeLists.txt");
  static const std::regex call{R"(\norrery_library\(([^)]*)\))"};
  std::map<std::string, Folders> table;
  for (std::sregex_iterator found{text.begin(), text.end(), call}, end; found != end; ++found) {
    std::istringstream words{(*found)[1].str()};
    std::string folder, word;
    words >> folder;
    Folders& uses = table[folder];
    uses.insert(folder);
    for (bool listed = false; words >> word;) {
      if (word == "PRIVATE_LIBRARIES") break;
      if (word == "USES")
        listed = true;
      else if (listed)
        uses.insert(word);
    }
  }
  // The command line comes last and may see everything.
  Folders& cli = table["cli"];
  for (const auto& [folder, unused] : table) cli.insert(folder);
  cli.insert("calibration");
  return table;
}

struct Include {
  std::string file, folder, target;
};

std::vector<Include> includes(const std::regex& pattern) {
  std::vector<Include> found;
  for (const std::string& file : files_below("sim", {".cpp", ".hpp"}))
    for (const std::string& line : lines_of(source_tree() / file)) {
      std::smatch match;
      if (std::regex_search(line, match, pattern))
        found.push_back({file, file.substr(4, file.find('/', 4) - 4), match[1]});
    }
  return found;
}

TEST(IncludeTable, IsUnderstood) {
  const auto table = include_table();
  EXPECT_GE(table.size(), 10u);
  EXPECT_EQ(table.at("core"), Folders{"core"});
  EXPECT_EQ(table.at("input"), (Folders{"core", "input", "schedule"}));
}

TEST(IncludeTable, EveryFolderIncludesOnlyWhatItNames) {
  const auto table = include_table();
  const auto all = includes(std::regex{R"re(^\s*#\s*include\s+"sim/(\w+)/)re"});
  EXPECT_GE(all.size(), 100u);  // Fewer would mean that the pattern misses them.
  for (const auto& [file, folder, target] : all) {
    const auto row = table.find(folder);
    ASSERT_NE(row, table.end()) << file << ": sim/CMakeLists.txt names no folder " << folder;
    EXPECT_TRUE(row->second.contains(target))
        << file << " includes sim/" << target << ", which sim/CMakeLists.txt does not list for "
        << folder;
  }
}

TEST(IncludeTable, NothingPointsBack) {
  std::map<std::string, Folders> left = include_table();
  for (auto& [folder, uses] : left) uses.erase(folder);
  for (bool removed = true; removed;) {
    removed = false;
    for (auto row = left.begin(); row != left.end();) {
      const bool free = std::none_of(row->second.begin(), row->second.end(),
                                     [&](const auto& used) { return left.contains(used); });
      row = free ? (removed = true, left.erase(row)) : std::next(row);
    }
  }
  for (const auto& [folder, unused] : left) ADD_FAILURE() << folder << " is part of a cycle";
}

TEST(IncludeTable, ThirdPartiesStayInTheirFolders) {
  const std::vector<std::pair<std::string, Folders>> allowed{
      {"nlohmann/", {"input", "import", "output", "sweep"}},
      {"boost/property_tree/", {"import"}},
      {"boost/graph/", {"topology", "graph"}},
      {"boost/program_options", {"cli"}},
      {"sqlite3.h", {"sweep"}},
      {"simgrid/", {"engine"}},
      {"xbt/", {"engine"}},  // SimGrid's base library.
  };
  Folders met;
  for (const auto& [file, folder, target] :
       includes(std::regex{R"(^\s*#\s*include\s+<([^>]*[/.][^>]*)>)"})) {
    const auto rule = std::find_if(allowed.begin(), allowed.end(),
                                   [&](const auto& r) { return target.starts_with(r.first); });
    // What has a slash and is nobody's is POSIX.
    if (rule == allowed.end()) {
      EXPECT_TRUE(target.starts_with("sys/") || target.find('/') == target.npos)
          << file << " includes " << target << ", which no folder may";
      continue;
    }
    met.insert(rule->first);
    EXPECT_TRUE(rule->second.contains(folder)) << file << " may not include " << target;
  }
  EXPECT_GE(met.size(), 4u);
}

TEST(IncludeTable, OwnHeadersAreIncludedFromTheRoot) {
  const auto table = include_table();
  for (const auto& [file, folder, target] : includes(std::regex{R"re(#\s*include\s+"([^"]+)")re"}))
    EXPECT_TRUE(target.starts_with("sim/") ||
                (target.starts_with("calibration/host/") && table.contains(folder) &&
                 table.at(folder).contains("calibration")))
        << file << " includes \"" << target << '"';
}

// A source that includes its own header first proves that the header stands alone; the headers
// without one are compiled by headers_alone.cmake.
TEST(IncludeTable, SourcesIncludeTheirOwnHeaderFirst) {
  int checked = 0;
  for (const std::string& file : files_below("sim", {".cpp"})) {
    const std::string header = file.substr(0, file.size() - 4) + ".hpp";
    if (!std::filesystem::exists(source_tree() / header)) continue;
    const std::vector<std::string> lines = lines_of(source_tree() / file);
    const auto first = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.starts_with("#include");
    });
    ASSERT_NE(first, lines.end()) << file;
    EXPECT_EQ(*first, "#include \"" + header + "\"") << file;
    ++checked;
  }
  EXPECT_GE(checked, 20);
}

}  // namespace
}  // namespace orrery
