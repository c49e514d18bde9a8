#pragma once

#include <string>
#include <vector>

#include "sim/cli/options.hpp"

namespace orrery {

/// Training programs other than Megatron-LM whose runs can be imported: "torchtitan", ...
const std::vector<std::string>& recipe_formats();

/// `orrery import FORMAT FILE`: a run of such a program as a plan with its model.
int import_recipe(const std::string& format, const Arguments& arguments);

}  // namespace orrery
