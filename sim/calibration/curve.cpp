#include "sim/calibration/curve.hpp"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace orrery {
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

}  // namespace orrery
