#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/serving/deployment.hpp"

namespace orrery {

/// A deployment as a file, orrery.deployment/1: model (a name, or all of a model), engine, system,
/// gpus, the keys of a deployment or of "prefill" and "decode", prefix_cache, router.
///
/// As options of `orrery serve` that say the same, each with its text, in that order; a model
/// that the file holds is named by the file. Errors (bad_input): unknown keys, wrong values, pools
/// of which one is missing.
std::vector<std::pair<std::string, std::string>> read_deployment_file(const std::string& path);
/// The same of a document.
std::vector<std::pair<std::string, std::string>> deployment_options_of(const JsonValue& file);

}  // namespace orrery
