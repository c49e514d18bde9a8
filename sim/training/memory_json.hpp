#pragma once

#include <nlohmann/json.hpp>

#include "sim/layers/memory.hpp"

namespace orrery {

/// What a result says under "memory": bytes by stage and part, the peak and the capacity.
nlohmann::ordered_json memory_json(const MemoryReport& memory);

}  // namespace orrery
