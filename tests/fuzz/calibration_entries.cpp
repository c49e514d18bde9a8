#include "calibration/host/record.hpp"
#include "calibration/host/work_list.hpp"
#include "sim/calibration/fit.hpp"
#include "sim/measurements/calibration.hpp"
#include "tests/fuzz/entry_groups.hpp"
#include "tests/fuzz/fuzz_checks.hpp"

namespace orrery {
namespace {

// An accepted record can be written, and is the same when read again.
bool fuzz_calibration_record(const std::string& text) {
  return is_accepted([&] {
    const std::string again = record_json(calibration::parse_record(text, "fuzz.json"));
    if (record_json(calibration::parse_record(again, "fuzz.json")) != again) __builtin_trap();
  });
}

bool fuzz_work_list(const std::string& text) {
  return is_accepted([&] {
    const std::string again =
        calibration::work_list_json(calibration::parse_work_list(text, "fuzz.json"));
    if (calibration::work_list_json(calibration::parse_work_list(again, "fuzz.json")) != again)
      __builtin_trap();
  });
}

// The other JSON reader, which stands alone: what it writes, it reads.
bool fuzz_calibration_json(const std::string& text) {
  return is_accepted([&] {
    const std::string again = calibration::Json::parse(text, "fuzz.json").text();
    if (calibration::Json::parse(again, "fuzz.json").text() != again) __builtin_trap();
  });
}

// With the digest that it would have, so that what is behind the reader is reached. What is fitted
// must be of finite figures.
bool fuzz_calibration_fit(const std::string& text) {
  return is_accepted([&] {
    const calibration::Record record =
        calibration::parse_record(calibration::with_digest(text), "fuzz.json");
    const CalibrationFit fit = fit_calibration({{"fuzz.json", record}}, {}, {"test-gpu", true, 2});
    if (!fit.kernels) return;
    for (const FittedFactor* factor :
         {&fit.kernels->sustained, &fit.kernels->wgrad_efficiency, &fit.kernels->copy_efficiency,
          &fit.kernels->attention_backward})
      if (!(factor->value > 0.0 && factor->value < 100.0)) __builtin_trap();
    for (const GemmTable& table : fit.kernels->tables.gemm)
      if (!(table.left_out && table.left_out->p90 >= table.left_out->median)) __builtin_trap();
  });
}

bool fuzz_calibration(const std::string& text) {
  return is_accepted([&] {
    const Calibration calibration = parse_calibration(parsed(text), "fuzz.json");
    if (!calibration.kernels && calibration.curves.empty()) __builtin_trap();
  });
}

}  // namespace

std::vector<EntryPoint> calibration_entries() {
  using enum Shape;
  return {{"calibration_record", fuzz_calibration_record, json},
          {"calibration_json", fuzz_calibration_json, json},
          {"work_list", fuzz_work_list, json},
          {"calibration", fuzz_calibration, json},
          {"calibration_fit", fuzz_calibration_fit, json}};
}

}  // namespace orrery
