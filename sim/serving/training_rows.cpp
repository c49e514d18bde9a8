#include "sim/serving/training_rows.hpp"

#include "sim/measurements/kernel_tables.hpp"

namespace orrery {

std::optional<ServingTable> training_rows(const std::string& gpu, const std::string& op,
                                          WeightFormat format) {
  const bool products = op == "gemm";
  if (!products && op != "prefill_attention") return std::nullopt;
  const std::string word = table_word(format);
  if (word != "bf16" && word != "fp8") return std::nullopt;
  const auto tables = read_kernel_tables(gpu);
  if (!tables) return std::nullopt;
  ServingTable table;
  table.gpu = tables->gpu;
  table.op = op;
  table.engine = "trtllm";
  table.version = "(training)";
  table.width = serving_table_columns(op).size();
  const auto add = [&](std::initializer_list<std::int64_t> sizes, Seconds time) {
    table.sizes.insert(table.sizes.end(), sizes);
    table.times.push_back(time);
  };
  if (products) {
    for (const GemmTable& gemm : tables->gemm)
      if (name(gemm.dtype) == word)
        for (const GemmRow& row : gemm.rows) add({row.n, row.k, row.m}, row.time);
  } else if (tables->attention) {
    for (const AttentionRow& row : tables->attention->rows)
      add({row.batch, row.heads, row.kv_heads, row.head_dim, row.sequence}, row.time);
  }
  if (table.times.empty()) return std::nullopt;
  return table;
}

}  // namespace orrery
