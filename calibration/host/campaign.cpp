#include "calibration/host/campaign.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace orrery::calibration {
namespace {

class Campaign {
 public:
  Campaign(Record& record, const CampaignPlan& plan, Bench& bench,
           const std::function<void(const Record&)>& save,
           const std::function<void(const Progress&)>& report)
      : record_{record}, plan_{plan}, bench_{bench}, save_{save}, report_{report} {
    for (const Case& one : plan.cases)
      if (!record.find(one.id()) && !plan.done.contains(one.id())) queue_.push_back(one);
    all_ = static_cast<int>(queue_.size());
    // A record that is continued keeps its clock, so that its checks stay in order.
    if (!record.reference.empty()) offset_s_ = record.reference.back().at_s;
    for (const auto& check : record.reference) track_.add(check.at_s, check.median_us);
  }

  CampaignEnd run() {
    if (!queue_.empty()) measure_queue();
    end_.left = all_ - begun_;
    end_.interrupted = bench_.interrupted();
    end_.lost = bench_.lost();
    for (const Measurement& one : record_.measurements) count(one);
    return end_;
  }

 private:
  void measure_queue() {
    began_s_ = bench_.now_s();
    check_reference();
    for (std::size_t next = 0; next < queue_.size() && !stop(); ++next) {
      pending_.push_back(bench_.measure(queue_[next], limits(queue_.size() - next)));
      ++begun_;
      report_({&pending_.back(), begun_, all_, left_s()});
      if (bench_.lost()) return keep_pending();
      if (bench_.now_s() - checked_s_ >= plan_.reference_every_s)
        settle();
      else
        save_unsettled();
    }
    settle();
    if (!again_.empty() && !stop()) measure_again();
  }

  double spent_s() const { return bench_.now_s() - began_s_; }
  double left_s() const {
    return std::min(spent_s() / begun_ * (all_ - begun_), plan_.budget_s - spent_s());
  }
  bool stop() const { return bench_.interrupted() || spent_s() >= plan_.budget_s; }

  StoppingLimits limits(std::size_t left) const {
    StoppingLimits limits = record_.limits;
    const double share = (plan_.budget_s - spent_s()) / static_cast<double>(left);
    limits.time_s = std::clamp(share, limits.time_s / 20.0, limits.time_s);
    return limits;
  }

  void check_reference() {
    const double median_us = bench_.reference_us();
    checked_s_ = bench_.now_s();
    const double at_s = offset_s_ + checked_s_ - began_s_;
    track_.add(at_s, median_us);
    record_.reference.push_back({at_s, median_us});
  }

  void settle() {
    if (pending_.empty()) return;
    check_reference();
    keep_pending();
  }

  void keep_pending() {
    const double slowdown = track_.latest_slowdown();
    for (Measurement& one : pending_) {
      one.reference_slowdown = slowdown;
      if (slowdown > ReferenceTrack::throttled_from && one.outcome == Outcome::measured)
        again_.push_back(one.what);
      record_.measurements.push_back(std::move(one));
    }
    pending_.clear();
    save_(record_);
  }

  // Should the process be killed now, no measurement is lost; only the check behind it is.
  void save_unsettled() {
    const std::size_t settled = record_.measurements.size();
    for (Measurement& one : pending_) {
      one.reference_slowdown = track_.latest_slowdown();
      record_.measurements.push_back(one);
    }
    save_(record_);
    record_.measurements.resize(settled);
  }

  void measure_again() {
    bench_.rest(plan_.rest_s);
    check_reference();
    for (std::size_t i = 0; i < again_.size() && !stop(); ++i) {
      Measurement one = bench_.measure(again_[i], limits(again_.size() - i));
      if (bench_.lost()) break;
      check_reference();
      one.reference_slowdown = track_.latest_slowdown();
      for (Measurement& old : record_.measurements)
        if (old.what.id() == one.what.id() && one.outcome == Outcome::measured &&
            one.reference_slowdown < old.reference_slowdown)
          old = one;
      if (one.reference_slowdown > ReferenceTrack::throttled_from) break;
    }
    save_(record_);
  }

  void count(const Measurement& one) {
    ++(one.outcome == Outcome::measured ? end_.measured
       : one.outcome == Outcome::failed ? end_.failed
                                        : end_.skipped);
  }

  Record& record_;
  const CampaignPlan& plan_;
  Bench& bench_;
  const std::function<void(const Record&)>& save_;
  const std::function<void(const Progress&)>& report_;
  std::vector<Case> queue_, again_;
  std::vector<Measurement> pending_;
  ReferenceTrack track_;
  double began_s_ = 0.0, checked_s_ = 0.0, offset_s_ = 0.0;
  int all_ = 0, begun_ = 0;
  CampaignEnd end_;
};

std::string printed(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

CampaignEnd run_campaign(Record& record, const CampaignPlan& plan, Bench& bench,
                         const std::function<void(const Record&)>& save,
                         const std::function<void(const Progress&)>& report) {
  return Campaign{record, plan, bench, save, report}.run();
}

std::string progress_text(const Progress& progress) {
  const int left_s = static_cast<int>(std::lround(std::max(progress.left_s, 0.0)));
  std::string text = std::to_string(progress.done) + " of " + std::to_string(progress.all);
  text += "  " + std::to_string(left_s / 60) + (left_s % 60 < 10 ? ":0" : ":") +
          std::to_string(left_s % 60) + " left";
  if (!progress.last) return text;
  const Measurement& last = *progress.last;
  text += "  " + last.what.id() + "  ";
  if (last.outcome != Outcome::measured)
    return text + outcome_names()[static_cast<std::size_t>(last.outcome)] + ": " + last.reason;
  const TimingSummary& time = last.cold ? *last.cold : *last.warm;
  return text + printed("%.2f us", time.median_us) + printed(" +-%.1f %%", 100.0 * time.noise);
}

}  // namespace orrery::calibration
