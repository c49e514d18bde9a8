#pragma once

#include "sim/model/hugging_face.hpp"
#include "sim/model/model.hpp"

namespace orrery {

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
