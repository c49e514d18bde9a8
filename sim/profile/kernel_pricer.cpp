#include "sim/profile/kernel_pricer.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>

#include "sim/core/value_list.hpp"
#include "sim/kernels/kernel_error.hpp"
#include "sim/layers/op.hpp"
#include "sim/layers/op_work.hpp"
#include "sim/layers/stage_prices.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/moe/expert_exchange.hpp"
#include "sim/serving/fitted_table.hpp"

namespace orrery {
namespace {

using Of = KernelKind::Of;

}  // namespace

// Inputs that all answers share.
struct KernelPricer::Parts {
  Parts(const System& on, const Software& by, const ServingEngine& serves)
      : system{on},
        software{by},
        engine{serves},
        tables{kernel_tables_of(on)},
        collectives{on},
        serving{on.gpu, serves} {}

  const KernelTables* table() const { return tables ? &*tables : nullptr; }
  const Gpu& gpu() const { return system.gpu; }

  PriceErrors errors(const KernelQuestion& q, bool in_training) const {
    const StepClass step{q.kind->of == Of::experts || is_exchange(q), is_narrow(q.dtype)};
    const auto [known, fresh] = known_errors.try_emplace({q.dtype, step.experts});
    if (fresh)
      known->second = with_tables(read_price_errors(gpu().name, q.dtype, step), table(), q.dtype);
    PriceErrors errors = known->second;
    if (!in_training) errors.training = 0.0;
    return errors;
  }
  const KernelModel& kernels(Dtype dtype) const {
    return known_kernels.try_emplace(dtype, gpu(), dtype, table()).first->second;
  }
  const GemmTime& gemm(Dtype dtype) const {
    return known_gemm.try_emplace(dtype, gpu(), dtype, table()).first->second;
  }
  const AttentionTime& attention() const {
    if (!known_attention) known_attention.emplace(gpu(), table());
    return *known_attention;
  }

  std::optional<KernelTime> alone(const KernelQuestion& q, const Op& op) const;
  void add_near_rows(KernelAnswer& answer, const Op& op) const;
  OperationPrice blank(const KernelQuestion& q, const KernelRoofs& roofs) const {
    OperationPrice price;
    price.name = q.kind->name;
    price.kind = family_of(q);
    price.sizes = sizes_text(q);
    price.roofs = roofs;
    return price;
  }

  System system;
  Software software;
  ServingEngine engine;
  std::optional<KernelTables> tables;
  CollectiveTime collectives;
  ServingKernels serving;
  // Made on first use and kept, as a sweep uses it often.
  mutable std::map<std::pair<Dtype, bool>, PriceErrors> known_errors;
  mutable std::map<Dtype, KernelModel> known_kernels;
  mutable std::map<Dtype, GemmTime> known_gemm;
  mutable std::optional<AttentionTime> known_attention;
};

KernelPricer::KernelPricer(const System& system, const Software& software,
                           const ServingEngine& engine)
    : parts_{std::make_unique<Parts>(system, software, engine)} {}
KernelPricer::~KernelPricer() = default;

const System& KernelPricer::system() const { return parts_->system; }
const Software& KernelPricer::software() const { return parts_->software; }
const ServingEngine& KernelPricer::engine() const { return parts_->engine; }

namespace {

CollectiveCost exchange_of(const KernelQuestion& q, const CollectiveTime& collectives) {
  const System& system = collectives.system();
  const auto gpus = static_cast<int>(q.at("gpus"));
  if (gpus > (system.max_gpus > 0 ? system.max_gpus : 1 << 20))
    fail_infeasible({"", "--gpus"}, system.name + " has not so many", "write fewer");
  const std::int64_t experts = q.at("experts"), per_token = q.at("top-k");
  if (experts % gpus != 0)
    fail_infeasible({"", "--experts"}, "are not divisible by the GPUs", "give each as many");
  if (per_token > experts)
    fail_input({"", "--top-k"}, "a token visits more experts than there are", "write fewer");
  const int nodes = (gpus + system.gpus_per_node - 1) / system.gpus_per_node;
  const GroupShape group = group_on(filled_evenly(system, gpus), gpus, nodes);
  if (group.domains * group.per_domain != gpus)
    fail_infeasible({"", "--gpus"},
                    std::to_string(gpus) + " GPUs do not spread evenly over NVLink domains of " +
                        std::to_string(system.nvlink_domain),
                    "write a multiple of " + std::to_string(system.nvlink_domain));
  Experts router;
  router.count = experts;
  router.per_token = per_token;
  const ExchangeShape shape{.group = group,
                            .hidden = q.at("hidden"),
                            .experts = experts,
                            .top_k = per_token,
                            .dispatched = is_wide(q.dtype) ? q.dtype : Dtype::bf16};
  const ExchangeLoad load = uniform_exchange(router, gpus, std::max(1, group.per_domain),
                                             static_cast<double>(q.at("tokens")));
  const ExchangeCost both = ExpertExchange{collectives}(q.dispatcher, shape, load);
  return q.kind->of == Of::dispatch ? both.dispatch : both.combine;
}

}  // namespace

KernelRoofs KernelPricer::roofs(const KernelQuestion& q) const {
  const Gpu& gpu = parts_->gpu();
  if (q.kind->of == Of::decode) {
    const KernelWork work = kernel_work("decode_attention", {Dtype::bf16, q.kv}, decode_sizes(q));
    return {work.flop, work.bytes, gpu.peak_16bit, gpu.memory_bandwidth};
  }
  if (is_exchange(q)) return wire_roofs(exchange_of(q, parts_->collectives), parts_->system);
  const Scenario scenario = bare_scenario(parts_->system, parts_->software, q.dtype);
  const LayerSizes s{scenario};
  const Op op = op_of(q, s);
  const auto format = multiplies_in(op, q.dtype);
  const FlopPerSecond peak =
      format ? gpu.peak(*format, {"", "--dtype"}) : gpu.peak(Dtype::fp32, {"", "--dtype"});
  return {flop_of(q, op, s), traffic(op, q.dtype), peak, gpu.memory_bandwidth};
}

namespace {

// The same product of an engine's layer, whose activations are quantised by another kernel.
bool is_served(const KernelQuestion& q) {
  return q.kind->of == Of::gemm && q.gemm_pass() == GemmPass::forward &&
         format_named(name(q.dtype), FormatUse::weights);
}

constexpr std::size_t most_rows = 5;

}  // namespace

// The kernel in isolation, with a benchmark's clocks; nothing if no benchmark runs it so.
std::optional<KernelTime> KernelPricer::Parts::alone(const KernelQuestion& q, const Op& op) const {
  switch (op.kind) {
    case Op::Kind::gemm:
      return gemm(q.dtype)(op.m, op.n, op.k);
    case Op::Kind::grouped_gemm: {
      const GroupedGemm layer{op.pass, op.n, op.k, op.accumulate};
      const std::vector<GemmProduct> products = products_of(layer, op.rows);
      if (products.size() > 1) return gemm(q.dtype).grouped(layer, products, 1.0);
      return gemm(q.dtype).without_cast(products[0].m, products[0].n, products[0].k);
    }
    case Op::Kind::attention: {
      if (op.backward || op.window > 0 || is_wide(q.dtype)) return std::nullopt;
      const AttentionRow row{op.batch, op.queries, op.heads, op.kv_heads, op.head_dim, Seconds{}};
      return attention().table_time(row);
    }
    case Op::Kind::memory:
      return kernels(q.dtype).memory(op.bytes);
    case Op::Kind::batched_gemm:
    case Op::Kind::scan:
    case Op::Kind::wait:
    case Op::Kind::collective:
      break;
  }
  return std::nullopt;
}

void KernelPricer::Parts::add_near_rows(KernelAnswer& answer, const Op& op) const {
  const Dtype dtype = answer.question.dtype;
  if (op.kind == Op::Kind::gemm) {
    const GemmTable* rows = find_gemm_table(table(), dtype);
    if (!rows) return;
    answer.table = "gemm " + name(rows->dtype) + " of " + rows->measured_on.name;
    answer.nearest = near_rows(gemm(dtype), *rows, {op.m, op.n, op.k}, most_rows);
  } else if (op.kind == Op::Kind::attention && op.window == 0 && !is_wide(dtype)) {
    if (!table() || !table()->attention) return;  // No row with a window was measured.
    answer.table = "attention forward of " + table()->attention->measured_on.name;
    answer.nearest = near_rows(attention(), *table()->attention, op.attention(), most_rows);
  }
}

KernelAnswer KernelPricer::answer(const KernelQuestion& q) const {
  KernelAnswer answer;
  answer.question = q;
  const Gpu& gpu = parts_->gpu();
  OperationPrice price = parts_->blank(q, roofs(q));

  if (is_exchange(q)) {
    const CollectiveCost cost = exchange_of(q, parts_->collectives);
    price.on_network = true;
    price.time = cost.time();
    price.tag = cost.tag;
    answer.parts = {{"over NVLink", cost.scale_up_bytes}, {"over the NIC", cost.network_bytes}};
    set_range(price, PriceKind::exchange, parts_->errors(q, false));
    answer.alone = price;
    return answer;
  }
  if (q.kind->of == Of::decode) {
    const auto sizes = decode_sizes(q);
    const KernelTime time = parts_->serving.decode_attention(q.kv, sizes);
    price.format = "bf16";
    price.time = time.time;
    price.tag = time.tag;
    PriceErrors errors = parts_->errors(q, false);
    if (const auto table = parts_->serving.decode_table(q.kv, sizes)) {
      answer.table = table->title() + " on " + table->gpu;
      answer.nearest = near_rows(*table, sizes, most_rows);
      const auto left_out = summarize_errors(left_out_errors(*table, read_gpu(table->gpu, {})));
      if (left_out)
        for (const Tag tag : {Tag::measured, Tag::interpolated})
          errors.of[static_cast<std::size_t>(PriceKind::attention)][static_cast<std::size_t>(tag)] =
              left_out->p90 / range_deviations;
    }
    set_range(price, PriceKind::attention, errors);
    answer.alone = price;
    return answer;
  }

  const Scenario scenario = bare_scenario(parts_->system, parts_->software, q.dtype);
  const LayerSizes s{scenario};
  const Op op = op_of(q, s);
  const auto format = multiplies_in(op, q.dtype);
  price.format = format ? name(*format) : "fp32";
  answer.parts = parts_of(op, q.dtype);
  if (const auto alone = parts_->alone(q, op)) {
    answer.alone = price;
    answer.alone->time = alone->time;
    answer.alone->tag = alone->tag;
    set_range(*answer.alone, price_kind(op), parts_->errors(q, false));
  }
  const GroupShapes nobody{};
  const PricedOp priced =
      Pricer{parts_->kernels(q.dtype), parts_->collectives, nobody, parts_->software, gpu}.price(
          op);
  answer.training = price;
  answer.training->time = priced.time;
  answer.training->tag = priced.tag;
  set_range(*answer.training, price_kind(op), parts_->errors(q, true));
  parts_->add_near_rows(answer, op);
  if (is_served(q)) {
    const KernelTime time = parts_->serving.gemm(q.dtype, q.at("n"), q.at("k"), q.at("m"));
    answer.served = price;
    answer.served->time = time.time;
    answer.served->tag = time.tag;
    set_range(*answer.served, PriceKind::gemm, parts_->errors(q, false));
  }
  return answer;
}

std::optional<std::int64_t> knee(const KernelPricer& pricer, const KernelQuestion& question,
                                 const std::string& key) {
  const auto is_past = [&](std::int64_t value) {
    KernelQuestion one = question;
    one.sizes[key] = value;
    const KernelRoofs roofs = pricer.roofs(one);
    return roofs.compute_time() >= roofs.memory_time();
  };
  std::int64_t below = 0, above = 1;
  while (!is_past(above)) {
    if (above >= most_size) return std::nullopt;
    below = above;
    above *= 2;
  }
  while (above - below > 1) {
    const std::int64_t middle = below + (above - below) / 2;
    (is_past(middle) ? above : below) = middle;
  }
  return above;
}

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

bool is_exchange(const KernelQuestion& question) {
  return question.kind->of == Of::dispatch || question.kind->of == Of::combine;
}

namespace {

std::int64_t or_else(std::int64_t value, std::int64_t usual) { return value > 0 ? value : usual; }

std::string by(std::initializer_list<std::int64_t> sizes) { return joined(sizes, " x "); }

}  // namespace

std::string sizes_text(const KernelQuestion& question) {
  std::string text;
  if (question.kind->of == Of::gemm)
    return by({question.at("m"), question.at("n"), question.at("k")});
  for (const SizeKey& key : question.kind->sizes) {
    const std::int64_t value = question.at(key.name);
    if (value == 0) continue;
    text += (text.empty() ? "" : ", ") + key.name + " " + std::to_string(value);
  }
  return text;
}

std::string family_of(const KernelQuestion& question) {
  switch (question.kind->of) {
    case Of::gemm:
      return "gemm";
    case Of::experts:
      return "experts";
    case Of::attention:
    case Of::decode:
      return "attention";
    case Of::dispatch:
    case Of::combine:
      return "network";
    default:
      return "vector";
  }
}

Scenario bare_scenario(const System& system, const Software& software, Dtype dtype) {
  Scenario scenario;
  scenario.system = system;
  scenario.software = software;
  scenario.plan.dtype = dtype;
  scenario.plan.seq = 1;
  scenario.model.hidden = scenario.model.heads = scenario.model.kv_heads = 1;
  scenario.model.gated = true;
  return scenario;
}

std::array<std::int64_t, 6> decode_sizes(const KernelQuestion& q) {
  return {q.at("batch"),    q.at("heads"),  or_else(q.at("kv-heads"), q.at("heads")),
          q.at("head-dim"), q.at("window"), q.at("context")};
}

namespace {

AttentionShape attention_shape(const KernelQuestion& q) {
  AttentionShape shape{q.at("batch"),
                       q.at("seq"),
                       q.at("seq"),
                       q.at("heads"),
                       or_else(q.at("kv-heads"), q.at("heads")),
                       q.at("head-dim")};
  const std::int64_t window = q.at("window");
  shape.window = window < shape.seq_kv ? window : 0;
  return shape;
}

Op attention_op(const KernelQuestion& q, const LayerSizes& s) {
  const AttentionShape shape = attention_shape(q);
  Op op;
  op.kind = Op::Kind::attention;
  op.name = "attention";
  op.batch = shape.batch;
  op.queries = op.keys = shape.seq_q;
  op.heads = shape.heads;
  op.kv_heads = shape.kv_heads;
  op.head_dim = shape.head_dim;
  op.window = shape.window;
  op.backward = q.is_backward();
  op.attention_kernel = attention_kernel_of(s.software.attention_library, s.architecture);
  return op;
}

}  // namespace

Op op_of(const KernelQuestion& q, const LayerSizes& s) {
  const bool backward = q.is_backward();
  const auto elements = [&] {
    return static_cast<double>(q.at("tokens")) * static_cast<double>(q.at("hidden"));
  };
  switch (q.kind->of) {
    case Of::gemm:
      return product(s, "gemm", q.gemm_pass(), q.at("m"), q.at("n"), q.at("k"));
    case Of::experts:
      return grouped_gemm("experts", q.gemm_pass(), even_tokens(q.at("tokens"), q.at("experts")),
                          q.at("n"), q.at("k"),
                          q.gemm_pass() == GemmPass::wgrad ? s.software.accumulate_bytes : 0.0);
    case Of::attention:
      return attention_op(q, s);
    case Of::norm:
      return norm_op(s, backward ? "norm_bwd" : "norm", elements(), backward);
    case Of::activation:
      return activation_op(s, backward ? "activation_bwd" : "activation", elements(), backward);
    case Of::rope:
      return rotary_op(s, backward ? "rope_bwd" : "rope", elements(), backward);
    case Of::cast:
      return quantise(s, elements()).front();
    case Of::cross_entropy: {
      const double each =
          backward ? s.software.logit_backward_bytes : s.software.logit_forward_bytes;
      return memory(
          backward ? "cross_entropy_bwd" : "cross_entropy",
          each * static_cast<double>(q.at("tokens")) * static_cast<double>(q.at("vocab")));
    }
    case Of::adam: {
      const auto parameters = static_cast<double>(q.at("parameters"));
      return memory("optimizer",
                    optimizer_traffic(s.software, q.dtype, parameters, parameters).si());
    }
    case Of::copy:
      return memory("copy", 2.0 * static_cast<double>(q.at("bytes")));
    case Of::decode:
    case Of::dispatch:
    case Of::combine:
      break;
  }
  assert(false);
  return {};
}

Flop flop_of(const KernelQuestion& q, const Op& op, const LayerSizes& s) {
  if (q.kind->of == Of::adam) return Flop{adam_flop * static_cast<double>(q.at("parameters"))};
  if (op.kind != Op::Kind::memory) return op.flop();
  return vector_flop(op, s).value_or(Flop{});
}

std::vector<TrafficPart> parts_of(const Op& op, Dtype dtype) {
  const auto part = [](const char* name, double bytes) { return TrafficPart{name, Bytes{bytes}}; };
  if (op.kind == Op::Kind::gemm) {
    const Dtype format = *multiplies_in(op, dtype);
    const auto bytes = [&](std::int64_t m, std::int64_t n, std::int64_t k, bool results) {
      const GemmProduct product{m, n, k};
      return gemm_bytes({&product, 1}, format, results);
    };
    // A product without rows or columns leaves the traffic of the other operand.
    const double a = bytes(op.m, 0, op.k, false), b = bytes(0, op.n, op.k, false);
    return {part("A", a), part("B", b), part("C", bytes(op.m, op.n, op.k, true) - a - b)};
  }
  if (op.kind == Op::Kind::attention) {
    const double times = (op.backward ? 2.0 : 1.0) * unquantised_bytes(dtype) / 2.0;
    return {part(op.backward ? "Q, O and their gradients" : "Q and O",
                 times * attention_bytes(op.attention(), 1.0, 0.0)),
            part(op.backward ? "K, V and their gradients" : "K and V",
                 times * attention_bytes(op.attention(), 0.0, 1.0))};
  }
  return {};
}

}  // namespace orrery
