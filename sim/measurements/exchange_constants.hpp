#pragma once

#include <optional>
#include <string>

#include "sim/core/json_value.hpp"

namespace orrery {

/// Constants of one step, dispatch or combine, of a DeepEP kernel on one kind of GPU
/// (calibration/data/expert_exchange.json; docs/explanation/collectives.md has the formula).
struct ExchangeConstants {
  Seconds base;          ///< Launch and handshake inside a domain.
  Seconds expert;        ///< For each 128 experts: each of them is waited for.
  Seconds token;         ///< For each kB of one copy: the way of a lone token.
  Seconds network_base;  ///< Once the network takes part, and
  Seconds network_hop;   ///< for each doubling of the domains.
  double scale_up_efficiency = 1.0;
  /// One multiprocessor moves copies at this rate, and loses `copy` on each. Nothing: no limit.
  std::optional<BytesPerSecond> copy_rate;
  Seconds copy;
  /// It reads (dispatch) or writes (combine) each token of its own once, at this rate.
  std::optional<BytesPerSecond> token_rate;
};

/// The shape of a measured table, all kernels and GPUs alike.
struct ExchangeTable {
  int nodes = 1;
  std::int64_t hidden = 0, top_k = 0, experts = 0;
  bool operator==(const ExchangeTable&) const = default;
};

struct ExchangeKernel {
  struct Step {
    ExchangeConstants local;   ///< Inside one NVLink domain.
    ExchangeConstants remote;  ///< Between domains, where the kernel is another one.
  };
  Step dispatch, combine;
  bool measured = false;         ///< On this GPU, inside a domain.
  bool measured_remote = false;  ///< On this GPU, between domains.
};

struct ExchangeKernels {
  ExchangeKernel deepep, deepep_low_latency, hybridep;
};

/// A GPU without tables takes those of its stand-in, or of that one's. If `left_out` is one of the
/// GPU's tables: the constants fitted without it.
ExchangeKernels read_exchange_kernels(const std::string& gpu,
                                      const std::optional<ExchangeTable>& left_out = {});

}  // namespace orrery
