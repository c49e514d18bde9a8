#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/profile/profile_text.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

void add_work(Json& json, const OperationPrice& one) {
  const KernelRoofs& roofs = one.roofs;
  json["flop"] = roofs.flop.si();
  json["bytes"] = roofs.bytes.si();
  if (!one.on_network) {
    json["ops_per_byte"] = roofs.ops_per_byte();
    json["ridge_ops_per_byte"] = roofs.ridge();
    json["peak_flop_per_s"] = roofs.peak.si();
  }
  json["bandwidth_bytes_per_s"] = roofs.bandwidth.si();
  json["compute_roof_s"] = roofs.compute_time().si();
  json[one.on_network ? "port_roof_s" : "memory_roof_s"] = roofs.memory_time().si();
  json["bound"] = name(one.bound());
}

void add_time(Json& json, const OperationPrice& one) {
  json["time_s"] = one.time.si();
  if (one.high > Seconds{})
    json["time_range"] = {
        {"coverage", range_coverage}, {"low_s", one.low.si()}, {"high_s", one.high.si()}};
  json["tag"] = name(one.tag);
  if (one.roofs.flop > Flop{}) json["flop_per_s"] = one.reached().si();
  json["share_of_roof"] = one.share_of_roof();
}

Json answer_json(const KernelAnswer& answer, const KernelSweep& sweep, const KernelPricer& pricer) {
  const KernelQuestion& question = answer.question;
  const OperationPrice& main = answer.main();
  Json json{{"schema", "orrery.kernel/1"},
            {"operation", question.kind->name},
            {"gpu", pricer.system().gpu.name}};
  if (main.on_network) json["system"] = pricer.system().name;
  if (question.kind->of == KernelKind::Of::decode) {
    json["kv"] = name(question.kv);
    json["engine"] = pricer.engine().name;
  } else {
    json["dtype"] = name(question.dtype);
  }
  if (main.on_network) json["dispatcher"] = name(question.dispatcher);
  if (!question.pass.empty()) json["pass"] = question.pass;
  for (const SizeKey& key : question.kind->sizes) json["sizes"][key.name] = question.at(key.name);
  add_work(json, main);
  if (answer.alone) {
    Json& alone = json["alone"];
    add_time(alone, *answer.alone);
  }
  if (answer.training) {
    Json& training = json["training"];
    training["software"] = pricer.software().name;
    add_time(training, *answer.training);
  }
  if (answer.served) {
    Json& served = json["served"];
    served["engine"] = pricer.engine().name;
    add_time(served, *answer.served);
  }
  if (!answer.table.empty()) {
    json["nearest"] = {{"table", answer.table}, {"rows", Json::array()}};
    for (const NearRow& row : answer.nearest)
      json["nearest"]["rows"].push_back({{"sizes", row.sizes},
                                         {"time_s", row.time.si()},
                                         {"distance", row.distance},
                                         {"same", row.same}});
  }
  if (sweep.has_knee)
    json["knee"] = {{"size", sweep.key}, {"at", sweep.knee ? Json(*sweep.knee) : Json(nullptr)}};
  return json;
}

}  // namespace

std::string kernel_json(const KernelSweep& sweep, const KernelPricer& pricer) {
  if (sweep.key.empty()) return answer_json(sweep.answers.front(), sweep, pricer).dump(2) + "\n";
  Json list = Json::array();
  for (const KernelAnswer& answer : sweep.answers)
    list.push_back(answer_json(answer, sweep, pricer));
  return list.dump(2) + "\n";
}

std::string operations_json(const OperationList& list, const OperationsOf& of) {
  Json formats = Json::array();
  for (const MachineRoofs::Format& format : list.roofs.formats)
    formats.push_back({{"format", format.name},
                       {"peak_flop_per_s", format.peak.si()},
                       {"ridge_ops_per_byte", format.peak.si() / list.roofs.memory.si()}});
  Json operations = Json::array();
  for (const OperationPrice& one : list.operations) {
    Json entry{{"operation", one.name}, {"kind", one.kind}};
    if (!one.when.empty()) entry["when"] = one.when;
    if (!one.sizes.empty()) entry["sizes"] = one.sizes;
    if (!one.format.empty()) entry["format"] = one.format;
    entry["count"] = std::llround(one.count);
    if (!one.kinds.empty()) {
      Json& kinds = entry["layer_kinds"] = Json::array();
      for (const OperationPrice::OfKind& of : one.kinds)
        kinds.push_back({{"kind", of.kind}, {"count", std::llround(of.count)}});
    }
    add_work(entry, one);
    add_time(entry, one);
    entry["all_time_s"] = one.all_time().si();
    operations.push_back(std::move(entry));
  }
  return Json{{"schema", "orrery.roofline/1"},
              {"of", of.what},
              {"model", of.model},
              {"system", of.system},
              {"gpus", of.gpus},
              {"gpu", list.roofs.gpu},
              {"stage", list.stage},
              {"roofs",
               {{"memory_bytes_per_s", list.roofs.memory.si()}, {"formats", std::move(formats)}}},
              {"operations", std::move(operations)}}
             .dump(2) +
         "\n";
}

}  // namespace orrery
