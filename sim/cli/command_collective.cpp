#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>

#include "sim/cli/scenario_options.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/collectives/collective_text.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/measurements/calibration.hpp"

namespace orrery {
namespace {

constexpr double most_bytes = 1e15;

CollectiveKind parse_kind(const std::string& word) {
  if (const auto kind = collective_named(word)) return *kind;
  fail_input({}, "'" + word + "' is not a collective", suggestion(word, collective_names()));
}

// "1 GiB", and as nccl-tests has it: "8", "64K", "128M", "8G" in powers of 1024.
Bytes parse_size(const std::string& text, const Place& place) {
  const auto power =
      number_with_unit(text, {{"", 1.0}, {"K", 0x1p10}, {"M", 0x1p20}, {"G", 0x1p30}});
  const double value = power ? *power : parse_bytes(text, place).si();
  if (!(value >= 0.0 && value <= most_bytes) || value != std::floor(value))
    fail_input(place, "'" + text + "' is not a number of bytes",
               "write a whole number up to 1e15, or one with a unit: 64 MiB");
  return Bytes{value};
}

// The options of `orrery collective`.
struct CollectiveRequest {
  std::optional<std::string> system, calibration, gpus, nodes;
  std::optional<Bytes> size;
  Bytes least{8.0}, most{8.0 * 1024 * 1024 * 1024};  ///< Limits of a sweep.
  int factor = 2;
  std::string algorithms, protocols;
  bool hierarchical = false, unfolded = false, json = false;
  TextWidth width = TextWidth::terminal;
  Bytes host_memory;
};

void add_collective(Options& options, CollectiveRequest& into) {
  options.add("system", "NAME|FILE", "a cluster", into.system);
  options.add("calibration", "FILE", "measurements of the system: orrery calibrate fit",
              into.calibration);
  options.add("gpus", "N", "how many take part", into.gpus);
  options.add("nodes", "N", "over how many nodes (as few as hold them)", into.nodes);
  options.add("bytes", "SIZE", "one size: 1GiB", into.size, parse_size);
  options.add("min-bytes", "SIZE", "first size of a sweep (8)", into.least, parse_size);
  options.add("max-bytes", "SIZE", "last size of a sweep (8GiB)", into.most, parse_size);
  options.add("factor", "N", "from one size to the next (2)", into.factor, Counted{2, 1 << 20});
  options.add("nccl-algo", "LIST", "as NCCL_ALGO: Ring,Tree or ^NVLS", into.algorithms);
  options.add("nccl-proto", "LIST", "as NCCL_PROTO: LL,LL128,Simple or ^LL128", into.protocols);
  options.add("hierarchical",
              "an all_reduce as reduce-scatter in each NVLink domain, all-reduce between",
              into.hierarchical);
  options.add("unfolded",
              "simulate every rank's flows instead of those of one rank of each equivalence class",
              into.unfolded);
  options.add("json", "print orrery.collective/1", into.json);
  options.wide(into.width);
  options.help();
  add_simulator(options);
  add_host_memory_option(options, into.host_memory);
}

std::vector<Bytes> sizes_of(const CollectiveRequest& given, const Options& options) {
  if (given.size) {
    if (options.has("min-bytes") || options.has("max-bytes") || options.has("factor"))
      fail_input(command_line / "bytes", "one size and a sweep exclude each other",
                 "give --bytes, or --min-bytes, --max-bytes and --factor");
    return {*given.size};
  }
  if (given.least.si() < 1.0 || given.most < given.least)
    fail_input(command_line / "min-bytes", "a sweep rises from at least 1 byte to --max-bytes",
               "write like --min-bytes 8 --max-bytes 8GiB");
  std::vector<Bytes> sizes;
  for (Bytes size = given.least; size <= given.most; size = given.factor * size)
    sizes.push_back(size);
  return sizes;
}

bool is_file(const std::string& word) {
  return word.ends_with(".json") || word.find('/') != word.npos;
}

int run_file(const std::string& file, const System& system, const CollectiveRequest& given,
             const Options& options) {
  for (const char* option :
       {"calibration", "gpus", "nodes", "bytes", "min-bytes", "max-bytes", "factor", "nccl-algo",
        "nccl-proto", "hierarchical", "unfolded", "host-memory"})
    if (options.has(option))
      fail_input({}, std::string{"--"} + option + " is for NCCL's collectives",
                 "leave it out: " + file + " specifies everything except the system");
  const CollectiveProgram program = parse_collective_program(JsonValue::read_file(file));
  const ProgramTime result = long_work([&] { return run_program(program, system, {file, ""}); });
  std::cout << (given.json ? program_json(file, system.name, program, result)
                           : program_text(program, result));
  return exit_ok;
}

}  // namespace

int run_collective(const Arguments& arguments) {
  CollectiveRequest given;
  Options options;
  add_collective(options, given);
  if (!options.read(
          arguments,
          "usage: orrery collective KIND --system NAME|FILE --gpus N [options]\n"
          "       orrery collective FILE.json --system NAME|FILE [--simulator own|simgrid] "
          "[--json]\n\n"
          "One collective alone, in the columns of nccl-tests (all of them with --wide). KIND: see "
          "orrery list "
          "collectives.\nFILE.json: a collective of your own, message by message "
          "(docs/guides/operations.md)."))
    return exit_ok;
  const std::string& word =
      options.only_word("which collective?", "one collective at a time",
                        "write like 'orrery collective all_reduce --system dgx-h100 --gpus 8'");
  IsolatedCollective collective;
  if (!is_file(word)) collective.kind = parse_kind(word);
  System system = read_system(options.required("system", "name one: orrery list systems"),
                              command_line / "system");
  if (is_file(word)) return run_file(word, system, given, options);
  if (given.calibration) calibrate(system, *given.calibration, command_line / "calibration");
  const int limit = system.max_gpus > 0 ? system.max_gpus : 1 << 20;
  collective.ranks = parse_count(options.required("gpus", "write how many: --gpus 8"),
                                 command_line / "gpus", 1, limit);
  collective.nodes = (collective.ranks + system.gpus_per_node - 1) / system.gpus_per_node;
  if (given.nodes)
    collective.nodes = parse_count(*given.nodes, command_line / "nodes", 1, collective.ranks);
  collective.hierarchical = given.hierarchical;
  if (collective.hierarchical && collective.kind != CollectiveKind::all_reduce)
    fail_input({}, "only an all_reduce can be --hierarchical", "leave it out");
  CollectiveOptions how;
  how.selection = parse_nccl_selection(given.algorithms, given.protocols);
  const std::vector<Bytes> sizes = sizes_of(given, options);
  const PriceErrors errors =
      read_price_errors(system.gpu.name, Dtype::bf16, {}, name_in_catalog(system.network));
  std::vector<CollectiveLine> lines;
  {
    LongWork line;
    for (const Bytes size : sizes) {
      ProgressListener::report({Progress::Of::sizes, lines.size(), sizes.size()});
      collective.bytes = size;
      const auto result = run_alone(collective, system, how, given.unfolded, given.host_memory);
      lines.push_back({collective, result, result.cost.deviation(errors)});
    }
  }
  std::cout << (given.json ? collective_json(system.name, lines)
                           : collective_text(lines, given.width));
  return exit_ok;
}

}  // namespace orrery
