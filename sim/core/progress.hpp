#pragma once

#include <cstddef>
#include <functional>

namespace orrery {

/// How far something is that may take long. Kinds stand from the outside to the inside: of a
/// validation's cases each has a simulation's tasks, and of these some have flows.
struct Progress {
  enum class Of { plans, cases, sizes, keys, tasks, flows };
  Of of = Of::tasks;
  std::size_t done = 0;
  std::size_t all = 0;
};

/// Hears, while it lives, how far this process is; the innermost does where several live. Whoever
/// works long tells every millisecond or so, and need not know whether somebody listens.
class ProgressListener {
 public:
  explicit ProgressListener(std::function<void(const Progress&)> hear);
  ~ProgressListener();
  ProgressListener(const ProgressListener&) = delete;
  ProgressListener& operator=(const ProgressListener&) = delete;

  static void tell(const Progress& progress) {
    if (innermost_) innermost_->hear_(progress);
  }

 private:
  static inline ProgressListener* innermost_ = nullptr;
  ProgressListener* outer_;
  std::function<void(const Progress&)> hear_;
};

}  // namespace orrery
