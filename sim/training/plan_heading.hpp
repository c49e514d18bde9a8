#pragma once

#include <string>
#include <vector>

#include "sim/model/model.hpp"
#include "sim/plan/plan.hpp"

namespace orrery {

/// "tp 8 x pp 8 x dp 16", "1f1b", "96 micro-batches of 1 x 2,048 tokens", ...: all values that
/// distinguish this plan from others with different results.
std::vector<std::string> plan_items(const Plan& plan);

// A plan in a line of a table.

std::string brief_degrees(const Plan& plan);   ///< "tp8 pp4 vpp2 dp32 mbs1"
std::string brief_switches(const Plan& plan);  ///< "sp zero1 dp-overlap": active features.
/// True if one of the two texts has the key.
bool is_brief_key(const std::string& key);

/// "sequences of 4,096 tokens as in pre-training": the default sequence length and its origin.
std::string usual_sequence_text(const Model& model);

/// Heading of a result about several plans: `what`, then their common items, wrapped to a
/// terminal's width.
std::string run_heading(const std::string& what, const std::vector<std::string>& items);

}  // namespace orrery
