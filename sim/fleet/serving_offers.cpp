#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/fleet/fleet_text.hpp"
#include "sim/serving/serving_json.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

// The largest rate of one replica within the limits; 0: none.
double capacity_of(const PricedServing& priced, const ServingRequirement& asked) {
  ServingLoad load = asked.rules;
  load.traffic = asked.traffic;
  load.traffic.arrivals = Arrivals::poisson;
  load.traffic.stationary = true;
  load.part = MeasuredPart::steady;
  load.finds_length = true;
  const auto serve = [&](const ServingLoad& of) { return serve_requests(priced, of, asked.at); };
  return largest_rate(serve, load, 1).rate;
}

PricedServing replica_of(const ServingRequirement& asked, const System& system, int tp) {
  DeploymentRequest request = asked.deployment;
  request.tp = tp;
  ServingSetup setup{asked.model, system, asked.engine, {}};
  setup.deployment = make_deployment(asked.model, system, asked.engine, request, tp, asked.at);
  return PricedServing{std::move(setup)};
}

// The tensor-parallel degree with the largest rate a GPU. Throws the first degree's error if none
// fits.
struct SizedReplica {
  int tp = 0;
  double capacity = 0.0;
};
SizedReplica best_replica(const ServingRequirement& asked, const System& system) {
  SizedReplica best;
  std::optional<Error> refused;
  for (int tp = 1; tp <= std::min(system.gpus_per_node, 8); tp *= 2) {
    if (asked.deployment.tp && *asked.deployment.tp != tp) continue;
    try {
      const double capacity = capacity_of(replica_of(asked, system, tp), asked);
      if (capacity / tp > best.capacity / std::max(1, best.tp)) best = {tp, capacity};
    } catch (const Error& error) {
      if (!refused) refused = error;
    }
  }
  if (best.tp == 0 && refused) throw Error{*refused};
  if (best.tp == 0)
    fail_infeasible(asked.at / "slo", "is met by no replica of up to eight GPUs at any rate",
                    "raise the limits");
  return best;
}

ServingOffer offer_of(const ServingRequirement& asked, const System& system,
                      const std::string& economics) {
  ServingOffer offer;
  offer.system = system;
  offer.economics = read_economics(system, economics);
  try {
    const SizedReplica replica = best_replica(asked, system);
    offer.tp = replica.tp;
    offer.capacity = replica.capacity;
    const PricedServing priced = replica_of(asked, system, replica.tp);
    ScaledLoad load;
    load.curve = asked.curve;
    load.start = start_time(priced.setup, asked.start, asked.at / "start");
    const RequestList requests = requests_of_curve(asked.curve, false, asked.traffic);
    const double share = asked.rules.replay.slo->share;
    const auto run_of = [&](ScalerRequest scaler, int replicas) {
      load.scaler = scaler;
      load.initial = replicas;
      return serve_scaled(priced, load, requests, asked.rules, asked.at);
    };
    // A fleet for the peak; bursts may ask for a few more.
    int replicas = static_cast<int>(
        std::ceil(asked.curve.most(Seconds{}, asked.curve.end) / replica.capacity - 1e-9));
    replicas = std::max(1, replicas);
    offer.fixed = run_of({}, replicas);
    for (int more = 0; more < 8 && offer.fixed->attainment() < share; ++more) {
      replicas += std::max(1, replicas / 20);
      offer.fixed = run_of({}, replicas);
    }
    for (ScalerRequest scaler : asked.scalers) {
      scaler.most = std::min(scaler.most, 2 * replicas);
      if (scaler.law == ScalingLaw::oracle && scaler.oracle.capacity == 0.0)
        scaler.oracle.capacity = replica.capacity;
      offer.scaled.push_back(run_of(scaler, std::clamp(replicas, scaler.least, scaler.most)));
    }
    offer.replicas = replicas;
  } catch (const Error& error) {
    offer.refusal = error.what();
  }
  return offer;
}

// The formats in which all machines serve; the first that does says them.
std::string formats_of(const std::vector<ServingOffer>& offers) {
  for (const ServingOffer& offer : offers)
    if (offer.fixed) {
      const Deployment& plan = offer.fixed->setup.deployment;
      return "weights " + name(plan.weights) + ", kv " + name(plan.kv);
    }
  return "";
}

std::string money(Range range) {
  return range.known()
             ? "$" + grouped(std::llround(range.low)) + " .. " + grouped(std::llround(range.high))
             : "-";
}

}  // namespace

std::optional<std::size_t> ServingOffer::best(double share) const {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < scaled.size(); ++i)
    if (scaled[i].scaler.law != ScalingLaw::oracle && scaled[i].attainment() >= share &&
        (!best || scaled[i].gpu_hours() < scaled[*best].gpu_hours()))
      best = i;
  return best;
}

Range ServingOffer::to_buy() const {
  const auto gpus = static_cast<double>(replicas) * tp;
  const double nodes = std::ceil(gpus / system.sold_together());
  return economics.server_usd_per_gpu * (nodes * system.sold_together());
}

std::vector<ServingOffer> serving_offers(const ServingRequirement& asked,
                                         const std::vector<System>& systems,
                                         const std::string& economics) {
  std::vector<ServingOffer> offers;
  for (const System& system : systems) offers.push_back(offer_of(asked, system, economics));
  // Those without a price come after those with one, and those that are refused last.
  const auto cost = [](const ServingOffer& offer) {
    if (!offer.fixed) return std::pair{2, 0.0};
    const Range rent = offer.economics.rent_usd_per_gpu_hour * offer.fixed->gpu_hours();
    return rent.known() ? std::pair{0, rent.low + rent.high}
                        : std::pair{1, offer.fixed->gpu_hours()};
  };
  std::stable_sort(offers.begin(), offers.end(),
                   [&](const ServingOffer& a, const ServingOffer& b) { return cost(a) < cost(b); });
  return offers;
}

std::string serving_offers_text(const ServingRequirement& asked,
                                const std::vector<ServingOffer>& offers) {
  const double share = asked.rules.replay.slo->share;
  std::string text =
      wrapped_words("",
                    asked.model.name + " by " + asked.engine.name + " for " +
                        grouped(std::llround(asked.curve.requests())) + " requests of " +
                        length_distribution_text(asked.traffic.prompt) + " tokens, answered with " +
                        length_distribution_text(asked.traffic.output) + ", over " +
                        fixed(asked.curve.end.si() / 3600.0, 2) + " h; " + percent(share) +
                        " within " + slo_text(*asked.rules.replay.slo) + "; router " +
                        name(asked.rules.replay.routing) + "; " + formats_of(offers),
                    text_columns);
  Table table{{{"system", Align::left},
               {"tp"},
               {"GPUs"},
               {"fleet", Align::left},
               {"GPU h"},
               {"in limits"},
               {"rent"},
               {"to buy"}}};
  for (const ServingOffer& offer : offers) {
    if (!offer.fixed) continue;
    const auto row = [&](const ScaledRun& run, bool is_first) {
      const bool is_fixed = run.scaler.law == ScalingLaw::fixed;
      const int gpus = is_fixed ? offer.replicas * offer.tp : run.most_ready() * offer.tp;
      table.add_row({is_first ? offer.system.name : "", is_first ? std::to_string(offer.tp) : "",
                     grouped(gpus), is_fixed ? "fixed" : scaler_text(run.scaler),
                     fixed(run.gpu_hours(), 2), percent(run.attainment()),
                     money(offer.economics.rent_usd_per_gpu_hour * run.gpu_hours()),
                     is_fixed ? money(offer.to_buy()) : ""});
    };
    row(*offer.fixed, true);
    for (const ScaledRun& run : offer.scaled) row(run, false);
  }
  text += "\n" + table.text();
  for (const ServingOffer& offer : offers)
    if (!offer.refusal.empty()) text += offer.system.name + ": " + offer.refusal + "\n";
  const ServingOffer& first = offers.front();
  const auto scaled = first.best(share);
  const double hours = first.fixed ? first.fixed->gpu_hours() : 0.0;
  if (!first.fixed) return text;
  if (scaled && first.scaled[*scaled].gpu_hours() < hours)
    return text +
           wrapped_words("",
                         "On " + first.system.name + " scaling by " +
                             scaler_text(first.scaled[*scaled].scaler) + " saves " +
                             percent(1.0 - first.scaled[*scaled].gpu_hours() / hours) +
                             " of the GPU hours and keeps " + percent(share) + " within the limits",
                         text_columns);
  return text + "On " + first.system.name +
         " none of these policies but the oracle saves GPU hours and keeps the\nlimits\n";
}

std::string serving_offers_json(const ServingRequirement& asked,
                                const std::vector<ServingOffer>& offers) {
  const auto range = [](Range of) {
    return of.known() ? Json{{"low", rounded(of.low)}, {"high", rounded(of.high)}} : Json(nullptr);
  };
  Json json{{"schema", "orrery.serving-purchase/1"},
            {"model", asked.model.name},
            {"engine", asked.engine.name},
            {"requests", rounded(asked.curve.requests())},
            {"duration_s", rounded(asked.curve.end.si())},
            {"slo", slo_text(*asked.rules.replay.slo)},
            {"router", name(asked.rules.replay.routing)}};
  json["offers"] = Json::array();
  for (const ServingOffer& offer : offers) {
    Json one{{"system", offer.system.name}};
    if (!offer.fixed) {
      one["refused"] = offer.refusal;
      json["offers"].push_back(one);
      continue;
    }
    one["tp"] = offer.tp;
    one["weights"] = name(offer.fixed->setup.deployment.weights);
    one["kv"] = name(offer.fixed->setup.deployment.kv);
    one["replicas"] = offer.replicas;
    one["gpus"] = offer.replicas * offer.tp;
    one["capacity_requests_per_s"] = rounded(offer.capacity);
    one["to_buy_usd"] = range(offer.to_buy());
    const auto fleet = [&](const ScaledRun& run) {
      return Json{{"policy", scaler_text(run.scaler)},
                  {"gpu_hours", rounded(run.gpu_hours())},
                  {"attainment", rounded(run.attainment())},
                  {"most_gpus", run.most_ready() * offer.tp},
                  {"rent_usd", range(offer.economics.rent_usd_per_gpu_hour * run.gpu_hours())}};
    };
    one["fleets"] = Json::array({fleet(*offer.fixed)});
    for (const ScaledRun& run : offer.scaled) one["fleets"].push_back(fleet(run));
    json["offers"].push_back(one);
  }
  return json.dump(2) + "\n";
}

}  // namespace orrery
