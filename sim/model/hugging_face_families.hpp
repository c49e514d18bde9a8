#pragma once

#include "sim/model/hugging_face.hpp"
#include "sim/model/model.hpp"

namespace orrery {

/// One function a model_type of transformers; each reads every key that changes a shape.
Model read_llama(ConfigKeys& config);
Model read_mistral(ConfigKeys& config);
Model read_qwen2(ConfigKeys& config);
Model read_qwen3(ConfigKeys& config);
Model read_smollm3(ConfigKeys& config);
Model read_mixtral(ConfigKeys& config);
Model read_qwen3_moe(ConfigKeys& config);
Model read_glm4_moe(ConfigKeys& config);  ///< GLM-4.5 and 4.6
Model read_llama4(ConfigKeys& config);
Model read_gpt_oss(ConfigKeys& config);
Model read_phi3(ConfigKeys& config);
Model read_deepseek(ConfigKeys& config);  ///< deepseek_v2, deepseek_v3, kimi_k2
Model read_gpt2(ConfigKeys& config);
Model read_opt(ConfigKeys& config);
Model read_gpt_neox(ConfigKeys& config);
Model read_gptj(ConfigKeys& config);
Model read_falcon(ConfigKeys& config);
Model read_cohere(ConfigKeys& config);
Model read_cohere2(ConfigKeys& config);
Model read_gemma(ConfigKeys& config);
Model read_gemma2(ConfigKeys& config);
Model read_gemma3(ConfigKeys& config);

}  // namespace orrery
