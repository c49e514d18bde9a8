#include "sim/kernels/attention_time.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sim/kernels/neighbours.hpp"

namespace orrery {
namespace {

// FlashAttention-2 reaches 50 to 73 % of an A100's peak forward (Dao, arXiv 2307.08691, section 1),
// and less under a causal mask; used without a table.
constexpr double default_efficiency = 0.5;

// FlashAttention 2 uses no instructions specific to Hopper, and on an H200 of 700 W it keeps its
// rate for seconds, while products have lost 16 % after a tenth of one
// (docs/notes/h200-measured.md). So only a limit that holds products below their share at 700 W
// affects it as well.
constexpr double held_from = 0.84;

// Each of Q, O, K and V is moved once.
constexpr double single_traffic = 0.5;

double log2_of(double value) { return std::log2(value); }

double flop(const AttentionShape& shape) {
  return 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.heads) *
         static_cast<double>(shape.seq_q) * attention_keys(shape) *
         static_cast<double>(shape.head_dim);
}

Neighbours<4>::Point serving_coordinates(const AttentionShape& shape) {
  const double batch = static_cast<double>(shape.batch);
  const double heads = static_cast<double>(shape.heads);
  const double sequence =
      std::sqrt(static_cast<double>(shape.seq_q) * static_cast<double>(shape.seq_kv));
  return {0.7 * log2_of(batch * heads), 0.7 * log2_of(sequence),
          0.3 * log2_of(heads / static_cast<double>(shape.kv_heads)), 0.2 * log2_of(batch)};
}

[[maybe_unused]] bool is_sound(const AttentionShape& shape) {
  return shape.batch > 0 && shape.seq_q > 0 && shape.seq_kv > 0 && shape.heads > 0 &&
         shape.kv_heads > 0 && shape.head_dim > 0 && shape.window >= 0 &&
         (shape.causal ? shape.seq_q <= shape.seq_kv : shape.window == 0);
}

}  // namespace

// Backward over forward time without a table: 2.5 times the flop (five products against two, arXiv
// 2307.08691) at the share of the forward efficiency that SimuMax measured on an A100 PCIe and a
// B200 (github.com/MooreThreads/SimuMax, configs/system, commit 4dcaae5).
double default_attention_backward(Architecture architecture) {
  return architecture == Architecture::blackwell ? 2.5 / 0.83 : 2.5 / 0.86;
}

namespace {

// The sequence matters most; the number of heads matters little, as long as they fill the GPU.
Neighbours<2>::Point training_coordinates(const AttentionShape& shape) {
  return {log2_of(static_cast<double>(shape.seq_q)),
          0.25 * log2_of(static_cast<double>(shape.batch) * static_cast<double>(shape.heads))};
}

}  // namespace

AttentionTime::AttentionTime(const Gpu& gpu, const KernelTables* tables, Dtype dtype)
    : machine_{gpu.peak(is_wide(dtype) ? dtype : Dtype::fp16, {}).si() * 1e-6,
               gpu.memory_bandwidth.si() * 1e-6, static_cast<double>(gpu.multiprocessors)},
      widths_of_16_bits_{unquantised_bytes(dtype) / 2.0},
      ampere_{gpu.architecture == Architecture::ampere},
      sustained_{tables ? tables->sustained : 1.0},
      backward_factor_{tables ? tables->attention_backward
                              : default_attention_backward(gpu.architecture)} {
  assert(!tables || !is_wide(dtype));
  if (!tables) return;
  if (tables->attention && !tables->attention->rows.empty())
    add_table(*tables->attention, tables->used_for);
  if (tables->training_attention) add_training_rows(gpu, *tables->training_attention);
}

void AttentionTime::add_table(const AttentionTable& table, const std::string& used_for) {
  const MeasuredGpu& measured = table.measured_on;
  const GemmMachine reference = gemm_machine(measured, Dtype::bf16);
  kernels_only_ = table.measures == AttentionTable::Measures::kernel;
  // The fit's own figures are used if the catalog's differ by rounding only, as in GemmTime.
  own_table_ = used_for == measured.name && is_same_figure(machine_.peak, reference.peak) &&
               is_same_figure(machine_.bandwidth, reference.bandwidth) &&
               machine_.multiprocessors == reference.multiprocessors;
  if (own_table_) machine_ = reference;

  shortest_ = longest_ = table.rows[0].sequence;
  for (const AttentionBase& base : table.bases) {
    HeadDim head_dim{base, {}, {}};
    for (std::size_t place = 0; place < table.rows.size(); ++place) {
      const AttentionRow& row = table.rows[place];
      if (row.head_dim != base.head_dim) continue;
      head_dim.places.push_back(place);
      shortest_ = std::min(shortest_, row.sequence);
      longest_ = std::max(longest_, row.sequence);
      const AttentionShape shape = causal_square(row);
      const double predicted = attention_formula_us(base, reference, shape, AttentionScope::row);
      if (const auto key = row_key(shape)) head_dim.row_of[*key] = head_dim.residual.size();
      head_dim.residual.add(serving_coordinates(shape), std::log(row.time.si() * 1e6 / predicted));
    }
    if (head_dim.residual.size() > 0) measured_.push_back(std::move(head_dim));
  }
}

// Each size takes 16 bits, enough for any row of the tables; larger sizes have no key.
std::optional<std::uint64_t> AttentionTime::row_key(const AttentionShape& shape) {
  if (!shape.causal || shape.seq_q != shape.seq_kv || shape.window > 0) return std::nullopt;
  std::uint64_t key = 0;
  for (const std::int64_t size : {shape.batch, shape.seq_q, shape.heads, shape.kv_heads}) {
    if (size >= 1 << 16) return std::nullopt;
    key = key << 16 | static_cast<std::uint64_t>(size);
  }
  return key;
}

double AttentionTime::at_head_dim(const HeadDim& measured, const AttentionShape& shape,
                                  AttentionScope scope, bool use_row, bool* exact) const {
  std::size_t row = Neighbours<4>::no_point;
  if (const auto key = row_key(shape))
    if (const auto found = measured.row_of.find(*key); found != measured.row_of.end())
      row = found->second;
  *exact = use_row && row != Neighbours<4>::no_point;
  // Residuals of whole sequences do not apply to a window's few keys.
  const double shift = shape.window > 0 ? 0.0
                       : *exact         ? measured.residual.value(row)
                                        : measured.residual.at(serving_coordinates(shape), row);
  return attention_formula_us(measured.base, machine_, shape, scope) * std::exp(shift);
}

KernelTime AttentionTime::predict(const AttentionShape& shape, AttentionScope scope,
                                  bool use_row) const {
  assert(is_sound(shape));
  if (kernels_only_) scope = AttentionScope::row;
  if (measured_.empty()) {
    const Roofline roofline;
    const double compute = flop(shape) / (default_efficiency * machine_.peak);
    const double memory = widths_of_16_bits_ *
                          attention_bytes(shape, single_traffic, single_traffic) /
                          (roofline.memory_efficiency * machine_.bandwidth);
    return {microseconds(std::max(compute, memory)) + roofline.launch, Tag::default_value};
  }
  const std::int64_t dim = shape.head_dim;
  const auto above = std::find_if(measured_.begin(), measured_.end(), [&](const HeadDim& measured) {
    return measured.base.head_dim >= dim;
  });
  // A row's residual refers to the constants of its head dimension, so both neighbours use their
  // own; outside all measured ones the nearest formula takes the dimension as it is.
  bool exact = false;
  double time = 0.0;
  bool outside = false;
  if (above == measured_.end() || (above == measured_.begin() && above->base.head_dim != dim)) {
    const HeadDim& nearest = above == measured_.end() ? measured_.back() : *above;
    time = at_head_dim(nearest, shape, scope, use_row, &exact);
    exact = false;
    // FlashAttention, FlashAttention 2 and Triton's reach on A100 0.89 to 1.23 times the operations
    // a second with heads of 64 that they do with 128 (docs/notes/kernel-errors.md), less than the
    // errors of tables of serving kernels.
    outside = !ampere_ || dim < 64 || dim > 128;
  } else if (above->base.head_dim == dim) {
    time = at_head_dim(*above, shape, scope, use_row, &exact);
  } else {
    const HeadDim& below = *(above - 1);
    AttentionShape low = shape;
    AttentionShape high = shape;
    low.head_dim = below.base.head_dim;
    high.head_dim = above->base.head_dim;
    const double part =
        static_cast<double>(dim - low.head_dim) / static_cast<double>(high.head_dim - low.head_dim);
    time = (1.0 - part) * at_head_dim(below, low, scope, use_row, &exact) +
           part * at_head_dim(*above, high, scope, use_row, &exact);
    exact = false;
  }
  if (shape.window > 0) {  // A whole sequence's row or residual may give less than the formula.
    AttentionShape whole = shape;
    whole.window = 0;
    time = std::min(time, predict(whole, scope, use_row).time.si() * 1e6);
  }
  outside = outside || shape.window > 0 || shape.seq_q * table_reach < shortest_ ||
            shape.seq_kv > longest_ * table_reach;
  const Tag tag = outside                                               ? Tag::default_value
                  : exact && own_table_ && scope == AttentionScope::row ? Tag::measured
                                                                        : Tag::interpolated;
  return {microseconds(time), tag};
}

void AttentionTime::add_training_rows(const Gpu& gpu, const TrainingAttention& measured) {
  const double slower = measured.peak_16bit / gpu.peak_16bit;  // Relative to the measured GPU.
  const double flash_clock =
      gpu.architecture == Architecture::hopper ? std::min(1.0, sustained_ / held_from) : sustained_;
  for (const TrainingAttentionRow& row : measured.rows) {
    AttentionShape shape{row.batch, row.sequence, row.sequence, row.heads, row.kv_heads};
    shape.head_dim = (row.key_dim + row.value_dim) / 2;
    shape.key_share =
        static_cast<double>(row.key_dim) / static_cast<double>(row.key_dim + row.value_dim);
    shape.window = row.window < row.sequence ? row.window : 0;
    const AttentionKernel kernel = row.library == AttentionLibrary::cudnn
                                       ? AttentionKernel::cudnn
                                       : AttentionKernel::flash_attention_2;
    const Dtype format = is_narrow(row.format) ? row.format : Dtype::bf16;
    const auto same = [&](const TrainingRows& rows) {
      return rows.kernel == kernel && rows.format == format && rows.head_dim == shape.head_dim &&
             rows.windowed == (shape.window > 0);
    };
    auto of = std::find_if(training_.begin(), training_.end(), same);
    if (of == training_.end())
      of = training_.insert(
          of,
          {kernel, format, shape.head_dim, shape.window > 0, {}, {}, row.sequence, row.sequence});
    of->shortest = std::min(of->shortest, row.sequence);
    of->longest = std::max(of->longest, row.sequence);
    const auto point = training_coordinates(shape);
    // Rows of cuDNN are ten runs of a cool GPU.
    const double clock = row.library == AttentionLibrary::cudnn ? sustained_ : flash_clock;
    of->forward.add(point, std::log(slower / clock * row.forward / forward(shape).time));
    of->backward.add(point, std::log(slower / clock * row.backward / backward(shape).time));
  }
}

const AttentionTime::TrainingRows* AttentionTime::training_rows(const AttentionShape& shape) const {
  const AttentionKernel kernel = shape.kernel == AttentionKernel::deterministic_flash_attention_2
                                     ? AttentionKernel::flash_attention_2
                                     : shape.kernel;
  const TrainingRows* nearest = nullptr;
  double least = 0.0;
  for (const TrainingRows& rows : training_) {
    if (rows.kernel != kernel || rows.format != shape.format || rows.windowed != (shape.window > 0))
      continue;
    const double away =
        std::abs(log2_of(static_cast<double>(rows.head_dim) / static_cast<double>(shape.head_dim)));
    if (nearest && away >= least) continue;
    nearest = &rows;
    least = away;
  }
  return nearest;
}

KernelTime AttentionTime::with_training_rows(const AttentionShape& shape, KernelTime time,
                                             bool backward) const {
  const TrainingRows* rows = training_rows(shape);
  if (!rows) return {time.time, is_narrow(shape.format) ? Tag::default_value : time.tag};
  const Neighbours<2>& of = backward ? rows->backward : rows->forward;
  // Longer sequences than measured are as much faster than the tables as the longest one: libraries
  // differ in the rate that they reach where the GPU is full.
  AttentionShape measured = shape;
  measured.seq_q = std::clamp(shape.seq_q, rows->shortest, rows->longest);
  time.time = std::exp(of.at(training_coordinates(measured))) * time.time;
  // Steps of 1M tokens were met from rows of 16k (docs/notes/kernel-errors.md).
  const bool inside =
      rows->head_dim == shape.head_dim && shape.seq_q * table_reach >= rows->shortest;
  time.tag = inside ? Tag::interpolated : Tag::default_value;
  return time;
}

KernelTime AttentionTime::forward(const AttentionShape& shape) const {
  const auto [known, fresh] = known_.try_emplace(shape);
  if (!fresh) return known->second;
  known->second = predict(shape, AttentionScope::training_kernel, true);
  if (shape.kernel != AttentionKernel::of_tables)
    known->second = with_training_rows(shape, known->second, false);
  return known->second;
}

KernelTime AttentionTime::backward(const AttentionShape& shape) const {
  AttentionShape of_tables = shape;
  of_tables.kernel = AttentionKernel::of_tables;
  const KernelTime once = forward(of_tables);
  // The measured ratio is for keys as wide as values.
  const KernelTime time{backward_factor_ * ((2.0 + shape.key_share) / 2.5) * once.time, once.tag};
  if (shape.kernel == AttentionKernel::of_tables) return time;
  const KernelTime measured = with_training_rows(shape, time, true);
  return shape.kernel == AttentionKernel::deterministic_flash_attention_2
             ? deterministic(shape, measured)
             : measured;
}

// The usual pass has a block of threads for each block of keys, enough to fill all multiprocessors
// evenly, and adds to one gradient of the queries in any order. The deterministic one has g =
// ceil(S / bh) blocks a sequence and head, so that all fit at once if bh divides the S
// multiprocessors; otherwise the rest run alone in a second wave. Each adds to separate gradients,
// 4 bytes an element, set to zero before and summed after.
KernelTime AttentionTime::deterministic(const AttentionShape& shape, KernelTime usual) const {
  const double sequences = static_cast<double>(shape.batch * shape.heads);
  const double blocks = std::ceil(machine_.multiprocessors / sequences);
  const double waves = std::ceil(blocks * sequences / machine_.multiprocessors);
  const double elements =
      sequences * static_cast<double>(shape.seq_q) * static_cast<double>(shape.head_dim);
  const double seconds =
      8.0 * (blocks - 1.0) * elements / (Roofline{}.memory_efficiency * machine_.bandwidth) * 1e-6;
  const double slower = waves * machine_.multiprocessors / (blocks * sequences);
  return {usual.time * slower + Seconds{seconds}, Tag::default_value};
}

std::vector<Neighbours<4>::Neighbour> AttentionTime::nearest(const AttentionShape& shape,
                                                             std::size_t most) const {
  const auto of =
      std::min_element(measured_.begin(), measured_.end(), [&](const HeadDim& a, const HeadDim& b) {
        return std::abs(a.base.head_dim - shape.head_dim) <
               std::abs(b.base.head_dim - shape.head_dim);
      });
  if (of == measured_.end()) return {};
  auto near = of->residual.nearest(serving_coordinates(shape), most);
  for (auto& one : near) one.index = of->places[one.index];
  return near;
}

KernelTime AttentionTime::table_time(const AttentionRow& shape) const {
  return predict(causal_square(shape), AttentionScope::row, true);
}

KernelTime AttentionTime::table_time_without_row(const AttentionRow& shape) const {
  return predict(causal_square(shape), AttentionScope::row, false);
}

}  // namespace orrery
