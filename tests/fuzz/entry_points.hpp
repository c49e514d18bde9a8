#pragma once

#include <string>
#include <vector>

namespace orrery {

/// What a text is made of, as far as who changes it at random should know.
enum class Shape { bytes, json, lines };

/// One way for a stranger's text into the program. `run` returns for every text, whether it was
/// accepted: refusing it with Error is right, anything else that happens is a bug.
struct EntryPoint {
  std::string name;  ///< Also its folder in corpus/.
  bool (*run)(const std::string& text);
  Shape shape;
  bool simulates = false;  ///< What it accepts is simulated, which takes milliseconds.
};

const std::vector<EntryPoint>& entry_points();

/// The entry point called `name`, or null.
const EntryPoint* find_entry_point(const std::string& name);

}  // namespace orrery
