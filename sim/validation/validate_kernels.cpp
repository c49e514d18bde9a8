#include <algorithm>
#include <map>
#include <memory>

#include "sim/core/progress.hpp"
#include "sim/core/statistics.hpp"
#include "sim/kernels/kernel_model.hpp"
#include "sim/serving/fitted_table.hpp"
#include "sim/validation/kernel_case.hpp"
#include "sim/validation/validate_kinds.hpp"

namespace orrery {
namespace {

// Products covered by the goals of docs/notes/kernel-errors.md: below, launches and tails dominate.
constexpr double large_volume = 0x1p33;
constexpr const char* large_part = "m n k >= 2^33";

// The models that predict the kernels of one GPU, each built on first use.
class GpuPrices {
 public:
  GpuPrices(const std::string& gpu, const std::optional<KernelTables>& own)
      : gpu_{read_gpu(gpu, {})}, tables_{own ? own : read_kernel_tables(gpu)} {}

  Seconds predict(const KernelCase& one) {
    if (const auto* product = std::get_if<GemmProduct>(&one.kernel)) return price(one, *product);
    if (const auto* experts = std::get_if<KernelCase::Grouped>(&one.kernel))
      return training(one.dtype).grouped_gemm(experts->layer, experts->tokens).time;
    const auto& attention = std::get<KernelCase::Attention>(one.kernel);
    if (one.clock == KernelCase::Clock::benchmark) {
      if (!attention_) attention_.emplace(gpu_, tables_ ? &*tables_ : nullptr);
      return attention_->table_time_without_row(attention.shape).time;
    }
    const AttentionShape shape = causal_square(attention.shape);
    return (attention.backward ? training(one.dtype).attention_backward(shape)
                               : training(one.dtype).attention_forward(shape))
        .time;
  }

 private:
  Seconds price(const KernelCase& one, const GemmProduct& product) {
    if (one.clock == KernelCase::Clock::training)
      return training(one.dtype).gemm(one.pass, product.m, product.n, product.k).time;
    const auto [place, fresh] = gemm_.try_emplace(one.dtype);
    if (fresh)
      place->second = std::make_unique<GemmTime>(gpu_, one.dtype, tables_ ? &*tables_ : nullptr);
    return one.casts ? place->second->without_row(product.m, product.n, product.k).time
                     : place->second->without_cast(product.m, product.n, product.k).time;
  }
  const KernelModel& training(Dtype dtype) {
    return training_.try_emplace(dtype, gpu_, dtype, tables_ ? &*tables_ : nullptr).first->second;
  }

  Gpu gpu_;
  std::optional<KernelTables> tables_;
  std::map<Dtype, std::unique_ptr<GemmTime>> gemm_;
  std::map<Dtype, KernelModel> training_;
  std::optional<AttentionTime> attention_;
};

// Adds to the errors of a case's group, and of the large products in it.
void add(const KernelCase& one, double error, std::vector<RowErrors>& groups) {
  const auto add_to = [&](const std::string& part) {
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const RowErrors& group) {
      return group.of == one.group && group.part == part;
    });
    if (found != groups.end())
      found->signed_.push_back(error);
    else
      groups.push_back({one.group, part, one.kind, {error}});
  };
  add_to("");
  if (one.volume() >= large_volume) add_to(large_part);
}

// Each group followed by its part, unless the part is the whole.
std::vector<RowErrors> in_order(const std::vector<RowErrors>& groups) {
  std::vector<RowErrors> ordered;
  for (const RowErrors& group : groups) {
    if (!group.part.empty()) continue;
    ordered.push_back(group);
    for (const RowErrors& part : groups)
      if (part.of == group.of && !part.part.empty() && part.rows() < group.rows())
        ordered.push_back(part);
  }
  return ordered;
}

}  // namespace

void compare_kernels(const JsonValue& json, ValidationReport& report) {
  const KernelCases file = read_kernel_cases(json);
  for (const auto& [id, reason] : file.refused) report.refusals.push_back({id, reason});
  std::map<std::string, GpuPrices> prices;
  for (std::size_t i = 0; i < file.cases.size(); ++i) {
    ProgressListener::report({Progress::Of::cases, i, file.cases.size()});
    const KernelCase& one = file.cases[i];
    try {
      GpuPrices& of = prices.try_emplace(one.gpu, one.gpu, file.tables).first->second;
      Comparison comparison{one.id, "time_s", one.measured.si(), of.predict(one).si(), {}};
      add(one, comparison.error(), report.rows);
      report.comparisons.push_back(std::move(comparison));
    } catch (const Error& error) {
      report.refusals.push_back({one.id, error.what()});
    }
  }
  report.rows = in_order(report.rows);
}

bool is_serving_table(const JsonValue& json) {
  return json.is_object() && json.has("schema") && json.at("schema").is_string() &&
         json.at("schema").text() == "orrery.serving_kernels/1";
}

void compare_serving_rows(const JsonValue& json, ValidationReport& report) {
  const ServingTable table = parse_serving_table(json);
  const std::string id = table.title() + " on " + table.gpu;
  const std::vector<LeftOutRow> rows =
      left_out_rows(table, read_gpu(table.gpu, json.place() / "gpu"));
  if (rows.empty()) {
    report.refusals.push_back({id, "it has too few rows to leave any out"});
    return;
  }
  const std::vector<std::string> columns = serving_table_columns(table.op);
  std::vector<double> errors;
  for (const LeftOutRow& row : rows) {
    std::string sizes;
    const auto of_row = table.row(row.row);
    for (std::size_t i = 0; i < of_row.size(); ++i)
      sizes += " " + columns[i] + " " + std::to_string(of_row[i]);
    Comparison comparison{table.op + sizes, "time_s", row.measured.si(), row.predicted.si(), {}};
    errors.push_back(comparison.error());
    report.comparisons.push_back(std::move(comparison));
  }
  report.rows = {{id, "", table.op + " of serving", std::move(errors)}};
}

}  // namespace orrery
