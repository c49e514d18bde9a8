#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/dtype.hpp"
#include "sim/kernels/gemm_formula.hpp"
#include "sim/plan/plan_values.hpp"

namespace orrery {

/// One size of an operation as users name it.
struct SizeKey {
  std::string name;                   ///< "kv-heads"
  std::optional<std::int64_t> usual;  ///< Default; nothing: it must be given.
  std::string help;
};

/// Operations that `orrery kernel` knows.
struct KernelKind {
  enum class Of {
    gemm,
    experts,
    attention,
    decode,
    norm,
    activation,
    rope,
    cast,
    cross_entropy,
    adam,
    copy,
    dispatch,
    combine
  };
  Of of;
  std::string name;   ///< "gemm"
  std::string title;  ///< One line: "C[m,n] = A[m,k] B[k,n]"
  std::vector<SizeKey> sizes;
  std::vector<std::string> passes;  ///< The first is the default; empty: there is only one.
};
const std::vector<KernelKind>& kernel_kinds();
const KernelKind* find_kernel_kind(const std::string& name);  ///< Null: there is none.

/// One operation with its sizes.
struct KernelQuestion {
  const KernelKind* kind = nullptr;           ///< Never null.
  std::map<std::string, std::int64_t> sizes;  ///< All of the kind's keys.
  Dtype dtype = Dtype::bf16;
  std::string pass;        ///< One of the kind's; "" where it has none.
  Dtype kv = Dtype::bf16;  ///< Applies to decode.
  ExpertDispatcher dispatcher = ExpertDispatcher::all_to_all;  ///< Applies to dispatch and combine.

  std::int64_t at(const std::string& key) const { return sizes.at(key); }
  GemmPass gemm_pass() const;
  bool is_backward() const { return pass == "backward"; }
};

/// The largest size that is understood.
inline constexpr std::int64_t most_size = std::int64_t{1} << 40;

}  // namespace orrery
