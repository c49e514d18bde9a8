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

namespace po = boost::program_options;

namespace orrery {
namespace {

constexpr double most_bytes = 1e15;

CollectiveKind parse_kind(const std::string& word) {
  if (const auto kind = collective_named(word)) return *kind;
  fail_input({}, "'" + word + "' is not a collective", suggestion(word, collective_names()));
}

// "1 GiB", and as nccl-tests has it: "8", "64K", "128M", "8G" in powers of 1024.
Bytes parse_size(const std::string& text, const std::string& option) {
  const Place place{"", "--" + option};
  double value = 0.0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit{rest, text.data() + text.size()};
  const std::string powers = "KMG";
  if (error == std::errc{} && unit.empty()) {
    // Plain bytes.
  } else if (error == std::errc{} && unit.size() == 1 && powers.find(unit[0]) != powers.npos) {
    value *= std::pow(1024.0, 1.0 + static_cast<double>(powers.find(unit[0])));
  } else {
    value = parse_bytes(text, place).si();
  }
  if (!(value >= 0.0 && value <= most_bytes) || value != std::floor(value))
    fail_input(place, "'" + text + "' is not a number of bytes",
               "write a whole number up to 1e15, or one with a unit: 64 MiB");
  return Bytes{value};
}

std::vector<Bytes> sizes_of(const ParsedOptions& parsed) {
  const bool sweeps = parsed.has("min-bytes") || parsed.has("max-bytes") || parsed.has("factor");
  if (parsed.has("bytes")) {
    if (sweeps)
      fail_input({"", "--bytes"}, "one size and a sweep exclude each other",
                 "give --bytes, or --min-bytes, --max-bytes and --factor");
    return {parse_size(parsed.text("bytes"), "bytes")};
  }
  const auto or_else = [&](const char* option, const char* value) {
    return parsed.has(option) ? parsed.text(option) : std::string{value};
  };
  const Bytes least = parse_size(or_else("min-bytes", "8"), "min-bytes");
  const Bytes most = parse_size(or_else("max-bytes", "8GiB"), "max-bytes");
  const int factor = parse_count(or_else("factor", "2"), "factor", 2, 1 << 20);
  if (least.si() < 1.0 || most < least)
    fail_input({"", "--min-bytes"}, "a sweep rises from at least 1 byte to --max-bytes",
               "write like --min-bytes 8 --max-bytes 8GiB");
  std::vector<Bytes> sizes;
  for (Bytes size = least; size <= most; size = factor * size) sizes.push_back(size);
  return sizes;
}

bool is_file(const std::string& word) {
  return word.ends_with(".json") || word.find('/') != word.npos;
}

int run_file(const std::string& file, const System& system, const ParsedOptions& parsed) {
  for (const char* option :
       {"calibration", "gpus", "nodes", "bytes", "min-bytes", "max-bytes", "factor", "nccl-algo",
        "nccl-proto", "hierarchical", "unfolded", "host-memory"})
    if (parsed.has(option))
      fail_input({}, std::string{"--"} + option + " is for NCCL's collectives",
                 "leave it out: " + file + " specifies everything except the system");
  const CollectiveProgram program = parse_collective_program(JsonValue::read_file(file));
  const ProgramTime result = [&] {
    LongWork line;
    return run_program(program, system, {file, ""});
  }();
  std::cout << (parsed.has("json") ? program_json(file, system.name, program, result)
                                   : program_text(program, result));
  return exit_ok;
}

CollectiveOptions nccl_options(const ParsedOptions& parsed) {
  CollectiveOptions options;
  options.selection =
      parse_nccl_selection(parsed.has("nccl-algo") ? parsed.text("nccl-algo") : "",
                           parsed.has("nccl-proto") ? parsed.text("nccl-proto") : "");
  return options;
}

}  // namespace

int run_collective(const Arguments& arguments) {
  const auto text = [](const char* shown) { return po::value<std::string>()->value_name(shown); };
  po::options_description options{"Options", 100};
  options.add_options()                                                          //
      ("system", text("NAME|FILE"), "a cluster")                                 //
      ("calibration", text("FILE"), "measurements of it: orrery calibrate fit")  //
      ("gpus", text("N"), "how many take part")                                  //
      ("nodes", text("N"), "over how many nodes (as few as hold them)")          //
      ("bytes", text("SIZE"), "one size: 1GiB")                                  //
      ("min-bytes", text("SIZE"), "first size of a sweep (8)")                   //
      ("max-bytes", text("SIZE"), "last size of a sweep (8GiB)")                 //
      ("factor", text("N"), "from one size to the next (2)")                     //
      ("nccl-algo", text("LIST"), "as NCCL_ALGO: Ring,Tree or ^NVLS")            //
      ("nccl-proto", text("LIST"), "as NCCL_PROTO: LL,LL128,Simple or ^LL128")   //
      ("hierarchical",
       "an all_reduce as reduce-scatter in each NVLink domain, all-reduce between")   //
      ("unfolded", "simulate every rank's flows instead of one for all their twins")  //
      ("json", "print orrery.collective/1")                                           //
      ("help", "this text");
  options.add(simulator_option_and_alias()).add(host_memory_option());
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery collective KIND --system NAME|FILE --gpus N [options]\n"
                 "       orrery collective FILE.json --system NAME|FILE [--simulator own|simgrid] "
                 "[--json]\n\n"
                 "One collective alone, in the columns of nccl-tests. KIND: see orrery list "
                 "collectives.\nFILE.json: a collective of your own, message by message "
                 "(docs/guides/operations.md).\n\n"
              << options;
    return exit_ok;
  }
  const SimulatorChoice simulator{simulator_or_alias_of(parsed)};
  if (parsed.words.size() != 1)
    fail_input({}, parsed.words.empty() ? "which collective?" : "one collective at a time",
               "write like 'orrery collective all_reduce --system dgx-h100 --gpus 8'");
  const std::string& word = parsed.words.front();
  LoneCollective collective;
  if (!is_file(word)) collective.kind = parse_kind(word);
  System system =
      read_system(required(parsed, "system", "name one: orrery list systems"), {"", "--system"});
  if (is_file(word)) return run_file(word, system, parsed);
  if (parsed.has("calibration"))
    calibrate(system, parsed.text("calibration"), {"--calibration", ""});
  const int limit = system.max_gpus > 0 ? system.max_gpus : 1 << 20;
  collective.ranks =
      parse_count(required(parsed, "gpus", "write how many: --gpus 8"), "gpus", 1, limit);
  const int fewest = (collective.ranks + system.gpus_per_node - 1) / system.gpus_per_node;
  collective.nodes = parsed.has("nodes")
                         ? parse_count(parsed.text("nodes"), "nodes", 1, collective.ranks)
                         : fewest;
  collective.hierarchical = parsed.has("hierarchical");
  if (collective.hierarchical && collective.kind != CollectiveKind::all_reduce)
    fail_input({}, "only an all_reduce can be --hierarchical", "leave it out");
  const CollectiveOptions how = nccl_options(parsed);

  const Bytes host_memory = host_memory_of(parsed);
  const std::vector<Bytes> sizes = sizes_of(parsed);
  std::vector<CollectiveLine> lines;
  {
    LongWork line;
    for (const Bytes size : sizes) {
      ProgressListener::tell({Progress::Of::sizes, lines.size(), sizes.size()});
      collective.bytes = size;
      lines.push_back(
          {collective, run_alone(collective, system, how, parsed.has("unfolded"), host_memory)});
    }
  }
  std::cout << (parsed.has("json") ? collective_json(system.name, lines) : collective_text(lines));
  return exit_ok;
}

}  // namespace orrery
