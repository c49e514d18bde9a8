#pragma once

namespace orrery {

/// Lays out the heap of a process that is about to use tens of megabytes: what is freed stays for
/// the next block, and Linux backs what lies beyond the first pages with pages of 2 MiB, where it
/// grants them. A step of 116,000 tasks otherwise takes 10,000 page faults, a third of its time.
/// Costs address space, no memory. To be called once, before there are large blocks.
void use_large_pages();

/// An entry of one of our libraries: "liborrery_simgrid.so", "orrery_fluid_network". The library is
/// loaded for good at the first call; the program's run path gives its folder (sim/CMakeLists.txt).
/// Throws std::runtime_error if it is missing.
void* module_entry(const char* library, const char* entry);

}  // namespace orrery
