#pragma once

#include <string>
#include <vector>

#include "sim/explorer/report_page.hpp"
#include "sim/posttraining/rl_text.hpp"

namespace orrery {

/// A step of a loop of reinforcement learning as one HTML file (report_page.hpp): what each pool of
/// GPUs does from its begin to its end, with the samples that run, its phases and memory, what
/// `changes` of it bring (empty: not asked), and what `orrery post` prints. It also holds the step
/// (rl_step_json). The drawing shows three equal steps of a loop that generates while it trains.
std::string post_report(const RlStep& step, const RlBill& bill,
                        const std::vector<RlChange>& changes, const ReportAbout& about);

}  // namespace orrery
