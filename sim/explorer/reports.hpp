#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/explorer/report_page.hpp"
#include "sim/posttraining/rl_text.hpp"
#include "sim/reliability/training_run.hpp"
#include "sim/search/compare_text.hpp"
#include "sim/search/deployment_search_text.hpp"
#include "sim/search/purchase_text.hpp"
#include "sim/search/search_text.hpp"
#include "sim/sweep/point_evaluator.hpp"
#include "sim/sweep/sweep_folder.hpp"
#include "sim/sweep/sweep_text.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {

/// Plans side by side as one HTML file (report_page.hpp): the breakdown of their steps as bars, all
/// by step and memory with ranges and ties, and what `orrery compare` prints. It also holds the
/// comparison (compare_json). `runs`: of the same plans; empty: not requested. `inputs`: the inputs
/// of each plan's result, as JSON; "": none.
std::string compare_report(const std::vector<PricedPlan>& plans,
                           const std::vector<ComparedRun>& runs,
                           const std::vector<std::string>& inputs, const ReportAbout& about);

/// Deployments of a search as one HTML file (report_page.hpp): a user's speed against tokens a
/// second and GPU, and what `orrery serve --search` prints. It also holds the search
/// (deployment_search_json).
std::string deployments_report(const DeploymentSearchResult& result,
                               const DeploymentSearchRequest& request,
                               const DeploymentSearchWords& words, const ReportAbout& about);

/// A purchase as one HTML file (report_page.hpp): cost against days, days against GPUs, and what
/// `orrery buy` prints. It also holds the purchase (purchase_json), without the result of each row
/// if the file would be too large.
std::string purchase_report(const Purchase& purchase, const PurchaseRequest& request,
                            const PurchaseNames& names, const ReportAbout& about);

/// A search as one HTML file (report_page.hpp): the list as a table, its proof, plans by step and
/// memory and, with bills, by days and rent, and a command for each plan. It also holds the search
/// object (search_json).
std::string search_report(const SearchResult& result, const SearchRequest& request,
                          const SearchNames& names, const ReportAbout& about);

/// Limit of rows in a report, which keeps the best: some 150 bytes each.
inline constexpr int most_rows_in_a_report = 12'000;

/// A sweep as one HTML file (report_page.hpp): a curve or a map over its keys, plans by step and
/// memory and, with bills, by days and rent, and what `orrery sweep run` prints. It also holds the
/// rows that `rows` keeps (sweep_rows_json), the sweep's request, and its `inputs`, if they still
/// exist. They are left out if the file would be too large.
std::string sweep_report(const SweepFolder& folder, const BestRows& rows,
                         const std::optional<SweepInputs>& inputs, const ReportAbout& about);

/// A whole run as one HTML file (report_page.hpp): one run from day to day, the spread of days,
/// lost time by cause, the effect of improvements, and all figures. `one`: the run that is plotted,
/// with its log. It needs no script.
std::string run_report(const TrainingRun& run, const RunTotals& one, const ReportAbout& about);

/// A step of a loop of reinforcement learning as one HTML file (report_page.hpp): what each pool of
/// GPUs does from its begin to its end, with the samples that run, its phases and memory, what
/// `changes` of it bring (empty: not asked), and what `orrery post` prints. It also holds the step
/// (rl_step_json). The drawing shows three equal steps of a loop that generates while it trains.
std::string post_report(const RlStep& step, const RlBill& bill,
                        const std::vector<RlChange>& changes, const ReportAbout& about);

/// An estimate as one HTML file to send around, which loads nothing from elsewhere
/// (report_page.hpp): the speed and breakdown of the step, the step over time down to its kernels,
/// memory over time and by stage, the cluster with its links, the roofline of its operations, the
/// load of its experts, and the basis of the answer. Figures stand in tables that need no script;
/// the drawings are the explorer's. It also holds the result object (result_json) and as much of
/// the timeline as fits. `context`: that of the estimate.
std::string estimate_report(const Estimate& answer, EstimateContext& context,
                            const ReportAbout& about);

}  // namespace orrery
