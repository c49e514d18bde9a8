#pragma once

#include <functional>

#include "sim/layers/layer_prices.hpp"
#include "sim/layers/step_cost.hpp"

namespace orrery {

/// The price of a layer, by its number in the model.
using PriceOfLayer = std::function<const LayerPrice&(int)>;

/// Puts the buckets of a stage whose weights are sharded into `cost`. A bucket is gathered
/// together, kept whole together and reduced together, with the copies that this takes.
///
/// By layer (PyTorch FSDP): embedding, each layer, prediction layers, head. The backward pass
/// begins with the head and the layer before it, which are therefore kept from the forward pass; an
/// embedding's gradient needs no weights (torchtitan, parallelize_llama.py). A layer's experts are
/// gathered with it, each rank's from those that hold the same (torchtitan, apply_fsdp: experts on
/// a mesh of their own).
///
/// By tensor (Software::shards_by_tensor): each weight matrix is gathered before the module that
/// multiplies by it and released after it, in the forward pass, in recomputation and in the
/// backward pass; only the last matrix is still there if its backward product follows at once. A
/// matrix is gathered during the previous module while that module's own has fewer than
/// Software::live_parameters. Each collective occupies the host, which launches nothing else
/// meanwhile, for shard_host_time(). Only for models with neither experts nor prediction layers.
void cut_shard_units(const Scenario& scenario, const Pricer& pricer, const LayerPrice& prediction,
                     const PriceOfLayer& price_of, int stage, StageCost& cost);

/// Host time before a collective of sharded weights: a number of calls for each rank.
Seconds shard_host_time(const Scenario& scenario);

/// Parameters of the two largest units that are whole at the same time.
double two_shard_units(const Scenario& scenario, int stage);

}  // namespace orrery
