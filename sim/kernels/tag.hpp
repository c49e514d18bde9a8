#pragma once

#include <string>
#include <vector>

namespace orrery {

/// What a predicted time rests on.
enum class Tag {
  measured,       ///< This very shape was measured on this kind of GPU.
  interpolated,   ///< From measurements of other shapes, or of a GPU that stands in for this one.
  default_value,  ///< From a formula with assumed efficiencies, or far outside what was measured.
};

inline const std::string& name(Tag tag) {
  static const std::vector<std::string> names{"measured", "interpolated", "default"};
  return names[static_cast<std::size_t>(tag)];
}

}  // namespace orrery
