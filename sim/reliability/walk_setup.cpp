#include "sim/reliability/walk_setup.hpp"

namespace orrery {

const char* name(RunTime time) {
  constexpr const char* names[run_times] = {"productive", "slowed_by_writes", "replicas_away",
                                            "redone",     "saving",           "detecting",
                                            "waiting",    "restarting",       "slow_gpus"};
  return names[static_cast<std::size_t>(time)];
}

Micros RunTally::total() const {
  Micros sum = 0;
  for (const Micros part : of) sum += part;
  return sum;
}

int RunTally::all_interruptions() const {
  int sum = 0;
  for (const int count : interruptions) sum += count;
  return sum;
}

double RunTally::ettr() const {
  const Micros steps = (*this)[RunTime::productive] + (*this)[RunTime::slowed_by_writes] +
                       (*this)[RunTime::replicas_away] + (*this)[RunTime::slow_gpus];
  return static_cast<double>(steps) / static_cast<double>(total());
}

double RunTally::goodput() const {
  return static_cast<double>((*this)[RunTime::productive]) / static_cast<double>(total());
}

}  // namespace orrery
