#include "sim/plan/choose_software.hpp"

#include <algorithm>

#include "sim/core/catalog.hpp"
#include "sim/plan/software_keys.hpp"
#include "sim/plan/try_plan.hpp"

namespace orrery {
namespace {

// Figures that one says and the other does not, or says otherwise; sources do not count.
int differences(const Software& one, const Software& other) {
  const auto value = [](const Software& software, const std::string& key) {
    const auto said = software.document ? software.document->find(key) : std::nullopt;
    return said && said->is_object() ? said->find("value") : std::nullopt;
  };
  return static_cast<int>(std::count_if(
      software_keys().begin(), software_keys().end(),
      [&](const SoftwareKey& key) { return value(one, key.name) != value(other, key.name); }));
}

// Whether nothing but what the software has is against the plan.
bool is_for_want_of_support(const Model& model, const System& system, Software software,
                            const PlanRequest& request, int gpus) {
  software.support.clear();
  if (!software.fp32) software.fp32.emplace();
  software.interleaved_from = 2;
  return std::holds_alternative<SettledPlan>(try_plan(model, system, software, request, gpus));
}

// The names of those that could do it in place of "another software", if there are any.
std::string with_names(std::string remedy, const std::vector<std::string>& able) {
  const std::string unnamed = ", or another software";
  const std::size_t at = remedy.find(unnamed);
  if (at == remedy.npos) return remedy;
  const std::size_t shown = std::min<std::size_t>(3, able.size());
  std::string names;
  for (std::size_t i = 0; i < shown; ++i)
    names += (i == 0 ? ", or software=" : i + 1 == shown ? " or " : ", ") + able[i];
  return remedy.replace(at, unnamed.size(), names);
}

}  // namespace

std::string default_software(const PlanRequest& request, const System& system) {
  const bool is_volta = system.gpu.architecture == Architecture::volta;
  return is_volta && request.dtype.value_or(Dtype::fp16) == Dtype::fp16 ? "megatron-2021"
                                                                        : "megatron-core";
}

std::vector<Software> software_near(const Software& like) {
  std::vector<std::pair<int, Software>> others;
  for (const std::string& name : list_catalog("workloads/software")) {
    if (name == like.name) continue;
    Software other = read_software(name, {});
    const int distance = differences(like, other);
    others.emplace_back(distance, std::move(other));
  }
  std::stable_sort(others.begin(), others.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Software> sorted;
  for (auto& [distance, software] : others) sorted.push_back(std::move(software));
  return sorted;
}

Scenario make_scenario(const Model& model, const System& system, const PlanRequest& request,
                       int gpus, const Place& at) {
  const Software software =
      read_software(request.software.empty() ? default_software(request, system) : request.software,
                    at / "software");
  std::vector<Software> others;
  const auto near = [&]() -> const std::vector<Software>& {
    return others = software_near(software);
  };
  return make_scenario(model, system, software, near, request, gpus, at);
}

Scenario make_scenario(const Model& model, const System& system, const Software& software,
                       const std::function<const std::vector<Software>&()>& near,
                       const PlanRequest& request, int gpus, const Place& at) {
  const bool asked = !request.software.empty();
  const OrRefused<SettledPlan> settled = try_plan(model, system, software, request, gpus);
  if (std::holds_alternative<SettledPlan>(settled))
    return make_scenario(model, system, software, request, gpus, at);
  Refused no = std::get<Refused>(settled);
  if (!is_for_want_of_support(model, system, software, request, gpus)) throw no.error(at);

  // What the default leaves to the software is left as it was where nobody asked for another.
  PlanRequest usual = request;
  if (!usual.mbs && !software.microbatches_are_stages) usual.mbs = 1;
  std::vector<std::string> able;
  for (const Software& other : near()) {
    const PlanRequest& asked_of_it = asked ? request : usual;
    if (std::holds_alternative<Refused>(try_plan(model, system, other, asked_of_it, gpus)))
      continue;
    if (!asked) {
      Scenario scenario = make_scenario(model, system, other, usual, gpus, at);
      scenario.why_software =
          "software " + other.name + " is taken, as no software is named and " + no.problem;
      return scenario;
    }
    // The one that people know best is named first.
    able.insert(other.name == default_software(request, system) ? able.begin() : able.end(),
                other.name);
  }
  no.remedy = with_names(no.remedy, able);
  throw no.error(at);
}

}  // namespace orrery
