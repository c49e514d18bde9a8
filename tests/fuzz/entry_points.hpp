#pragma once

#include <string>
#include <vector>

namespace orrery {

/// One way for a stranger's text into the program. `run` returns for every text: refusing it with
/// Error is right, anything else that happens is a bug.
struct EntryPoint {
  std::string name;  ///< Also its folder in corpus/.
  void (*run)(const std::string& text);
};

/// In no particular order; tests/fuzz/CMakeLists.txt names the same ones.
const std::vector<EntryPoint>& entry_points();

/// The entry point called `name`, or null.
const EntryPoint* find_entry_point(const std::string& name);

}  // namespace orrery
