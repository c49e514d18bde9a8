#include "sim/core/progress.hpp"

#include <signal.h>

#include <utility>

namespace orrery {

ProgressListener::ProgressListener(std::function<void(const Progress&)> listen)
    : outer_{std::exchange(innermost_, this)}, listen_{std::move(listen)} {}

ProgressListener::~ProgressListener() { innermost_ = outer_; }

namespace {

volatile sig_atomic_t pressed = 0;

void note(int) { pressed = 1; }

}  // namespace

// Waiting calls are not taken up again, so that callers can decide whether to go on.
Interruption::Interruption() {
  pressed = 0;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
}

Interruption::~Interruption() {
  ::signal(SIGINT, SIG_DFL);
  pressed = 0;
}

bool Interruption::requested() { return pressed != 0; }

}  // namespace orrery
