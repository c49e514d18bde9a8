#include "sim/input/scenario/software_support.hpp"

#include <algorithm>

#include "sim/base/text/choice.hpp"
#include "sim/input/scenario/software.hpp"

namespace orrery {
namespace {

constexpr int none_of_them = -1;

struct Key {
  std::string name;
  std::vector<std::string> words;  // Empty: whole numbers. Else `of` counts them from 0; what is
                                   // none of them is not for the software to have or to lack.
  int (*of)(const Plan&);
};

int number_of_schedule(const Plan& plan) {
  const auto& all = built_in_schedules();
  const auto found = std::find(all.begin(), all.end(), plan.schedule);
  return found == all.end() ? none_of_them : static_cast<int>(found - all.begin());
}

const std::vector<std::string> off_on{"false", "true"};

const std::vector<Key>& all_keys() {
  static const std::vector<Key> keys{
      {"tp", {}, [](const Plan& p) { return p.tp; }},
      {"pp", {}, [](const Plan& p) { return p.pp; }},
      {"vpp", {}, [](const Plan& p) { return p.vpp; }},
      {"cp", {}, [](const Plan& p) { return p.cp; }},
      {"ep", {}, [](const Plan& p) { return p.ep; }},
      {"zero", {}, [](const Plan& p) { return p.zero; }},
      {"schedule", schedule_names(), number_of_schedule},
      {"recompute", recompute_names(),
       [](const Plan& p) { return static_cast<int>(p.recompute.kind); }},
      {"dtype", dtype_names(), [](const Plan& p) { return static_cast<int>(p.dtype); }},
      {"attention", {"unfused", "flash"}, [](const Plan& p) { return int{p.fused_attention}; }},
      {"sp", off_on, [](const Plan& p) { return int{p.sp}; }},
      {"dp_overlap", off_on, [](const Plan& p) { return int{p.dp_overlap}; }},
  };
  return keys;
}

const Key& key_of(const std::string& name) {
  return *std::find_if(all_keys().begin(), all_keys().end(),
                       [&](const Key& key) { return key.name == name; });
}

int value_of(const JsonValue& json, const Key& key) {
  if (key.words.empty()) return static_cast<int>(json.integer(0, 1 << 20));
  if (key.words == off_on) return json.boolean() ? 1 : 0;
  return choice<int>(json, key.words);
}

std::string text(const Key& key, int value) {
  return key.words.empty() ? std::to_string(value) : key.words[static_cast<std::size_t>(value)];
}

// "none or full", "0, 1 or 2".
std::string alternatives(const std::vector<std::string>& words) {
  std::string all;
  for (std::size_t i = 0; i < words.size(); ++i)
    all += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return all;
}

}  // namespace

bool Support::has(int value) const {
  return std::find(values.begin(), values.end(), value) != values.end();
}

std::vector<Support> read_support(const JsonValue& json) {
  std::vector<std::string> names;
  for (const Key& key : all_keys()) names.push_back(key.name);
  json.allow_only(names);
  std::vector<Support> all;
  for (const Key& key : all_keys()) {
    const auto stated = json.find(key.name);
    if (!stated) continue;
    const JsonValue list = stated->sourced();
    Support support{key.name, {}, key.of, {}};
    for (const JsonValue& element : list.elements()) {
      support.values.push_back(value_of(element, key));
      support.words.push_back(text(key, support.values.back()));
    }
    if (support.values.empty())
      list.fail("is empty", "list the values that the software has, or leave the key out");
    all.push_back(std::move(support));
  }
  return all;
}

void check_support(const Software& software, const Plan& plan, const Place& at) {
  if (plan.vpp > 1 && plan.pp < software.interleaved_from && !plan.schedule->own_pipeline())
    fail_infeasible(at / "vpp",
                    "the software '" + software.name + "' has several chunks a stage from pp=" +
                        std::to_string(software.interleaved_from) +
                        " on, not with pp=" + std::to_string(plan.pp),
                    "use vpp=1, or another software");
  for (const Support& support : software.support) {
    const int value = support.of(plan);
    if (value == none_of_them || support.has(value)) continue;
    fail_infeasible(
        at / support.key,
        "the software '" + software.name + "' has no " + support.key + "=" +
            text(key_of(support.key), value),
        "use " + support.key + "=" + alternatives(support.words) + ", or another software");
  }
}

bool supports(const Software& software, const std::string& key, const std::string& value) {
  if (key == "tp_overlap" && value == "true") return software.overlaps_tp();
  const auto found = std::find_if(software.support.begin(), software.support.end(),
                                  [&](const Support& support) { return support.key == key; });
  return found == software.support.end() ||
         std::find(found->words.begin(), found->words.end(), value) != found->words.end();
}

}  // namespace orrery
