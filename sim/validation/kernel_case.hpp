#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/kernels/gemm_formula.hpp"
#include "sim/measurements/kernel_tables.hpp"

namespace orrery {

/// One kernel that somebody timed.
struct KernelCase {
  /// What its time is of.
  enum class Clock {
    benchmark,  ///< As the rows of our tables: with what a serving library does around it.
    training,   ///< A kernel of a training step.
  };
  struct Grouped {
    GroupedGemm layer;
    std::vector<std::int64_t> tokens;  ///< Of each expert.
  };
  struct Attention {
    AttentionRow shape;  ///< Its time is not used.
    bool backward = false;
  };

  std::string id;     ///< "h100-sxm gemm bf16 256 x 512 x 1024"
  std::string group;  ///< With which others its error is summed up: "h100-sxm gemm bf16".
  std::string kind;   ///< What it is alike in files of other GPUs: "gemm", "attention", ...
  std::string gpu;    ///< Catalog name.
  Dtype dtype = Dtype::bf16;
  Clock clock = Clock::benchmark;
  bool casts = true;  ///< A product of a narrow format, timed with what quantises A.
  GemmPass pass = GemmPass::forward;  ///< Of a product.
  std::variant<GemmProduct, Grouped, Attention> kernel;
  Seconds measured;

  /// m n k of a product in a benchmark, which tells large ones apart; 0 of other kernels.
  double volume() const;
};

/// All kernels of one file, and what of it is none.
struct KernelCases {
  struct Refused {
    std::string id, reason;
  };
  std::vector<KernelCase> cases;
  std::vector<Refused> refused;
  /// The file's own tables, where it is one of ours: its rows are predicted from these.
  std::optional<KernelTables> tables;
};

/// Whether a document holds timed kernels: tables of ours ("orrery.kernels/1"), an exported table
/// of aiconfigurator ("kind": "gemm_table" or "attention_fwd_table"), or a list of such tables, of
/// single kernels ("op" and "shape", or "shape_mnk") or of experts' products.
bool is_kernel_cases(const JsonValue& json);

/// Reads them as docs/notes/validation.md describes. Errors (bad_input): columns or sizes that are
/// none, with their place. An entry of a list that says too little is refused with its reason.
KernelCases read_kernel_cases(const JsonValue& json);

/// The catalog's name of a GPU as others write it: "H100-SXM 80GB", "NVIDIA B200 SXM" and
/// "A100-SXM4-80GB" are h100-sxm, b200-sxm and a100-sxm-80gb. Errors (bad_input): none is like it.
std::string gpu_like(const JsonValue& written);

}  // namespace orrery
