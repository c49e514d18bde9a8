#pragma once

#include "sim/formats/settings/settings.hpp"

namespace orrery {

/// Puts the values of other settings where a configuration of OmegaConf or Hydra refers to them:
/// "${model.seq_length}", "${.hidden_size}" of the same map, "${..x}" of the one above, products
/// "${multiply:4, ${.hidden_size}}" (also mul) and quotients "${div:8, 2}". A path that begins with
/// a name that a launcher puts before it ("training.model.x") is also looked up without it. What
/// refers to nothing, or to itself, stays as it is.
void resolve_references(Settings& settings);

}  // namespace orrery
