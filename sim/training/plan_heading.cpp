#include <algorithm>
#include <set>
#include <vector>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/core/value_list.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/training/training_text.hpp"

namespace orrery {
namespace {

std::string value_text(const PlanKey& key, const Plan& plan) {
  const FieldValue value = key.access.value(plan);
  const auto* number = std::get_if<std::int64_t>(&value);
  return number ? grouped(*number) : text_of(value);
}

std::string phrase(const PlanKey& key, const Plan& plan) {
  if (key.heading.empty()) return key.name + " " + value_text(key, plan);
  const std::size_t place = key.heading.find("{}");
  if (place == key.heading.npos) return key.heading;
  return key.heading.substr(0, place) + value_text(key, plan) + key.heading.substr(place + 2);
}

// Collects the items of a heading: related keys together and first, then all remaining ones.
class Heading {
 public:
  explicit Heading(const Plan& plan) : plan_{plan} {}

  void list(const std::string& name) {
    listed_.insert(name);
    const PlanKey& key = plan_key(name);
    if (key.needs_listing(plan_)) items_.push_back(phrase(key, plan_));
  }
  void list_together(const std::set<std::string>& names, const std::string& item) {
    listed_.insert(names.begin(), names.end());
    if (!item.empty()) items_.push_back(item);
  }
  void list_rest(const std::string& last) {
    for (const PlanKey& key : plan_keys())
      if (key.name != last && !listed_.contains(key.name)) list(key.name);
    list(last);
  }
  std::vector<std::string> take() { return std::move(items_); }

 private:
  const Plan& plan_;
  std::set<std::string> listed_;
  std::vector<std::string> items_;
};

std::string degrees(const Plan& plan) {
  return "tp " + grouped(plan.tp) + " x pp " + grouped(plan.pp) + " x dp " + grouped(plan.dp) +
         (plan.cp > 1 ? " x cp " + grouped(plan.cp) : "");
}

std::string experts(const Plan& plan) {
  if (!plan.experts) return "";
  return "experts over ep " + grouped(plan.ep) +
         (plan.etp > 1 ? " x etp " + grouped(plan.etp) : "") + " x dp " +
         grouped(plan.expert_data_ranks());
}

std::string passes(const Plan& plan) {
  return plan_key("schedule").text(plan) +
         (plan.vpp > 1 ? " with " + grouped(plan.vpp) + " chunks a stage" : "");
}

std::string microbatches(const Plan& plan) {
  return grouped(plan.microbatches) + " micro-batches of " + grouped(plan.mbs) + " x " +
         grouped(plan.seq) + " tokens";
}

}  // namespace

std::vector<std::string> plan_items(const Plan& plan) {
  Heading heading{plan};
  heading.list_together({"tp", "pp", "dp", "cp"}, degrees(plan));
  heading.list("cp_comm");
  heading.list_together({"ep", "etp"}, experts(plan));
  for (const char* key :
       {"moe_dispatcher", "shared_expert_overlap", "ep_overlap", "delay_wgrad", "routing"})
    heading.list(key);
  heading.list_together({"schedule", "vpp"}, passes(plan));
  heading.list_together({"mbs", "seq"}, microbatches(plan));
  for (const char* key : {"gbs", "dtype", "attention", "recompute"}) heading.list(key);
  heading.list_rest("software");
  return heading.take();
}

namespace {

using Names = std::vector<std::string>;

// Keys of the table's two columns, in their order.
const Names degree_keys{"tp", "cp", "pp", "vpp", "ep", "dp", "mbs"};
const Names switch_keys{"recompute", "sp", "zero", "dp_overlap", "tp_overlap", "schedule"};

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "tp8", "dp-overlap", "zb-h1": numbers with their key, switches without a value, words alone.
std::string brief(const PlanKey& key, const Plan& plan) {
  const FieldValue value = key.access.value(plan);
  std::string name = key.name;
  std::replace(name.begin(), name.end(), '_', '-');
  if (std::holds_alternative<std::string>(value)) return text_of(value);
  return std::holds_alternative<bool>(value) ? name : name + text_of(value);
}

}  // namespace

bool is_brief_key(const std::string& key) {
  return contains(degree_keys, key) || contains(switch_keys, key);
}

std::string brief_degrees(const Plan& plan) {
  std::string text;
  for (const std::string& name : degree_keys) {
    const PlanKey& key = plan_key(name);
    if (key.needs_listing(plan)) text += (text.empty() ? "" : " ") + brief(key, plan);
  }
  return text;
}

std::string brief_switches(const Plan& plan) {
  std::vector<std::string> words;
  const auto add = [&](const PlanKey& key) {
    if (key.needs_listing(plan)) words.push_back(brief(key, plan));
  };
  for (const std::string& name : switch_keys)
    if (name != "schedule") add(plan_key(name));
  if (plan.schedule != &default_schedule(plan.vpp))
    words.push_back(plan_key("schedule").text(plan));
  for (const PlanKey& key : plan_keys())
    if (key.searched && !contains(degree_keys, key.name) && !contains(switch_keys, key.name))
      add(key);
  return joined(words, " ");
}

std::string usual_sequence_text(const Model& model) {
  const std::string text = "sequences of " + grouped(default_sequence(model)) + " tokens";
  if (model.pretraining_sequence > 0) return text + " as in pre-training";
  return guesses_sequence(model) ? text + " (assumed)" : text;
}

std::string run_heading(const std::string& what, const std::vector<std::string>& items) {
  constexpr int width = 78;
  return what + "\n" + wrapped("  ", items, ", ", width);
}

}  // namespace orrery
