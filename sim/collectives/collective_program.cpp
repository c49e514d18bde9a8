#include "sim/collectives/collective_program.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "sim/core/units.hpp"
#include "sim/engine/simulation.hpp"

namespace orrery {

CollectiveProgram parse_collective_program(const JsonValue& json) {
  constexpr std::int64_t most_steps = 1'000'000'000, most_ranks = 1'000'000;
  constexpr std::int64_t most_bytes = 1'000'000'000'000'000;
  CollectiveProgram program;
  for (const JsonValue& entry : json.elements()) {
    entry.allow_only({"step", "src", "dst", "bytes", "recv_step"});
    const auto whole = [&](const char* key, std::int64_t most) {
      return static_cast<int>(entry.at(key).integer(0, most));
    };
    Message message;
    message.step = whole("step", most_steps);
    message.recv_step = entry.has("recv_step") ? whole("recv_step", most_steps) : message.step;
    message.src = whole("src", most_ranks - 1);
    message.dst = whole("dst", most_ranks - 1);
    message.bytes = Bytes{static_cast<double>(entry.at("bytes").integer(0, most_bytes))};
    if (message.src == message.dst)
      entry.at("dst").fail("rank " + std::to_string(message.dst) + " sends to itself",
                           "leave out what a rank keeps");
    program.ranks = std::max({program.ranks, message.src + 1, message.dst + 1});
    program.messages.push_back(message);
  }
  if (program.messages.empty())
    json.fail("has no message", "write [{\"step\": 0, \"src\": 0, \"dst\": 1, \"bytes\": 4096}]");
  return program;
}

namespace {

class ProgramBuilder {
 public:
  ProgramBuilder(const CollectiveProgram& program, const Topology& topology,
                 const MessagePrices& prices)
      : program_{program}, topology_{topology}, prices_{prices}, done_(at(program.ranks)) {}

  ProgramGraph build() {
    add_steps();
    for (const Message& message : program_.messages) {
      const TaskId id = built_.graph.add(task_of(message));
      built_.messages.push_back(id);
      for (const auto& [rank, step] :
           {std::pair{message.src, message.step}, {message.dst, message.recv_step}}) {
        auto& steps = done_[at(rank)];
        const auto own = steps.find(step);
        built_.graph.depends(own->second, id);
        built_.graph.depends(id, own == steps.begin() ? launch_ : std::prev(own)->second);
      }
    }
    return std::move(built_);
  }

 private:
  // A join a rank and step. It waits for its messages, and these for the join before.
  void add_steps() {
    const bool moves = std::any_of(program_.messages.begin(), program_.messages.end(),
                                   [](const Message& one) { return one.bytes.si() > 0.0; });
    Task launch;
    launch.stream = Stream::tensor;
    launch.duration = moves ? prices_.launch : Seconds{};
    launch_ = built_.graph.add(launch);
    for (const Message& message : program_.messages) {
      done_[at(message.src)].try_emplace(message.step);
      done_[at(message.dst)].try_emplace(message.recv_step);
    }
    Task join;
    for (int rank = 0; rank < program_.ranks; ++rank)
      for (auto& [step, id] : done_[at(rank)]) {
        join.owner = rank;
        id = built_.graph.add(join);
      }
  }

  Task task_of(const Message& message) const {
    Task task;
    task.stream = Stream::tensor;
    task.owner = message.src;
    const Rank from{message.src}, to{message.dst};
    if (message.bytes.si() <= 0.0) return task;
    const bool inside = topology_.same_domain(from, to);
    FlowRoute route;
    for (LinkId link : topology_.route(from, to)) route.push_back({link, 1});
    task.duration = inside ? prices_.hop_inside : topology_.latency(from, to);
    task.flows = std::vector<Flow>{
        {std::move(route), message.bytes, inside ? prices_.rate_inside : prices_.rate_outside}};
    return task;
  }

  const CollectiveProgram& program_;
  const Topology& topology_;
  const MessagePrices& prices_;
  std::vector<std::map<int, TaskId>> done_;  // Indexed by rank and step.
  TaskId launch_;
  ProgramGraph built_;
};

std::string shown(const Message& message) {
  return std::to_string(message.src) + " -> " + std::to_string(message.dst) + " (sent in step " +
         std::to_string(message.step) + ", received in step " + std::to_string(message.recv_step) +
         ", " + std::to_string(static_cast<std::int64_t>(message.bytes.si())) + " bytes)";
}

// Tasks that can never start: they are on a cycle, or behind one.
std::vector<bool> stuck_tasks(const TaskGraph& graph) {
  std::vector<int> waits(at(graph.size()));
  std::vector<TaskId> free;
  for (int i = 0; i < graph.size(); ++i)
    if ((waits[at(i)] = graph.waits_for(TaskId{i})) == 0) free.push_back(TaskId{i});
  while (!free.empty()) {
    const TaskId id = free.back();
    free.pop_back();
    graph.for_each_successor(id, [&](TaskId next) {
      if (--waits[at(next.value)] == 0) free.push_back(next);
    });
  }
  std::vector<bool> stuck;
  for (int left : waits) stuck.push_back(left > 0);
  return stuck;
}

[[noreturn]] void report_deadlock(const CollectiveProgram& program, const ProgramGraph& built,
                                  const Place& place) {
  const std::vector<bool> stuck = stuck_tasks(built.graph);
  std::map<int, std::size_t> message_of;  // Keyed by task.
  std::size_t waiting = 0;
  for (std::size_t i = 0; i < built.messages.size(); ++i) {
    message_of[built.messages[i].value] = i;
    waiting += stuck[at(built.messages[i].value)];
  }
  // Every stuck task waits for a stuck task: following them reaches a cycle.
  TaskId task = built.messages.front();
  for (TaskId id : built.messages)
    if (stuck[at(id.value)]) task = id;
  std::vector<int> path;
  while (std::find(path.begin(), path.end(), task.value) == path.end()) {
    path.push_back(task.value);
    TaskId next = task;
    built.graph.for_each_predecessor(task, [&](TaskId before) {
      if (stuck[at(before.value)]) next = before;
    });
    task = next;
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), task.value));
  std::string circle, first;
  int shown_messages = 0;
  constexpr int most_shown = 4;
  for (int id : path) {
    const auto found = message_of.find(id);
    if (found == message_of.end() || ++shown_messages > most_shown) continue;
    const std::string text = shown(program.messages[found->second]);
    circle += (circle.empty() ? "" : " waits for ") + text;
    if (first.empty()) first = text.substr(0, text.find(" ("));
  }
  if (shown_messages > most_shown)
    circle += " waits for " + std::to_string(shown_messages - most_shown) + " more";
  fail_infeasible(place,
                  "deadlock: " + std::to_string(waiting) + " of " +
                      std::to_string(built.messages.size()) + " messages never move: " + circle +
                      ", which waits for " + first,
                  "let one end of them come to its step earlier");
}

}  // namespace

ProgramGraph program_graph(const CollectiveProgram& program, const Topology& topology,
                           const MessagePrices& prices, const Place& place) {
  ProgramGraph built = ProgramBuilder{program, topology, prices}.build();
  if (built.graph.in_order().empty()) report_deadlock(program, built, place);
  return built;
}

ProgramTime run_program(const CollectiveProgram& program, const System& system,
                        const Place& place) {
  if (system.max_gpus > 0 && program.ranks > system.max_gpus)
    fail_infeasible(place,
                    "names rank " + std::to_string(program.ranks - 1) + ", but the system '" +
                        system.name + "' has " + std::to_string(system.max_gpus) + " GPUs",
                    "choose a larger system");
  const CollectiveModel model{system};
  const CollectiveCost inside = model.send(Bytes{1.0}, true);
  const MessagePrices prices{model.constants().p2p_base, model.hop(), inside.scale_up_rate,
                             system.network_efficiency * system.network_rate(1)};
  const Topology topology = Topology::build(system, program.ranks);
  const ProgramGraph built = program_graph(program, topology, prices, place);
  const Timeline timeline = execute(built.graph, topology);

  ProgramTime result{timeline.makespan.seconds(), {}, timeline.simulator};
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
