#include "sim/reliability/run_bill.hpp"

#include <algorithm>

#include "sim/training/bill.hpp"

namespace orrery {
namespace {

// GPUs as they work, as they wait, and as they do one or the other.
struct Draw {
  Range working, waiting, either;
};

Draw draw_of(const Economics& economics) {
  const Range working = economics.server_watts_per_gpu;
  if (!working.known()) return {};
  const Range told = economics.waiting_watts_per_gpu;
  const Range waiting = told.known() ? told : Range{0.0, working.high};
  return {
      working, waiting, {std::min(waiting.low, working.low), std::max(waiting.high, working.high)}};
}

}  // namespace

RunBill run_bill(const PreparedRun& run, const RunFigures& figures, int kept,
                 const Economics& economics) {
  const int gpus = run.scenario.plan.gpus();
  const double hours = 24.0 * figures.days.mean;
  const double spare_hours = hours * kept * run.gpus_of_unit;
  const auto share = [&](RunTime time) { return figures.shares[static_cast<std::size_t>(time)]; };
  const double hangs = share(RunTime::detecting);
  const double waits =
      share(RunTime::saving) + share(RunTime::waiting) + share(RunTime::restarting);
  const double redone = share(RunTime::redone);

  RunBill bill;
  bill.gpu_hours = hours * gpus + spare_hours;
  bill.rent_usd = economics.rent_usd_per_gpu_hour * bill.gpu_hours;
  const double jobs = hours * gpus / bill.gpu_hours;
  bill.spares = 1.0 - jobs;
  bill.redone = jobs * redone;
  bill.standing = jobs * (hangs + waits);
  bill.steps = jobs * (1.0 - redone - hangs - waits);

  const Draw draw = draw_of(economics);
  const auto kwh = [&](Range watts, double times) { return watts * economics.pue * (times / 1e3); };
  const auto switches =
      static_cast<double>(fabric_parts(run.scenario.system, gpus, economics).switches);
  bill.standing_kwh =
      kwh(draw.either, hours * gpus * hangs) + kwh(draw.waiting, hours * gpus * waits);
  bill.spares_kwh = kwh(draw.waiting, spare_hours);
  bill.energy_kwh = kwh(draw.working, hours * gpus * (1.0 - hangs - waits)) + bill.standing_kwh +
                    bill.spares_kwh + kwh(economics.switch_watts, hours * switches);
  bill.energy_usd = bill.energy_kwh * economics.usd_per_kwh;
  return bill;
}

}  // namespace orrery
