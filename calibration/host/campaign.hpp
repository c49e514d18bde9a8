#pragma once

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "calibration/host/record.hpp"

namespace orrery::calibration {

/// The machine, as a campaign sees it. Tests give one that has no GPU.
class Bench {
 public:
  virtual ~Bench() = default;
  /// One case under `limits`. What this case alone cannot do (an unsupported format, too little
  /// memory, a wrong result) is an outcome; an exception ends the campaign.
  virtual Measurement measure(const Case& what, const StoppingLimits& limits) = 0;
  /// Median time of the reference product.
  virtual double reference_us() = 0;
  virtual double now_s() = 0;
  virtual void rest(double seconds) = 0;  ///< Lets the GPU cool.
  virtual bool interrupted() = 0;
  /// True if the machine stopped answering in the last measure(): no other call has an answer then.
  virtual bool lost() { return false; }
};

struct CampaignPlan {
  std::vector<Case> cases;  ///< Sorted in running order.
  /// Cases that other records hold already, by their ids: not measured again.
  std::set<std::string> done{};
  double budget_s = std::numeric_limits<double>::infinity();
  double reference_every_s = 10.0;
  double rest_s = 2.0;
};

/// After each measurement.
struct Progress {
  const Measurement* last = nullptr;
  int done = 0;
  int all = 0;
  double left_s = 0.0;  ///< Predicted from the pace so far, and never over the budget.
};

struct CampaignEnd {
  int measured = 0, failed = 0, skipped = 0;
  int left = 0;  ///< Not begun: the budget was used up, or Ctrl-C came.
  bool interrupted = false;
  bool lost = false;  ///< The machine stopped answering; another process may go on.
};

/// Measures what `record` does not hold yet and adds it.
///
/// Every `reference_every_s` the reference product is measured; what was measured between two
/// checks is settled by the second. If the GPU was throttled then, these cases are measured once
/// more at the end, after a rest, and the less throttled result stays. Should that not help, it is
/// left at one attempt: a GPU that runs hot does so for good, and the record says by how much.
///
/// A case may take its share of the budget that is left, at most the record's time limit and never
/// less than a twentieth of it. `save` is called after each measurement;
/// what no check has settled yet carries the slowdown of the check before.
///
/// Should the machine stop answering, what was measured is kept, and the case that it stopped in
/// with it: going on then passes it over.
CampaignEnd run_campaign(Record& record, const CampaignPlan& plan, Bench& bench,
                         const std::function<void(const Record&)>& save,
                         const std::function<void(const Progress&)>& report);

/// "12 of 240   3:05 left   gemm ... 812.30 us +-0.4 %": one line, no newline.
std::string progress_text(const Progress& progress);

}  // namespace orrery::calibration
