#include "sim/profile/kernel_pricer.hpp"

#include <algorithm>
#include <map>

#include "sim/kernels/kernel_error.hpp"
#include "sim/kernels/table_errors.hpp"
#include "sim/layers/op_work.hpp"
#include "sim/layers/price_kind.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/moe/expert_exchange.hpp"
#include "sim/profile/kernel_ops.hpp"
#include "sim/profile/near_rows.hpp"
#include "sim/serving/left_out_rows.hpp"

namespace orrery {
namespace {

using Of = KernelKind::Of;

}  // namespace

// What all answers are made from.
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
  // Made when first asked for: a sweep asks often.
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
  const GroupShape group = group_on(system, gpus, nodes);
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
    const KernelWork work =
        kernel_work("decode_attention", {WeightFormat::bf16, q.kv}, decode_sizes(q));
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
std::optional<WeightFormat> served_as(const KernelQuestion& q) {
  if (q.kind->of != Of::gemm || q.gemm_pass() != GemmPass::forward) return std::nullopt;
  switch (q.dtype) {
    case Dtype::bf16:
      return WeightFormat::bf16;
    case Dtype::fp16:
      return WeightFormat::fp16;
    case Dtype::fp8:
      return WeightFormat::fp8;
    case Dtype::nvfp4:
      return WeightFormat::nvfp4;
    default:
      return std::nullopt;
  }
}

constexpr std::size_t most_rows = 5;

}  // namespace

// By itself, in a benchmark's clocks. Nothing of a kernel that no benchmark has by itself.
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
    if (!table() || !table()->attention) return;  // Of windows no row was measured.
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
  if (const auto weights = served_as(q)) {
    const KernelTime time = parts_->serving.gemm(*weights, q.at("n"), q.at("k"), q.at("m"));
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

}  // namespace orrery
