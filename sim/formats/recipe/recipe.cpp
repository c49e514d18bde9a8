#include "sim/formats/recipe/recipe.hpp"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>

#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/value_list.hpp"
#include "sim/formats/recipe/decisive_keys.hpp"
#include "sim/model/model_name.hpp"
#include "sim/nccl/nccl_selection.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/plan/software.hpp"

namespace orrery {

Model ModelSizes::model(const std::string& name, const std::string& source,
                        const std::string& file) const {
  return parse_model(
      JsonValue::parse("{\"schema\": \"orrery.model/1\", \"name\": " + json_quoted(name) +
                           ", \"source\": " + json_quoted(source) + entries_ + "}",
                       file));
}

std::int64_t padded_rows(std::int64_t tokens, std::int64_t multiple) {
  const std::int64_t of = std::max<std::int64_t>(1, multiple);
  return (tokens + of - 1) / of * of;
}

namespace {

using Json = nlohmann::ordered_json;

void check(const Recipe& recipe, const Place& place) {
  // These are the limits of a plan (sim/plan/plan_keys.cpp).
  constexpr std::int64_t most_ranks = 1 << 20, most = 1 << 30;
  struct Count {
    const char* what;
    std::int64_t count, most;
  };
  const Count counts[] = {{"tensor-parallel ranks", recipe.tp, most_ranks},
                          {"pipeline stages", recipe.pp, most_ranks},
                          {"chunks of a stage", recipe.vpp, most_ranks},
                          {"context-parallel ranks", recipe.cp, most_ranks},
                          {"expert-parallel ranks", recipe.ep, most_ranks},
                          {"tensor-parallel ranks of experts", recipe.etp, most_ranks},
                          {"sequences in a micro-batch", recipe.mbs, most},
                          {"sequences in a step", recipe.gbs.value_or(recipe.per_replica), most},
                          {"GPUs", recipe.gpus.value_or(1), most},
                          {"tokens in a sequence", recipe.seq, most}};
  for (const Count& one : counts)
    if (one.count < 1 || one.count > one.most)
      fail_input(place, "has " + grouped(one.count) + " " + one.what,
                 "write a number from 1 to " + grouped(one.most));
  if (product_of({recipe.tp, recipe.pp, recipe.cp}) > most_ranks ||
      product_of({recipe.pp, recipe.ep, recipe.etp}) > most_ranks)
    fail_input(place, "has more than 1,048,576 ranks", "lower its degrees of parallelism");
}

// Writes the number of GPUs and the global batch into the plan.
void size_of_run(const Recipe& recipe, const Place& place, Json& plan,
                 std::vector<std::string>& notes) {
  const bool experts = recipe.model->experts.has_value();
  const std::int64_t needed = ranks_needed(recipe.tp, recipe.pp, recipe.cp, experts ? recipe.ep : 1,
                                           experts ? recipe.etp : recipe.tp);
  std::optional<std::int64_t> gpus = recipe.gpus;
  if (!gpus) {
    notes.push_back("the file does not say how many GPUs it uses: give --gpus");
  } else if (*gpus % needed != 0) {
    notes.push_back("the run has " + grouped(*gpus) + " GPUs, but its ranks need " +
                    grouped(needed) + " or a multiple of that: give --gpus");
    gpus.reset();
  }
  if (gpus) plan["gpus"] = *gpus;
  if (recipe.gbs) {
    plan["gbs"] = *recipe.gbs;
  } else if (gpus) {
    const std::int64_t replicas = *gpus / (recipe.tp * recipe.pp * recipe.cp);
    plan["gbs"] = product_of({recipe.per_replica, replicas});
  } else {
    fail_input(place,
               "does not say how many sequences a step has: they are " +
                   grouped(recipe.per_replica) + " for each replica, whose number it does not say",
               needed == 1 ? "give --gpus N" : "give --gpus N, a multiple of " + grouped(needed));
  }
}

}  // namespace

ImportedRun written_plan(const Recipe& recipe, const Place& place) {
  check(recipe, place);
  std::vector<std::string> notes = recipe.notes;
  Json plan = Json::object();  // operator[] of a null calls it an object before it has the memory.
  plan["model"] = Json::parse(recipe.model->document->compact());
  plan["tp"] = recipe.tp;
  plan["pp"] = recipe.pp;
  if (recipe.pp > 1) plan["schedule"] = recipe.schedule;
  if (recipe.pp > 1 && recipe.local_batch > 0) plan["local_batch"] = recipe.local_batch;
  if (recipe.layers.chosen()) plan["layers"] = stage_layers_text(recipe.layers);
  if (recipe.vpp > 1) plan["vpp"] = recipe.vpp;
  plan["cp"] = recipe.cp;
  if (recipe.cp > 1) plan["cp_comm"] = recipe.cp_comm;
  if (recipe.model->experts) {
    plan["ep"] = recipe.ep;
    plan["etp"] = recipe.etp;
    plan["moe_dispatcher"] = recipe.moe_dispatcher;
    if (recipe.routing != "uniform") plan["routing"] = recipe.routing;
  }
  size_of_run(recipe, place, plan, notes);
  plan["mbs"] = recipe.mbs;
  plan["seq"] = recipe.seq;
  plan["recompute"] = recipe.recompute;
  if (recipe.chunked_loss) plan["chunked_loss"] = true;
  plan["zero"] = recipe.zero;
  if (recipe.dp_replicate > 1) plan["dp_replicate"] = recipe.dp_replicate;
  if (recipe.offload_optimizer > 0) plan["offload_optimizer"] = recipe.offload_optimizer;
  if (recipe.offload_weights) plan["offload_weights"] = true;
  if (recipe.zero == 3) plan["reshard"] = recipe.reshard;
  plan["sp"] = recipe.sp && recipe.tp > 1;
  plan["dtype"] = recipe.dtype;
  if (recipe.main_params != "fp32") plan["main_params"] = recipe.main_params;
  if (recipe.exp_avg != "fp32") plan["exp_avg"] = recipe.exp_avg;
  if (recipe.exp_avg_sq != "fp32") plan["exp_avg_sq"] = recipe.exp_avg_sq;
  if (recipe.finetune != "full") {
    plan["finetune"] = recipe.finetune;
    plan["lora_rank"] = recipe.lora_rank;
    plan["lora_targets"] = recipe.lora_targets;
    if (recipe.lora_dropout) plan["lora_dropout"] = true;
    if (recipe.train_tables) plan["train_tables"] = true;
    if (!recipe.base_format.empty()) plan["base_format"] = recipe.base_format;
  }
  plan["attention"] = recipe.attention;
  if (recipe.tp > 1 && read_software(recipe.software, {"", ""}).overlaps_tp())
    plan["tp_overlap"] = recipe.tp_overlap;
  plan["dp_overlap"] = recipe.dp_overlap;
  if (recipe.nccl_algo != "any") plan["nccl_algo"] = recipe.nccl_algo;
  if (recipe.nccl_proto != "any") plan["nccl_proto"] = recipe.nccl_proto;
  plan["software"] = recipe.software;
  return {plan.dump(2, ' ', false, Json::error_handler_t::replace) + "\n", std::move(notes)};
}

std::int64_t product_of(std::initializer_list<std::int64_t> counts) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  std::int64_t product = 1;
  for (const std::int64_t count : counts) {
    if (count < 1) return 0;
    product = count > most / product ? most : product * count;
  }
  return product;
}

std::int64_t ranks_needed(std::int64_t tp, std::int64_t pp, std::int64_t cp, std::int64_t ep,
                          std::int64_t etp) {
  constexpr std::int64_t most = 1 << 20;
  const std::int64_t own = product_of({tp, cp}), of_experts = product_of({ep, etp});
  if (own < 1 || of_experts < 1) return product_of({std::max<std::int64_t>(own, 1), pp});
  if (own > most || of_experts > most) return std::int64_t{1} << 40;
  return product_of({pp, std::lcm(own, of_experts)});
}

std::optional<NamedFile> named_file(const std::string& named, const std::string& by,
                                    const RecipeAnswers& answers) {
  if (!answers.other_file) return std::nullopt;
  if (auto text = answers.other_file(named)) return NamedFile{std::move(*text), named};
  if (named.starts_with('/')) return std::nullopt;
  for (std::size_t slash = by.rfind('/'); slash != by.npos && slash > 0;
       slash = by.rfind('/', slash - 1)) {
    const std::string path = by.substr(0, slash + 1) + named;
    if (auto text = answers.other_file(path)) return NamedFile{std::move(*text), path};
  }
  return std::nullopt;
}

std::optional<Model> model_of_answer(const RecipeAnswers& answers) {
  if (!answers.model) return std::nullopt;
  return read_model(*answers.model, {"--model", ""});
}

std::optional<Model> model_by_name(const std::string& name, const RecipeAnswers& answers) {
  if (const auto known = catalog_model(name)) return read_model(*known, {"", ""});
  const std::string path = name + (name.ends_with('/') ? "" : "/") + "config.json";
  const auto text = answers.other_file && !name.empty() ? answers.other_file(path) : std::nullopt;
  if (!text) return std::nullopt;
  return parse_model(JsonValue::parse(*text, path));
}

Model model_of_sizes(const std::string& json, const std::string& name, const std::string& source) {
  const Json sizes = Json::parse(json);
  Json model = {{"name", name}};
  if (!sizes.contains("model_type"))
    model = {{"schema", "orrery.model/1"}, {"name", name}, {"source", source}};
  model.update(sizes);
  return parse_model(
      JsonValue::parse(model.dump(-1, ' ', false, Json::error_handler_t::replace), name));
}

namespace {

constexpr const char* name_the_model = "give its model: --model NAME or its config.json";

// True for a key of a config.json that decides the model's shape.
bool is_model_size(const std::string& key) {
  if (key == "num_nextn_predict_layers") return false;
  constexpr std::string_view words[] = {"num_",  "n_",   "_size",  "_dim",   "_rank", "first_k",
                                        "layer", "head", "expert", "window", "topk",  "top_k"};
  return std::any_of(std::begin(words), std::end(words), [&](std::string_view word) {
    return word.ends_with('_') ? key.starts_with(word) : key.find(word) != key.npos;
  });
}

}  // namespace

Model named_model(const Settings& settings, const std::string& paths,
                  const RecipeAnswers& answers) {
  if (auto model = model_of_answer(answers)) return *model;
  const std::string name = settings.word(paths, "");
  if (name.empty()) fail_input(settings.place(), "names no model", name_the_model);
  auto model = model_by_name(name, answers);
  if (!model)
    settings.fail(paths, "is '" + shown_text(name) + "', which is not in the catalog",
                  name_the_model);
  return *model;
}

void refuse_model_sizes(const Settings& settings, const std::string& section, bool has_config) {
  for (const std::string& changed : settings.names_below(section))
    if (!(has_config && changed.starts_with(section + ".rope_scaling.")) &&
        is_model_size(changed.substr(changed.rfind('.') + 1)))
      settings.fail(changed, "changes the model's config.json", name_the_model);
}

bool is_setting(const std::string& name) {
  return std::none_of(name.begin(), name.end(), [](unsigned char c) { return std::isupper(c); }) &&
         !std::isdigit(static_cast<unsigned char>(name[0]));
}

void take_answers(Settings& settings, const RecipeAnswers& answers) {
  for (const auto& [path, value] : answers.set) settings.set(path, value);
}

bool is_on(const Settings& settings, const std::string& paths) {
  const SettingsTree* value = settings.find(paths);
  if (!value) return false;
  if (value->kind != SettingsTree::Kind::scalar)
    return !value->items.empty() || !value->entries.empty();
  return !switches_off("", value->text);
}

void note_otherwise(const Settings& settings, std::span<const PricedOtherwise> all,
                    std::vector<std::string>& notes) {
  for (const PricedOtherwise& one : all) {
    if (!is_on(settings, one.paths)) continue;
    const std::string name = settings.name(one.paths);
    refuse_decisive(name, one.sentence, settings.place_of(name));
    notes.push_back(name + " " + one.sentence);
  }
}

void note_unread(const Settings& settings, const std::vector<std::string>& harmless,
                 std::vector<std::string>& notes) {
  std::string names;
  Unpriced unpriced;
  for (const std::string& path : settings.unread()) {
    if (is_covered(path, harmless)) continue;
    names += " " + shown_text(path);
    const SettingsTree* value = settings.look(path);
    const bool is_scalar = value && value->kind == SettingsTree::Kind::scalar;
    if (!switches_off(path, is_scalar ? value->text : "a list"))
      unpriced.add(path, settings.place_of(path));
  }
  refuse(unpriced);
  if (!names.empty()) notes.push_back("not read:" + names);
}

namespace {

// NCCL's documentation of its environment variables.
struct Variable {
  std::string_view name, meaning;
};
constexpr Variable variables[] = {
    {"NCCL_COLLNET_ENABLE",
     "lets switches reduce (SHARP): fabric_reduction of the system says whether they can"},
    {"NCCL_CROSS_NIC", "has no effect in the model, in which rings keep to their rails"},
    {"NCCL_NET_GDR_LEVEL", "has no effect in the model, in which NICs read GPUs' memory"},
    {"NCCL_P2P_DISABLE", "has no effect in the model, in which GPUs of a node reach each other"},
    {"NCCL_P2P_LEVEL", "has no effect in the model, in which GPUs of a node reach each other"},
    {"NCCL_SHM_DISABLE", "has no effect in the model, which has no transport by host memory"},
    {"NCCL_IB_DISABLE", "has no effect in the model: the system says what its network is"},
    {"NCCL_BUFFSIZE", "has no effect in the model, whose rates are those of NCCL's own buffers"},
    {"NCCL_P2P_NET_CHUNKSIZE",
     "has no effect in the model, whose rates are those of NCCL's own chunks"},
    {"NCCL_NTHREADS", "has no effect in the model, whose rates are those of NCCL's own threads"},
    {"NCCL_IB_QPS_PER_CONNECTION",
     "has no effect in the model: network_efficiency says what a "
     "connection carries"},
    {"NCCL_IB_ADAPTIVE_ROUTING",
     "has no effect in the model: the fabric's routing is the system's"},
    {"NCCL_PXN_DISABLE",
     "has no effect in the model, in which sends go over the rail of their GPU"},
};

// All of them limit the multiprocessors of NCCL.
constexpr std::string_view channels[] = {"NCCL_MIN_NCHANNELS",      "NCCL_MAX_NCHANNELS",
                                         "NCCL_MIN_CTAS",           "NCCL_MAX_CTAS",
                                         "NCCL_NCHANNELS_PER_PEER", "NCCL_NCHANNELS_PER_NET_PEER",
                                         "NCCL_MIN_P2P_NCHANNELS",  "NCCL_MAX_P2P_NCHANNELS"};

// The equivalent value of the plan's key.
std::string read_as(const std::string& key, const std::string& name, const std::string& value,
                    const Place& place) {
  const std::string at = (place.file.empty() ? "" : place.file + ": ") + name;
  return text_of(plan_key(key).access.read(value_of_text(value, at)));
}

}  // namespace

NcclSettings nccl_settings(const std::map<std::string, std::string>& environment,
                           const Place& place) {
  NcclSettings settings;
  for (const auto& [name, value] : environment) {
    if (value.empty()) continue;
    const auto note_variable = [&, &variable = name, &given = value](const std::string& meaning) {
      settings.notes.push_back(variable + "=" + shown_text(given) + " " + meaning);
    };
    const auto known =
        std::find_if(std::begin(variables), std::end(variables),
                     [&name = name](const Variable& variable) { return variable.name == name; });
    if (name == "NCCL_ALGO") {
      settings.nccl_algo = read_as("nccl_algo", name, value, place);
    } else if (name == "NCCL_PROTO") {
      settings.nccl_proto = read_as("nccl_proto", name, value, place);
    } else if (name == "NCCL_NVLS_ENABLE" && value == "0") {
      if (settings.nccl_algo == "any")
        settings.nccl_algo = algorithms_without_nvls();
      else
        note_variable("is read where there is no NCCL_ALGO: leave NVLS and NVLSTree out of it");
    } else if (known != std::end(variables)) {
      note_variable(std::string{known->meaning});
    } else if (std::find(std::begin(channels), std::end(channels), name) != std::end(channels)) {
      note_variable("has no effect in the model, in which NCCL chooses its channels");
    }
  }
  return settings;
}

}  // namespace orrery
