#pragma once

#include <string>
#include <vector>

#include "sim/core/table.hpp"
#include "sim/model/model.hpp"
#include "sim/plan/plan.hpp"
#include "sim/training/bill.hpp"
#include "sim/training/result.hpp"

namespace orrery {

struct TextStyle {
  bool colour = false;  ///< ANSI colours, for a terminal.
  bool links = false;   ///< Include a table of the busiest link of each class.
  /// Include provenance, the errors of published runs, the busiest link, and what was simulated.
  bool verbose = false;
  bool wall_time = true;  ///< Include the simulation's wall time, if verbose.
};

/// Summary of a result: the verdict, the plan, its speed and memory, and the time by part. About 35
/// lines of at most 78 columns, plain ASCII but for names; docs/reference/output.md explains each
/// figure.
std::string summary_text(const Result& result, const TextStyle& style = {});

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

/// An answer in a few words: whether the plan fits, the step time with its 90 % interval, how far
/// it is from the measured one, and what the critical path consists of.
///
///     Fits (79 % of memory). 18.2 s a step (90 % interval 16.8 to 20.0 s), 3.7 % above the
///     measured 17.52 s. Compute-bound: 91 % of the critical path computes, 8 % is tensor-parallel
///     communication.
///
/// Further sentences name the pipeline bubble or the wait for slower stages if it takes more than
/// 5 % of GPU time (the mean over the stages, each represented by its busiest rank), and say so if
/// more than half of the time of kernels and collectives comes from assumed efficiencies.
std::string verdict(const Result& result);

std::string bill_head(const Bill& bill);  ///< "Training on 15T tokens, ..."
Table bill_table(const Bill& bill);       ///< Time, rent, hardware and energy, a line each.
/// Why more GPUs are bought than used, provider_note(), and the keys of --economics that would fill
/// the table's gaps; "" if nothing is so.
std::string bill_note(const Bill& bill);
std::string bill_text(const Bill& bill);  ///< Head, table and note, a line each.

/// "14 NVLink domains of 72 GPUs are bought for 1,000, as they are sold whole. ..."; `domains` as
/// Bill has them.
std::string whole_units_text(const Hardware& hardware, int gpus, int domains);

/// rent_note() says what the rent of a cloud's machines (System::provider) is based on;
/// provider_note() adds what their purchase price means.
std::string rent_note(const std::string& provider);
std::string provider_note(const std::string& provider, bool has_own_rent);

std::string tokens_text(double tokens);  ///< "15.0 trillion"
std::string dollars_text(Range usd);     ///< "$8.59 to 21.6 million"; "": not known.
std::string energy_text(Range kwh);      ///< "3.46 to 8.70 GWh"; "": not known.

}  // namespace orrery
