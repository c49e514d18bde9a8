#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace orrery {

/// The words of an enumeration, in the order of its enumerators: specialised next to each.
template <class Enum>
extern const std::vector<std::string> enum_words;

template <class Enum>
const std::string& name(Enum value) {
  return enum_words<Enum>[static_cast<std::size_t>(value)];
}

}  // namespace orrery
