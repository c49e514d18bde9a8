#include "sim/formats/megatron/cuda_graph_arguments.hpp"

#include <set>

#include "sim/core/text_file.hpp"

namespace orrery {

std::optional<std::string> captured_in_graphs(const MegatronArguments& arguments, bool experts,
                                              std::vector<std::string>& notes) {
  std::string flag;
  if (arguments.word("cuda_graph_impl", "none") != "none") flag = "--cuda-graph-impl";
  for (const auto& [older, written] : {std::pair{"enable_cuda_graph", "--enable-cuda-graph"},
                                       std::pair{"external_cuda_graph", "--external-cuda-graph"}})
    if (arguments.flag(older)) flag = written;
  std::set<std::string> scope;
  if (const auto* words = arguments.find("cuda_graph_scope"))
    for (const std::string& part : items_of(words->text())) scope.insert(part);
  if (flag.empty()) return std::nullopt;

  if (scope.contains("full_iteration") || arguments.word("cuda_graph_impl", "") == "full_iteration")
    return "step";
  const bool attention = experts && scope.contains("attn");
  const bool router = experts && scope.contains("moe_router");
  for (const char* said : {"attn", "moe_router", "moe_preprocess"})
    if (experts) scope.erase(said);
  if (!scope.empty() || !(attention || router))
    notes.push_back(
        flag +
        " launches kernels by CUDA graphs; priced is a host that launches those of each "
        "layer" +
        (attention || router ? ", but for attention and router" : ""));
  if (!attention && !router) return std::nullopt;
  return attention && router ? "attention+router" : attention ? "attention" : "router";
}

}  // namespace orrery
