#include "sim/calibration/fit_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "calibration/host/expert_tokens.hpp"
#include "sim/calibration/correct_table.hpp"
#include "sim/calibration/fit_formulas.hpp"
#include "sim/calibration/fit_machine.hpp"
#include "sim/core/number_text.hpp"
#include "sim/kernels/attention_time.hpp"
#include "sim/kernels/gemm_time.hpp"
#include "sim/kernels/kernel_error.hpp"
#include "sim/kernels/kernel_model.hpp"

namespace orrery {
namespace {

using calibration::Measurement;
using Measurements = std::vector<const Measurement*>;

Measurements of_kind(const std::vector<Measurement>& all, const std::string& kind,
                     const std::string& choice = "", const std::string& value = "") {
  Measurements some;
  for (const Measurement& one : all)
    if (one.what.kind == kind && (choice.empty() || one.what.choice(choice) == value))
      some.push_back(&one);
  return some;
}

MeasuredGpu reference_of(const Gpu& gpu) {
  return {gpu, gpu.name, gpu.memory_bandwidth, gpu.multiprocessors};
}

// A long product's is that of its first clock, as those of the tables are, if the record has it.
double benchmark_us(const Measurement& one) {
  const auto first = one.figures.find("first_clock_us");
  return first == one.figures.end() ? one.warm->median_us : first->second;
}

// The file's precision: whole nanoseconds.
Seconds row_time(const Measurement& one) {
  return microseconds(std::round(benchmark_us(one) * 1e3) / 1e3);
}

// A dgrad product is a row like a forward one, and timed as such; of two with the same sizes the
// forward one is kept.
std::vector<GemmRow> gemm_rows(const std::vector<Measurement>& all, const std::string& dtype) {
  std::vector<GemmRow> rows;
  std::set<std::vector<std::int64_t>> shapes;
  for (const char* pass : {"forward", "dgrad"})
    for (const Measurement* one : of_kind(all, "gemm", "pass", pass)) {
      const std::vector<std::int64_t> shape{one->what.size("m"), one->what.size("n"),
                                            one->what.size("k")};
      if (one->what.choice("dtype") != dtype || !one->warm || is_in_a_step(*one) ||
          !shapes.insert(shape).second)
        continue;
      rows.push_back({shape[0], shape[1], shape[2], row_time(*one)});
    }
  return rows;
}

class Fitting {
 public:
  Fitting(const std::vector<Measurement>& all, const Gpu& gpu, std::string source,
          std::vector<FitCheck>& checks, std::vector<std::string>& findings,
          std::vector<std::string>& notes)
      : all_{all},
        gpu_{gpu},
        source_{std::move(source)},
        checks_{checks},
        findings_{findings},
        notes_{notes} {
    KernelTables& tables = fitted_.tables;
    shipped_ = read_kernel_tables(gpu.name);
    const KernelFactors factors = shipped_ ? factors_of(*shipped_) : default_factors(gpu);
    const std::string from = shipped_ ? "as in the tables that come with Orrery"
                                      : "assumed, as for a GPU without tables";
    fitted_.sustained = {factors.sustained, false, from};
    fitted_.wgrad_efficiency = {factors.wgrad_efficiency, false, from};
    fitted_.copy_efficiency = {factors.copy_efficiency, false, from};
    fitted_.attention_backward = {factors.attention_backward, false, from};
    tables.gpu = tables.used_for = gpu.name;
  }

  void fit_gemms() {
    for (const Dtype dtype : formats_for(FormatUse::weights)) {
      const std::vector<GemmRow> rows = gemm_rows(all_, name(dtype));
      if (rows.empty()) continue;
      if (gpu_.*facts(dtype).peak == FlopPerSecond{})
        fail_input({},
                   "products in " + name(dtype) + " were measured, but '" + gpu_.name +
                       "' has no " + name(dtype) + " units",
                   "give --gpu NAME: orrery list gpus");
      if (rows.size() < fewest_rows) {
        note_few("products in " + name(dtype), rows.size());
        continue;
      }
      const GemmTable* published = find_gemm_table(shipped_ ? &*shipped_ : nullptr, dtype);
      if (published && rows.size() < published->rows.size()) {
        correct(rows, *published, dtype);
        continue;
      }
      GemmTable table;
      table.dtype = dtype;
      table.source = source_;
      table.measured_on = reference_of(gpu_);
      table.base = fit_gemm(rows, table.measured_on, dtype);
      table.rows = rows;
      fitted_.tables.gemm.push_back(std::move(table));
      GemmTable& kept = fitted_.tables.gemm.back();
      kept.left_out = summarize_errors(gemm_errors(gpu_, fitted_.tables, dtype));
    }
    for (const Dtype dtype : formats_for(FormatUse::products))
      if (is_wide(dtype))
        if (const std::size_t count = of_kind(all_, "gemm", "dtype", name(dtype)).size())
          notes_.push_back(std::to_string(count) + " products in " + name(dtype) +
                           ": plans in it are priced by the peak");
  }

  void fit_wgrad() {
    std::vector<double> ratios;
    std::map<std::string, std::vector<double>> by_dtype;
    for (const Measurement* one : of_kind(all_, "gemm", "pass", "wgrad")) {
      const std::string& dtype = one->what.choice("dtype");
      const GemmTime* time = gemm(dtype);
      if (!time || !one->warm) continue;
      const double predicted =
          (*time)(one->what.size("m"), one->what.size("n"), one->what.size("k")).time.si();
      const double ratio = predicted / (1e-6 * benchmark_us(*one));
      ratios.push_back(ratio);
      by_dtype[dtype].push_back(ratio);
    }
    if (ratios.size() >= fewest_ratios)
      set(fitted_.wgrad_efficiency, middle(ratios, 0.5), 0.1, 2.0,
          "median over " + std::to_string(ratios.size()) + " products");
    else if (!ratios.empty())
      note_few("wgrad products", ratios.size());
    for (auto& [dtype, some] : by_dtype) {
      for (double& ratio : some) ratio = ratio / fitted_.wgrad_efficiency.value - 1.0;
      checks_.push_back({"wgrad " + dtype, std::move(some)});
    }
  }

  void fit_sustained() {
    const auto fit = orrery::fit_sustained(
        all_, [this](const std::string& dtype) { return gemm_in_use(dtype); }, findings_, notes_);
    if (fit) set(fitted_.sustained, fit->ratio, 0.1, 2.0, fit->how);
  }

  // The slope between copies that no cache holds: launches cancel out.
  void fit_copies(std::int64_t l2_bytes) {
    std::vector<std::pair<double, double>> copies;  // Bytes, seconds.
    for (const Measurement* one : of_kind(all_, "memory", "op", "copy")) {
      const auto bytes = one->figures.find("moved_bytes");
      if (bytes != one->figures.end() && one->cold && bytes->second >= 2.0 * as_double(l2_bytes))
        copies.emplace_back(bytes->second, 1e-6 * one->cold->median_us);
    }
    std::vector<double> rates;
    for (const auto& [bytes, time] : copies)
      for (const auto& [more, longer] : copies)
        if (more >= 2.0 * bytes && longer > time) rates.push_back((more - bytes) / (longer - time));
    if (!rates.empty()) {
      const double share = middle(rates, 0.5) / gpu_.memory_bandwidth.si();
      if (share > 1.0)
        fail_input(
            {},
            "copies reach " + percent(share) + " of the memory bandwidth of '" + gpu_.name + "'",
            "no GPU can: correct the catalog's bandwidth, or give --gpu NAME");
      set(fitted_.copy_efficiency, share, 0.1, 1.0,
          "from the sizes of " + std::to_string(copies.size()) + " copies beyond the cache");
    } else if (!copies.empty()) {
      note_few("copies beyond the cache", copies.size());
    }
    check_memory(l2_bytes);
  }

  void fit_attention_rows(bool own) {
    std::map<std::int64_t, std::vector<AttentionRow>> rows;
    std::vector<std::pair<AttentionRow, bool>> timed;
    std::size_t left = 0;
    for (const Measurement* one : of_kind(all_, "attention")) {
      if (!one->warm) continue;
      if (!own && one->implementation.starts_with("orrery")) {
        ++left;
        continue;
      }
      AttentionRow row{one->what.size("batch"),    one->what.size("sequence"),
                       one->what.size("heads"),    one->what.size("kv_heads"),
                       one->what.size("head_dim"), row_time(*one)};
      const bool backward = one->what.choice("pass") == "backward";
      timed.emplace_back(row, backward);
      if (!backward) rows[row.head_dim].push_back(row);
    }
    if (left)
      notes_.push_back(std::to_string(left) +
                       " attention passes by orrery-gpu's own kernels, slower than what frameworks "
                       "run: --own-attention takes them");
    AttentionTable table;
    for (const auto& [head_dim, some] : rows) {
      if (some.size() < fewest_attention_rows) {
        note_few("attention passes of head dimension " + std::to_string(head_dim), some.size());
        continue;
      }
      table.bases.push_back(fit_attention(some, reference_of(gpu_)));
      table.rows.insert(table.rows.end(), some.begin(), some.end());
    }
    if (table.bases.empty()) return;
    table.source = source_;
    table.measures = AttentionTable::Measures::kernel;
    table.measured_on = reference_of(gpu_);
    fitted_.tables.attention = std::move(table);
    for (AttentionBase& base : fitted_.tables.attention->bases)
      base.left_out = summarize_errors(attention_errors(gpu_, fitted_.tables, base.head_dim));
    fit_backward(timed);
  }

  // Without the host's part: orrery-gpu launches all experts as one graph.
  void fit_grouped() {
    KernelTables tables = fitted_.tables;
    tables.wgrad_efficiency = fitted_.wgrad_efficiency.value;
    std::map<std::string, std::vector<double>> by_pass;
    std::vector<double> ratios;
    for (const Measurement* one : of_kind(all_, "grouped_gemm")) {
      const auto& what = one->what;
      const std::string &pass = what.choice("pass"), &dtype = what.choice("dtype");
      if (!gemm(dtype) || !one->warm) continue;
      const KernelModel kernels{gpu_, *format_named(dtype, FormatUse::products), &tables};
      GroupedGemm layer;
      layer.pass = pass == "forward" ? GemmPass::forward
                   : pass == "dgrad" ? GemmPass::dgrad
                                     : GemmPass::wgrad;
      layer.out = what.size("n");
      layer.in = what.size("k");
      if (layer.pass == GemmPass::wgrad) layer.accumulate = 8.0;  // fp32, read and written.
      const auto tokens = calibration::expert_tokens(what.size("tokens"), what.size("experts"),
                                                     what.choice("tokens_by_expert") == "skewed");
      ratios.push_back(kernels.grouped_kernel(layer, tokens).time /
                       microseconds(one->warm->median_us));
      by_pass["grouped " + pass + " " + dtype].push_back(ratios.back());
    }
    if (ratios.size() >= fewest_ratios)
      set(fitted_.grouped_efficiency, middle(ratios, 0.5), 0.1, 2.0,
          "median over " + std::to_string(ratios.size()) + " layers of experts");
    else if (!ratios.empty())
      note_few("grouped products", ratios.size());
    for (auto& [what, some] : by_pass) {
      for (double& ratio : some) ratio = ratio / fitted_.grouped_efficiency.value - 1.0;
      checks_.push_back({what, std::move(some)});
    }
  }

  void fit_hiding() {
    OverlapFit fit = fit_overlap(all_, gpu_.multiprocessors);
    // Other multiprocessors may clock higher when some do little else.
    if (fit.share && *fit.share < 0.01)
      findings_.push_back(
          "products lose nothing while multiprocessors are busy: share_lost_beside stays 1");
    else if (fit.share)
      set(fitted_.overlap_loss_share, *fit.share, 0.01, 5.0,
          "least squares over " + std::to_string(fit.busy_cases) +
              " products with busy multiprocessors");
    else if (fit.busy_cases > 0)
      note_few("products with busy multiprocessors", fit.busy_cases);
    std::move(fit.checks.begin(), fit.checks.end(), std::back_inserter(checks_));
    std::move(fit.findings.begin(), fit.findings.end(), std::back_inserter(findings_));
  }

  // Checks the rows against the project's tables, or those of the proxy GPU.
  void check_published() {
    if (!shipped_) return;
    const std::string whose = " by the tables of " + shipped_->gpu;
    for (const GemmTable& table : fitted_.tables.gemm) {
      if (!find_gemm_table(&*shipped_, table.dtype) || table.measured_on.name != gpu_.name)
        continue;
      const GemmTime time{gpu_, table.dtype, &*shipped_};
      std::vector<double> errors;
      for (const GemmRow& row : table.rows)
        errors.push_back(time.without_cast(row.m, row.n, row.k).time / row.time - 1.0);
      checks_.push_back({"gemm " + name(table.dtype) + whose, std::move(errors)});
    }
  }

  std::optional<FittedKernels> result() {
    const bool any = !fitted_.tables.gemm.empty() || fitted_.tables.attention ||
                     fitted_.sustained.measured || fitted_.copy_efficiency.measured ||
                     fitted_.overlap_loss_share.measured;
    if (!any) return std::nullopt;
    return std::move(fitted_);
  }

 private:
  static constexpr std::size_t fewest_ratios = 3;
  // Attention costs follow its sizes more smoothly than products do.
  static constexpr std::size_t fewest_attention_rows = 8;

  static double as_double(std::int64_t value) { return static_cast<double>(value); }

  void note_few(const std::string& what, std::size_t count) {
    notes_.push_back(std::to_string(count) + " " + what + ": too few to fit");
  }

  void set(FittedFactor& factor, double value, double least, double most, const std::string& how) {
    if (!(value >= least && value <= most))
      fail_input({}, how + ": the ratio is " + percent(value), "measure again");
    factor = {value, true, how + "; " + source_};
  }

  // All of the published table's shapes, as this GPU is measured to run those like them.
  void correct(const std::vector<GemmRow>& rows, const GemmTable& published, Dtype dtype) {
    CorrectedTable corrected = correct_gemm_table(
        gpu_, *shipped_, dtype, rows, reference_of(gpu_),
        published.source + "; corrected by " + std::to_string(rows.size()) + " rows: " + source_);
    corrected.table.measured_on.name = corrected_name(shipped_->gpu);
    corrected.table.left_out = summarize_errors(corrected.after);
    const std::string whose = "gemm " + name(dtype) + " by the tables of " + shipped_->gpu;
    findings_.push_back(whose + ": " + std::to_string(rows.size()) + " rows correct its " +
                        std::to_string(published.rows.size()) + ", by " +
                        signed_percent(corrected.ratio - 1.0) + " on average");
    checks_.push_back({whose, std::move(corrected.before)});
    checks_.push_back({whose + ", corrected", std::move(corrected.after)});
    fitted_.tables.gemm.push_back(std::move(corrected.table));
  }

  // The fitted table's, or else the published one's, which stays in use.
  const GemmTime* gemm_in_use(const std::string& dtype) {
    if (const GemmTime* fitted = gemm(dtype)) return fitted;
    const Dtype format = measured_as(*format_named(dtype, FormatUse::products));
    if (!shipped_ || !find_gemm_table(&*shipped_, format)) return nullptr;
    return &published_.try_emplace(format, gpu_, format, &*shipped_).first->second;
  }

  // The fitted table of a number format; null without one.
  const GemmTime* gemm(const std::string& dtype) {
    for (const GemmTable& table : fitted_.tables.gemm)
      if (name(table.dtype) == dtype)
        return &gemms_.try_emplace(table.dtype, gpu_, table.dtype, &fitted_.tables).first->second;
    return nullptr;
  }

  void fit_backward(const std::vector<std::pair<AttentionRow, bool>>& timed) {
    const AttentionTime attention{gpu_, &fitted_.tables};
    std::vector<double> ratios;
    for (const auto& [row, backward] : timed)
      if (backward) ratios.push_back(row.time / attention.table_time(row).time);
    if (ratios.size() < fewest_ratios) {
      if (!ratios.empty()) note_few("attention backward passes", ratios.size());
      return;
    }
    set(fitted_.attention_backward, middle(ratios, 0.5), 1.0, 10.0,
        "median over " + std::to_string(ratios.size()) + " shapes");
    for (double& ratio : ratios) ratio = fitted_.attention_backward.value / ratio - 1.0;
    checks_.push_back({"attention backward", std::move(ratios)});
  }

  void check_memory(std::int64_t l2_bytes) {
    std::map<std::string, std::vector<double>> errors;
    for (const Measurement* one : of_kind(all_, "memory")) {
      const auto bytes = one->figures.find("moved_bytes");
      if (bytes == one->figures.end() || !one->cold || bytes->second < 2.0 * as_double(l2_bytes))
        continue;
      const double predicted =
          bytes->second / (fitted_.copy_efficiency.value * gpu_.memory_bandwidth.si());
      errors["memory " + one->what.choice("op")].push_back(
          predicted / (1e-6 * one->cold->median_us) - 1.0);
    }
    for (auto& [what, some] : errors) checks_.push_back({what, std::move(some)});
  }

  const std::vector<Measurement>& all_;
  const Gpu& gpu_;
  std::string source_;
  std::vector<FitCheck>& checks_;
  std::vector<std::string>&findings_, &notes_;
  FittedKernels fitted_;
  std::optional<KernelTables> shipped_;
  std::map<Dtype, GemmTime> gemms_, published_;
};

}  // namespace

std::string unsound(const calibration::Measurement& one, double usual_slowdown) {
  // The first is orrery-gpu's own bound on its reference product; the others are a tenth and a
  // twentieth of the differences to be resolved; timings stop at half a percent if they can.
  constexpr double slowest_reference = 1.05, most_drift = 0.05, most_noise = 0.1;
  constexpr double shortest_us = 0.01;  // The bound of tables of kernels.
  const double slowdown = one.reference_slowdown / usual_slowdown;
  if (slowdown > slowest_reference)
    return "the GPU was " + percent(slowdown - 1.0) + " slower around it";
  for (const auto& timing : {one.warm, one.cold}) {
    if (!timing) continue;
    if (timing->median_us < shortest_us) return "no work takes under 10 ns";
    if (std::abs(timing->drift) > most_drift)
      return "its clock drifted by " + percent(std::abs(timing->drift));
    if (timing->noise > most_noise)
      return "its median is known to " + percent(timing->noise) + " only";
  }
  return "";
}

std::optional<FittedKernels> fit_kernels(const std::vector<Measurement>& measurements,
                                         const Gpu& gpu, std::int64_t l2_bytes, bool own_attention,
                                         const std::string& source, std::vector<FitCheck>& checks,
                                         std::vector<std::string>& findings,
                                         std::vector<std::string>& notes) {
  Fitting fitting{measurements, gpu, source, checks, findings, notes};
  fitting.fit_gemms();
  fitting.fit_wgrad();
  fitting.fit_grouped();
  fitting.fit_sustained();
  fitting.fit_attention_rows(own_attention);
  fitting.fit_copies(l2_bytes);
  fitting.fit_hiding();
  fitting.check_published();
  return fitting.result();
}

}  // namespace orrery
