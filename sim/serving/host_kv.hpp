#pragma once

#include <string>
#include <vector>

namespace orrery {

/// When what a prompt needs comes back from the host's memory.
enum class HostKvLoading {
  apart,   ///< While others are computed; the prompt begins when all of it is there.
  layers,  ///< Each layer's beside the computation of the one before.
  before   ///< Before the iteration in which the prompt begins, which waits for it.
};
const std::vector<std::string>& host_kv_loading_names();

/// How an engine keeps keys and values of prompts in the host's memory (docs/HOST-KV.md).
struct EngineHostKv {
  HostKvLoading loading = HostKvLoading::before;
  /// A block is copied to the host when it is computed, so that the host holds what the GPU does as
  /// well. Else it goes there when the GPU has no more room for it, and comes back as a whole.
  bool copies_at_once = false;
};

}  // namespace orrery
