#pragma once

#include "sim/cli/options.hpp"
#include "sim/serving/serving_step.hpp"

namespace orrery {

/// The options on what is served, by which engine and where.
struct DeploymentOptions {
  std::optional<std::string> model, system, engine, gpus, plan;
  std::string checkpoint;
  DeploymentRequest keys;
};
/// The option of a key of deployments: its name, unless that is another command's option.
std::string deployment_option(const std::string& key);
/// --model, --system, --gpus, --engine, --plan and a key of a deployment each.
void add_deployment(Options& options, DeploymentOptions& into);
/// --step, one iteration.
void add_step(Options& options);

/// Options::read() with the values of the --plan file for options that are not given: a file of
/// orrery.deployment/1. A search takes model, engine, system, GPUs and, as --fix, the number
/// formats. Errors: as read_deployment_file(); `remedy`: of words that are no option.
bool read_with_deployment_file(Options& options, const Arguments& arguments,
                               const std::string& usage, const std::string& remedy,
                               const std::string& problem = "belongs to no option");

/// The value of --model, --system or --engine. Errors: it is missing.
const std::string& named(const std::optional<std::string>& value, const std::string& option);

/// The setup that they name. Errors: as of make_serving_setup().
ServingSetup read_serving_setup(const DeploymentOptions& given);

/// Prints published_note() to stderr, unless it is empty.
void print_published_note(const Model& model, const DeploymentRequest& request);

/// Prints length_notes() of requests of `tokens`, and unmeasured_notes(), to stderr.
void print_deployment_notes(const ServingSetup& setup, const KvCapacity& kv, std::int64_t tokens);

/// Reads --step: "64x4096+2048@512". Errors (bad_input): no iteration.
Iteration parse_iteration(const std::string& text);

}  // namespace orrery
