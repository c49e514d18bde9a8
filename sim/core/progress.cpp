#include "sim/core/progress.hpp"

#include <utility>

namespace orrery {

ProgressListener::ProgressListener(std::function<void(const Progress&)> hear)
    : outer_{std::exchange(innermost_, this)}, hear_{std::move(hear)} {}

ProgressListener::~ProgressListener() { innermost_ = outer_; }

}  // namespace orrery
