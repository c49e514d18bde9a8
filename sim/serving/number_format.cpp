#include "sim/serving/number_format.hpp"

#include <array>

namespace orrery {
namespace {

struct Facts {
  double bytes;
  int bits_multiplied;
  WeightFormat measured_as;
};

// In the order of WeightFormat.
constexpr std::array<Facts, 8> weights{{{2.0, 16, WeightFormat::bf16},
                                        {2.0, 16, WeightFormat::bf16},
                                        {1.0, 8, WeightFormat::fp8},
                                        {1.0 + 4.0 / (128 * 128), 8, WeightFormat::fp8_block},
                                        {0.5 + 1.0 / 16, 4, WeightFormat::nvfp4},
                                        {0.5 + 1.0 / 32, 16, WeightFormat::mxfp4},
                                        {1.0, 16, WeightFormat::int8},
                                        {0.5 + 2.5 / 128, 16, WeightFormat::int4}}};

// In the order of KvFormat. nvfp4 has an fp8 scale for 16 values.
constexpr std::array<double, 4> values{2.0, 2.0, 1.0, 0.5 + 1.0 / 16};

const Facts& facts(WeightFormat format) { return weights[static_cast<std::size_t>(format)]; }

}  // namespace

const std::vector<std::string>& weight_format_names() {
  static const std::vector<std::string> names{"bf16",  "fp16",  "fp8",  "fp8_block",
                                              "nvfp4", "mxfp4", "int8", "int4"};
  return names;
}

const std::string& name(WeightFormat format) {
  return weight_format_names()[static_cast<std::size_t>(format)];
}

double bytes_per_weight(WeightFormat format) { return facts(format).bytes; }

MaybeRefused lacks_units(const Gpu& gpu, WeightFormat format) {
  if (facts(format).bits_multiplied == 8 && gpu.peak_fp8 == FlopPerSecond{})
    return infeasible("weights", "the GPU '" + gpu.name + "' has no units for " + name(format),
                      "use bf16, fp16, int8 or int4");
  if (facts(format).bits_multiplied == 4 && gpu.peak_fp4 == FlopPerSecond{})
    return infeasible(
        "weights", "the GPU '" + gpu.name + "' has no units for " + name(format),
        gpu.peak_fp8 == FlopPerSecond{} ? "use bf16, fp16, int8 or int4" : "use fp8, bf16 or int4");
  return {};
}

FlopPerSecond peak_of(const Gpu& gpu, WeightFormat format, const Place& at) {
  if (const auto no = lacks_units(gpu, format)) fail_infeasible(at, no->problem, no->remedy);
  const int bits = facts(format).bits_multiplied;
  return bits == 4 ? gpu.peak_fp4 : bits == 8 ? gpu.peak_fp8 : gpu.peak_16bit;
}

const std::string& table_word(WeightFormat format) { return name(facts(format).measured_as); }

const std::vector<std::string>& kv_format_names() {
  static const std::vector<std::string> names{"bf16", "fp16", "fp8", "nvfp4"};
  return names;
}

const std::string& name(KvFormat format) {
  return kv_format_names()[static_cast<std::size_t>(format)];
}

double bytes_per_value(KvFormat format) { return values[static_cast<std::size_t>(format)]; }

const std::string& table_word(KvFormat format) {
  // Decode attention over nvfp4 was not measured; it reads fp8's tables, scaled by its bytes.
  if (format == KvFormat::nvfp4) return name(KvFormat::fp8);
  return name(format == KvFormat::fp16 ? KvFormat::bf16 : format);
}

}  // namespace orrery
