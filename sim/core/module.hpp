#pragma once

namespace orrery {

/// What a library of ours offers under a name: "liborrery_simgrid.so", "orrery_fluid_network". It
/// is loaded for good when somebody first asks; the program's run path says where it lies
/// (sim/CMakeLists.txt). Throws std::runtime_error where it is missing.
void* module_entry(const char* library, const char* entry);

}  // namespace orrery
