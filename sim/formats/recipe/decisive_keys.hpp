#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/error.hpp"

namespace orrery {

/// What a setting or an argument of that name decides: "parallelism", "precision", ... A run in
/// which it is on has another time or memory than one without it. Empty: none of these.
std::string_view subject_of(std::string_view name);

/// True if one of `harmless` covers the name: a section ("data."), or the beginning of a name after
/// which it decides nothing ("fsdp_" covers fsdp_backward_prefetch, not fsdp_offload_params).
bool is_covered(std::string_view name, const std::vector<std::string>& harmless);

/// Percent of a share from 0 to 1 as it is written; nothing: it is none.
std::optional<std::int64_t> percent_of(const std::string& share);

/// A value that switches its setting off, or leaves it to the program. A single rank is no
/// parallelism.
bool switches_off(std::string_view name, std::string_view value);

/// Decisive settings that are on and that nothing prices, in the order of the file.
struct Unpriced {
  std::vector<std::string> names;
  Place first;  ///< Of the first of them.

  /// Does nothing if the name decides nothing.
  void add(const std::string& name, const Place& place);
};

/// Refuses them if there are any. Errors (bad_input): their names, what they decide, and how to
/// import the run without them.
void refuse(const Unpriced& unpriced);

/// Refuses a setting that is on and does what `sentence` says, "does this; assumed: that", if its
/// name decides anything.
void refuse_decisive(const std::string& name, std::string_view sentence, const Place& place);

}  // namespace orrery
