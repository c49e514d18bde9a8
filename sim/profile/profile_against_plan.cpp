#include "sim/profile/profile_against_plan.hpp"

#include <array>
#include <cmath>

namespace orrery {
namespace {

std::int64_t whole_ns(Seconds time) { return std::llround(time.si() * 1e9); }

// Of tensor, context and data ranks in one row where no collective says whose it is.
void add_communication(std::vector<ProfiledRank::Row>& rows, const Breakdown& predicted,
                       const StepProfile& profile) {
  std::array<std::int64_t, 6> measured{};
  for (const StepProfile::Exposed& one : profile.exposed)
    measured[static_cast<std::size_t>(one.use)] += one.ns;
  const auto of = [&](GroupUse use) { return measured[static_cast<std::size_t>(use)]; };
  const bool told = of(GroupUse::tensor) + of(GroupUse::context) + of(GroupUse::data) > 0;
  if (told) {
    rows.push_back({"tensor parallel", whole_ns(predicted.tp_exposed), of(GroupUse::tensor)});
    rows.push_back({"context parallel", whole_ns(predicted.cp_exposed), of(GroupUse::context)});
    rows.push_back({"data parallel", whole_ns(predicted.dp_exposed), of(GroupUse::data)});
    rows.push_back({"other collectives", 0, of(GroupUse::other)});
  } else {
    rows.push_back({"tensor, context, data parallel",
                    whole_ns(predicted.tp_exposed + predicted.cp_exposed + predicted.dp_exposed),
                    of(GroupUse::other)});
  }
  rows.push_back({"expert parallel", whole_ns(predicted.ep_exposed), of(GroupUse::expert)});
  rows.push_back(
      {"pipeline", whole_ns(predicted.pp_exposed + predicted.pp_bubble), of(GroupUse::pipeline)});
}

}  // namespace

std::int64_t ProfiledRank::predicted_ns() const {
  std::int64_t sum = 0;
  for (const Row& row : rows) sum += row.predicted_ns;
  return sum;
}

ProfiledRank profile_against_plan(const KinetoTrace& trace, StepProfile profile,
                                  const Result& result, int stage) {
  const Breakdown& predicted = result.stages.at(static_cast<std::size_t>(stage));
  ProfiledRank rank;
  rank.file = trace.file;
  rank.gpu = trace.device.name;
  rank.rank = trace.rank;
  rank.ranks = trace.ranks;
  rank.stage = stage;
  const auto add = [&](const std::string& what, Seconds predicts, std::int64_t measures) {
    rank.rows.push_back({what, whole_ns(predicts), measures});
  };
  const auto measured = [&](GpuWork work) { return profile.at(work).own_ns; };
  const TimeByWork& work = predicted.work;
  add("matrix products", work.at(Work::products) + work.at(Work::expert_products),
      measured(GpuWork::products));
  add("attention", work.at(Work::attention), measured(GpuWork::attention));
  add("memory bound", work.at(Work::streaming), measured(GpuWork::streaming));
  add("slowed down by collectives", work.at(Work::slowed), 0);
  add("optimizer and gradient norm", predicted.optimizer + predicted.other,
      measured(GpuWork::optimizer));
  add("kernels of unknown names", Seconds{}, measured(GpuWork::unknown));
  add_communication(rank.rows, predicted, profile);
  add("waiting for other ranks", predicted.imbalance, 0);
  add("copies to and from the host", Seconds{}, measured(GpuWork::copies));
  add("waiting for the host", work.at(Work::host), profile.host_ns);
  add("idle", Seconds{}, profile.idle_ns);
  // Rounding each row leaves a few nanoseconds over; they belong to no work.
  rank.rows.back().predicted_ns += whole_ns(predicted.sum()) - rank.predicted_ns();
  rank.profile = std::move(profile);
  return rank;
}

}  // namespace orrery
