#pragma once

namespace orrery {

/// What tables say where Engine::simgrid was asked for.
inline constexpr const char* all_by_simgrid = "every timer and every flow by SimGrid";

}  // namespace orrery
