#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/serving/pooled_serving.hpp"

namespace orrery {

/// A published measurement of inference (docs/notes/validation.md): what was served, on what, how,
/// and what was measured, by quantity with its unit ("decode_step_ms", "kv_cache_tokens").
struct ServingCase {
  std::string id;
  Model model;
  std::string system, engine;
  int gpus = 0;
  DeploymentRequest deployment;
  std::optional<PoolsRequest> pools;  ///< Where prompts have a pool of their own.
  std::optional<JsonValue> workload;  ///< Where there is one.
  std::optional<JsonValue> serving;   ///< What else was said of the engine: drafts, pools.
  std::map<std::string, double> measured;
  std::map<std::string, std::map<std::string, double>> peers;  ///< By peer and quantity.
  Place place;
};

/// Whether an entry of a list is one, in this project's words or in those of collections
/// (collected_case.hpp).
bool is_serving_case(const JsonValue& entry);

/// Errors (bad_input): keys that are missing or unknown, formats that no key can say.
ServingCase read_serving_case(const JsonValue& entry);

/// For the readers of both forms: keys that they share, and what is said of an engine beside its
/// deployment (drafts, pools).
void read_what_all_have(const JsonValue& entry, ServingCase& one);
void read_serving_options(const JsonValue& serving, ServingCase& one);

/// Its model, system, engine and deployment. Errors: as make_serving_setup().
ServingSetup setup_of(const ServingCase& one);
/// The same of one with pools. Errors: as price_pools(); bad_input where GPUs are not as many.
PricedPools pools_of(const ServingCase& one);

/// A measurement of inference as collections of published ones have it: the model by its name and
/// shape, and in one object the engine, its version and what its options say
/// (docs/notes/validation.md).
bool is_collected_case(const JsonValue& entry);

/// The same in this project's words. The engine is the catalog's of that time; a model that the
/// catalog does not have is read from its shape. Errors (bad_input): unknown keys, formats and
/// layers that no key can say, and models without a shape that nobody knows.
ServingCase read_collected_case(const JsonValue& entry);

}  // namespace orrery
