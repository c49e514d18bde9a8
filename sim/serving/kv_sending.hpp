#pragma once

#include <string>
#include <vector>

namespace orrery {

/// When keys and values of a prompt go to the pool that decodes.
enum class KvSending {
  whole,   ///< All of them when the prompt is computed.
  chunks,  ///< Those of each part of a prompt when it is, beside the next part.
  layers   ///< Those of each layer when it is computed.
};
const std::vector<std::string>& kv_sending_names();

}  // namespace orrery
