#include "sim/collectives/program_run.hpp"

#include <algorithm>

#include "sim/collectives/program_graph.hpp"
#include "sim/engine/execute.hpp"

namespace orrery {

ProgramTime run_program(const CollectiveProgram& program, const System& system, const Place& place,
                        Engine engine) {
  if (system.max_gpus > 0 && program.ranks > system.max_gpus)
    fail_infeasible(place,
                    "names rank " + std::to_string(program.ranks - 1) + ", but the system '" +
                        system.name + "' has " + std::to_string(system.max_gpus) + " GPUs",
                    "choose a larger system");
  const CollectiveModel model{system};
  const CollectiveCost inside = model.send(Bytes{1.0}, true);
  const MessagePrices prices{model.constants().p2p_base, model.hop(), inside.scale_up_rate,
                             model.nic()};
  const Topology topology = Topology::build(system, program.ranks);
  const ProgramGraph built = program_graph(program, topology, prices, place);
  const Timeline timeline = execute(built.graph, topology, {engine});

  ProgramTime result{timeline.makespan.seconds(), {}, engine};
  for (std::size_t i = 0; i < program.messages.size(); ++i) {
    const Message& message = program.messages[i];
    const Span& span = timeline.of(built.messages[i]);
    ProgramStep& step = result.steps[message.step];
    const Seconds start = span.start.seconds();
    step.start = step.messages == 0 ? start : std::min(step.start, start);
    step.finish = std::max(step.finish, span.finish.seconds());
    step.bytes += message.bytes;
    ++step.messages;
  }
  return result;
}

}  // namespace orrery
