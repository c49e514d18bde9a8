#include "sim/cli/option_table.hpp"

#include <utility>

namespace orrery {

CommandListener::CommandListener(Ears ears)
    : outer_{std::exchange(innermost_, this)}, ears_{std::move(ears)} {}

CommandListener::~CommandListener() { innermost_ = outer_; }

void CommandListener::tell(const OptionTable& table) {
  if (innermost_) innermost_->ears_.table(table);
}

void CommandListener::tell(const std::vector<std::string>& words) {
  if (innermost_) innermost_->ears_.words(words);
}

}  // namespace orrery
