#include "sim/formats/servers/server_reader.hpp"

#include <algorithm>
#include <array>

#include "sim/core/number_text.hpp"
#include "sim/model/named_model.hpp"
#include "sim/serving/speculation.hpp"

namespace orrery {
namespace {

// As a deployment's keys allow (sim/serving/deployment_keys.cpp).
constexpr std::int64_t most_ranks = 1 << 10;
constexpr std::int64_t most_tokens = 1 << 30;

// The file wins over the words in TensorRT-LLM (trtllm-serve: "overwrites the parameters specified
// by cli"), and the words over the file in the others.
bool prefers_file(ServerKind kind) { return kind == ServerKind::trtllm; }

}  // namespace

ServerReader::ServerReader(const ServerCommand& command, const RecipeAnswers& answers)
    : command_{command},
      answers_{answers},
      preferred_{prefers_file(command.kind) ? command.file : command.words},
      other_{prefers_file(command.kind) ? command.words : command.file} {
  part_.keys = nlohmann::ordered_json::object();
}

ServedPart ServerReader::read() {
  read_model();
  switch (command_.kind) {
    case ServerKind::vllm:
      read_vllm();
      break;
    case ServerKind::sglang:
      read_sglang();
      break;
    case ServerKind::trtllm:
      read_trtllm();
      break;
  }
  tell_rest();
  return std::move(part_);
}

std::int64_t ServerReader::count(const std::string& paths, std::int64_t absent) const {
  const std::int64_t found = having(paths).number(paths, absent);
  if (found < 1 || found > most_ranks)
    having(paths).fail(paths, "is " + std::to_string(found), "write a number from 1 to 1,024");
  return found;
}

void ServerReader::take_count(const char* key, const std::string& paths) {
  if (!has(paths)) return;
  const std::int64_t found = having(paths).number(paths, 1);
  if (found < 1 || found > most_tokens)
    having(paths).fail(paths, "is " + std::to_string(found),
                       "write a number from 1 to " + grouped(most_tokens));
  part_.keys[key] = found;
}

void ServerReader::take_share(const std::string& paths) {
  if (!has(paths)) return;
  const std::string text = word(paths, "");
  char* end = nullptr;
  const double share = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(share >= 0.01 && share <= 1.0))
    having(paths).fail(paths, "is '" + shown_text(text) + "'", "write a share from 0.01 to 1");
  part_.keys["kv_share"] = share;
}

void ServerReader::take_host_memory(const std::string& paths, double unit, std::int64_t ranks) {
  if (!has(paths)) return;
  const std::string text = word(paths, "");
  char* end = nullptr;
  const double size = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(size >= 0.0 && size * unit <= 1e15))
    having(paths).fail(paths, "is '" + shown_text(text) + "'", "write a size of memory");
  if (size > 0.0)
    part_.keys["host_kv"] =
        std::to_string(std::llround(size * unit / static_cast<double>(ranks))) + " B";
}

void ServerReader::note(const std::string& paths, const std::string& sentence) {
  part_.notes.push_back(having(paths).name(paths) + " " + sentence);
}

void ServerReader::refuse(const std::string& paths, const std::string& sentence,
                          const std::string& remedy) const {
  having(paths).fail(paths, sentence, remedy);
}

void ServerReader::refuse_on(const std::string& paths, const std::string& sentence) const {
  const Settings& settings = having(paths);
  if (!is_on(settings, paths) || settings.word(paths, "") == "1") return;
  settings.fail(paths, sentence, "leave it out: --set " + settings.name(paths) + "=0");
}

void ServerReader::read_model() {
  const std::string paths = "model|model_path|model_tag";
  const std::string name = word(paths, "");
  checkpoint_ = read_checkpoint_name(name);
  if (answers_.model) {
    part_.model = *model_of_answer(answers_);
    part_.catalog_name = catalog_model(*answers_.model).value_or("");
    if (part_.catalog_name != *answers_.model) part_.catalog_name.clear();
    return;
  }
  if (name.empty())
    fail_input(command_.words.place(), command_.program + " names no model",
               "give it: --model NAME or a config.json");
  if (const auto known = catalog_model(checkpoint_.model)) {
    part_.catalog_name = *known;
    part_.model = orrery::read_model(*known, {"", ""});
    return;
  }
  auto model = model_by_name(name, answers_);
  if (!model)
    refuse(paths, "is " + shown_text(name) + ", a model that is not known",
           "give its shape: --model NAME or a config.json");
  part_.model = std::move(*model);
}

// `quantization`, `dtype`, `cache`: paths; "": the engine has none.
void ServerReader::read_formats(const std::string& quantization, const std::string& dtype,
                                const std::string& cache) {
  const PublishedFormats published = published_formats(part_.catalog_name);
  WeightFormat weights = checkpoint_.weights.value_or(published.weights);
  WeightFormat experts = checkpoint_.weights.value_or(published.experts);
  const std::string base = dtype.empty() ? "bf16"
                                         : having(dtype).choice(dtype, {{"auto", "bf16"},
                                                                        {"bfloat16", "bf16"},
                                                                        {"half", "fp16"},
                                                                        {"float16", "fp16"},
                                                                        {"float32", "fp32"},
                                                                        {"float", "fp32"}});
  if (base == "fp32")
    refuse(dtype, "is 32 bits, which have no prices", "write bfloat16: --set dtype=bfloat16");
  // vllm/model_executor/layers/quantization, sglang/srt/layers/quantization.
  const std::string asked = quantization.empty() ? "" : word(quantization, "");
  const auto is = [&](std::initializer_list<const char*> all) {
    return std::find(all.begin(), all.end(), asked) != all.end();
  };
  const bool in_checkpoint = weights != WeightFormat::bf16 || experts != WeightFormat::bf16;
  if (is({"fp8", "modelopt", "modelopt_fp8", "fbgemm_fp8", "ptpc_fp8", "w8a8_fp8", "tpu_fp8"})) {
    if (weights != WeightFormat::fp8_block) weights = experts = WeightFormat::fp8;
  } else if (is({"modelopt_fp4", "nvfp4", "petit_nvfp4"})) {
    weights = experts = WeightFormat::nvfp4;
  } else if (is({"mxfp4"})) {
    if (part_.model.experts && experts != WeightFormat::mxfp4)
      weights = WeightFormat::bf16, experts = WeightFormat::mxfp4;
    else if (!part_.model.experts)
      weights = WeightFormat::mxfp4;
  } else if (is({"awq", "awq_marlin", "gptq", "gptq_marlin", "marlin", "moe_wna16"})) {
    if (weights != WeightFormat::int8) weights = experts = WeightFormat::int4;
  } else if (is({"experts_int8"})) {
    experts = WeightFormat::int8;
  } else if (!is({"", "auto", "none", "None"}) &&
             !(is({"compressed-tensors", "compressed_tensors"}) && in_checkpoint)) {
    refuse(quantization, "is '" + shown_text(asked) + "', a format that is not known here",
           "write the nearest: fp8, modelopt_fp4, mxfp4, awq, as --set quantization=fp8");
  }
  if (base == "fp16") {
    if (weights == WeightFormat::bf16) weights = WeightFormat::fp16;
    if (experts == WeightFormat::bf16) experts = WeightFormat::fp16;
  }
  part_.keys["weights"] = name(weights);
  if (part_.model.experts) part_.keys["experts"] = name(experts);
  if (!cache.empty()) {
    const std::string kv = having(cache).choice(cache, {{"auto", base},
                                                        {"bfloat16", "bf16"},
                                                        {"bf16", "bf16"},
                                                        {"float16", "fp16"},
                                                        {"half", "fp16"},
                                                        {"fp8", "fp8"},
                                                        {"fp8_e4m3", "fp8"},
                                                        {"fp8_e5m2", "fp8"},
                                                        {"fp8_inc", "fp8"},
                                                        {"nvfp4", "nvfp4"},
                                                        {"fp4_e2m1", "nvfp4"}});
    part_.keys["kv"] = kv;
  }
}

// `method`: "mtp", "eagle3", "draft" or "ngram".
void ServerReader::read_draft(const std::string& method, const std::string& model,
                              std::int64_t tokens, const std::string& paths) {
  if (tokens < 1 || tokens > 16)
    refuse(paths, "drafts " + std::to_string(tokens) + " tokens a step", "write 1 to 16");
  std::string text = method + ":";
  if (method == "draft") {
    const auto known = catalog_model(read_checkpoint_name(model).model);
    if (!known)
      refuse(paths, "drafts with " + shown_text(model) + ", a model that is not known",
             "name one of orrery list models by --set");
    text += *known + ":";
  }
  const auto accepted = answers_.set.find("accepted");
  if (accepted == answers_.set.end())
    refuse(paths, "drafts tokens, and how many are accepted depends on what is asked",
           "give it as the engine logs it: --accepted 0.7, or --accepted 0.8/0.6/0.4 by position");
  text += std::to_string(tokens) + "@" + accepted->second;
  // Its own errors say what is wrong with the rates.
  part_.keys["speculate"] = speculation_text(parse_speculation(text, {"--accepted", ""}));
}

}  // namespace orrery
