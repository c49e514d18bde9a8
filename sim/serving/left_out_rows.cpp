#include "sim/serving/left_out_rows.hpp"

#include <algorithm>

#include "sim/serving/fitted_table.hpp"

namespace orrery {
namespace {

bool is_left_out(std::span<const std::int64_t> sizes) {
  std::uint64_t hash = 0;
  for (const std::int64_t size : sizes)  // Knuth's multiplicative hash, TAOCP 3, section 6.4.
    hash = (hash ^ static_cast<std::uint64_t>(size)) * 0x9e3779b97f4a7c15u;
  return (hash >> 32) % 4 == 0;
}

template <class Format>
Format format_named(const std::vector<std::string>& names, const std::string& word) {
  const auto found = std::find(names.begin(), names.end(), word);
  return found == names.end() ? Format{} : static_cast<Format>(found - names.begin());
}

}  // namespace

std::vector<LeftOutRow> left_out_rows(const ServingTable& table, const Gpu& gpu) {
  const KernelFormats formats{format_named<WeightFormat>(weight_format_names(), table.weights),
                              format_named<KvFormat>(kv_format_names(), table.kv)};
  const RoofRates rates = roof_rates(gpu, table.op, formats);
  ServingTable kept = table;
  kept.sizes.clear();
  kept.times.clear();
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const auto sizes = table.row(i);
    if (is_left_out(sizes)) continue;
    kept.sizes.insert(kept.sizes.end(), sizes.begin(), sizes.end());
    kept.times.push_back(table.times[i]);
  }
  std::vector<LeftOutRow> rows;
  if (kept.times.empty()) return rows;
  const FittedTable fitted{kept, formats, rates};
  for (std::size_t i = 0; i < table.rows(); ++i)
    if (const auto sizes = table.row(i); is_left_out(sizes))
      rows.push_back({i, table.times[i], fitted.at(sizes, rates).time});
  return rows;
}

std::vector<double> left_out_errors(const ServingTable& table, const Gpu& gpu) {
  std::vector<double> errors;
  for (const LeftOutRow& row : left_out_rows(table, gpu))
    errors.push_back(row.predicted / row.measured - 1.0);
  return errors;
}

}  // namespace orrery
