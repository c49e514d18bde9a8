#pragma once

#include "sim/formats/deepspeed/trainer_files.hpp"

namespace orrery {

/// Refuses what has no prices, by what it is: adapters (LoRA), encoders, preferences and rewards,
/// weights of four bits. Errors (bad_input): the program or the setting that says so.
void refuse_unpriced_training(const TrainerFiles& files);

}  // namespace orrery
