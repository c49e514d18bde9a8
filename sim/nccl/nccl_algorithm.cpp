#include "sim/nccl/nccl_algorithm.hpp"

#include "sim/nccl/nccl_tuner.hpp"

namespace orrery {

const NcclAlgorithm& nccl_tree();
const NcclAlgorithm& nccl_ring();
const NcclAlgorithm& nccl_collnet_direct();
const NcclAlgorithm& nccl_collnet_chain();
const NcclAlgorithm& nccl_nvls();
const NcclAlgorithm& nccl_nvls_tree();
const NcclAlgorithm& nccl_pat();
const NcclAlgorithm& nccl_symmetric();

const std::vector<const NcclAlgorithm*>& nccl_algorithms() {
  static const std::vector<const NcclAlgorithm*> all{
      &nccl_tree(),      &nccl_ring(), &nccl_collnet_direct(), &nccl_collnet_chain(), &nccl_nvls(),
      &nccl_nvls_tree(), &nccl_pat(),  &nccl_symmetric(),
  };
  return all;
}

const std::vector<std::string>& nccl_protocol_names() {
  static const std::vector<std::string> names{"LL", "LL128", "Simple"};
  return names;
}

int NcclAlgorithm::channels(const NcclGraph& graph, NcclProtocol protocol) const {
  return launched_channels(graph, protocol, 1.0);
}

}  // namespace orrery
