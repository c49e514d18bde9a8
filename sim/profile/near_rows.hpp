#pragma once

#include <array>
#include <span>

#include "sim/kernels/attention_time.hpp"
#include "sim/kernels/gemm_time.hpp"
#include "sim/measurements/serving_table.hpp"
#include "sim/profile/kernel_pricer.hpp"

namespace orrery {

/// The `most` nearest measured rows by rising distance, as the prediction sees distances; of the
/// same distance in the table's order.
std::vector<NearRow> near_rows(const GemmTime& gemm, const GemmTable& table,
                               const std::array<std::int64_t, 3>& mnk, std::size_t most);
std::vector<NearRow> near_rows(const AttentionTime& attention, const AttentionTable& table,
                               const AttentionShape& shape, std::size_t most);
/// Of serving tables: octaves of all sizes together.
std::vector<NearRow> near_rows(const ServingTable& table, std::span<const std::int64_t> sizes,
                               std::size_t most);

}  // namespace orrery
