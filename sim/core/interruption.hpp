#pragma once

namespace orrery {

/// While one lives, Ctrl-C (SIGINT) does not end the program but run_tasks(), so that a command can
/// say what it has found. The second one ends the program at once.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  static bool asked();  ///< Whether Ctrl-C was pressed.
};

}  // namespace orrery
