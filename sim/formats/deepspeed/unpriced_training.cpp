#include "sim/formats/deepspeed/unpriced_training.hpp"

#include "sim/core/json_value.hpp"

namespace orrery {
namespace {

struct UnpricedSign {
  const char* word;  ///< That a program's name has in it, or a setting's path.
  const char* what;
};

// transformers/examples/pytorch, trl/examples/scripts and DeepSpeedExamples.
constexpr UnpricedSign programs[] = {
    {"mlm", "an encoder"},
    {"glue", "an encoder"},
    {"squad", "an encoder"},
    {"run_qa", "an encoder"},
    {"run_ner", "an encoder"},
    {"classif", "an encoder"},
    {"bert", "an encoder"},
    {"t5", "an encoder beside the decoder"},
    {"seq2seq", "an encoder beside the decoder"},
    {"translation", "an encoder beside the decoder"},
    {"summarization", "an encoder beside the decoder"},
    {"whisper", "an encoder beside the decoder"},
    {"image", "images"},
    {"vision", "images"},
    {"_vlm", "images"},
    {"_vit", "images"},
    {"cifar", "images"},
    {"dpo", "pairs of texts that are compared"},
    {"kto", "texts that are compared"},
    {"ppo", "texts that are generated between steps"},
    {"grpo", "texts that are generated between steps"},
    {"rlhf", "texts that are generated between steps"},
    {"reward", "a head for rewards"},
};

constexpr UnpricedSign settings[] = {
    {"use_peft", "the training of adapters alone"},
    {"use_lora", "the training of adapters alone"},
    {"lora_enable", "the training of adapters alone"},
    {"use_peft_lora", "the training of adapters alone"},
    {"only_optimize_lora", "the training of adapters alone"},
    {"lora_dim", "the training of adapters alone"},
    {"lora_r", "the training of adapters alone"},
    {"lora_rank", "the training of adapters alone"},
    {"load_in_4bit", "weights of four bits"},
    {"load_in_8bit", "weights of eight bits that do not train"},
    {"quantization_bit", "weights of a few bits that do not train"},
    {"vision_tower", "an image encoder"},
    {"actor_model_name_or_path", "texts that are generated between steps"},
    {"beta", "pairs of texts that are compared"},
    {"image_max_pixels", "an image encoder"},
    {"compression_training", "compression"},
};

}  // namespace

void refuse_unpriced_training(const TrainerFiles& files) {
  const std::string remedy = "import a run that trains all weights of a language model";
  for (const UnpricedSign& sign : programs)
    if (files.program.find(sign.word) != std::string::npos)
      fail_input(files.trainer.place(),
                 "starts " + shown_text(files.program) + ": nothing prices " + sign.what, remedy);
  const std::string kind = files.trainer.word("finetuning_type", "full");
  if (kind != "full")
    files.trainer.fail("finetuning_type",
                       "is '" + shown_text(kind) +
                           "': nothing prices the training of a part of "
                           "the weights",
                       remedy);
  const std::string stage = files.trainer.word("stage", "sft");
  if (stage != "sft" && stage != "pt")
    files.trainer.fail("stage", "is '" + shown_text(stage) + "', which nothing prices", remedy);
  // trl writes its adapters' sizes whether it trains them or not.
  const bool without = !files.trainer.flag("use_peft|use_lora|lora_enable", true);
  for (const UnpricedSign& sign : settings) {
    if (without && std::string_view{sign.word}.starts_with("lora_")) {
      files.trainer.find(sign.word);
      continue;
    }
    for (const Settings* from : {&files.trainer, &files.engine})
      if (is_on(*from, sign.word))
        from->fail(sign.word, std::string{"means "} + sign.what + ", which nothing prices", remedy);
  }
}

}  // namespace orrery
