#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/formats/recipe/recipe.hpp"
#include "sim/formats/settings/settings.hpp"

namespace orrery {

/// Where a training program says what of its adapters: paths of settings, of which the first that
/// is there counts.
struct AdapterPaths {
  std::string rank, dropout, modules;
  std::string all_linear;  ///< A flag that asks for adapters on all linear layers.
  /// What the program takes where the file says nothing.
  std::int64_t usual_rank = 8;
  std::string usual_dropout = "0", usual_modules = "";
  std::string section = "";  ///< Of all other settings of adapters: "peft.".
};

/// Fills in the recipe's fine-tuning with adapters as `from` says them; `four_bits` beside frozen
/// weights of four bits. Modules that share an input get their adapters together: one of queries
/// alone counts as those of queries, keys and values, which a note says.
/// Errors (bad_input): modules that are no linear layers of a language model, kinds of adapters
/// that nothing prices (DoRA and others), tables that train as well.
void read_adapters(const Settings& from, const AdapterPaths& paths, bool four_bits, Recipe& recipe);

}  // namespace orrery
