// The first run on a GPU, rehearsed on one whose answers are known: campaigns, records, a call that
// is cut off, another machine, and the fit of it all.

#include <gtest/gtest.h>

#include <cmath>

#include "calibration/host/campaign.hpp"
#include "calibration/host/expert_tokens.hpp"
#include "calibration/host/work_list.hpp"
#include "sim/calibration/fit.hpp"
#include "sim/kernels/gemm_time.hpp"
#include "sim/kernels/kernel_error.hpp"

namespace orrery::rehearsal_test {
namespace {

using calibration::Case;
using calibration::Measurement;

// An H200 whose products take `slower` times as long as published, and which under load keeps
// `steady` of the clock that it has for its first milliseconds (the table's own falling clock taken
// out); wgrad runs at `wgrad` of the forward products' rate, copies at `copies` of the memory's.
struct Truth {
  double slower = 1.08;
  double steady = 0.9;
  double wgrad = 0.94;
  double copies = 0.9;
};

class PaperH200 : public calibration::Bench {
 public:
  explicit PaperH200(const Truth& truth) : truth_{truth} {}

  Measurement measure(const Case& what, const calibration::StoppingLimits&) override {
    clock_s_ += 1.0;
    ++asked;
    Measurement one;
    one.what = what;
    one.implementation = "a formula";
    one.stopped = calibration::Stopped::noise;
    if (what.kind == "gemm" && what.choice("dtype") != "tf32")
      one.warm = one.cold = time(gemm_us(what));
    else if (what.kind == "sustained")
      sustained(one);
    else if (what.kind == "memory" && what.choice("op") == "copy")
      copy(one);
    else
      one.outcome = calibration::Outcome::skipped, one.reason = "not on paper";
    return one;
  }
  double reference_us() override { return 200.0; }
  double now_s() override { return clock_s_; }
  void rest(double seconds) override { clock_s_ += seconds; }
  bool interrupted() override { return asked >= cut_off_after; }

  int asked = 0, cut_off_after = 1 << 30;

  double published_us(const std::string& dtype, std::int64_t m, std::int64_t n,
                      std::int64_t k) const {
    return 1e6 * (dtype == "fp8" ? fp8_ : bf16_).without_cast(m, n, k).time.si();
  }

 private:
  static calibration::TimingSummary time(double us) {
    return {us, 0.995 * us, 1.01 * us, 0.004, 0.001, 30};
  }
  double gemm_us(const Case& what) const {
    const double us = truth_.slower * published_us(what.choice("dtype"), what.size("m"),
                                                   what.size("n"), what.size("k"));
    return what.choice("pass") == "wgrad" ? us / truth_.wgrad : us;
  }
  // Windows of a millisecond for as long as the case says; power acts with a tenth of a second.
  void sustained(Measurement& one) const {
    const std::int64_t m = one.what.size("m"), n = one.what.size("n"), k = one.what.size("k");
    const GemmTime& table = one.what.choice("dtype") == "fp8" ? fp8_ : bf16_;
    const double cool_us =
        truth_.slower * 1e6 * table.without_cast(m, n, k).time.si() / table.throttle(m, n, k);
    calibration::ClockSeries series;
    while (series.length_s() < static_cast<double>(one.what.size("seconds"))) {
      const double fallen = 1.0 - std::exp(-series.length_s() / 0.1);
      series.add(cool_us * (1.0 + (1.0 / truth_.steady - 1.0) * fallen), 1);
      series.note({1.9e9, 690.0, 60.0, fallen > 0.1 ? 4u : 0u});
    }
    one.warm = series.sustained();
    one.figures = {{"burst_us", series.burst_us()}, {"sustained_us", one.warm->median_us}};
    one.series = series.points();
  }
  void copy(Measurement& one) const {
    const double bytes = 4.0 * static_cast<double>(one.what.size("rows")) *
                         static_cast<double>(one.what.size("width"));
    one.warm = one.cold = time(2.0 + bytes / (truth_.copies * gpu_.memory_bandwidth.si() * 1e-6));
    one.figures = {{"moved_bytes", bytes}};
  }

  Truth truth_;
  Gpu gpu_ = read_gpu("h200-sxm", {"", ""});
  KernelTables tables_ = *read_kernel_tables("h200-sxm");
  GemmTime bf16_{gpu_, Dtype::bf16, &tables_}, fp8_{gpu_, Dtype::fp8, &tables_};
  double clock_s_ = 0.0;
};

// One call on one machine; what is on disk when it ends or is killed.
calibration::Record call(PaperH200& bench, const std::string& gpu_id,
                         const std::set<std::string>& done, double budget_s) {
  calibration::Record record;
  record.machine = {"NVIDIA H200",      gpu_id,   "9.0", "580.1", "13.0", "13.1.0", "", 1, 132,
                    int64_t{140} << 30, 50 << 20, 1.98e9};
  record.machine.power_limit_w = 700.0;
  record.machine.ecc = "on";
  record.started = "2026-11-23T00:00:00Z";
  calibration::CampaignPlan plan;
  plan.cases = calibration::in_running_order(calibration::default_work_list(1));
  plan.done = done;
  plan.budget_s = budget_s;
  std::string disk;
  run_campaign(
      record, plan, bench,
      [&](const calibration::Record& so_far) { disk = calibration::record_json(so_far); },
      [](const calibration::Progress&) {});
  return calibration::parse_record(disk, "record.json");
}

std::set<std::string> ids(const calibration::Record& record) {
  std::set<std::string> ids;
  for (const Measurement& one : record.measurements) ids.insert(one.what.id());
  return ids;
}

double worst(const GemmTable& table, const PaperH200& bench, double slower) {
  std::vector<double> errors;
  for (const GemmRow& row : table.rows)
    errors.push_back(
        std::abs(row.time.si() * 1e6 /
                     (slower * bench.published_us(name(table.dtype), row.m, row.n, row.k)) -
                 1.0));
  return *std::max_element(errors.begin(), errors.end());
}

TEST(Rehearsal, TwoMachinesAndACallThatIsCutOffComeToTheTruth) {
  const Truth truth;
  PaperH200 first{truth}, second{truth};
  first.cut_off_after = 70;
  const calibration::Record a = call(first, "aaaa", {}, 1e9);
  EXPECT_EQ(a.measurements.size(), 70u);  // All of them, also those that no check settled.
  const calibration::Record b = call(second, "bbbb", ids(a), 1e9);
  for (const std::string& id : ids(b)) EXPECT_FALSE(ids(a).contains(id)) << id;
  EXPECT_EQ(ids(a).size() + ids(b).size(), calibration::default_work_list(1).size());

  const CalibrationFit fit = fit_calibration({{"a.json", a}, {"b.json", b}}, {}, {});
  ASSERT_TRUE(fit.kernels.has_value());
  EXPECT_NEAR(fit.kernels->sustained.value, truth.steady, 2e-3);
  EXPECT_TRUE(fit.kernels->sustained.measured);
  EXPECT_NEAR(fit.kernels->wgrad_efficiency.value, truth.wgrad, 2e-3);
  EXPECT_NEAR(fit.kernels->copy_efficiency.value, truth.copies, 1e-6);
  for (const GemmTable& table : fit.kernels->tables.gemm)
    if (table.dtype != Dtype::fp16) {
      EXPECT_GT(table.rows.size(), 1900u);
      EXPECT_LT(worst(table, first, truth.slower), 2e-3) << name(table.dtype);
    }
}

// The same with the published clock throughout: nothing is left to correct, and `sustained` is 1
// only because this GPU does keep its clock.
TEST(Rehearsal, AGpuAsPublishedLeavesTheTablesAsTheyAre) {
  const Truth truth{1.0, 1.0, 0.95, 0.9};
  PaperH200 bench{truth};
  const CalibrationFit fit = fit_calibration({{"a.json", call(bench, "aaaa", {}, 1e9)}}, {}, {});
  EXPECT_NEAR(fit.kernels->sustained.value, 1.0, 1e-3);
  for (const GemmTable& table : fit.kernels->tables.gemm)
    if (table.dtype != Dtype::fp16) {
      EXPECT_LT(worst(table, bench, 1.0), 1e-3);
    }
}

// A call of 40 s has launches and two steady clocks, which are held against the published tables.
TEST(Rehearsal, AShortCallHasTheClock) {
  const Truth truth{1.0, 0.87, 0.95, 0.9};
  PaperH200 bench{truth};
  const CalibrationFit fit = fit_calibration({{"a.json", call(bench, "aaaa", {}, 6.0)}}, {}, {});
  EXPECT_TRUE(fit.kernels->tables.gemm.empty());
  EXPECT_TRUE(fit.kernels->sustained.measured);
  EXPECT_NEAR(fit.kernels->sustained.value, 0.87, 2e-3);
  bool held = false;
  for (const std::string& finding : fit.findings)
    held = held || finding.find("held by: power cap") != finding.npos;
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace orrery::rehearsal_test
