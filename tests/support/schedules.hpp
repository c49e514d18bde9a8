#pragma once

#include <string>

#include "sim/pipeline/schedule_file.hpp"

namespace orrery {

/// ZB-V by hand, for passes that all take equally long and at least 2 `stages` micro-batches (Qi et
/// al., arXiv 2405.15362; torch.distributed.pipelining, ScheduleZBVZeroBubble). Rank s holds
/// virtual stages s and 2 p - 1 - s, so that a micro-batch goes down the ranks and comes up again.
inline ExplicitOrder zb_v(int stages, int microbatches) {
  ExplicitOrder all;
  all.stages = stages;
  all.chunks = 2;
  all.microbatches = microbatches;
  for (int s = 0; s < stages; ++s) {
    all.holds.push_back({s, 2 * stages - 1 - s});
    std::vector<Slot>& order = all.orders.emplace_back();
    int forward[2] = {0, 0}, inputs[2] = {0, 0}, weights[2] = {0, 0};
    const auto f = [&](int chunk) { order.push_back({Pass::forward, chunk, forward[chunk]++}); };
    const auto i = [&](int chunk) {
      order.push_back({Pass::backward, chunk, inputs[chunk]++, false, true});
    };
    const auto w = [&](int chunk) {
      order.push_back({Pass::weight_gradient, chunk, weights[chunk]++});
    };
    for (int n = 0; n < 2 * (stages - s) - 1; ++n) f(0);
    for (int n = 0; n < s; ++n) f(1), f(0);
    for (int n = 0; n < stages - s; ++n) f(1), i(1), w(1);
    while (forward[1] < microbatches) {
      if (forward[0] < microbatches) f(0);
      i(0), w(0), f(1), i(1), w(1);
    }
    for (int n = 0; n < s; ++n) i(0), i(1);
    for (int n = 0; n < stages - s; ++n) i(0), w(0);
    while (weights[1] < microbatches) w(1);
    while (weights[0] < microbatches) w(0);
  }
  return all;
}

/// As a user would give it.
inline const Schedule* zb_v_schedule(int stages, int microbatches) {
  return &user_schedule("zb-v_" + std::to_string(stages) + "x" + std::to_string(microbatches),
                        schedule_text(zb_v(stages, microbatches)));
}

}  // namespace orrery
