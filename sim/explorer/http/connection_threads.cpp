#include "sim/explorer/http/connection_threads.hpp"

#include <system_error>

namespace orrery {

void ConnectionThreads::enqueue(std::function<void()> serve) {
  {
    const std::lock_guard lock{mutex_};
    waiting_.push_back(std::move(serve));
    if (idle_ < waiting_.size() && threads_.size() < most_) {
      try {
        threads_.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        // The machine allows no more: those that are there take turns.
        if (threads_.empty()) throw;
      }
    }
  }
  wakes_.notify_one();
}

void ConnectionThreads::work() {
  std::unique_lock lock{mutex_};
  while (true) {
    ++idle_;
    wakes_.wait(lock, [this] { return over_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) return;  // All is over.
    const std::function<void()> serve = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    serve();
    lock.lock();
  }
}

void ConnectionThreads::shutdown() {
  {
    const std::lock_guard lock{mutex_};
    over_ = true;
  }
  wakes_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace orrery
