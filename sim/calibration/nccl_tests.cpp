#include "sim/calibration/nccl_tests.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "sim/calibration/curve.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/statistics.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {

std::string nccl_version_text(const std::string& code) {
  const auto number = plain_integer(code, 1 << 24);
  if (!number) return code.find('.') != code.npos ? shown_text(code) : "";
  // NCCL_VERSION of nccl.h.in: X*1000 + Y*100 + Z while Y <= 8, X*10000 + Y*100 + Z since 2.9.
  const int major = *number / (*number < 10000 ? 1000 : 10000);
  if (major == 0) return "";
  return std::to_string(major) + "." +
         std::to_string(*number / 100 % (*number < 10000 ? 10 : 100)) + "." +
         std::to_string(*number % 100);
}

void refuse_wrong_results(const Place& place, double wrong) {
  if (wrong == 0.0) return;
  fail_input(place, "the run computed wrong results",
             "its times cannot be trusted; repair the machine and run again");
}

void check_row(const NcclTestsRun::Row& row) {
  // Figures are printed to 0.01 GB/s and to three or four digits: above 1 GB/s they agree within
  // 2 %. A tenth is far beyond rounding, and far below a column or a unit that was misread.
  constexpr double smallest_telling_gb_s = 1.0;
  constexpr double tolerance = 0.1;
  if (row.algorithm_gb_s < smallest_telling_gb_s || row.time_us <= 0.0) return;
  const double gb_s = row.bytes / row.time_us / 1e3;
  if (std::abs(gb_s / row.algorithm_gb_s - 1.0) <= tolerance) return;
  char problem[160];
  std::snprintf(problem, sizeof problem,
                "%.0f bytes in %.6g us are %.4g GB/s, but the algorithm bandwidth is %.6g GB/s",
                row.bytes, row.time_us, gb_s, row.algorithm_gb_s);
  fail_input(row.place, problem, "the row is damaged, or of a version that counts otherwise");
}

namespace {

using Run = NcclTestsRun;

struct Ranks {
  int ranks = 0;
  int nodes = 0;
};

void check_devices(const Run& run) {
  std::set<int> ranks, groups;
  for (const Run::Device& device : run.devices) {
    groups.insert(device.group);
    if (!ranks.insert(device.rank).second)
      fail_input(run.place, "rank " + std::to_string(device.rank) + " is listed twice",
                 "the processes ran apart; build nccl-tests with MPI=1 and run again");
  }
  const int highest = *ranks.rbegin() + 1;
  if (static_cast<int>(ranks.size()) != highest)
    fail_input(run.place,
               "lists " + std::to_string(ranks.size()) + " of " + plural(highest, "rank"),
               "lines are missing; fetch the whole log");
  if (groups.size() > 1)
    fail_input(run.place,
               plural(static_cast<int>(groups.size()), "group") + " of ranks ran at once",
               "run again without NCCL_TESTS_SPLIT");
}

// Containers may all have one host name: then two ranks seem to share a GPU.
bool hosts_are_distinct(const Run& run) {
  std::set<std::pair<std::string, int>> seen;
  for (const Run::Device& device : run.devices)
    if (!seen.insert({device.host, device.device}).second) return false;
  return true;
}

int hosts_of(const Run& run) {
  std::set<std::string> hosts;
  for (const Run::Device& device : run.devices) hosts.insert(device.host);
  return static_cast<int>(hosts.size());
}

Ranks ranks_of(const Run& run, const NcclTestsAnswers& answers) {
  if (run.devices.empty()) {
    if (answers.ranks == 0 || answers.nodes == 0)
      fail_input(run.place, "no line names a rank, so that ranks and nodes cannot be counted",
                 "give --ranks and --nodes");
    return {answers.ranks, answers.nodes};
  }
  check_devices(run);
  Ranks counted{static_cast<int>(run.devices.size()), hosts_of(run)};
  if (answers.ranks && answers.ranks != counted.ranks)
    fail_input({"", "--ranks"},
               "is " + std::to_string(answers.ranks) + ", but " + run.place.file + " lists " +
                   plural(counted.ranks, "rank"),
               "leave it out");
  if (hosts_are_distinct(run)) {
    if (answers.nodes && answers.nodes != counted.nodes)
      fail_input({"", "--nodes"},
                 "is " + std::to_string(answers.nodes) + ", but " + run.place.file + " lists " +
                     plural(counted.nodes, "host"),
                 "leave it out");
    return counted;
  }
  if (answers.nodes == 0)
    fail_input(run.place, "several ranks have the same host and device, as in containers",
               "give --nodes");
  counted.nodes = answers.nodes;
  return counted;
}

std::string collective_of(const Run& run, const NcclTestsAnswers& answers) {
  const std::string by_program = collective_of_program(run.program);
  if (!by_program.empty() && !answers.collective.empty() && by_program != answers.collective)
    fail_input({"", "--collective"},
               "is '" + answers.collective + "', but " + run.place.file + " is a run of '" +
                   by_program + "'",
               "leave it out");
  if (!by_program.empty()) return by_program;
  if (!answers.collective.empty()) return answers.collective;
  const std::string named = collective_of_file_name(run.place.file);
  if (named.empty())
    fail_input(run.place, "neither the log nor the file's name says which collective ran",
               "give --collective NAME, such as all_reduce");
  return named;
}

// The bus bandwidth knows the collective and the ranks: a guess that contradicts it is wrong.
void check_bus_factor(const Run& run, const Curve& curve) {
  const auto factor = bus_factor(curve.collective, curve.ranks);
  if (!factor || curve.ranks == 1 || run.is_version_1) return;
  constexpr double smallest_telling_gb_s = 1.0;
  constexpr double tolerance = 0.03;  // Rounding to 0.01 GB/s twice is 1.5 %.
  for (const Run::Row& row : run.rows) {
    if (row.algorithm_gb_s < smallest_telling_gb_s || row.bus_gb_s <= 0.0) continue;
    const double printed = row.bus_gb_s / row.algorithm_gb_s;
    if (std::abs(printed / *factor - 1.0) <= tolerance) continue;
    char problem[200];
    std::snprintf(
        problem, sizeof problem,
        "the bus bandwidth is %.3f of the algorithm bandwidth, but %.3f for %s of %d ranks",
        printed, *factor, curve.collective.c_str(), curve.ranks);
    fail_input(row.place, problem, "check the collective and the ranks");
  }
}

std::string listed(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + shown_text(word);
  return text;
}

void add_points(Curve& curve, const std::vector<const Run*>& runs) {
  std::map<double, std::vector<double>> times;
  std::set<std::string> types;
  int in_place = 0, empty = 0;
  for (const Run* run : runs)
    for (const Run::Row& row : run->rows) {
      // Small totals leave nothing for a rank: all_gather of 8 bytes among 16 sends 0.
      if (row.bytes == 0.0 || row.time_us == 0.0) {
        ++empty;
        continue;
      }
      times[row.bytes].push_back(row.time_us);
      in_place += row.in_place;
      if (!row.type.empty()) types.insert(row.type);
    }
  if (times.empty())
    fail_input(runs[0]->place, "no row has both a size and a time", "run larger sizes");
  for (const auto& [bytes, all] : times) curve.points.emplace_back(bytes, median(all));
  if (in_place) curve.warnings.push_back(plural(in_place, "time") + " in place: no others");
  if (empty) curve.warnings.push_back(plural(empty, "row") + " of no bytes or no time left out");
  if (types.size() > 1) curve.warnings.push_back("data types taken together: " + listed(types));
}

void add_machine(Curve& curve, const std::vector<const Run*>& runs) {
  std::set<std::string> gpus, versions;
  std::map<std::string, int> per_host;
  for (const Run* run : runs) {
    if (!run->nccl.empty()) versions.insert(run->nccl);
    for (const Run::Device& device : run->devices) {
      const bool maker = device.gpu.starts_with("NVIDIA ");
      if (!device.gpu.empty()) gpus.insert(maker ? device.gpu.substr(7) : device.gpu);
    }
  }
  for (const Run::Device& device : runs[0]->devices) ++per_host[device.host];
  if (!gpus.empty()) curve.gpu = *gpus.begin();
  if (!versions.empty()) curve.nccl = *versions.begin();
  if (gpus.size() > 1) curve.warnings.push_back("several kinds of GPU: " + listed(gpus));
  if (versions.size() > 1)
    curve.warnings.push_back("several versions of NCCL: " + listed(versions));
  const bool even = std::all_of(per_host.begin(), per_host.end(), [&](const auto& host) {
    return host.second == per_host.begin()->second;
  });
  if (!even) curve.warnings.push_back("not all hosts have the same number of ranks");
}

std::string id_of(const Curve& curve) {
  const std::string start =
      curve.system.empty() ? std::filesystem::path{curve.file}.stem().string() : curve.system;
  return start + "-" + curve.collective + "-" + std::to_string(curve.ranks) + "x" +
         std::to_string(curve.nodes);
}

Curve curve_of(const std::vector<const Run*>& runs, const std::string& collective, Ranks ranks,
               const NcclTestsAnswers& answers) {
  Curve curve;
  curve.title = "nccl-tests log";
  curve.file = std::filesystem::path{runs[0]->place.file}.filename().string();
  curve.system = answers.system;
  curve.collective = collective;
  curve.ranks = ranks.ranks;
  curve.nodes = ranks.nodes;
  curve.id = id_of(curve);
  for (const Run* run : runs) check_bus_factor(*run, curve);
  if (answers.collective.empty() && collective_of_program(runs[0]->program).empty())
    curve.warnings.emplace_back("the collective is taken from the file's name");
  add_machine(curve, runs);
  add_points(curve, runs);
  if (const std::string falling = degradation(curve); !falling.empty())
    curve.warnings.push_back(falling);
  if (!std::all_of(runs.begin(), runs.end(), [](const Run* run) { return run->is_complete; }))
    curve.warnings.emplace_back("the log lacks nccl-tests' summary; sizes may be missing");
  return curve;
}

void check_answers(const NcclTestsAnswers& answers) {
  if (!answers.collective.empty())
    choice<std::size_t>(answers.collective, {"", "--collective"},
                        "is not a collective of nccl-tests", measured_collectives());
  if (answers.ranks && answers.nodes && answers.ranks % answers.nodes != 0)
    fail_input({"", "--ranks"},
               std::to_string(answers.ranks) + " ranks do not fill " +
                   plural(answers.nodes, "node") + " evenly",
               "check --ranks and --nodes");
}

}  // namespace

std::vector<Curve> read_nccl_tests(const std::string& text, const std::string& file,
                                   const NcclTestsAnswers& answers) {
  check_answers(answers);
  require_text(text, file, "a log of nccl-tests");
  const bool is_json = trimmed(text).starts_with('{') || trimmed(text).starts_with("[{");
  const std::vector<Run> runs = is_json ? std::vector<Run>{parse_nccl_tests_json(text, file)}
                                        : parse_nccl_tests_text(text, file);
  const Ranks ranks = ranks_of(runs[0], answers);
  std::vector<std::string> order;
  std::map<std::string, std::vector<const Run*>> by_collective;
  for (const Run& run : runs) {
    const Ranks own = ranks_of(run, answers);
    if (own.ranks != ranks.ranks || own.nodes != ranks.nodes)
      fail_input(run.place,
                 "a run of " + plural(own.ranks, "rank") + " on " + plural(own.nodes, "node") +
                     " follows one of " + plural(ranks.ranks, "rank") + " on " +
                     plural(ranks.nodes, "node"),
                 "give each its own file");
    const std::string collective = collective_of(run, answers);
    if (!by_collective.contains(collective)) order.push_back(collective);
    by_collective[collective].push_back(&run);
  }
  std::vector<Curve> curves;
  for (const std::string& collective : order)
    curves.push_back(curve_of(by_collective[collective], collective, ranks, answers));
  return curves;
}

}  // namespace orrery
