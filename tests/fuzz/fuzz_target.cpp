// libFuzzer's door. Compiled once for each entry point, whose name is ORRERY_ENTRY_POINT.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/entry_points.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const orrery::EntryPoint* const entry = orrery::find_entry_point(ORRERY_ENTRY_POINT);
  entry->run(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
