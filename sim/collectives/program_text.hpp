#pragma once

#include <string>

#include "sim/collectives/program_run.hpp"

namespace orrery {

/// A line a step of a user-defined collective, and one for all of it.
std::string program_text(const CollectiveProgram& program, const ProgramTime& result);

/// "orrery.collective_program/1".
std::string program_json(const std::string& file, const std::string& system,
                         const CollectiveProgram& program, const ProgramTime& result);

}  // namespace orrery
