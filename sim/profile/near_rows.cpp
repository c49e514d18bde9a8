#include "sim/profile/near_rows.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

std::string attention_sizes(const AttentionRow& row) {
  return "batch " + std::to_string(row.batch) + ", seq " + std::to_string(row.sequence) +
         ", heads " + std::to_string(row.heads) + ", kv-heads " + std::to_string(row.kv_heads) +
         ", head-dim " + std::to_string(row.head_dim);
}

}  // namespace

std::vector<NearRow> near_rows(const GemmTime& gemm, const GemmTable& table,
                               const std::array<std::int64_t, 3>& mnk, std::size_t most) {
  std::vector<NearRow> rows;
  for (const auto& [index, distance] : gemm.nearest(mnk[0], mnk[1], mnk[2], most)) {
    const GemmRow& row = table.rows[index];
    rows.push_back(
        {std::to_string(row.m) + " x " + std::to_string(row.n) + " x " + std::to_string(row.k),
         row.time, distance, row.m == mnk[0] && row.n == mnk[1] && row.k == mnk[2]});
  }
  return rows;
}

std::vector<NearRow> near_rows(const AttentionTime& attention, const AttentionTable& table,
                               const AttentionShape& shape, std::size_t most) {
  std::vector<NearRow> rows;
  for (const auto& [index, distance] : attention.nearest(shape, most)) {
    const AttentionRow& row = table.rows[index];
    rows.push_back({attention_sizes(row), row.time, distance, causal_square(row) == shape});
  }
  return rows;
}

std::vector<NearRow> near_rows(const ServingTable& table, std::span<const std::int64_t> sizes,
                               std::size_t most) {
  const std::vector<std::string> columns = serving_table_columns(table.op);
  struct Near {
    std::size_t row;
    double distance;
  };
  std::vector<Near> all;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const auto row = table.row(i);
    double square = 0.0;
    for (std::size_t j = 0; j < row.size(); ++j) {
      const double octaves = std::log2(std::max(1.0, static_cast<double>(row[j]))) -
                             std::log2(std::max(1.0, static_cast<double>(sizes[j])));
      square += octaves * octaves;
    }
    all.push_back({i, std::sqrt(square)});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Near& a, const Near& b) { return a.distance < b.distance; });
  std::vector<NearRow> rows;
  for (std::size_t i = 0; i < std::min(most, all.size()); ++i) {
    const auto row = table.row(all[i].row);
    std::string text;
    for (std::size_t j = 0; j < row.size(); ++j)
      if (row[j] > 0)
        text += (text.empty() ? "" : ", ") + columns[j] + " " + std::to_string(row[j]);
    rows.push_back({text, table.times[all[i].row], all[i].distance,
                    std::equal(row.begin(), row.end(), sizes.begin())});
  }
  return rows;
}

}  // namespace orrery
