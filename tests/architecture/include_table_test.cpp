// Data flows one way: sim/CMakeLists.txt says which room may include which. A library that is
// linked would also compile includes of what *it* uses, so the linker does not keep this; here
// every include is held against the list itself.
#include <map>
#include <regex>
#include <set>

#include "tests/architecture/source_tree.hpp"

namespace orrery::include_table_test {
namespace {

using Rooms = std::set<std::string>;

/// A room by its last name, "passes", and the storey that it is in, "cost".
struct Room {
  std::string name, storey;
  Rooms uses;  ///< Itself as well.
};

// From lines such as: orrery_room(cost/memory USES core passes PRIVATE_LIBRARIES Boost::headers)
std::vector<Room> rooms() {
  const std::string text = contents(source_tree() / "sim/CMakeLists.txt");
  static const std::regex call{R"(\norrery_room\((\w+)/(\w+)([^)]*)\))"};
  std::vector<Room> rooms;
  for (std::sregex_iterator found{text.begin(), text.end(), call}, end; found != end; ++found) {
    std::istringstream words{(*found)[3].str()};
    Room room{(*found)[2], (*found)[1], {(*found)[2]}};
    bool listed = false;
    for (std::string word; words >> word && word != "PRIVATE_LIBRARIES";) {
      if (listed) room.uses.insert(word);
      if (word == "USES") listed = true;
    }
    rooms.push_back(room);
  }
  return rooms;
}

std::map<std::string, Room> include_table() {
  std::map<std::string, Room> table;
  for (const Room& room : rooms()) {
    EXPECT_FALSE(table.contains(room.name)) << "two rooms are called " << room.name;
    table[room.name] = room;
  }
  return table;
}

struct Include {
  std::string file, room, target;
};

// Of the files of sim/, all of which lie in sim/<storey>/<room>/.
std::vector<Include> includes(const std::regex& pattern) {
  std::vector<Include> found;
  for (const std::string& file : files_below("sim", {".cpp", ".hpp"})) {
    const std::filesystem::path path{file};
    EXPECT_EQ(std::distance(path.begin(), path.end()), 4) << file << " lies in no room";
    for (const std::string& line : lines_of(source_tree() / file)) {
      std::smatch match;
      if (std::regex_search(line, match, pattern))
        found.push_back({file, path.parent_path().filename().string(), match[1]});
    }
  }
  return found;
}

TEST(IncludeTable, IsUnderstood) {
  const auto table = include_table();
  EXPECT_GE(table.size(), 30u);
  EXPECT_EQ(table.at("core").uses, Rooms{"core"});
  EXPECT_EQ(table.at("memory").uses, (Rooms{"memory", "scenario", "operations", "passes"}));
  EXPECT_EQ(table.at("memory").storey, "cost");
}

TEST(IncludeTable, EveryRoomIncludesOnlyWhatItNames) {
  const auto table = include_table();
  const auto all = includes(std::regex{R"re(^\s*#\s*include\s+"sim/(\w+/\w+)/)re"});
  EXPECT_GE(all.size(), 100u);  // Fewer would mean that the pattern misses them.
  for (const auto& [file, room, target] : all) {
    ASSERT_TRUE(table.contains(room)) << file << ": sim/CMakeLists.txt names no room " << room;
    const std::string name = target.substr(target.find('/') + 1);
    EXPECT_TRUE(table.at(room).uses.contains(name))
        << file << " includes sim/" << target << ", which sim/CMakeLists.txt does not list for "
        << room;
  }
}

// A room that is named but not needed would let an arrow grow that nobody decided on.
TEST(IncludeTable, EveryRoomNamesOnlyWhatItIncludes) {
  std::map<std::string, Rooms> met;
  for (const auto& [file, room, target] :
       includes(std::regex{R"re(^\s*#\s*include\s+"((?:sim/\w+/\w+|calibration))/)re"}))
    met[room].insert(std::filesystem::path{target}.filename().string());
  for (const auto& [name, room] : include_table())
    for (const std::string& used : room.uses)
      EXPECT_TRUE(used == name || met[name].contains(used))
          << "sim/CMakeLists.txt: " << name << " does not need " << used;
}

// Rooms are listed from the ground up, storey by storey, and name only what stands before them: no
// arrow points up, and there is no circle.
TEST(IncludeTable, NothingPointsUp) {
  Rooms before{"calibration"}, storeys;
  std::string storey;
  for (const Room& room : rooms()) {
    if (room.storey != storey) {
      storey = room.storey;
      EXPECT_TRUE(storeys.insert(storey).second) << "storey " << storey << " is listed twice";
    }
    for (const std::string& used : room.uses)
      EXPECT_TRUE(used == room.name || before.contains(used))
          << room.name << " names " << used << ", which does not stand before it";
    before.insert(room.name);
  }
}

TEST(IncludeTable, ThirdPartiesStayInTheirRooms) {
  const std::vector<std::pair<std::string, Rooms>> allowed{
      {"nlohmann/", {"text",    "measurements", "recipe",     "megatron",   "inventory", "sweep",
                     "search",  "trace",        "report",     "calibrated", "answers",   "swept",
                     "served",  "servers",      "benchmarks", "runs",       "priced",    "replies",
                     "reports", "views",        "purchase",   "kineto",     "profiled"}},
      {"boost/property_tree/", {"inventory"}},
      {"boost/graph/", {"topology"}},
      {"boost/container/", {"training"}},
      {"boost/program_options", {"options"}},
      {"sqlite3.h", {"sweep"}},
      {"simgrid/", {"simgrid"}},
      {"xbt/", {"simgrid"}},  // SimGrid's base library.
      {"yaml.h", {"yaml"}},
      {"toml++/", {"toml"}},
      {"httplib.h", {"http"}},
      {"zlib.h", {"kineto"}},
  };
  Rooms met;
  for (const auto& [file, room, target] :
       includes(std::regex{R"(^\s*#\s*include\s+<([^>]*[/.][^>]*)>)"})) {
    const auto rule = std::find_if(allowed.begin(), allowed.end(),
                                   [&](const auto& r) { return target.starts_with(r.first); });
    // What has a slash and is nobody's is POSIX.
    if (rule == allowed.end()) {
      EXPECT_TRUE(target.starts_with("sys/") || target.find('/') == target.npos)
          << file << " includes " << target << ", which no room may";
      continue;
    }
    met.insert(rule->first);
    EXPECT_TRUE(rule->second.contains(room)) << file << " may not include " << target;
  }
  EXPECT_GE(met.size(), 4u);
}

TEST(IncludeTable, OwnHeadersAreIncludedFromTheRoot) {
  const auto table = include_table();
  for (const auto& [file, room, target] : includes(std::regex{R"re(#\s*include\s+"([^"]+)")re"}))
    EXPECT_TRUE(target.starts_with("sim/") || (target.starts_with("calibration/host/") &&
                                               table.at(room).uses.contains("calibration")))
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
}  // namespace orrery::include_table_test
