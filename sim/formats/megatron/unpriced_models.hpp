#pragma once

#include "sim/formats/megatron/megatron_arguments.hpp"

namespace orrery {

/// Refuses a run of a model, or of another kind, that has no prices, by the name of what it is: an
/// encoder, Mamba layers, linear attention, images, text that is generated, ...
/// Errors (bad_input): the program or the argument that says so.
void refuse_unpriced(const MegatronArguments& arguments);

}  // namespace orrery
