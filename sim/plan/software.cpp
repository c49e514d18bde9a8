#include "sim/plan/software.hpp"

#include <algorithm>

#include "sim/core/catalog.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/object_reader.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/plan/software_keys.hpp"

namespace orrery {

Software read_software(const std::string& word, const Place& at) {
  return parse_software(JsonValue::read_file(find_in_catalog("workloads/software", word, at)));
}

Software parse_software(const JsonValue& json) {
  require_schema(json, "orrery.software/1");
  static const std::vector<SoftwareKey> fields = [] {
    std::vector<SoftwareKey> all{field("name", &Software::name, some_text("name")),
                                 field("title", &Software::title, some_text("title")),
                                 source_of<Software>()};
    all.insert(all.end(), software_keys().begin(), software_keys().end());
    return all;
  }();
  Software software;
  read_fields(json, fields, software, {"schema"});
  if (!json.has("host_latent_attention"))
    software.expert_layer_host.latent_attention = software.expert_layer_host.attention;
  software.document = json;
  return software;
}

Software captured(CudaGraphs graphs, Software software) {
  const bool both = graphs == CudaGraphs::attention_router;
  if (both || graphs == CudaGraphs::router) software.expert_layer_host.router = Seconds{};
  if (both || graphs == CudaGraphs::attention)
    software.expert_layer_host.attention = software.expert_layer_host.latent_attention = Seconds{};
  if (graphs == CudaGraphs::step) {
    software.expert_layer_host = {};
    software.host_launch = software.adapter_wait = Seconds{};
  }
  return software;
}

namespace {

// "selective:core_attn+mlp" -> "selective"
std::string without_parts(const std::string& word) { return word.substr(0, word.find(':')); }

// True for a user's own value (a file), which is none of the key's known words: support of software
// does not apply to it.
bool is_users_own(const PlanKey& key, const std::string& word) {
  const std::vector<std::string>& words = key.access.words;
  return !words.empty() &&
         std::find(words.begin(), words.end(), without_parts(word)) == words.end();
}

// True if the key is a member of OptimizerState.
bool is_state(const PlanKey& key) { return key.part == PlanPart::precision && key.name != "dtype"; }

}  // namespace

bool Support::has(const std::string& word) const {
  return std::find(words.begin(), words.end(), without_parts(word)) != words.end();
}

std::vector<Support> read_support(const JsonValue& json) {
  json.allow_only(names_of(plan_keys()));
  std::vector<Support> all;
  for (const PlanKey& key : plan_keys()) {
    const auto stated = json.find(key.name);
    if (!stated) continue;
    const JsonValue list = stated->sourced();
    Support support{&key, {}, is_state(key)};
    const std::vector<std::string>& words = key.access.words;
    for (const JsonValue& element : list.elements())
      support.words.push_back(key.access.form == Form::word && !words.empty()
                                  ? words[choice<std::size_t>(element, words)]
                                  : text_of(key.access.read(element)));
    if (support.words.empty())
      list.fail("is empty", "list the values that the software has, or leave the key out");
    all.push_back(std::move(support));
  }
  return all;
}

double Software::narrow_gemm_efficiency(Dtype format) const {
  if (!has_scale_blocks(format)) return fp8_scaling.gemm_efficiency;
  const auto found = block_gemm_efficiency.find(format);
  return found == block_gemm_efficiency.end() ? 1.0 : found->second;
}

namespace {

// Formats that the software trains in, of those that its file lists or of all.
std::vector<std::string> formats_of(const Software& software) {
  std::vector<std::string> formats;
  for (const std::string& word : plan_key("dtype").access.words)
    if (supports(software, "dtype", word)) formats.push_back(word);
  return formats;
}

}  // namespace

MaybeRefused check_support(const Software& software, const Plan& plan) {
  if (is_wide(plan.dtype) && !software.fp32)
    return infeasible("dtype",
                      "the software '" + software.name + "' has no dtype=" + name(plan.dtype),
                      "use dtype=" + alternatives(formats_of(software)) + ", or another software");
  if (plan.vpp > 1 && plan.pp < software.interleaved_from && !plan.schedule->own_pipeline())
    return infeasible("vpp",
                      "the software '" + software.name + "' has several chunks a stage from pp=" +
                          std::to_string(software.interleaved_from) +
                          " on, not with pp=" + std::to_string(plan.pp),
                      "use vpp=1, or another software");
  // Every file supports masters and moments in fp32, so that most plans need no check of them.
  const bool usual_state = plan.has_fp32_state() && !plan.fp8_params;
  for (const Support& support : software.support) {
    if (usual_state && support.of_state) continue;
    if (support.key->headed && !support.key->headed(plan)) continue;  // It decides nothing here.
    const std::string word = support.key->text(plan);
    if (support.has(word) || is_users_own(*support.key, word)) continue;
    const std::string& key = support.key->name;
    return infeasible(
        key, "the software '" + software.name + "' has no " + key + "=" + without_parts(word),
        "use " + key + "=" + alternatives(support.words) + ", or another software");
  }
  return {};
}

bool supports(const Software& software, const std::string& key, const std::string& value) {
  if (key == "tp_overlap" && value == "true") return software.overlaps_tp();
  if (key == "dtype" && !software.fp32) {
    const auto format = format_named(value, FormatUse::products);
    if (format && is_wide(*format)) return false;
  }
  const auto found = std::find_if(software.support.begin(), software.support.end(),
                                  [&](const Support& support) { return support.key->name == key; });
  return found == software.support.end() ||
         std::find(found->words.begin(), found->words.end(), value) != found->words.end();
}

}  // namespace orrery
