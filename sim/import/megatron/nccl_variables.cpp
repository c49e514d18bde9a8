#include "sim/import/megatron/nccl_variables.hpp"

#include <algorithm>
#include <string_view>

#include "sim/base/text/json_value.hpp"

namespace orrery {
namespace {

// NCCL's documentation of its environment variables; "{}" stands for the value.
struct Variable {
  std::string_view name, meaning;
};
constexpr Variable variables[] = {
    {"NCCL_ALGO", "is --nccl-algo '{}' of orrery estimate"},
    {"NCCL_PROTO", "is --nccl-proto '{}' of orrery estimate"},
    {"NCCL_COLLNET_ENABLE", "lets switches reduce (SHARP): in_network_reduction of the system"},
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

std::string sentence(const std::string& name, const std::string& value, std::string meaning) {
  if (const std::size_t at = meaning.find("{}"); at != std::string::npos)
    meaning.replace(at, 2, shown_text(value));
  return name + "=" + shown_text(value) + " " + meaning;
}

}  // namespace

std::vector<std::string> told_by_nccl(const std::map<std::string, std::string>& environment) {
  std::vector<std::string> told;
  for (const auto& [name, value] : environment) {
    if (value.empty()) continue;
    const auto known =
        std::find_if(std::begin(variables), std::end(variables),
                     [&name = name](const Variable& variable) { return variable.name == name; });
    if (known != std::end(variables))
      told.push_back(sentence(name, value, std::string{known->meaning}));
    else if (name == "NCCL_NVLS_ENABLE" && value == "0")
      told.push_back(sentence(name, value, "is --nccl-algo ^NVLS,NVLSTree of orrery estimate"));
    else if (std::find(std::begin(channels), std::end(channels), name) != std::end(channels))
      told.push_back(
          sentence(name, value, "has no effect in the model, in which NCCL chooses its channels"));
  }
  return told;
}

}  // namespace orrery
