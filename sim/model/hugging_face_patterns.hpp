#pragma once

#include "sim/model/hugging_face.hpp"
#include "sim/model/model.hpp"

namespace orrery {

/// Each reads the layers of its classes, which are of several kinds, into Model::pattern, after the
/// keys that all families share.
void read_gated_delta_nets(ConfigKeys& config, Model& model);  ///< Qwen3-Next, Qwen3.5.
void read_olmo_hybrid(ConfigKeys& config, Model& model);
void read_kimi_linear(ConfigKeys& config, Model& model);
void read_sparse_latent(ConfigKeys& config, Model& model);  ///< DeepSeek-V3.2, GLM-5.
void read_deepseek_v4(ConfigKeys& config, Model& model);
void read_minimax_m3(ConfigKeys& config, Model& model);
void read_lightning(ConfigKeys& config, Model& model);  ///< MiniMax-Text-01, MiniMax-M1.
void read_nemotron_h(ConfigKeys& config, Model& model);
void read_granite_hybrid(ConfigKeys& config, Model& model);
void read_bamba(ConfigKeys& config, Model& model);
void read_falcon_h1(ConfigKeys& config, Model& model);
void read_jamba(ConfigKeys& config, Model& model);
void read_lfm2(ConfigKeys& config, Model& model);
void read_lfm2_moe(ConfigKeys& config, Model& model);
void read_gemma4(ConfigKeys& config, Model& model);
void read_mimo_v2(ConfigKeys& config, Model& model);

/// Each reads the keys of its classes that no field of a `Family` describes, after all others.
void refuse_sharing(ConfigKeys& config, Model& model);
void read_opt(ConfigKeys& config, Model& model);
void read_falcon(ConfigKeys& config, Model& model);
void require_latent(ConfigKeys& config, Model& model);
void refuse_bias(ConfigKeys& config, Model& model);
void read_mpt(ConfigKeys& config, Model& model);
void read_one_key_head(ConfigKeys& config, Model& model);
void read_gpt_neo(ConfigKeys& config, Model& model);
void read_llama4(ConfigKeys& config, Model& model);
void read_qwen(ConfigKeys& config, Model& model);
void read_chatglm(ConfigKeys& config, Model& model);
void read_baichuan(ConfigKeys& config, Model& model);
void read_stablelm(ConfigKeys& config, Model& model);
void read_wide_norms(ConfigKeys& config, Model& model);
void read_minimax_m2(ConfigKeys& config, Model& model);
void read_hunyuan_moe(ConfigKeys& config, Model& model);

}  // namespace orrery
