#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/kernels/gemm_formula.hpp"
#include "sim/measurements/kernel_tables.hpp"

namespace orrery {

/// A published time of one kernel.
struct KernelCase {
  /// The context in which its time was measured.
  enum class Clock {
    benchmark,  ///< Timed like the rows of our tables: with the calls that a serving library adds.
    training,   ///< A kernel of a training step.
  };
  struct Grouped {
    GroupedGemm layer;
    std::vector<std::int64_t> tokens;  ///< Tokens of each expert.
  };
  struct Attention {
    AttentionRow shape;  ///< Its time is not used.
    bool backward = false;
  };

  std::string id;     ///< "h100-sxm gemm bf16 256 x 512 x 1024"
  std::string group;  ///< Group in which errors are summarised: "h100-sxm gemm bf16".
  std::string kind;   ///< Kind across files of other GPUs: "gemm", "attention", ...
  std::string gpu;    ///< Catalog name.
  Dtype dtype = Dtype::bf16;
  Clock clock = Clock::benchmark;
  bool casts = true;                  ///< A narrow-format product timed with the quantisation of A.
  GemmPass pass = GemmPass::forward;  ///< Pass of a product.
  std::variant<GemmProduct, Grouped, Attention> kernel;
  Seconds measured;

  /// m n k of a product in a benchmark, which distinguishes large ones; 0 for other kernels.
  double volume() const;
};

/// All kernels of one file, and its entries that are refused.
struct KernelCases {
  struct Refused {
    std::string id, reason;
  };
  std::vector<KernelCase> cases;
  std::vector<Refused> refused;
  /// The file's own tables, if it is one of ours: its rows are predicted from these.
  std::optional<KernelTables> tables;
};

/// True if a document holds timed kernels: tables of ours ("orrery.kernels/1"), an exported table
/// of aiconfigurator ("kind": "gemm_table" or "attention_fwd_table"), or a list of such tables, of
/// single kernels ("op" and "shape", or "shape_mnk") or of experts' products.
bool is_kernel_cases(const JsonValue& json);

/// Reads them as docs/notes/validation.md describes. Errors (bad_input): invalid columns or sizes,
/// with their place. An incomplete entry of a list is refused with its reason.
KernelCases read_kernel_cases(const JsonValue& json);

/// The catalog's name of a GPU as others write it: "H100-SXM 80GB", "NVIDIA B200 SXM" and
/// "A100-SXM4-80GB" are h100-sxm, b200-sxm and a100-sxm-80gb. Errors (bad_input): none is like it.
std::string gpu_like(const JsonValue& written);

}  // namespace orrery
