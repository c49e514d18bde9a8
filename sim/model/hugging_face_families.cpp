#include "sim/model/hugging_face_families.hpp"

#include "sim/model/hugging_face_patterns.hpp"
#include "sim/model/model.hpp"

namespace orrery {
namespace {

using Flags = std::vector<bool Model::*>;

const Flags qkv_biases{&Model::qkv_bias};
const Flags attention_biases{&Model::qkv_bias, &Model::out_bias};
const Flags mlp_biases{&Model::mlp_bias};
const Flags all_biases{&Model::qkv_bias, &Model::out_bias, &Model::mlp_bias};
const Flags head_norms{&Model::qk_norm};

// What most families have; each row says which flags are on where its file is silent.
const std::vector<FamilySwitch> attention_bias{{"attention_bias", attention_biases}};
const std::vector<FamilySwitch> both_biases{{"attention_bias", attention_biases},
                                            {"mlp_bias", mlp_biases}};

// RMS norms, rotary positions and a gated MLP, after Llama; `flags` are on besides.
Model gated(std::int64_t longest, const std::vector<Flags>& flags = {}) {
  Model model;
  model.gated = true;
  model.max_sequence = longest;
  for (const Flags& group : flags)
    for (const auto flag : group) model.*flag = true;
  return model;
}

// Layer norms and an MLP of two matrices, after GPT.
Model plain(std::int64_t longest, const std::vector<Flags>& flags = {}) {
  Model model = gated(longest, flags);
  model.gated = false;
  model.norm = NormKind::layer;
  model.norm_bias = true;
  return model;
}

Model tied(Model model) {
  model.tied_embeddings = true;
  return model;
}

Model layer_normed(Model model, bool bias) {
  model.norm = NormKind::layer;
  model.norm_bias = bias;
  return model;
}

Model ungated(Model model) {
  model.gated = false;
  return model;
}

// Norms precede and follow both attention and MLP.
Model four_norms(Model model) {
  model.norms_per_layer = 4;
  return model;
}

Model heads_of(std::int64_t width, Model model) {
  model.head_dim = width;
  return model;
}

Model kv_heads(std::int64_t heads, Model model) {
  model.kv_heads = heads;
  return model;
}

// Attention and MLP read the same input, behind one norm or one each.
Model parallel(int norms, Model model) {
  model.parallel_residual = true;
  model.norms_per_layer = norms;
  return model;
}

// Norms of queries and keys that span all heads.
Model wide_norms(Model model) {
  model.qk_norm = model.wide_qk_norm = true;
  return model;
}

Model learned(Model model) {
  model.learned_positions = 1;
  model.rotary = false;
  return model;
}

Model alibi(Model model) {
  model.rotary = false;
  return model;
}

Model positionless(Model model) {
  model.rotary = false;
  return model;
}

Model four_h(Model model) {
  model.ffn = four_times_hidden;
  return model;
}

Model latent(const LatentAttention& sizes, Model model) {
  model.latent = sizes;
  return model;
}

// Layers, hidden, heads, width of the MLP and vocabulary of a class.
Model sized(int layers, std::int64_t hidden, std::int64_t heads, std::int64_t ffn,
            std::int64_t vocab, Model model) {
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.ffn = ffn;
  model.vocab = vocab;
  return model;
}

}  // namespace

const std::vector<Family>& hugging_face_families() {
  using Window = FamilyWindow;
  const auto windowed = [](Family family, Window window, std::int64_t tokens, int pattern = 0) {
    family.window = window;
    family.window_tokens = tokens;
    family.pattern = pattern;
    return family;
  };
  const auto mixed = [](Family family, FamilyExperts experts) {
    family.experts = experts;
    return family;
  };
  const auto with_rest = [](Family family, void (*rest)(ConfigKeys&, Model&)) {
    family.rest = rest;
    return family;
  };
  const auto harmless = [](std::string keys, Family family) {
    family.harmless = std::move(keys);
    return family;
  };

  const FamilyExperts by_ffn{.width = of_ffn};
  const FamilyExperts deepseek_experts{.correction_bias = true};
  const LatentAttention of_deepseek{1536, 512, 128, 64, 128};
  const Model qwen2 =
      kv_heads(32, sized(32, 4096, 32, 22'016, 151'936, gated(32'768, {qkv_biases})));
  const Model qwen2_vl =
      kv_heads(8, sized(80, 8192, 64, 29'568, 152'064, gated(32'768, {qkv_biases})));
  const Model qwen2_omni =
      kv_heads(4, sized(28, 3584, 28, 18'944, 152'064, gated(32'768, {qkv_biases})));
  const Model qwen3 = kv_heads(
      32, heads_of(128, sized(32, 4096, 32, 22'016, 151'936, gated(32'768, {head_norms}))));
  const Model qwen3_vl = [&] {
    Model model = qwen3;
    model.max_sequence = 128'000;
    return model;
  }();
  const Model qwen3_moe =
      kv_heads(4, sized(24, 2048, 32, 6144, 151'936, gated(32'768, {head_norms})));
  const Model qwen3_vl_moe =
      kv_heads(16, sized(24, 2048, 16, 5632, 151'936, gated(128'000, {head_norms})));
  const Model mistral = kv_heads(8, sized(32, 4096, 32, 14'336, 32'000, gated(131'072)));
  const Model gpt2 = four_h(tied(learned(plain(1024, {all_biases}))));
  const Model gpt_oss = sized(
      36, 2880, 64, 2880, 201'088,
      heads_of(64, kv_heads(8, gated(131'072,
                                     {all_biases,
                                      {&Model::attention_sinks, &Model::clamped_activation}}))));
  const Model gemma =
      kv_heads(16, sized(28, 3072, 16, 24'576, 256'000, tied(heads_of(256, gated(8192)))));
  const Model gemma2 = four_norms(kv_heads(4, sized(26, 2304, 8, 9216, 256'000, gemma)));
  const Model gemma3 =
      kv_heads(4, sized(26, 2304, 8, 9216, 262'208,
                        tied(four_norms(heads_of(256, gated(131'072, {head_norms}))))));
  const Model llama4 =
      heads_of(128, kv_heads(8, sized(48, 5120, 40, 8192, 202'048, gated(131'072))));
  const Model glm = kv_heads(2, heads_of(128, gated(131'072, {qkv_biases})));
  const Model glm4v =
      four_norms(kv_heads(2, sized(40, 4096, 32, 13'696, 151'552, gated(32'768, {qkv_biases}))));
  const Model cohere2 =
      parallel(1, layer_normed(sized(40, 8192, 64, 22'528, 256'000, tied(gated(8192))), false));
  const FamilyExperts qwen3_vl_experts{.width = 1408, .count = 60, .per_token = 4};
  const std::vector<FamilySwitch> of_qkv{{"attention_bias", qkv_biases}};
  const std::vector<FamilySwitch> bias_and_norms{{"attention_bias", attention_biases},
                                                 {"use_qk_norm", head_norms}};
  const std::vector<FamilySwitch> use_bias{{"use_bias", all_biases}};
  const auto qwen_window = [&](Family family) { return windowed(family, Window::qwen, 4096, 28); };
  const auto listed = [&](Family family) { return windowed(family, Window::listed, 4096); };
  const auto any_window = [&](Family family) { return windowed(family, Window::all, 0); };
  const auto chunked = [&](const char* type, const char* architecture) {
    return harmless(
        "use_qk_norm moe_layers",
        with_rest(mixed(windowed({type, architecture, llama4, attention_bias}, Window::own, 0),
                        {.width = of_ffn, .count = 16, .per_token = 1}),
                  read_llama4));
  };
  const auto deepseek = [&](const char* type, const char* architecture, const Model& model,
                            FamilyExperts experts) {
    return harmless("head_dim qk_head_dim lm_head rm_head",
                    with_rest(mixed({type, architecture, model, {}}, experts), require_latent));
  };

  // Their `rest` reads all layers.
  const auto patterned = [](std::string keys, Family family, void (*rest)(ConfigKeys&, Model&)) {
    family.window = Window::own;
    family.harmless = std::move(keys);
    family.rest = rest;
    family.patterned = true;
    return family;
  };
  const Model qwen3_hybrid = kv_heads(2, gated(262'144, {head_norms}));
  const Model qwen3_experts = four_h(heads_of(256, qwen3_hybrid));
  const FamilyExperts hybrid_experts{
      .width = 512, .count = 512, .per_token = 10, .shared_width = 512};
  const auto delta_nets = [&](Family family) {
    return patterned("mamba_ssm_dtype mtp_use_dedicated_embeddings output_gate_type", family,
                     read_gated_delta_nets);
  };
  const auto lightning = [&](const char* type, const char* architecture) {
    return patterned(
        "full_attn_alpha_factor full_attn_beta_factor linear_attn_alpha_factor "
        "linear_attn_beta_factor mlp_alpha_factor mlp_beta_factor "
        "layernorm_full_attention_alpha layernorm_full_attention_beta "
        "layernorm_linear_attention_alpha layernorm_linear_attention_beta "
        "layernorm_mlp_alpha layernorm_mlp_beta postnorm shared_moe_mode rotary_dim",
        mixed({type, architecture, kv_heads(8, gated(10'240'000)), {}},
              {.width = of_ffn, .count = 32, .per_token = 2}),
        read_lightning);
  };
  const Model gemma4 =
      kv_heads(4, sized(30, 2304, 8, 9216, 262'144,
                        tied(four_norms(heads_of(256, gated(131'072, {head_norms}))))));

  static const std::vector<Family> all{
      // Llama and its copies.
      {"llama", "LlamaFor", sized(32, 4096, 32, 11'008, 32'000, gated(2048)), both_biases},
      {"llava", "LlavaLlama", gated(2048), both_biases},
      windowed({"mistral", "MistralFor", mistral, {}}, Window::all, 4096),
      any_window({"ministral3",
                  "Ministral3",
                  kv_heads(8, heads_of(128, sized(34, 4096, 32, 14'336, 131'072, gated(262'144)))),
                  {}}),
      windowed({"ministral", "MinistralFor", mistral, {}}, Window::all, 4096),
      {"granite", "GraniteFor", sized(32, 4096, 32, 11'008, 32'000, gated(2048)), both_biases},
      {"helium",
       "Helium",
       kv_heads(20, heads_of(128, gated(4096))),
       {{"attention_bias", qkv_biases}, {"mlp_bias", mlp_biases}}},
      harmless("no_rope_layers no_rope_layer_interval",
               listed({"smollm3", "SmolLM3", tied(kv_heads(4, gated(32'768))), both_biases})),
      {"seed_oss",
       "SeedOss",
       kv_heads(8, heads_of(128, gated(524'288, {qkv_biases}))),
       {{"attention_bias", qkv_biases},
        {"attention_out_bias", {&Model::out_bias}},
        {"mlp_bias", mlp_biases}}},
      {"arcee", "Arcee", ungated(gated(4096)), both_biases},
      {"apertus", "Apertus", ungated(gated(65'536, {head_norms})), attention_bias},
      {"exaone", "ExaoneFor", tied(gated(2048)), both_biases},
      {"ernie4_5", "Ernie4_5ForCausal", tied(kv_heads(2, heads_of(128, gated(131'072)))), use_bias},
      harmless("dense_list", with_rest({"hunyuan_v1_dense", "HunYuanDenseV1",
                                        gated(2048, {head_norms}), bias_and_norms},
                                       refuse_sharing)),
      {"internlm", "InternLMFor", gated(2048, {attention_biases}), {{"bias", attention_biases}}},
      {"internlm2", "InternLM2For", gated(32'768), {{"bias", attention_biases}}},
      {"internlm3",
       "InternLM3For",
       gated(32'768),
       {{"qkv_bias", qkv_biases}, {"bias", {&Model::out_bias, &Model::mlp_bias}}}},
      with_rest({"baichuan", "Baichuan", gated(4096), {}}, read_baichuan),
      {"Yi", "YiFor", gated(4096), {}},
      {"aquila", "Aquila", gated(2048), {}},
      {"xverse", "Xverse", gated(2048), {}},
      {"orion", "Orion", layer_normed(gated(4096), true), attention_bias},
      {"minicpm", "MiniCPMFor", tied(gated(2048)), attention_bias},
      harmless(
          "head_dim qk_head_dim",
          {"minicpm3", "MiniCPM3For", tied(latent({.v_dim = hidden_per_head}, gated(32'768))), {}}),
      harmless("full_attn_mod interpolate_factor",
               any_window({"phi3", "Phi3For", gated(4096), attention_bias})),
      // Low ranks beside all matrices, for images and speech, are not of the text's model.
      harmless("full_attn_mod interpolate_factor speech_lora",
               any_window({"phi4mm", "Phi4MM", gated(4096), attention_bias})),
      any_window({"phi4_multimodal", "Phi4Multimodal", kv_heads(8, gated(131'072)), {}}),
      any_window({"phi3_v", "Phi3V", gated(4096), attention_bias}),
      // Queries, keys and values with biases.
      harmless("attention_bias", qwen_window({"qwen2", "Qwen2For", qwen2, {}})),
      qwen_window({"qwen2_vl", "Qwen2VLFor", qwen2_vl, {}}),
      qwen_window({"qwen2_vl_text", "Qwen2VLText", qwen2_vl, {}}),
      qwen_window({"qwen2_5_vl", "Qwen2_5_VLFor", qwen2_vl, {}}),
      qwen_window({"qwen2_5_vl_text", "Qwen2_5_VLText", qwen2_vl, {}}),
      windowed({"qwen2_5_omni_text", "Qwen2_5OmniText", qwen2_omni, {}}, Window::qwen, 32'768, 28),
      qwen_window({"mimo", "MiMoFor", gated(32'768, {qkv_biases}), of_qkv}),
      harmless("ffn_inter_padding_size no_bias",
               with_rest({"qwen", "QWen", gated(8192, {qkv_biases}), {}}, read_qwen)),
      {"glm", "GlmFor", glm, of_qkv},
      {"glm4", "Glm4ForCausal", four_norms(glm), of_qkv},
      {"glm4v", "Glm4vFor", glm4v, of_qkv},
      {"glm4v_text", "Glm4vText", glm4v, of_qkv},
      with_rest({"chatglm",
                 "ChatGLM",
                 gated(2048),
                 {{"add_qkv_bias", qkv_biases},
                  {"add_bias_linear", {&Model::out_bias, &Model::mlp_bias}}}},
                read_chatglm),
      // Norms of queries and keys.
      qwen_window({"qwen3", "Qwen3For", qwen3, attention_bias}),
      qwen_window({"qwen3_vl", "Qwen3VLFor", qwen3_vl, attention_bias}),
      qwen_window({"qwen3_vl_text", "Qwen3VLText", qwen3_vl, attention_bias}),
      windowed({"exaone4", "Exaone4", kv_heads(32, gated(2048, {head_norms})), {}}, Window::pattern,
               4096, 4),
      {"olmo2", "Olmo2", wide_norms(gated(2048)), attention_bias},
      windowed({"olmo3", "Olmo3", wide_norms(gated(2048)), attention_bias}, Window::pattern, 4096,
               4),
      // Norms of OLMo have no parameters, and are counted like others.
      {"olmo", "OlmoFor", layer_normed(gated(2048), false), attention_bias},
      // Gemma.
      {"gemma", "GemmaFor", gemma, attention_bias},
      windowed({"gemma2", "Gemma2For", gemma2, attention_bias}, Window::first_of_two, 4096),
      windowed({"gemma3", "Gemma3ForConditional", gemma3, attention_bias}, Window::pattern, 4096,
               6),
      windowed({"gemma3_text", "Gemma3ForCausal", gemma3, attention_bias}, Window::pattern, 4096,
               6),
      // Layer norms.
      {"gpt2", "GPT2", gpt2, {}},
      with_rest({"gpt_bigcode", "GPTBigCode", gpt2, {}}, read_one_key_head),
      with_rest(
          windowed({"gpt_neo",
                    "GPTNeoFor",
                    four_h(tied(learned(plain(2048, {{&Model::out_bias, &Model::mlp_bias}})))),
                    {}},
                   Window::own, 0),
          read_gpt_neo),
      {"gptj", "GPTJ", parallel(1, four_h(plain(2048, {mlp_biases}))), {}},
      {"codegen", "CodeGen", parallel(1, four_h(plain(2048, {mlp_biases}))), {}},
      {"gpt_neox",
       "GPTNeoX",
       parallel(2, plain(2048, {all_biases})),
       {{"attention_bias", attention_biases},
        {"use_parallel_residual", {&Model::parallel_residual}}}},
      with_rest(
          {"opt",
           "OPT",
           tied(learned(plain(2048, {all_biases}))),
           {{"layer_norm_elementwise_affine", {&Model::norm_bias}}, {"enable_bias", all_biases}}},
          read_opt),
      {"bloom", "Bloom", four_h(tied(alibi(plain(2048, {all_biases})))), {}},
      with_rest({"mpt", "MPT", layer_normed(tied(alibi(four_h(plain(2048)))), false), {}},
                read_mpt),
      with_rest({"falcon", "FalconFor", tied(four_h(plain(2048))), {{"bias", all_biases}}},
                read_falcon),
      {"phi", "PhiFor", parallel(1, plain(2048, {all_biases})), {{"qk_layernorm", head_norms}}},
      harmless("mlp_type", any_window({"starcoder2", "Starcoder2",
                                       tied(kv_heads(2, plain(4096, {all_biases}))), use_bias})),
      {"nemotron", "NemotronFor", plain(4096), both_biases},
      with_rest({"stablelm",
                 "StableLm",
                 kv_heads(32, layer_normed(gated(4096), true)),
                 {{"use_qkv_bias", qkv_biases},
                  {"qk_layernorm", head_norms},
                  {"use_parallel_residual", {&Model::parallel_residual}}}},
                read_stablelm),
      with_rest({"cohere", "CohereFor", parallel(1, layer_normed(tied(gated(8192)), false)),
                 bias_and_norms},
                read_wide_norms),
      harmless(
          "use_embedding_sharing use_gated_activation use_parallel_block use_parallel_embedding",
          windowed({"cohere2", "Cohere2", cohere2, attention_bias}, Window::pattern, 4096, 4)),
      // Experts, of which all layers have some or only some layers have any.
      any_window(mixed({"mixtral", "Mixtral", mistral, {}},
                       {.width = of_ffn, .count = 8, .per_token = 2})),
      any_window(mixed(
          {"phimoe", "PhimoeFor", kv_heads(8, layer_normed(gated(131'072), true)), attention_bias},
          {.width = of_ffn, .count = 16, .per_token = 2})),
      mixed({"granitemoe", "GraniteMoeFor", gated(2048), attention_bias}, by_ffn),
      mixed({"granitemoeshared", "GraniteMoeShared", gated(2048), attention_bias}, by_ffn),
      mixed({"olmoe", "Olmoe", wide_norms(gated(4096)), attention_bias}, by_ffn),
      mixed({"dbrx", "Dbrx", kv_heads(1, layer_normed(gated(2048), false)), {}}, by_ffn),
      listed(mixed({"qwen2_moe",
                    "Qwen2Moe",
                    kv_heads(16, gated(32'768, {qkv_biases})),
                    {{"qkv_bias", qkv_biases}}},
                   {.shared_width = 5632})),
      harmless("use_qk_norm", listed(mixed({"qwen3_moe", "Qwen3Moe", qwen3_moe, attention_bias},
                                           {.width = 768, .count = 128, .per_token = 8}))),
      listed(
          mixed({"qwen3_vl_moe", "Qwen3VLMoeFor", qwen3_vl_moe, attention_bias}, qwen3_vl_experts)),
      listed(mixed({"qwen3_vl_moe_text", "Qwen3VLMoeText", qwen3_vl_moe, attention_bias},
                   qwen3_vl_experts)),
      harmless("use_qk_norm",
               listed(mixed({"qwen3_omni_moe_text", "Qwen3OmniMoeText",
                             kv_heads(4, gated(32'768, {head_norms})), attention_bias},
                            {.width = 768, .count = 128, .per_token = 8}))),
      mixed({"glm4_moe",
             "Glm4MoeFor",
             kv_heads(8, gated(131'072)),
             {{"attention_bias", qkv_biases}, {"use_qk_norm", head_norms}}},
            {.shared = 1, .dense_layers = 1, .correction_bias = true}),
      mixed(
          {"glm4v_moe_text", "Glm4vMoeText",
           kv_heads(8, sized(46, 4096, 96, 10'944, 151'424, gated(65'536, {qkv_biases}))), of_qkv},
          {.width = 1408,
           .count = 128,
           .per_token = 8,
           .shared = 1,
           .dense_layers = 1,
           .correction_bias = true}),
      // Its files name layers that predict further tokens, which its checkpoints do not have.
      harmless("use_mtp num_mtp_modules mtp_transformer_layers",
               with_rest(mixed({"minimax_m2",
                                "MiniMaxM2",
                                wide_norms(kv_heads(8, heads_of(128, gated(196'608)))),
                                {{"use_qk_norm", head_norms}}},
                               {.width = of_ffn, .correction_bias = true}),
                         read_minimax_m2)),
      with_rest(mixed({"ernie4_5_moe", "Ernie4_5_Moe", tied(kv_heads(4, gated(131'072))), {}},
                      {.shared = 2, .dense_layers = 1, .correction_bias = true}),
                refuse_bias),
      windowed(mixed({"dots1", "Dots1", kv_heads(32, gated(2048, {head_norms})), attention_bias},
                     deepseek_experts),
               Window::after, 4096, 62),
      with_rest(mixed({"hunyuan_v1_moe", "HunYuanMoEV1", gated(2048, {head_norms}), bias_and_norms},
                      {.width = of_ffn, .shared = 1}),
                read_hunyuan_moe),
      harmless(
          "use_rotary_pos_emb anyres_pooling_size class_num dense_list im_end_id im_newline_id "
          "im_start_id mask_init_id num_media_embeds org_vocab_size pad_id pool_type "
          "text_end_id text_start_id xdrope_section moe_replace_router",
          with_rest(mixed({"hunyuan",
                           "HunYuanFor",
                           gated(2048, {head_norms}),
                           {{"attention_bias", attention_biases},
                            {"mlp_bias", mlp_biases},
                            {"use_qk_norm", head_norms}}},
                          {.width = of_ffn, .shared = 1}),
                    read_hunyuan_moe)),
      mixed({"bailing_moe",
             "BailingMoe",
             gated(16'384),
             {{"use_qkv_bias", qkv_biases},
              {"use_bias", {&Model::out_bias, &Model::mlp_bias}},
              {"use_qk_norm", head_norms}}},
            {}),
      mixed({"deepseek", "DeepseekFor", gated(2048), attention_bias}, {}),
      windowed(mixed({"gpt_oss", "GptOss", gpt_oss, attention_bias},
                     {.width = of_ffn, .count = 128, .per_token = 4}),
               Window::first_of_two, 128),
      chunked("llama4_text", "Llama4ForCausal"),
      chunked("llama4", "Llama4ForConditional"),
      // Latent attention.
      deepseek("deepseek_v2", "DeepseekV2", latent(of_deepseek, gated(2048)), {.shared = 2}),
      deepseek("deepseek_v3", "DeepseekV3For",
               latent(of_deepseek, sized(61, 7168, 128, 18'432, 129'280, gated(4096))),
               {.width = 2048,
                .count = 256,
                .per_token = 8,
                .shared = 1,
                .dense_layers = 3,
                .correction_bias = true,
                .groups = 8,
                .groups_per_token = 4}),
      deepseek("kimi_k2", "KimiK2", latent(of_deepseek, gated(4096)), deepseek_experts),
      deepseek("glm4_moe_lite", "Glm4MoeLite", latent({768, 512, 192, 64, 256}, gated(202'752)),
               {.shared = 1, .dense_layers = 1, .correction_bias = true}),
      deepseek(
          "mistral4", "Mistral4",
          latent({1024, 256, 64, 64, 128}, sized(36, 4096, 32, 12'288, 131'072, gated(1'048'576))),
          {.width = 2048, .count = 128, .per_token = 4, .shared = 1}),
      // Layers of several kinds.
      delta_nets(mixed({"qwen3_next", "Qwen3Next", qwen3_experts, attention_bias}, hybrid_experts)),
      delta_nets({"qwen3_5", "Qwen3_5For", heads_of(256, qwen3_hybrid), attention_bias}),
      delta_nets({"qwen3_5_text", "Qwen3_5Text", heads_of(256, qwen3_hybrid), attention_bias}),
      delta_nets(
          mixed({"qwen3_5_moe", "Qwen3_5MoeFor", qwen3_experts, attention_bias}, hybrid_experts)),
      delta_nets(mixed({"qwen3_5_moe_text", "Qwen3_5MoeText", qwen3_experts, attention_bias},
                       hybrid_experts)),
      patterned("linear_conv_kernel_dim linear_use_gate linear_allow_neg_eigval",
                {"olmo_hybrid", "OlmoHybrid", wide_norms(gated(65'536)), attention_bias},
                read_olmo_hybrid),
      patterned("head_dim moe_router_activation_func moe_renormalize use_grouped_topk "
                "num_expert_group mla_use_nope attn_res_block_size activation_situ_beta "
                "activation_situ_linear_beta",
                mixed({"kimi_linear", "KimiLinear", latent(of_deepseek, gated(131'072)), {}},
                      {.dense_layers = 1, .correction_bias = true}),
                read_kimi_linear),
      patterned("head_dim qk_head_dim",
                mixed({"deepseek_v32", "DeepseekV32", latent(of_deepseek, gated(163'840)), {}},
                      {.shared = 1, .dense_layers = 3, .correction_bias = true}),
                read_sparse_latent),
      patterned("head_dim qk_head_dim layer_types index_topk_freq index_topk_pattern "
                "index_skip_topk_offset "
                "index_share_for_mtp_iteration indexer_rope_interleave",
                mixed({"glm_moe_dsa", "GlmMoeDsa", latent(of_deepseek, gated(202'752)), {}},
                      {.shared = 1, .dense_layers = 3, .correction_bias = true}),
                read_sparse_latent),
      patterned("qk_rope_head_dim num_hash_layers compress_rope_theta hc_sinkhorn_iters "
                "expert_dtype",
                mixed({"deepseek_v4",
                       "DeepseekV4",
                       kv_heads(1, heads_of(512, four_h(gated(1'048'576)))),
                       {}},
                      {.shared = 1, .correction_bias = true}),
                read_deepseek_v4),
      patterned("qk_norm_type use_gemma_norm swiglu_alpha num_mtp_modules first_k_dense_replace",
                mixed({"minimax_m3",
                       "MiniMaxM3",
                       kv_heads(4, heads_of(128, gated(1'048'576))),
                       {{"use_qk_norm", head_norms}}},
                      {.width = of_ffn, .shared = 1, .correction_bias = true}),
                read_minimax_m3),
      lightning("minimax_m1", "MiniMaxM1"),
      lightning("minimax_text_01", "MiniMaxText01"),
      lightning("minimax", "MiniMaxFor"),
      patterned("expand time_step_floor time_step_limit time_step_max time_step_min "
                "time_step_rank use_mamba_kernels use_conv_bias mamba_hidden_act "
                "mamba_ssm_cache_dtype rescale_prenorm_residual num_logits_to_keep "
                "moe_shared_expert_overlap mtp_hybrid_override_pattern mtp_layers_block_type "
                "n_routed_experts num_experts_per_tok moe_intermediate_size "
                "moe_shared_expert_intermediate_size n_shared_experts n_group topk_group "
                "sliding_window",
                {"nemotron_h", "NemotronH",
                 kv_heads(8, heads_of(128, ungated(positionless(gated(8192))))), both_biases},
                read_nemotron_h),
      patterned("position_embedding_type mamba_expand normalization_function num_experts_per_tok",
                {"granitemoehybrid", "GraniteMoeHybrid", positionless(gated(2048)), attention_bias},
                read_granite_hybrid),
      patterned("attn_rotary_emb mamba_expand num_logits_to_keep",
                {"bamba", "Bamba", kv_heads(8, gated(262'144)), both_biases}, read_bamba),
      patterned("mamba_norm_before_gate mamba_use_mlp mamba_expand attention_in_multiplier "
                "attention_out_multiplier key_multiplier lm_head_multiplier mlp_multipliers "
                "mlp_expansion_factor num_logits_to_keep ssm_in_multiplier ssm_multipliers "
                "ssm_out_multiplier time_step_floor time_step_max time_step_min "
                "projectors_bias",
                {"falcon_h1", "FalconH1", kv_heads(8, gated(8192)), both_biases}, read_falcon_h1),
      patterned(
          "use_mamba_kernels num_logits_to_keep mamba_conv_bias calc_logits_for_entire_prompt",
          mixed({"jamba", "Jamba", kv_heads(8, positionless(gated(262'144))), {}},
                {.width = of_ffn, .count = 16, .per_token = 2}),
          read_jamba),
      patterned(
          "block_multiple_of block_ffn_dim_multiplier block_dim block_mlp_init_scale "
          "block_out_init_scale block_use_swiglu block_use_xavier_init conv_dim conv_dim_out "
          "conv_use_xavier_init use_pos_enc theta",
          {"lfm2",
           "Lfm2For",
           kv_heads(8, sized(32, 2560, 32, 12'288, 65'536, tied(gated(128'000, {head_norms})))),
           {}},
          read_lfm2),
      patterned(
          "theta conv_dim conv_use_xavier_init use_pos_enc",
          mixed({"lfm2_moe",
                 "Lfm2MoeFor",
                 kv_heads(8, sized(32, 2048, 32, 7168, 65'536, tied(gated(128'000, {head_norms})))),
                 {}},
                {.width = 1792, .count = 32, .per_token = 4, .dense_layers = 2}),
          read_lfm2_moe),
      patterned("vocab_size_per_layer_input use_bidirectional_attention moe_intermediate_size "
                "num_experts top_k_experts",
                {"gemma4_text", "Gemma4Text", gemma4, attention_bias}, read_gemma4),
      patterned("vocab_size_per_layer_input use_bidirectional_attention moe_intermediate_size "
                "num_experts top_k_experts",
                {"gemma4", "Gemma4For", gemma4, attention_bias}, read_gemma4),
      patterned("swa_rope_theta attention_chunk_size attention_value_scale",
                mixed({"mimo_v2_flash", "MiMoV2Flash", kv_heads(4, gated(262'144)), attention_bias},
                      {.correction_bias = true}),
                read_mimo_v2),
  };
  return all;
}

}  // namespace orrery
