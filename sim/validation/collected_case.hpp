#pragma once

#include "sim/validation/serving_case.hpp"

namespace orrery {

/// A measurement of inference as collections of published ones have it: the model by its name and
/// shape, and in one object the engine, its version and what its options say (docs/VALIDATION.md).
bool is_collected_case(const JsonValue& entry);

/// The same in this project's words. The engine is the catalog's of that time; a model that the
/// catalog does not have is read from its shape. Errors (bad_input): unknown keys, formats and
/// layers that no key can say, and models without a shape that nobody knows.
ServingCase read_collected_case(const JsonValue& entry);

}  // namespace orrery
