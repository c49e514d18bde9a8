#include "sim/profile/profile_text.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/core/value_list.hpp"
#include "sim/training/training_text.hpp"

namespace orrery {
namespace {

constexpr std::size_t most_unknown = 5;
constexpr std::size_t longest_kernel_name = 44;

double ms(std::int64_t ns) { return 1e-6 * static_cast<double>(ns); }

// Rounded to whole microseconds, so that less is not shown as "-0.000".
std::string ms_text(std::int64_t ns) { return fixed(std::abs(ns) < 500 ? 0.0 : ms(ns), 3); }

std::string signed_ms_text(std::int64_t ns) {
  const std::string text = ms_text(std::abs(ns));
  return text == ms_text(0) ? text : (ns < 0 ? "-" : "+") + text;
}

std::string share(std::int64_t ns, std::int64_t of) {
  return of > 0 ? percent(static_cast<double>(ns) / static_cast<double>(of)) : "";
}

std::string spaced(std::string word) {
  std::replace(word.begin(), word.end(), '_', ' ');
  return word;
}

// Names come from an untrusted file.
std::string brief(const std::string& name) {
  const std::string shown = shown_text(name);
  return shown.size() <= longest_kernel_name ? shown
                                             : shown.substr(0, longest_kernel_name - 3) + "...";
}

std::string steps_text(const StepProfile& profile) {
  if (!profile.step) return "the whole trace";
  std::string text = "step " + std::to_string(*profile.step);
  if (profile.steps.size() > 1)
    text += ", the one of " + std::to_string(profile.steps.size()) + " whole ones that was chosen";
  return text;
}

std::string title(const ProfiledRank& rank) {
  std::vector<std::string> items;
  if (rank.rank >= 0)
    items.push_back("rank " + grouped(rank.rank) +
                    (rank.ranks > 0 ? " of " + grouped(rank.ranks) : ""));
  if (!rank.gpu.empty()) items.push_back(shown_text(rank.gpu));
  items.push_back(steps_text(rank.profile));
  items.push_back("compared with stage " + std::to_string(rank.stage));
  return run_heading(shown_text(rank.file), items);
}

std::string rows_text(const ProfiledRank& rank) {
  Table table{{{"", Align::left},
               {"predicted, ms"},
               {"measured, ms"},
               {"measured - predicted"},
               {"of step"}}};
  const std::int64_t step = rank.profile.length_ns();
  for (const ProfiledRank::Row& row : rank.rows)
    if (ms_text(row.predicted_ns) != ms_text(0) || ms_text(row.measured_ns) != ms_text(0))
      table.add_row({row.what, ms_text(row.predicted_ns), ms_text(row.measured_ns),
                     signed_ms_text(row.measured_ns - row.predicted_ns),
                     share(row.measured_ns, step)});
  const std::int64_t predicted = rank.predicted_ns();
  table.add_row({"step", ms_text(predicted), ms_text(step), signed_ms_text(step - predicted),
                 share(step, step)});
  return table.text();
}

std::string collectives_text(const StepProfile& profile) {
  Table table{{{"", Align::left}, {"number"}, {"time, ms"}, {"hidden, ms"}, {"exposed, ms"}}};
  bool any = false;
  for (std::size_t i = 0; i < kinds_of_gpu_work; ++i) {
    const StepProfile::Part& part = profile.parts[i];
    if (!communicates(static_cast<GpuWork>(i)) || part.busy_ns == 0) continue;
    any = true;
    table.add_row({spaced(name(static_cast<GpuWork>(i))), grouped(part.count),
                   ms_text(part.busy_ns), ms_text(part.busy_ns - part.own_ns),
                   ms_text(part.own_ns)});
  }
  if (!any) return "";
  std::string text = "\nCommunication in the trace\n" + table.text();
  const bool stated =
      std::any_of(profile.exposed.begin(), profile.exposed.end(),
                  [](const StepProfile::Exposed& one) { return !one.group.empty(); });
  if (!stated) return text;
  Table groups{{{"", Align::left}, {"counts as", Align::left}, {"exposed, ms"}}};
  for (const StepProfile::Exposed& one : profile.exposed)
    groups.add_row(
        {(one.group.empty() ? "no group" : brief(one.group)) + ", " + spaced(name(one.work)),
         spaced(name(one.use)), ms_text(one.ns)});
  return text + "\nExposed, by process group\n" + groups.text();
}

std::string unknown_text(const StepProfile& profile) {
  if (profile.unknown.empty()) return "";
  Table table{{{"", Align::left}, {"number"}, {"time, ms"}}};
  for (std::size_t i = 0; i < std::min(profile.unknown.size(), most_unknown); ++i) {
    const StepProfile::Named& named = profile.unknown[i];
    table.add_row({brief(named.name), grouped(named.count), ms_text(named.ns)});
  }
  const std::size_t more = profile.unknown.size() - std::min(profile.unknown.size(), most_unknown);
  return "\nKernels of unknown names, longest first (--names FILE says what they do)\n" +
         table.text() + (more > 0 ? "  and " + std::to_string(more) + " more\n" : "");
}

}  // namespace

std::string profile_text(const Result& result, const std::vector<ProfiledRank>& ranks) {
  const Scenario& scenario = result.scenario;
  const int gpus = scenario.plan.gpus();
  std::string text = run_heading(scenario.model.name + " on " + scenario.system.name + ", " +
                                     grouped(gpus) + (gpus == 1 ? " GPU" : " GPUs"),
                                 plan_items(scenario.plan));
  for (const ProfiledRank& rank : ranks) {
    text += "\n" + title(rank) + "\n" + rows_text(rank) + collectives_text(rank.profile) +
            unknown_text(rank.profile);
    for (const std::string& note : rank.notes)
      text += "\n" + wrapped_words("", "Note: " + note, 78);
  }
  return text;
}

namespace {

using Json = nlohmann::ordered_json;

Json stated(const std::string& text) { return text.empty() ? Json{} : Json{text}; }

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
    exposed.push_back({{"group", stated(one.group)},
                       {"work", name(one.work)},
                       {"use", name(one.use)},
                       {"ns", one.ns}});
  Json unknown = Json::array();
  for (const StepProfile::Named& named : profile.unknown)
    unknown.push_back({{"name", named.name}, {"count", named.count}, {"ns", named.ns}});
  return {{"file", rank.file},
          {"gpu", stated(rank.gpu)},
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
