#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/serving/serving_step.hpp"

namespace orrery {

/// What every answer about serving begins with: schema, model, system, GPUs, engine, deployment and
/// memory.
nlohmann::ordered_json serving_head_json(const ServingSetup& setup, const KvCapacity& kv);

nlohmann::ordered_json memory_json(const KvCapacity& kv);
/// Its keys.
nlohmann::ordered_json deployment_json(const Deployment& plan, const Model& model);

}  // namespace orrery
