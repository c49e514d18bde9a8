#include "sim/profile/kernel_question.hpp"

#include <algorithm>

namespace orrery {

const std::vector<KernelKind>& kernel_kinds() {
  using Of = KernelKind::Of;
  const std::vector<std::string>& products = enum_words<GemmPass>;
  static const std::vector<std::string> both{"forward", "backward"};
  static const std::vector<SizeKey> tensor{{"tokens", {}, "rows"}, {"hidden", {}, "channels"}};
  static const std::vector<SizeKey> exchanged{{"tokens", {}, "of each GPU"},
                                              {"hidden", {}, "channels of a token"},
                                              {"experts", {}, "of all GPUs"},
                                              {"top-k", {}, "experts of a token"},
                                              {"gpus", {}, "that share the experts"}};
  static const std::vector<KernelKind> kinds{
      {Of::gemm,
       "gemm",
       "C[m,n] = A[m,k] B[k,n]",
       {{"m", {}, "rows: tokens"}, {"n", {}, "columns: outputs"}, {"k", {}, "inputs"}},
       products},
      {Of::experts,
       "experts",
       "one product for each expert of a GPU: C[r,n] = A[r,k] B[k,n], r its share of the tokens",
       {{"experts", {}, "on the GPU"},
        {"tokens", {}, "that reach them, spread evenly"},
        {"n", {}, "outputs"},
        {"k", {}, "inputs"}},
       products},
      {Of::attention,
       "attention",
       "fused causal attention: O = softmax(Q K^T) V",
       {{"batch", 1, "sequences"},
        {"seq", {}, "tokens of each"},
        {"heads", {}, "of queries"},
        {"kv-heads", 0, "of keys and values (as many)"},
        {"head-dim", 128, "channels of a head"},
        {"window", 0, "last keys that a query sees (all)"}},
       both},
      {Of::decode,
       "decode",
       "attention of one new token each over the KV cache",
       {{"batch", {}, "requests"},
        {"context", {}, "tokens in the cache of each"},
        {"heads", {}, "of queries"},
        {"kv-heads", 0, "of keys and values (as many)"},
        {"head-dim", 128, "channels of a head"},
        {"window", 0, "last keys that a query sees (all)"}},
       {}},
      {Of::norm, "norm", "RMS norm of each token's channels", tensor, both},
      {Of::activation, "activation", "SwiGLU: silu(x) y, of two inputs", tensor, both},
      {Of::rope, "rope", "rotary positions of queries and keys", tensor, both},
      {Of::cast, "cast", "a 16-bit tensor quantised for products in --dtype", tensor, {}},
      {Of::cross_entropy,
       "cross-entropy",
       "loss of each token's logits",
       {{"tokens", {}, "rows"}, {"vocab", {}, "logits of a token"}},
       both},
      {Of::adam,
       "adam",
       "Adam's update of weights and both moments",
       {{"parameters", {}, "of this GPU's share"}},
       {}},
      {Of::copy, "copy", "a tensor read and written", {{"bytes", {}, "of the tensor"}}, {}},
      {Of::dispatch, "dispatch", "all-to-all that brings tokens to their experts", exchanged, {}},
      {Of::combine, "combine", "all-to-all that brings their results back", exchanged, {}}};
  return kinds;
}

const KernelKind* find_kernel_kind(const std::string& name) {
  const auto& kinds = kernel_kinds();
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [&](const KernelKind& kind) { return kind.name == name; });
  return found == kinds.end() ? nullptr : &*found;
}

GemmPass KernelQuestion::gemm_pass() const {
  return pass == "wgrad" ? GemmPass::wgrad : pass == "dgrad" ? GemmPass::dgrad : GemmPass::forward;
}

}  // namespace orrery
