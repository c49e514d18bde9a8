#include "sim/cli/options/command.hpp"

namespace orrery {

const std::map<std::string, int (*)(const Arguments&)>& commands() {
  static const std::map<std::string, int (*)(const Arguments&)> all{
      {"estimate", run_estimate},
      {"compare", run_compare},
      {"search", run_search},
      {"run", run_run},
      {"validate", run_validate},
      {"collective", run_collective},
      {"check", run_check},
      {"list", run_list},
      {"import", run_import},
      {"export", run_export},
      {"place-experts", run_place_experts},
      {"schedule", run_schedule},
      {"serve", run_serve},
      {"sweep", run_sweep},
      {"calibrate", run_calibrate}};
  return all;
}

}  // namespace orrery
