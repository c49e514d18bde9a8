#include "sim/calibration/collective_name.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

namespace orrery {
namespace {

struct Name {
  std::string ours;
  std::string letters;  ///< nccl-tests' word for it, letters alone.
};

// A word that contains another stands before it, so that "reducescatter" is not read as "reduce".
const std::vector<Name>& names() {
  static const std::vector<Name> all{{"reduce_scatter", "reducescatter"},
                                     {"all_to_all_v", "alltoallv"},
                                     {"all_to_all", "alltoall"},
                                     {"all_reduce", "allreduce"},
                                     {"all_gather", "allgather"},
                                     {"broadcast", "broadcast"},
                                     {"send_recv", "sendrecv"},
                                     {"hypercube", "hypercube"},
                                     {"scatter", "scatter"},
                                     {"gather", "gather"},
                                     {"reduce", "reduce"}};
  return all;
}

std::string letters_of(const std::string& text) {
  std::string letters;
  for (const char c : text)
    if (c != '_' && c != '-' && c != ' ')
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

}  // namespace

const std::vector<std::string>& measured_collectives() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> ours;
    for (const Name& name : names()) ours.push_back(name.ours);
    std::sort(ours.begin(), ours.end());
    return ours;
  }();
  return all;
}

std::string collective_of_program(const std::string& program) {
  const std::string letters = letters_of(std::filesystem::path{program}.filename().string());
  for (const Name& name : names())
    if (letters.starts_with(name.letters + "perf")) return name.ours;
  return "";
}

std::string collective_of_file_name(const std::string& file) {
  std::string letters = letters_of(std::filesystem::path{file}.filename().string());
  std::set<std::string> found;
  for (const Name& name : names())
    for (std::size_t at; (at = letters.find(name.letters)) != letters.npos;) {
      found.insert(name.ours);
      letters.replace(at, name.letters.size(), " ");
    }
  return found.size() == 1 ? *found.begin() : "";
}

std::optional<double> bus_factor(const std::string& collective, int ranks) {
  if (collective == "all_to_all_v") return std::nullopt;
  const double n = ranks;
  if (collective == "all_reduce") return 2.0 * (n - 1.0) / n;
  const std::set<std::string> shared{"all_gather", "reduce_scatter", "all_to_all", "gather",
                                     "scatter"};
  return shared.contains(collective) ? (n - 1.0) / n : 1.0;
}

}  // namespace orrery
