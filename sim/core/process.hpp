#pragma once

namespace orrery {

/// Lays out the heap of a process that is about to use tens of megabytes: what is freed stays for
/// the next block, and Linux backs what lies beyond the first pages with pages of 2 MiB, where it
/// grants them. A step of 116,000 tasks otherwise takes 10,000 page faults, a third of its time.
/// Costs address space, no memory. To be called once, before there are large blocks.
void use_large_pages();

/// What a library of ours offers under a name: "liborrery_simgrid.so", "orrery_fluid_network". It
/// is loaded for good when somebody first asks; the program's run path says where it lies
/// (sim/CMakeLists.txt). Throws std::runtime_error where it is missing.
void* module_entry(const char* library, const char* entry);

}  // namespace orrery
