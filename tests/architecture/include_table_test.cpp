// Dependencies go one way: sim/CMakeLists.txt says which module may include which. The linker does
// not enforce this, as a linked library also provides what *it* uses; here every include is checked
// against the list itself.
#include <map>
#include <regex>
#include <set>

#include "tests/architecture/source_tree.hpp"

namespace orrery::include_table_test {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

struct Module {
  std::string name;
  Names uses;  ///< Itself as well.
};

// Reads lines such as: orrery_module(moe USES core model LIBRARIES Boost::headers)
std::vector<Module> modules() {
  const std::string text = contents(source_tree() / "sim/CMakeLists.txt");
  static const std::regex call{R"(\norrery_module\((\w+)([^)]*)\))"};
  std::vector<Module> modules;
  for (std::sregex_iterator found{text.begin(), text.end(), call}, end; found != end; ++found) {
    std::istringstream words{(*found)[2].str()};
    Module module{(*found)[1], {(*found)[1]}};
    bool listed = false;
    for (std::string word; words >> word && word != "LIBRARIES";) {
      if (listed) module.uses.insert(word);
      if (word == "USES") listed = true;
    }
    modules.push_back(module);
  }
  return modules;
}

std::map<std::string, Names> uses_of_modules() {
  std::map<std::string, Names> table;
  for (const Module& module : modules()) table[module.name] = module.uses;
  return table;
}

struct Include {
  std::string file, module, target;
};

std::vector<Include> includes(const std::regex& pattern) {
  std::vector<Include> found;
  for (const std::string& file : files_below("sim", {".cpp", ".hpp"}))
    for (const std::string& line : lines_of(source_tree() / file)) {
      std::smatch match;
      if (std::regex_search(line, match, pattern))
        found.push_back({file, std::next(fs::path{file}.begin())->string(), match[1]});
    }
  return found;
}

TEST(IncludeTable, IsRead) {
  const auto table = uses_of_modules();
  EXPECT_GE(table.size(), 15u);
  EXPECT_EQ(table.at("core"), Names{"core"});
  EXPECT_EQ(table.at("measurements"), (Names{"core", "cluster", "measurements"}));
}

TEST(IncludeTable, ThereAreFewModules) { EXPECT_LE(modules().size(), 25u); }

TEST(IncludeTable, EveryModuleIncludesOnlyWhatItNames) {
  const auto table = uses_of_modules();
  const auto all = includes(std::regex{R"re(^\s*#\s*include\s+"sim/(\w+)/)re"});
  EXPECT_GE(all.size(), 100u);  // Fewer would mean that the pattern misses them.
  for (const auto& [file, module, target] : all) {
    ASSERT_TRUE(table.contains(module)) << file << ": sim/CMakeLists.txt has no module " << module;
    EXPECT_TRUE(table.at(module).contains(target))
        << file << " includes sim/" << target << ", which sim/CMakeLists.txt does not list for "
        << module;
  }
}

// A module that is named but not needed would allow a dependency without a decision.
TEST(IncludeTable, EveryModuleNamesOnlyWhatItIncludes) {
  std::map<std::string, Names> included;
  for (const auto& [file, module, target] :
       includes(std::regex{R"re(^\s*#\s*include\s+"(?:sim/(\w+)/|calibration/host/))re"}))
    included[module].insert(target.empty() ? "calibration_host" : target);
  for (const auto& [name, uses] : uses_of_modules())
    for (const std::string& used : uses)
      EXPECT_TRUE(used == name || included[name].contains(used))
          << "sim/CMakeLists.txt: " << name << " does not need " << used;
}

// A module names only modules that are listed before it, so there is no cycle.
TEST(IncludeTable, DependenciesAreListedFirst) {
  Names before{"calibration_host"};
  for (const Module& module : modules()) {
    for (const std::string& used : module.uses)
      EXPECT_TRUE(used == module.name || before.contains(used))
          << module.name << " names " << used << ", which is not listed before it";
    EXPECT_TRUE(before.insert(module.name).second) << module.name << " is listed twice";
  }
}

// The modules and folders that may use each third-party library.
TEST(IncludeTable, ThirdPartiesAreConfined) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> allowed{
      {"nlohmann/",
       {"core", "collectives", "moe", "training", "reliability", "serving", "fleet", "posttraining",
        "search", "sweep", "profile", "validation", "calibration", "formats", "explorer"}},
      {"boost/graph/", {"cluster"}},
      {"boost/container/", {"training"}},
      {"boost/property_tree/", {"formats/inventory"}},
      {"boost/program_options", {"cli"}},
      {"sqlite3.h", {"sweep"}},
      {"simgrid/", {"engine/simgrid"}},
      {"yaml.h", {"formats/settings"}},
      {"toml++/", {"formats/settings"}},
      {"httplib.h", {"explorer/http"}},
      {"zlib.h", {"profile"}},
  };
  Names met;
  for (const auto& [file, module, target] :
       includes(std::regex{R"(^\s*#\s*include\s+<([^>]*[/.][^>]*)>)"})) {
    const auto rule = std::find_if(allowed.begin(), allowed.end(),
                                   [&](const auto& r) { return target.starts_with(r.first); });
    if (rule == allowed.end()) {  // A header that is in no list and has a slash may be POSIX.
      EXPECT_TRUE(target.starts_with("sys/") || target.find('/') == target.npos)
          << file << " includes " << target << ", which no module may";
      continue;
    }
    met.insert(rule->first);
    EXPECT_TRUE(std::any_of(
        rule->second.begin(), rule->second.end(),
        [&](const std::string& folder) { return file.starts_with("sim/" + folder + "/"); }))
        << file << " may not include " << target;
  }
  EXPECT_EQ(met.size(), allowed.size());
}

TEST(IncludeTable, OwnHeadersAreIncludedFromTheRoot) {
  const auto table = uses_of_modules();
  for (const auto& [file, module, target] : includes(std::regex{R"re(#\s*include\s+"([^"]+)")re"}))
    EXPECT_TRUE(target.starts_with("sim/") || (target.starts_with("calibration/host/") &&
                                               table.at(module).contains("calibration_host")))
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

// Headers that include each other stand alone only in one order of inclusion.
TEST(IncludeTable, NoHeaderIncludesItself) {
  std::map<std::string, Names> below;
  for (const auto& [file, module, target] : includes(std::regex{R"re(#include "(sim/[^"]+)")re"}))
    if (file.ends_with(".hpp")) below[file].insert(target);
  ASSERT_GE(below.size(), 100u);
  for (const auto& [header, first] : below) {
    Names met = first;
    std::vector<std::string> open{first.begin(), first.end()};
    while (!open.empty()) {
      const auto next = below.find(open.back());
      open.pop_back();
      if (next == below.end()) continue;
      for (const std::string& target : next->second)
        if (met.insert(target).second) open.push_back(target);
    }
    EXPECT_FALSE(met.contains(header)) << header << " includes itself by way of others";
  }
}

}  // namespace
}  // namespace orrery::include_table_test
