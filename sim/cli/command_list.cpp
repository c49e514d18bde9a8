#include <algorithm>
#include <iostream>

#include "sim/cli/command.hpp"
#include "sim/core/error.hpp"
#include "sim/core/nearest.hpp"
#include "sim/cost/op.hpp"
#include "sim/input/catalog.hpp"
#include "sim/input/plan_request.hpp"

namespace orrery {
namespace {

const std::vector<std::string> shelves{"gpus",      "systems",     "models", "software",
                                       "schedules", "collectives", "routing"};

std::vector<std::string> names_on(const std::string& shelf) {
  if (shelf == "gpus") return list_catalog("topologies/gpus");
  if (shelf == "systems") return list_catalog("topologies/systems");
  if (shelf == "models") return list_catalog("workloads/models");
  if (shelf == "software") return list_catalog("workloads/software");
  if (shelf == "routing") return list_catalog("workloads/routing");
  if (shelf == "schedules") return schedule_names();
  std::vector<std::string> names;
  for (CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
        CollectiveKind::all_to_all, CollectiveKind::broadcast, CollectiveKind::send_recv})
    names.emplace_back(name(kind));
  return names;
}

}  // namespace

int run_list(const Arguments& arguments) {
  const bool known = arguments.size() == 1 &&
                     std::find(shelves.begin(), shelves.end(), arguments[0]) != shelves.end();
  if (arguments.size() == 1 && arguments[0] == "--help") {
    std::cout << "usage: orrery list gpus|systems|models|software|schedules|collectives|routing\n";
    return exit_ok;
  }
  if (!known)
    fail_input({}, arguments.empty() ? "list what?" : "'" + arguments[0] + "' cannot be listed",
               suggestion(arguments.empty() ? "" : arguments[0], shelves));
  for (const std::string& name : names_on(arguments[0])) std::cout << name << "\n";
  return exit_ok;
}

}  // namespace orrery
