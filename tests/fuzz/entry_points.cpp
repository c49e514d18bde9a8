#include "tests/fuzz/entry_points.hpp"

#include "tests/fuzz/entry_groups.hpp"

namespace orrery {

const std::vector<EntryPoint>& entry_points() {
  static const std::vector<EntryPoint> all = [] {
    std::vector<EntryPoint> entries;
    for (const auto group : {catalog_entries, plan_entries, import_entries, request_entries,
                             recipe_entries, sweep_entries, calibration_entries, database_entries,
                             table_entries, plan_file_entries, command_entries, explorer_entries})
      for (const EntryPoint& entry : group()) entries.push_back(entry);
    return entries;
  }();
  return all;
}

const EntryPoint* find_entry_point(const std::string& name) {
  for (const EntryPoint& entry : entry_points())
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace orrery
