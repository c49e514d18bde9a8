#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/serving/pooled_serving.hpp"

namespace orrery {

/// A published measurement of inference (docs/notes/validation.md): the model, its deployment, and
/// the measured quantities with their units ("decode_step_ms", "kv_cache_tokens").
struct ServingCase {
  std::string id;
  std::string publication;  ///< Title of the source; empty: none.
  Model model;
  std::string system, engine;
  int gpus = 0;
  DeploymentRequest deployment;
  std::optional<PoolsRequest> pools;  ///< Set for disaggregated prefill.
  std::optional<JsonValue> workload;  ///< Load, if any.
  std::optional<JsonValue> serving;   ///< Other options of the engine: drafts, pools.
  std::map<std::string, double> measured;
  std::map<std::string, std::map<std::string, double>> peers;  ///< Predictions by peer, quantity.
  Place place;
};

/// True if an entry of a list is one, in this project's schema or in that of collections
/// (collected_case.hpp).
bool is_serving_case(const JsonValue& entry);

/// Errors (bad_input): missing or unknown keys, formats without a key.
ServingCase read_serving_case(const JsonValue& entry);

/// Parts of both readers: shared keys, and engine options other than the deployment (drafts,
/// pools).
void read_what_all_have(const JsonValue& entry, ServingCase& one);
void read_serving_options(const JsonValue& serving, ServingCase& one);

/// Its model, system, engine and deployment. Errors: as make_serving_setup().
ServingSetup setup_of(const ServingCase& one);
/// The same for a case with pools. Errors: as price_pools(); bad_input if the numbers of GPUs
/// differ.
PricedPools pools_of(const ServingCase& one);

/// True for a case in the schema of collections: the model by its name and shape, and in one object
/// the engine, its version and its options (docs/notes/validation.md).
bool is_collected_case(const JsonValue& entry);

/// Reads a collected case. The engine is the catalog's of that time; a model that the catalog does
/// not have is read from its shape. Errors (bad_input): unknown keys, formats and layers without a
/// key, and unknown models without a shape.
ServingCase read_collected_case(const JsonValue& entry);

}  // namespace orrery
