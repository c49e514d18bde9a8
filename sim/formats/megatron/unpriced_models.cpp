#include "sim/formats/megatron/unpriced_models.hpp"

#include <string_view>

#include "sim/core/json_value.hpp"

namespace orrery {
namespace {

struct Sign {
  std::string_view word;  ///< What the program's name has in it, or how an argument's begins.
  std::string_view what;  ///< That nothing prices.
};

// Programs of Megatron-LM and of its examples that train another kind of model.
constexpr Sign programs[] = {
    {"t5", "an encoder beside the decoder (T5)"},
    {"bert", "an encoder (BERT)"},
    {"pretrain_ict", "two encoders (ICT)"},
    {"retro", "retrieval (RETRO)"},
    {"vision", "an image encoder"},
    {"vlm", "an image encoder"},
    {"mamba", "Mamba layers"},
    {"hybrid", "Mamba and other hybrid layers"},
};

// And programs that train nothing.
constexpr Sign others[] = {
    {"text_generation", "generates text"},
    {"generate", "generates text"},
    {"inference", "generates text"},
    {"quantize", "quantises a model"},
    {"prune", "prunes a model"},
    {"export", "exports a model"},
    {"convert", "converts a checkpoint"},
    {"checkpoint", "converts a checkpoint"},
    {"mmlu", "evaluates a model"},
    {"validate", "evaluates a model"},
    {"offline_feature", "stores activations"},
};

// Arguments of what GPT-like models have not.
constexpr Sign arguments[] = {
    {"vision_model_type", "an image encoder"},
    {"language_model_type", "an image encoder beside the language model"},
    {"img_h", "an image encoder"},
    {"dataset_provider", "several encoders (MIMO)"},
    {"encoder_num_layers", "an encoder beside the decoder"},
    {"decoder_num_layers", "an encoder beside the decoder"},
    {"decoder_seq_length", "an encoder beside the decoder"},
    {"retro_", "retrieval (RETRO)"},
    {"hybrid_layer_pattern", "Mamba and other hybrid layers"},
    {"hybrid_override_pattern", "Mamba and other hybrid layers"},
    {"hybrid_attention_ratio", "Mamba and other hybrid layers"},
    {"is_hybrid_model", "Mamba and other hybrid layers"},
    {"linear_attention", "linear attention"},
    {"heterogeneous_layers_config", "layers of different shapes"},
    {"experimental_attention_variant", "an experimental attention"},
    {"export_kd_teacher", "a teacher beside the model that it trains"},
};

// What the layer specification names (--spec).
constexpr Sign specifications[] = {{"mamba", "Mamba layers"}, {"hybrid", "hybrid layers"}};

}  // namespace

void refuse_unpriced(const MegatronArguments& run) {
  const std::string remedy = "import a run that trains a GPT-like model";
  const auto has = [](const std::string& text, const Sign& sign) {
    return text.find(sign.word) != std::string::npos;
  };
  const std::string& program = run.program();
  for (const Sign& sign : others)
    if (has(program, sign))
      fail_input(run.place(),
                 "starts " + shown_text(program) + ", which " + std::string{sign.what} +
                     ": only training is priced",
                 remedy);
  for (const Sign& sign : programs)
    if (has(program, sign))
      fail_input(run.place(),
                 "starts " + shown_text(program) + ": nothing prices " + std::string{sign.what},
                 remedy);
  for (const Sign& sign : arguments)
    for (const std::string& name : run.names_from(std::string{sign.word}))
      if (run.flag(name))
        run.fail(name, "means " + std::string{sign.what} + ", which nothing prices", remedy);
  for (const Sign& sign : specifications)
    if (const auto* spec = run.find("spec"); spec && has(spec->text(), sign))
      run.fail("spec", "names " + std::string{sign.what} + ", which nothing prices", remedy);
  if (run.word("tokenizer_type", "").starts_with("BertWordPiece"))
    run.fail("tokenizer_type", "is of an encoder (BERT), which nothing prices", remedy);
  if (run.flag("use_checkpoint_args") && !run.has("num_layers"))
    run.fail(
        "use_checkpoint_args", "takes the model's sizes from a checkpoint, which is not read",
        "give the list of arguments that Megatron-LM prints, or add --num-layers and the like");
}

}  // namespace orrery
