#include "sim/calibration/curve.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace orrery {
namespace {

struct Name {
  std::string ours;
  std::string letters;  ///< nccl-tests' name without other characters.
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

namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::string& text) { return text.empty() ? Json{} : Json(text); }

std::string line_of(const Curve& curve) {
  Json points = Json::array();
  for (const auto& [bytes, time_us] : curve.points)
    points.push_back(Json::array({static_cast<std::int64_t>(bytes), time_us}));
  const Json json{{"id", curve.id},
                  {"source", {{"title", curve.title}, {"file", curve.file}}},
                  {"system",
                   {{"name", or_null(curve.system)},
                    {"gpu", or_null(curve.gpu)},
                    {"nccl", or_null(curve.nccl)}}},
                  {"collective", curve.collective},
                  {"ranks", curve.ranks},
                  {"nodes", curve.nodes},
                  {"columns", {"bytes", "time_us"}},
                  {"points", points},
                  {"warnings", curve.warnings}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);  // Logs may hold any bytes.
}

void make_ids_differ(std::vector<Curve>& curves) {
  std::set<std::string> taken;
  for (Curve& curve : curves) {
    const std::string wanted = curve.id;
    for (int number = 2; !taken.insert(curve.id).second; ++number)
      curve.id = wanted + "-" + std::to_string(number);
  }
}

}  // namespace

std::string curves_json(std::vector<Curve> curves) {
  make_ids_differ(curves);
  std::string text = "{\"schema\": \"orrery.curves/1\", \"curves\": [";
  for (std::size_t i = 0; i < curves.size(); ++i) text += (i ? ",\n " : "\n ") + line_of(curves[i]);
  return text + "\n]}\n";
}

// A larger message never runs slower per byte on a healthy fabric; a seventh is beyond the noise of
// a repeated run.
std::string degradation(const Curve& curve) {
  constexpr double large_bytes = 64.0 * (1 << 20);
  constexpr double tolerated = 0.15;
  const double factor = bus_factor(curve.collective, curve.ranks).value_or(1.0);
  double best = 0.0, best_bytes = 0.0, worst_left = 1.0 - tolerated;
  std::string worst;
  for (const auto& [bytes, time_us] : curve.points) {
    if (bytes < large_bytes) continue;
    const double gb_s = factor * bytes / time_us / 1e3;
    if (gb_s > best) {
      best = gb_s;
      best_bytes = bytes;
    } else if (gb_s / best < worst_left) {
      worst_left = gb_s / best;
      char text[200];
      std::snprintf(text, sizeof text,
                    "bus bandwidth falls by %.0f %% from %.1f GB/s at %.0f bytes to %.1f GB/s at "
                    "%.0f bytes: the run looks degraded",
                    100.0 * (1.0 - worst_left), best, best_bytes, gb_s, bytes);
      worst = text;
    }
  }
  return worst;
}

}  // namespace orrery
