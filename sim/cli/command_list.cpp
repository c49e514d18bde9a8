#include <algorithm>
#include <iostream>

#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"
#include "sim/core/catalog.hpp"
#include "sim/core/error.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/layers/op.hpp"
#include "sim/model/model.hpp"
#include "sim/pipeline/schedule.hpp"

namespace orrery {
namespace {

const std::vector<std::string> groups{"gpus",     "systems",     "networks",  "models",
                                      "software", "engines",     "schedules", "collectives",
                                      "routing",  "reliability", "faults",    "frameworks"};

// A name, and what it is where the name alone does not say it.
using Entry = std::pair<std::string, std::string>;

// Files of a folder with their titles.
std::vector<Entry> titled(const std::string& folder) {
  std::vector<Entry> entries;
  for (const std::string& name : list_catalog(folder)) {
    const JsonValue file = JsonValue::read_file(find_in_catalog(folder, name, {}));
    const auto title = file.find("title");
    entries.emplace_back(name, title ? title->text() : "");
  }
  return entries;
}

std::vector<Entry> models() {
  std::vector<Entry> entries;
  for (const std::string& name : list_catalog("workloads/models")) {
    const ParameterCount count = count_parameters(read_model(name, {}));
    const auto billions = [](std::int64_t n) { return fixed(static_cast<double>(n) / 1e9, 1); };
    entries.emplace_back(name, billions(count.total) + " B parameters" +
                                   (count.active == count.total
                                        ? ""
                                        : ", " + billions(count.active) + " B active a token"));
  }
  return entries;
}

std::vector<Entry> entries_of(const std::string& group) {
  if (group == "models") return models();
  if (group == "gpus" || group == "systems" || group == "networks")
    return titled("topologies/" + group);
  std::vector<Entry> entries;
  if (group == "schedules") {
    for (const std::string& name : schedule_names()) entries.emplace_back(name, "");
    return entries;
  }
  if (group == "collectives") {
    for (const std::string& name : collective_names()) entries.emplace_back(name, "");
    return entries;
  }
  return titled("workloads/" + group);
}

}  // namespace

int run_list(const Arguments& arguments) {
  CommandListener::report(groups);
  Options options;
  options.help();
  if (!options.read(arguments, "usage: orrery list " + joined(groups, "|"))) return exit_ok;
  const std::vector<std::string>& words = options.words();
  const std::string group = words.empty() ? "" : words.front();
  if (std::find(groups.begin(), groups.end(), group) == groups.end())
    fail_input({}, words.empty() ? "list what?" : "'" + group + "' cannot be listed",
               suggestion(group, groups));
  if (words.size() > 1)
    fail_input({}, "'" + words[1] + "' belongs to no option", "orrery list " + group);
  std::size_t width = 0;
  const std::vector<Entry> entries = entries_of(group);
  for (const auto& [name, what] : entries) width = std::max(width, name.size());
  for (const auto& [name, what] : entries)
    std::cout << name << (what.empty() ? "" : std::string(width + 2 - name.size(), ' ') + what)
              << "\n";
  return exit_ok;
}

}  // namespace orrery
