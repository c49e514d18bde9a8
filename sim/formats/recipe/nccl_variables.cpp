#include "sim/formats/recipe/nccl_variables.hpp"

#include <algorithm>
#include <string_view>

#include "sim/core/flag_value.hpp"
#include "sim/core/json_value.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {
namespace {

// NCCL's documentation of its environment variables.
struct Variable {
  std::string_view name, meaning;
};
constexpr Variable variables[] = {
    {"NCCL_COLLNET_ENABLE",
     "lets switches reduce (SHARP): fabric_reduction of the system says whether they can"},
    {"NCCL_CROSS_NIC", "has no effect in the model, in which rings keep to their rails"},
    {"NCCL_NET_GDR_LEVEL", "has no effect in the model, in which NICs read GPUs' memory"},
    {"NCCL_P2P_DISABLE", "has no effect in the model, in which GPUs of a node reach each other"},
    {"NCCL_P2P_LEVEL", "has no effect in the model, in which GPUs of a node reach each other"},
    {"NCCL_SHM_DISABLE", "has no effect in the model, which has no transport by host memory"},
    {"NCCL_IB_DISABLE", "has no effect in the model: the system says what its network is"},
    {"NCCL_BUFFSIZE", "has no effect in the model, whose rates are those of NCCL's own buffers"},
    {"NCCL_P2P_NET_CHUNKSIZE",
     "has no effect in the model, whose rates are those of NCCL's own chunks"},
    {"NCCL_NTHREADS", "has no effect in the model, whose rates are those of NCCL's own threads"},
    {"NCCL_IB_QPS_PER_CONNECTION",
     "has no effect in the model: network_efficiency says what a "
     "connection carries"},
    {"NCCL_IB_ADAPTIVE_ROUTING",
     "has no effect in the model: the fabric's routing is the system's"},
    {"NCCL_PXN_DISABLE",
     "has no effect in the model, in which sends go over the rail of their GPU"},
};

// All of them set how many multiprocessors NCCL takes.
constexpr std::string_view channels[] = {"NCCL_MIN_NCHANNELS",      "NCCL_MAX_NCHANNELS",
                                         "NCCL_MIN_CTAS",           "NCCL_MAX_CTAS",
                                         "NCCL_NCHANNELS_PER_PEER", "NCCL_NCHANNELS_PER_NET_PEER",
                                         "NCCL_MIN_P2P_NCHANNELS",  "NCCL_MAX_P2P_NCHANNELS"};

// A value of the plan's key that says the same.
std::string read_as(const std::string& key, const std::string& name, const std::string& value,
                    const Place& place) {
  const std::string at = (place.file.empty() ? "" : place.file + ": ") + name;
  return text_of(plan_key(key).access.read(value_of_text(value, at)));
}

}  // namespace

NcclSettings nccl_settings(const std::map<std::string, std::string>& environment,
                           const Place& place) {
  NcclSettings settings;
  for (const auto& [name, value] : environment) {
    if (value.empty()) continue;
    const auto tell = [&, &variable = name, &said = value](const std::string& meaning) {
      settings.notes.push_back(variable + "=" + shown_text(said) + " " + meaning);
    };
    const auto known =
        std::find_if(std::begin(variables), std::end(variables),
                     [&name = name](const Variable& variable) { return variable.name == name; });
    if (name == "NCCL_ALGO") {
      settings.allowed.nccl_algo = read_as("nccl_algo", name, value, place);
    } else if (name == "NCCL_PROTO") {
      settings.allowed.nccl_proto = read_as("nccl_proto", name, value, place);
    } else if (name == "NCCL_NVLS_ENABLE" && value == "0") {
      if (settings.allowed.nccl_algo == "any")
        settings.allowed.nccl_algo = "^NVLS+NVLSTree";
      else
        tell("is read where there is no NCCL_ALGO: leave NVLS and NVLSTree out of it");
    } else if (known != std::end(variables)) {
      tell(std::string{known->meaning});
    } else if (std::find(std::begin(channels), std::end(channels), name) != std::end(channels)) {
      tell("has no effect in the model, in which NCCL chooses its channels");
    }
  }
  return settings;
}

}  // namespace orrery
