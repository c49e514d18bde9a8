#pragma once

#include <string>
#include <vector>

namespace orrery {

/// What is launched as CUDA graphs: nothing; of a layer with experts the router, its attention, or
/// both (Megatron-LM's --cuda-graph-scope moe_router and attn); the step (full_iteration).
enum class CudaGraphs { none, router, attention, attention_router, step };

/// "none", "router", "attention", "attention+router", "step".
const std::vector<std::string>& cuda_graph_names();

}  // namespace orrery
