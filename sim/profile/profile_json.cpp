#include <nlohmann/json.hpp>

#include "sim/profile/profile_text.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

Json told(const std::string& text) { return text.empty() ? Json{} : Json{text}; }

Json rank_json(const ProfiledRank& rank) {
  const StepProfile& profile = rank.profile;
  Json rows = Json::array(), parts = Json::object(), exposed = Json::array();
  for (const ProfiledRank::Row& row : rank.rows)
    rows.push_back(
        {{"what", row.what}, {"predicted_ns", row.predicted_ns}, {"measured_ns", row.measured_ns}});
  for (std::size_t i = 0; i < kinds_of_gpu_work; ++i)
    parts[name(static_cast<GpuWork>(i))] = {{"count", profile.parts[i].count},
                                            {"busy_ns", profile.parts[i].busy_ns},
                                            {"own_ns", profile.parts[i].own_ns}};
  for (const StepProfile::Exposed& one : profile.exposed)
    exposed.push_back({{"group", told(one.group)},
                       {"work", name(one.work)},
                       {"use", name(one.use)},
                       {"ns", one.ns}});
  Json unknown = Json::array();
  for (const StepProfile::Named& named : profile.unknown)
    unknown.push_back({{"name", named.name}, {"count", named.count}, {"ns", named.ns}});
  return {{"file", rank.file},
          {"gpu", told(rank.gpu)},
          {"rank", rank.rank >= 0 ? Json{rank.rank} : Json{}},
          {"ranks", rank.ranks > 0 ? Json{rank.ranks} : Json{}},
          {"stage", rank.stage},
          {"step", profile.step ? Json{*profile.step} : Json{}},
          {"steps", profile.steps},
          {"predicted_ns", rank.predicted_ns()},
          {"measured_ns", profile.length_ns()},
          {"rows", std::move(rows)},
          {"trace",
           {{"work", std::move(parts)},
            {"host_ns", profile.host_ns},
            {"idle_ns", profile.idle_ns},
            {"exposed", std::move(exposed)},
            {"unknown", std::move(unknown)}}},
          {"notes", rank.notes}};
}

}  // namespace

std::string profile_json(const Result& result, const std::vector<ProfiledRank>& ranks) {
  Json list = Json::array();
  for (const ProfiledRank& rank : ranks) list.push_back(rank_json(rank));
  const Json json{{"schema", "orrery.profile/1"},          {"model", result.scenario.model.name},
                  {"system", result.scenario.system.name}, {"gpus", result.scenario.plan.gpus()},
                  {"step_time_s", result.step_time.si()},  {"traces", std::move(list)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery
