#include "sim/formats/recipe/decisive_keys.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "sim/core/json_value.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {
namespace {

// Beginnings of words in names; "_" ends a word. `keys` of a plan say the same.
struct Subject {
  std::string_view what, keys, words;
};
constexpr std::string_view of_optimizer = "--exp_avg, --exp_avg_sq";
constexpr Subject subjects[] = {
    {"offloading", "--offload_layers, --offload_modules, --offload_optimizer, --offload_weights",
     "offload nvme"},
    {"recomputation", "--recompute",
     "recompute remat checkpoint_activation activation_checkpoint activations_checkpoint "
     "gradient_checkpoint"},
    {"precision", "--dtype, --main_params",
     "precision dtype bf16 bfloat16 fp16 float16 fp32 fp8 float8 mxfp8 fp4 nvfp4 mxfp4 int8 int4 "
     "8bit 4bit quant_ quantiz quantis amp_"},
    {"parallelism", "--tp, --pp, --cp, --ep",
     "parallelism parallel_size parallel_degree parallel_mode data_parallel model_parallel "
     "tensor_ pipeline context_parallel expert_parallel sequence_parallel autotp ulysses tp_size "
     "pp_size cp_size ep_size dp_size sp_size tp_degree pp_degree cp_degree ep_degree"},
    {"sharding", "--zero, --dp_replicate",
     "zero_stage zero_optimization zero1 zero2 zero3 fsdp hsdp mics_ shard distributed_optimizer"},
    {"the optimizer", of_optimizer, "optim_ optimizer galore apollo badam muon lomo adafactor"},
    {"the length of sequences", "--seq",
     "seq_len sequence_len seqlen max_len context_len block_size cutoff_len"},
};

const Subject* find_subject(std::string_view name) {
  std::string words = "_";
  for (const char letter : name)
    words += std::isalnum(static_cast<unsigned char>(letter))
                 ? static_cast<char>(std::tolower(static_cast<unsigned char>(letter)))
                 : '_';
  words += '_';
  const auto has = [&](const std::string& word) { return words.find("_" + word) != words.npos; };
  for (const Subject& subject : subjects)
    for (const std::string& word : words_in(std::string{subject.words}))
      if (has(word)) {
        // Norms, softmax and routers are a few of a thousand operations, whatever their precision.
        const bool small = has("norm") || has("rmsnorm") || has("layernorm") || has("softmax") ||
                           has("router") || has("gating");
        return subject.what == "precision" && small ? nullptr : &subject;
      }
  return nullptr;
}

}  // namespace

std::string_view subject_of(std::string_view name) {
  const Subject* subject = find_subject(name);
  return subject ? subject->what : std::string_view{};
}

bool is_covered(std::string_view name, const std::vector<std::string>& harmless) {
  return std::any_of(harmless.begin(), harmless.end(), [&](const std::string& begin) {
    return name.starts_with(begin) &&
           (begin.ends_with('.') || !find_subject(name.substr(begin.size())));
  });
}

std::optional<std::int64_t> percent_of(const std::string& share) {
  const auto number = plain_number(share);
  if (!number || *number < 0.0 || *number > 1.0) return std::nullopt;
  return std::llround(100.0 * *number);
}

bool switches_off(std::string_view name, std::string_view value) {
  const std::string word = lower_case(std::string{value});
  for (const char* off : {"", "0", "0.0", "false", "no", "off", "none", "null", "auto"})
    if (word == off) return true;
  return word == "1" && subject_of(name) == "parallelism";
}

namespace {

// The command line would take a flag's dashes for those of an option of its own.
std::string remedy(const std::string& name, bool one, const std::string& keys) {
  return "leave " + std::string{one ? "it" : "each"} + " out (--set " +
         shown_text(name.substr(name.starts_with("--") ? 2 : 0)) + "=null), and " +
         (keys == of_optimizer
              ? std::string{"AdamW is priced in its place; "} +
                    "--exp_avg and --exp_avg_sq set the formats of its states"
              : "give the plan what " + std::string{one ? "it means: " : "they mean: "} + keys);
}

}  // namespace

void Unpriced::add(const std::string& name, const Place& place) {
  if (!find_subject(name)) return;
  if (names.empty()) first = place;
  names.push_back(name);
}

void refuse_decisive(const std::string& name, std::string_view sentence, const Place& place) {
  const Subject* subject = find_subject(name);
  if (!subject) return;
  fail_input(place,
             shown_text(name) + " " + std::string{sentence.substr(0, sentence.find(';'))} +
                 ", and is not priced",
             remedy(name, true, std::string{subject->keys}));
}

void refuse(const Unpriced& unpriced) {
  if (unpriced.names.empty()) return;
  std::vector<std::string> decided, names, keys;
  for (const std::string& name : unpriced.names) {
    const Subject* subject = find_subject(name);
    names.push_back(shown_text(name));
    if (std::find(decided.begin(), decided.end(), subject->what) != decided.end()) continue;
    decided.emplace_back(subject->what);
    keys.emplace_back(subject->keys);
  }
  const bool one = names.size() == 1;
  fail_input(unpriced.first,
             alternatives(names, "and") + (one ? " decides " : " decide ") +
                 alternatives(decided, "and") +
                 (one ? ", and is not priced" : ", and are not priced"),
             remedy(unpriced.names.front(), one, joined(keys)));
}

}  // namespace orrery
