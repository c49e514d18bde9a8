#pragma once

#include <optional>
#include <string>

#include "sim/core/json_value.hpp"

namespace orrery {

/// Constants of one step, dispatch or combine, of a DeepEP kernel on one kind of GPU
/// (calibration/data/expert_exchange.json; docs/explanation/collectives.md has the formula).
struct ExchangeConstants {
  Seconds base;          ///< Launch and handshake inside a domain.
  Seconds expert;        ///< Wait for each 128 experts.
  Seconds token;         ///< Time for each kB of one copy: the latency of an isolated token.
  Seconds network_base;  ///< Added if the network takes part.
  Seconds network_hop;   ///< Added for each doubling of the domains.
  double scale_up_efficiency = 1.0;
  /// One multiprocessor moves copies at this rate, with `copy` of overhead each; empty: no limit.
  std::optional<BytesPerSecond> copy_rate;
  Seconds copy;
  /// The rate at which it reads (dispatch) or writes (combine) each of its own tokens once.
  std::optional<BytesPerSecond> token_rate;
};

/// The shape of a measured table, for all kernels and GPUs.
struct ExchangeTable {
  int nodes = 1;
  std::int64_t hidden = 0, top_k = 0, experts = 0;
  bool operator==(const ExchangeTable&) const = default;
};

struct ExchangeKernel {
  struct Step {
    ExchangeConstants local;   ///< One NVLink domain.
    ExchangeConstants remote;  ///< Several domains, if the kernel differs.
  };
  Step dispatch, combine;
  bool measured = false;         ///< Measured on this GPU, inside a domain.
  bool measured_remote = false;  ///< Measured on this GPU, between domains.
};

struct ExchangeKernels {
  ExchangeKernel deepep, deepep_low_latency, hybridep;
};

/// A GPU without tables takes those of its proxy, or of that one's. If `left_out` is one of the
/// GPU's tables: the constants fitted without it.
ExchangeKernels read_exchange_kernels(const std::string& gpu,
                                      const std::optional<ExchangeTable>& left_out = {});

}  // namespace orrery
