#include "sim/serving/serving_kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/kernels/scan_time.hpp"
#include "sim/measurements/kernel_tables.hpp"
#include "sim/measurements/serving_table.hpp"

namespace orrery {

std::optional<ServingTable> training_rows(const std::string& gpu, const std::string& op,
                                          Dtype format) {
  const bool products = op == "gemm";
  if (!products && op != "prefill_attention") return std::nullopt;
  const Dtype measured = measured_as(format);
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
      if (gemm.dtype == measured)
        for (const GemmRow& row : gemm.rows) add({row.n, row.k, row.m}, row.time);
  } else if (tables->attention) {
    for (const AttentionRow& row : tables->attention->rows)
      add({row.batch, row.heads, row.kv_heads, row.head_dim, row.sequence}, row.time);
  }
  if (table.times.empty()) return std::nullopt;
  return table;
}

namespace {

// Lower bounds: the best rows that cannot be cached take 1.1 times bytes over bandwidth (decode
// attention of vLLM over 1 GB of keys and values reaches 0.88 to 0.93 of the data sheet's
// bandwidth), and the smallest kernels take 1.5 and 2 us.
constexpr double cold_traffic = 1.1;
constexpr Seconds least_product = microseconds(1.5);
// A product of fewer rows can be padded to so many: vLLM's fp8 rows of GB200 take up to 1.7 times
// as long at 1 to 8 as at 16, but the published steps of no engine do (InferenceX).
constexpr std::int64_t padded_rows = 16;
constexpr Seconds least_attention = microseconds(2.0);
constexpr double far_outside = 2.0;     // Octaves.
constexpr double another_engine = 0.5;  // Octaves.
// Time of a kernel that writes 4-bit weights out in 16 bits, over that of its bytes at the data
// sheet's bandwidth. bitsandbytes 0.45 took 235 ms for 8 tokens of Llama 3.1 70B on an H100
// (benchmarking/README.md), 46 of which its products need in bf16: 3.6 times what its bytes need.
// Its kernel has no branches from 0.48 on (pull request 1746); one like it (1747) was 1.36 to 2.07
// times as fast.
constexpr double written_out = 2.0;

Tag tag_of(const FittedTable::Time& found, bool own) {
  if (found.outside > far_outside) return Tag::default_value;
  return found.exact && own ? Tag::measured : Tag::interpolated;
}

}  // namespace

ServingKernels::ServingKernels(const Gpu& gpu, const ServingEngine& engine)
    : gpu_{gpu}, table_gpu_{gpu}, engine_{engine}, measured_{gpu_of_serving_tables(gpu.name)} {
  if (!measured_.empty() && measured_ != gpu.name) table_gpu_ = read_gpu(measured_, {});
  if (const auto other = engine.all_reduce_on.find(gpu.name); other != engine.all_reduce_on.end())
    engine_.all_reduce = other->second;
}

ServingKernels::TableSet& ServingKernels::table_set(const std::string& op, const std::string& words,
                                                    const KernelFormats& formats) const {
  // Each format has its own entry: two that are measured as one may still move different bytes.
  const auto [place, fresh] =
      table_sets_.try_emplace(op + words + "/" + name(formats.weights) + "/" + name(formats.kv));
  TableSet& table_set = place->second;
  if (!fresh || measured_.empty()) return table_set;
  std::vector<FittedTable>& found = table_set.tables;
  const KernelFormats measured{measured_as(formats.weights), formats.kv};
  const RoofRates measured_on = roof_rates(table_gpu_, op, measured);
  const bool sums = op == "all_reduce";
  const auto special = engine_.kernels_of.find(op + words);
  for (const std::string& engine :
       special == engine_.kernels_of.end() ? engine_.kernels : special->second) {
    if (sums && engine != engine_.all_reduce) continue;
    const std::string name = op + words + "-" + engine;
    // An engine's own kernels of a similar GPU are nearer than another engine's of this one.
    const bool own = engine == engine_.kernels.front();
    const std::string gpu = own ? gpu_of_serving_table(measured_, name) : measured_;
    if (const auto table = read_serving_table(gpu, name))
      found.emplace_back(
          *table, measured,
          gpu == measured_ ? measured_on : roof_rates(read_gpu(gpu, {}), op, measured));
  }
  if (const auto table = training_rows(measured_, op, formats.weights))
    found.emplace_back(*table, measured, measured_on);
  return table_set;
}

KernelTime ServingKernels::price(const std::string& op, const std::string& words,
                                 const KernelFormats& formats,
                                 std::span<const std::int64_t> sizes) const {
  TableSet& all = table_set(op, words, formats);
  Sizes key{};
  std::copy(sizes.begin(), sizes.end(), key.begin());
  const auto [known, fresh] = all.known.try_emplace(key);
  if (fresh) known->second = fresh_price(all, op, formats, sizes);
  return known->second;
}

// Returns the first of the tables that reach nearest to the shape. Another engine's kernels differ:
// they are proxies if they are nearer to it by half an octave.
const FittedTable* ServingKernels::nearest(const TableSet& table_set,
                                           std::span<const std::int64_t> sizes) {
  const FittedTable* nearest = nullptr;
  double least = 0.0;
  for (const FittedTable& table : table_set.tables) {
    const double outside = table.outside(sizes);
    if (!nearest || outside + another_engine < least) nearest = &table, least = outside;
  }
  return nearest;
}

KernelTime ServingKernels::fresh_price(const TableSet& table_set, const std::string& op,
                                       const KernelFormats& formats,
                                       std::span<const std::int64_t> sizes,
                                       std::optional<KernelFormats> priced) const {
  const RoofRates own = roof_rates(gpu_, op, formats);
  const FittedTable* nearest = ServingKernels::nearest(table_set, sizes);
  if (!nearest) {
    const Roofline assumed;
    const KernelWork work = kernel_work(op, formats, sizes);
    const Seconds memory = work.bytes / (assumed.memory_efficiency * own.bandwidth);
    FlopPerSecond rate = assumed.compute_efficiency * own.peak;
    if (facts(formats.weights).weight_only && (op == "gemm" || is_of_experts(op)))
      if (const auto most = engine_.weight_only_rate.find(name(gpu_.architecture));
          most != engine_.weight_only_rate.end())
        rate = std::min(rate, most->second);
    const Seconds compute = work.flop / rate;
    return {std::max(memory, compute) + assumed.launch, Tag::default_value};
  }
  const std::string& title = nearest->title();
  if (std::find(used_.begin(), used_.end(), title) == used_.end()) used_.push_back(title);
  const FittedTable::Time found =
      priced ? nearest->at(sizes, own, *priced) : nearest->at(sizes, own);
  const bool is_own = nearest->gpu() == gpu_.name && nearest->engine() == engine_.kernels.front();
  return {found.time, tag_of(found, is_own)};
}

KernelTime ServingKernels::cold(const KernelTime& hot, Bytes bytes, Seconds least) const {
  const Seconds floor = cold_traffic * (bytes / gpu_.memory_bandwidth) + least;
  return hot.time < floor ? KernelTime{floor, std::max(hot.tag, Tag::interpolated)} : hot;
}

namespace {

KernelTime behind_writing(const KernelTime& product, Bytes written, BytesPerSecond bandwidth) {
  return {product.time + written_out * (written / bandwidth) + least_product, Tag::default_value};
}

}  // namespace

KernelTime ServingKernels::gemm(Dtype format, std::int64_t n, std::int64_t k,
                                std::int64_t m) const {
  const std::array<std::int64_t, 3> sizes{n, k, m};
  const Bytes moved = kernel_work("gemm", {format, Dtype::bf16}, sizes).bytes;
  if (static_cast<double>(m) > facts(format).fused_rows)
    return behind_writing(gemm(Dtype::bf16, n, k, m), moved - kernel_work("gemm", {}, sizes).bytes,
                          gpu_.memory_bandwidth);
  const KernelFormats formats{format, Dtype::bf16};
  const std::string words = "-" + name(measured_as(format));
  KernelTime time = price("gemm", words, formats, sizes);
  if (m < padded_rows) {
    const KernelTime padded =
        price("gemm", words, formats, std::array<std::int64_t, 3>{n, k, padded_rows});
    if (padded.time < time.time) time = {padded.time, std::max(padded.tag, Tag::interpolated)};
  }
  time = cold(time, moved, least_product);
  // The measured kernels are not those of this format's weights.
  if (facts(format).weight_only && measured_as(format) != format) time.tag = Tag::default_value;
  return time;
}

Seconds ServingKernels::cold_attention(Bytes read) const {
  return cold_traffic * (read / gpu_.memory_bandwidth) + least_attention;
}

KernelTime ServingKernels::decode_attention(Dtype kv, std::span<const std::int64_t> sizes) const {
  const KernelFormats formats{Dtype::bf16, kv};
  return cold(price("decode_attention", "-kv-" + name(cache_measured_as(kv)), formats, sizes),
              kernel_work("decode_attention", formats, sizes).bytes, least_attention);
}

std::optional<ServingTable> ServingKernels::decode_table(
    Dtype kv, std::span<const std::int64_t> sizes) const {
  const std::string op = "decode_attention", words = "-kv-" + name(cache_measured_as(kv));
  const FittedTable* of = nearest(table_set(op, words, {Dtype::bf16, kv}), sizes);
  return of ? read_serving_table(measured_, op + words + "-" + of->engine()) : std::nullopt;
}

KernelTime ServingKernels::prefill_attention(Dtype kv, std::int64_t heads, std::int64_t kv_heads,
                                             std::int64_t head_dim, std::int64_t tokens,
                                             std::int64_t cached) const {
  const std::array<std::int64_t, 5> whole{1, heads, kv_heads, head_dim, tokens + cached};
  const KernelTime prompt =
      price("prefill_attention", "-kv-" + name(cache_measured_as(kv)), {Dtype::bf16, kv}, whole);
  if (cached == 0) return prompt;
  const auto q = static_cast<double>(tokens), p = static_cast<double>(cached);
  // The share of the new tokens' rows in the triangle of queries and keys.
  const double share = q * (q + 2.0 * p) / ((q + p) * (q + p));
  const Bytes read =
      Bytes{2.0 * element_bytes(kv) * static_cast<double>(kv_heads * head_dim) * (q + p)};
  return cold({share * prompt.time, std::max(prompt.tag, Tag::interpolated)}, read,
              least_attention);
}

KernelTime ServingKernels::latent_decode(Dtype kv, std::int64_t requests, std::int64_t heads,
                                         std::int64_t context) const {
  const std::array<std::int64_t, 3> sizes{requests, heads, context};
  const KernelFormats formats{Dtype::bf16, kv};
  return cold(price("latent_decode", "-kv-" + name(cache_measured_as(kv)), formats, sizes),
              kernel_work("latent_decode", formats, sizes).bytes, least_attention);
}

KernelTime ServingKernels::latent_prefill(Dtype kv, std::int64_t heads, std::int64_t tokens,
                                          std::int64_t cached) const {
  const std::array<std::int64_t, 3> whole{1, heads, tokens + cached};
  const KernelTime prompt =
      price("latent_prefill", "-kv-" + name(cache_measured_as(kv)), {Dtype::bf16, kv}, whole);
  const auto q = static_cast<double>(tokens), p = static_cast<double>(cached);
  const double share = q * (q + 2.0 * p) / ((q + p) * (q + p));
  if (cached == 0) return prompt;
  return {std::max(share * prompt.time, least_attention), std::max(prompt.tag, Tag::interpolated)};
}

KernelTime ServingKernels::latent_products(std::int64_t heads, std::int64_t tokens) const {
  const std::array<std::int64_t, 2> sizes{heads, tokens};
  const KernelTime before = price("latent_pre", "", {}, sizes);
  const KernelTime after = price("latent_post", "", {}, sizes);
  return {before.time + after.time, std::max(before.tag, after.tag)};
}

KernelTime ServingKernels::experts(Dtype format, std::span<const std::int64_t> sizes) const {
  const KernelFormats formats{format, Dtype::bf16};
  const Bytes moved = kernel_work("experts", formats, sizes).bytes;
  if (std::isfinite(facts(format).fused_rows))
    return behind_writing(experts(Dtype::bf16, sizes),
                          moved - kernel_work("experts", {}, sizes).bytes, gpu_.memory_bandwidth);
  // Tables of int4 are of kernels that reach a third of what Marlin does (nvfp4a16).
  const Dtype measured = format == Dtype::nvfp4a16 ? format : measured_as(format);
  return cold(price("experts", "-" + name(measured), formats, sizes), moved, least_product);
}

// FlashInfer's benchmark of DeepSeek's experts on B300 (flashinfer pull request 5301,
// bench_moe_deepseek.py, 32 of 256 experts): in mxfp8 they take 1.03 (one token) to 1.5 times (from
// 32 on) as long as in nvfp4, in bf16 1.4 to 2.6 times. What the further bytes take is 0.93 of the
// data sheet's bandwidth from 8 tokens on.
KernelTime ServingKernels::trtllm_gen_experts(Dtype format,
                                              std::span<const std::int64_t> sizes) const {
  constexpr double of_bandwidth = 0.93, of_peak = 0.7;
  const KernelFormats measured{Dtype::nvfp4, Dtype::bf16};
  const KernelFormats formats{format, Dtype::bf16};
  const KernelWork moved = kernel_work("experts", formats, sizes);
  const TableSet& tables = tables_of_trtllm_gen();
  if (tables.tables.empty()) return experts(format, sizes);
  const auto roof = [&](const KernelFormats& of) {
    const KernelWork work = kernel_work("experts", of, sizes);
    const FlopPerSecond peak = gpu_.*facts(of.weights).peak;
    return std::max(work.bytes / (of_bandwidth * gpu_.memory_bandwidth),
                    peak > FlopPerSecond{} ? work.flop / (of_peak * peak) : Seconds{});
  };
  KernelTime time = fresh_price(tables, "experts", measured, sizes);
  if (format != Dtype::nvfp4)
    time = {time.time + roof(formats) - roof(measured), std::max(time.tag, Tag::interpolated)};
  return cold(time, moved.bytes, least_product);
}

KernelTime ServingKernels::dispatched_experts(Dtype format, std::span<const std::int64_t> sizes,
                                              bool in_graph) const {
  const KernelFormats formats{format, Dtype::bf16};
  const auto tables_of = [&](const std::string& op, Dtype measured) -> const TableSet& {
    return table_set(op, "-" + name(measured), {measured, Dtype::bf16});
  };
  std::string op = "dispatched_experts";
  Dtype measured = measured_as(format);
  if (tables_of(op, measured).tables.empty() && !lacks_units(table_gpu_, Dtype::fp8_block))
    measured = Dtype::fp8_block;
  if (!in_graph && !tables_of("dispatched_prompts", measured).tables.empty())
    op = "dispatched_prompts";
  KernelTime time = fresh_price(tables_of(op, measured), op, formats, sizes, formats);
  if (measured != format) time.tag = Tag::default_value;
  return cold(time, kernel_work(op, formats, sizes).bytes, least_product);
}

namespace {

// The fewest of the tables of state spaces: those of all of Nemotron 3 Nano.
constexpr std::int64_t least_state_space_heads = 64;

// Heads of the tables with as large states: 128 x 128, of a state space 64 x 128.
std::int64_t table_heads(const Scan& scan, double values) {
  const double states = static_cast<double>(scan.heads * scan.keys * scan.values);
  return std::max<std::int64_t>(1, std::llround(states / (128.0 * values)));
}

}  // namespace

ServingKernels::Priced ServingKernels::scan(const Scan& scan, std::int64_t prompts,
                                            std::int64_t tokens) const {
  if (scan.kind == ScanKind::selective) {
    const ScanShape shape{scan, prompts, tokens};
    return {prompt_scan_time(gpu_, shape), {scan_flop(shape, false), scan_bytes(shape, false)}};
  }
  const bool state_space = scan.kind == ScanKind::state_space;
  const std::string op = state_space                                 ? "state_space"
                         : scan.kind == ScanKind::channel_delta_rule ? "channel_delta_rule"
                                                                     : "delta_rule";
  std::array<std::int64_t, 3> sizes{table_heads(scan, state_space ? 64.0 : 128.0), prompts, tokens};
  const KernelWork work = kernel_work(op, {}, sizes);
  // Heads of all sequences fill waves alike (scan_time.hpp): fewer than a table's stand as those of
  // fewer sequences, and one wave is as long as a full one.
  if (state_space && sizes[0] < least_state_space_heads) {
    sizes[1] = (sizes[0] * prompts + least_state_space_heads - 1) / least_state_space_heads;
    sizes[0] = least_state_space_heads;
  }
  if (scan.kind == ScanKind::fixed_decay || table_set(op, "", {}).tables.empty())
    return {prompt_scan_time(gpu_, {scan, prompts, tokens}), work};
  return {price(op, "", {}, sizes), work};
}

ServingKernels::Priced ServingKernels::state_step(const Scan& scan, Dtype states,
                                                  std::int64_t requests) const {
  const std::string op =
      scan.kind == ScanKind::channel_delta_rule ? "channel_delta_rule_step" : "delta_rule_step";
  const Dtype measured = engine_.states ? engine_.states->format : Dtype::fp32;
  const double own = element_bytes(states) / element_bytes(measured);
  const std::array<std::int64_t, 2> sizes{
      std::max<std::int64_t>(1, std::llround(own * static_cast<double>(table_heads(scan, 128.0)))),
      requests};
  const KernelWork work = kernel_work(op, {}, sizes);
  KernelTime time = price(op, "", {}, sizes);
  if (scan.kind != ScanKind::delta_rule && scan.kind != ScanKind::channel_delta_rule)
    time.tag = std::max(time.tag, Tag::interpolated);
  return {time, work};
}

// Behind more tokens than a table has, a module grows as in the table that reaches furthest, and
// beyond that as its work: rows of other batches and lengths say nothing of it.
KernelTime ServingKernels::module_time(const std::string& op, const std::string& words,
                                       const KernelFormats& formats,
                                       std::span<const std::int64_t> sizes) const {
  const std::vector<FittedTable>& tables = table_set(op, words, formats).tables;
  if (tables.empty()) return price(op, words, formats, sizes);
  const std::int64_t tokens = sizes.size() == 7 ? sizes[5] : 0;
  const std::int64_t requests = sizes[4];
  const FittedTable& own = tables.front();
  const FittedTable* far = &own;
  for (const FittedTable& table : tables)
    if (table.reach(requests) > far->reach(requests)) far = &table;
  const auto behind = [&](std::int64_t earlier) {
    Sizes changed{};
    std::copy(sizes.begin(), sizes.end(), changed.begin());
    changed[sizes.size() - 1] = std::min(sizes.back(), tokens + earlier);
    return changed;
  };
  const Sizes near_sizes = behind(own.reach(requests)), far_sizes = behind(far->reach(requests));
  const auto used = [&](const Sizes& of) { return std::span{of}.first(sizes.size()); };
  const RoofRates rates = roof_rates(gpu_, op, formats);
  const auto roof = [&](std::span<const std::int64_t> of) {
    return kernel_roof(op, kernel_work(op, formats, of), rates.peak, rates.bandwidth);
  };
  KernelTime time = price(op, words, formats, used(near_sizes));
  if (near_sizes.at(sizes.size() - 1) == sizes.back()) return time;
  double growth = 1.0;
  const std::int64_t furthest = far->reach(requests);
  for (std::int64_t earlier = std::max<std::int64_t>(1, own.reach(requests)); earlier < furthest;
       earlier *= 2)
    growth = std::max(growth, far->at(used(behind(std::min(2 * earlier, furthest))), rates).time /
                                  far->at(used(near_sizes), rates).time);
  const double beyond = roof(sizes) / roof(used(far_sizes));
  return {growth * beyond * time.time, std::max(time.tag, Tag::interpolated)};
}

ServingKernels::Priced ServingKernels::attention_module(
    Dtype weights, Dtype kv, std::int64_t hidden, const AttentionModule& module, std::int64_t heads,
    std::int64_t requests, std::int64_t tokens, std::int64_t context) const {
  const bool decodes = tokens == 1;
  const std::string& op = decodes ? module.decode : module.prefill;
  if (module.most_context > 0) context = std::min(context, module.most_context + tokens);
  std::array<std::int64_t, 7> sizes{hidden, module.q_rank, module.index_heads, heads, requests};
  if (decodes) {
    sizes[5] = context;
  } else {
    sizes[5] = tokens;
    sizes[6] = context;
  }
  const std::span<const std::int64_t> used{sizes.data(), decodes ? 6u : 7u};
  // Compressed attention has entries in fp8 alone.
  const Dtype cached = module.values > 0.0 ? cache_measured_as(kv) : Dtype::fp8;
  const KernelFormats formats{weights, module.values > 0.0 ? kv : cached};
  // Modules were measured with weights in bf16, in fp8 blocks and, by some engines, in nvfp4.
  const auto words_of = [&](Dtype of) { return "-" + name(of) + "-kv-" + name(cached); };
  const auto is_own = [&](Dtype of) {
    const std::vector<FittedTable>& tables = table_set(op, words_of(of), {of, cached}).tables;
    return !tables.empty() && tables.front().engine() == engine_.kernels.front();
  };
  // An engine's own kernels in bf16 say more of it than another one's in fp8.
  const bool is_wide =
      element_bytes(weights) > 1.5 || (!is_own(Dtype::fp8_block) && is_own(Dtype::bf16));
  const Dtype measured = is_wide ? Dtype::bf16 : Dtype::fp8_block;
  const KernelWork moved = kernel_work(op, formats, used);
  KernelTime time = module_time(op, words_of(measured), {measured, cached}, used);
  // Rows of modules scatter by more than they grow. What takes longer than up to eight times as
  // many tokens would, by rows of its own table, is taken to be as fast as those.
  for (const std::int64_t times : {2, 4, 8}) {
    std::array<std::int64_t, 7> more = sizes;
    more[5] *= times;
    if (!decodes) more[6] += more[5] - sizes[5];  // Behind as many earlier tokens.
    const std::span<const std::int64_t> longer{more.data(), used.size()};
    const KernelTime bound = module_time(op, words_of(measured), {measured, cached}, longer);
    if (bound.time < time.time) time = {bound.time, std::max(bound.tag, Tag::interpolated)};
  }
  return {cold(time, moved.bytes, least_attention), moved};
}

ServingKernels::Priced ServingKernels::streams(std::int64_t hidden, std::int64_t tokens) const {
  const std::array<std::int64_t, 2> sizes{hidden, tokens};
  const KernelTime before = price("streams_pre", "", {}, sizes);
  const KernelTime after = price("streams_post", "", {}, sizes);
  KernelWork work = kernel_work("streams_pre", {}, sizes);
  const KernelWork second = kernel_work("streams_post", {}, sizes);
  work.flop += second.flop;
  work.bytes += second.bytes;
  return {{before.time + after.time, std::max(before.tag, after.tag)}, work};
}

ServingKernels::Priced ServingKernels::convolution(std::int64_t channels, std::int64_t prompts,
                                                   std::int64_t tokens) const {
  const std::array<std::int64_t, 3> sizes{channels, prompts, tokens};
  return {price("convolution", "", {}, sizes), kernel_work("convolution", {}, sizes)};
}

ServingKernels::Priced ServingKernels::convolution_step(std::int64_t channels,
                                                        std::int64_t requests) const {
  const std::array<std::int64_t, 2> sizes{channels, requests};
  return {price("convolution_step", "", {}, sizes), kernel_work("convolution_step", {}, sizes)};
}

std::optional<KernelTime> ServingKernels::all_reduce(int gpus, std::int64_t elements) const {
  const std::array<std::int64_t, 2> sizes{gpus, elements};
  const std::vector<FittedTable>& tables = table_set("all_reduce", "", {}).tables;
  // More GPUs than were measured together have another topology, not a longer row, unless those of
  // a sister GPU are connected in the same way.
  const std::array<std::int64_t, 2> group{gpus, 1 << 20};
  if (tables.empty()) return std::nullopt;
  if (tables.front().outside(group) == 0.0) return price("all_reduce", "", {}, sizes);
  const TableSet& larger = tables_of_larger_groups();
  if (larger.tables.empty() || larger.tables.front().outside(group) > 0.0) return std::nullopt;
  return fresh_price(larger, "all_reduce", {}, sizes);
}

const ServingKernels::TableSet& ServingKernels::tables_of_trtllm_gen() const {
  const auto [place, fresh] = table_sets_.try_emplace("TRTLLM-gen experts");
  if (!fresh || measured_.empty()) return place->second;
  const KernelFormats formats{Dtype::nvfp4, Dtype::bf16};
  if (const auto table = read_serving_table(measured_, "experts-nvfp4-vllm"))
    place->second.tables.emplace_back(*table, formats, roof_rates(table_gpu_, "experts", formats));
  return place->second;
}

const ServingKernels::TableSet& ServingKernels::tables_of_larger_groups() const {
  const auto [place, fresh] = table_sets_.try_emplace("all_reduce of larger groups");
  if (!fresh) return place->second;
  const std::string name = "all_reduce-" + engine_.all_reduce;
  const std::string sister = gpu_of_larger_groups(measured_, name);
  if (sister.empty()) return place->second;
  if (const auto table = read_serving_table(sister, name))
    place->second.tables.emplace_back(*table, KernelFormats{},
                                      roof_rates(read_gpu(sister, {}), "all_reduce", {}));
  return place->second;
}

}  // namespace orrery
