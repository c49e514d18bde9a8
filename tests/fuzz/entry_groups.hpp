#pragma once

#include "tests/fuzz/entry_points.hpp"

namespace orrery {

/// Entry points by what is read; entry_points() has them all.
std::vector<EntryPoint> catalog_entries();      ///< What describes models and machines.
std::vector<EntryPoint> plan_entries();         ///< Plans, and what comes of them.
std::vector<EntryPoint> import_entries();       ///< What other tools wrote.
std::vector<EntryPoint> request_entries();      ///< Requests to a served model.
std::vector<EntryPoint> recipe_entries();       ///< Runs as other programs describe them.
std::vector<EntryPoint> sweep_entries();        ///< Sweeps, their folders and databases.
std::vector<EntryPoint> calibration_entries();  ///< Measurements.
std::vector<EntryPoint> database_entries();     ///< A database that a merge finds.
std::vector<EntryPoint> table_entries();        ///< A catalog of which one table was changed.
std::vector<EntryPoint> plan_file_entries();    ///< What --plan and compare read.
std::vector<EntryPoint> command_entries();      ///< Words of the command line, and environment.
std::vector<EntryPoint> explorer_entries();     ///< What a page of the explorer asks.

}  // namespace orrery
