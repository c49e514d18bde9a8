#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/cluster/dtype.hpp"
#include "sim/cluster/system.hpp"
#include "sim/core/field.hpp"
#include "sim/core/json_value.hpp"
#include "sim/model/model.hpp"
#include "sim/serving/serving_engine.hpp"
#include "sim/serving/speculation.hpp"

namespace orrery {

/// How a model is to be served, as far as the user says it.
struct DeploymentRequest {
  std::optional<int> tp, pp, ep, dp, moe_tp, replicas;
  std::optional<Dtype> weights, experts;
  std::optional<Dtype> kv;
  std::optional<std::int64_t> budget, max_seqs, block;
  std::optional<double> kv_share;
  std::optional<bool> chunked, mixed;
  std::optional<Bytes> host_kv;
  std::optional<Speculation> speculate;
};

/// The same, complete and checked: it can run but for memory, which kv_capacity() decides.
///
/// A stage of a replica has tp x dp GPUs. Attention is cut over tp ranks and copied dp times, each
/// copy with requests of its own; experts lie on the same GPUs as moe_tp x ep.
struct Deployment {
  int tp = 1, pp = 1, ep = 1, dp = 1, moe_tp = 1, replicas = 1;
  Dtype weights = Dtype::bf16;
  Dtype experts = Dtype::bf16;
  Dtype kv = Dtype::bf16;
  std::int64_t budget = 0;    ///< Tokens of an iteration of one attention rank.
  std::int64_t max_seqs = 0;  ///< Requests of it.
  std::int64_t block = 0;     ///< Tokens of a KV block.
  double kv_share = 0.0;      ///< As the engine's MemoryRule counts it.
  bool chunked = true;
  bool mixed = true;  ///< Decodes go on beside prompts; without it, prompts go first.
  Bytes host_kv;      ///< Memory of the host for each GPU's keys and values; 0: none.
  std::optional<Speculation> speculation;
  std::shared_ptr<const Model> drafter;  ///< What drafts, where that is a model.

  /// Tokens of each request that a decode step works on.
  int step_tokens() const { return 1 + (speculation ? speculation->tokens : 0); }
  std::int64_t stage_gpus() const { return std::int64_t{tp} * dp; }
  std::int64_t replica_gpus() const { return stage_gpus() * pp; }
  std::int64_t gpus() const { return replica_gpus() * replicas; }
};

/// Requests that a batch has at most, of those that take turns in a pipeline.
std::int64_t most_of_a_batch(const ServingEngine& engine, const Deployment& plan);

/// Whether the host prepares an iteration while another one runs.
bool hides_host(const Model& model, const ServingEngine& engine, const Deployment& plan);

/// One key of a deployment, for flags, files and --help.
using DeploymentKey = Field<DeploymentRequest>;
const std::vector<DeploymentKey>& deployment_keys();

/// Sets one key from a flag's text. Errors (bad_input): unknown key, wrong value.
void set_deployment_flag(DeploymentRequest& request, const std::string& key,
                         const std::string& text);
/// Reads an object of keys on top of `request`.
void read_deployment(DeploymentRequest& request, const JsonValue& json);

/// Fills in what `request` leaves open: one stage, tensor parallelism over all GPUs of a replica,
/// the model's 16-bit weights, the engine's defaults. Errors: bad_input for contradictions;
/// infeasible for what does not divide, for a format that engine or GPU lacks, and for layers that
/// are not modelled; each with the nearest that would do.
Deployment make_deployment(const Model& model, const System& system, const ServingEngine& engine,
                           const DeploymentRequest& request, int gpus, const Place& at);

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
