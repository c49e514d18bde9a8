#include "sim/validation/collective_case.hpp"

#include <cmath>
#include <regex>

#include "sim/core/catalog.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/object_reader.hpp"

namespace orrery {
namespace {

std::vector<ExchangeCase::Row> read_rows(const JsonValue& json, const Gpu& gpu) {
  constexpr std::size_t columns = 4;
  const std::vector<double> numbers = json.number_table(columns);
  std::vector<ExchangeCase::Row> rows;
  for (std::size_t i = 0; i < numbers.size(); i += columns) {
    for (std::size_t j = 1; j < columns; ++j)
      if (!(numbers[i + j] > 0.0))
        fail_input(json.place() / (i / columns), "holds what is not a count or time",
                   "write positive numbers");
    const double multiprocessors = numbers[i];
    if (!(multiprocessors >= 0.0 && multiprocessors <= gpu.multiprocessors) ||
        multiprocessors != std::floor(multiprocessors))
      fail_input(json.place() / (i / columns), "is of multiprocessors that the GPU does not have",
                 "write a whole number from 0 (the kernel's own choice) to " +
                     std::to_string(gpu.multiprocessors));
    rows.push_back({static_cast<int>(multiprocessors), numbers[i + 1], microseconds(numbers[i + 2]),
                    microseconds(numbers[i + 3])});
  }
  if (rows.empty()) json.fail("is empty", "give rows of numbers");
  return rows;
}

}  // namespace

bool is_exchange_case(const JsonValue& entry) {
  return entry.is_object() && entry.has("dispatcher");
}

ExchangeCase read_exchange_case(const JsonValue& entry) {
  entry.allow_only({"id", "source", "system", "dispatcher", "ranks", "nodes", "hidden", "top_k",
                    "experts", "groups", "groups_per_token", "dispatched", "columns", "rows"});
  required_text(entry, "source");
  const auto number = [&](const char* key) { return entry.at(key).integer(1, 1 << 20); };
  ExchangeCase found;
  found.id = entry.at("id").text();
  found.system = read_system(entry.at("system").text(), entry.at("system").place());
  found.dispatcher = choice<ExpertDispatcher>(entry.at("dispatcher"));
  found.nodes = static_cast<int>(number("nodes"));
  found.group = group_on(found.system, static_cast<int>(number("ranks")), found.nodes);
  found.hidden = number("hidden");
  found.experts.count = number("experts");
  found.experts.per_token = number("top_k");
  if (const auto dispatched = entry.find("dispatched"))
    found.dispatched = read_format(*dispatched, FormatUse::products);
  if (entry.has("groups")) {
    found.experts.groups = number("groups");
    found.experts.groups_per_token = number("groups_per_token");
  }
  const std::int64_t open =
      found.experts.count / found.experts.groups * found.experts.groups_per_token;
  if (found.experts.count % found.experts.groups != 0 || found.experts.per_token > open ||
      found.experts.groups_per_token > found.experts.groups)
    entry.fail("the groups do not hold the experts of a token", "write those of the router");
  if (found.experts.count % found.group.ranks != 0)
    entry.at("experts").fail("is not divisible by the ranks", "give every rank as many");
  std::string columns;
  for (const JsonValue& column : entry.at("columns").elements()) columns += column.text() + " ";
  if (columns != "multiprocessors tokens dispatch_us combine_us ")
    entry.at("columns").fail("are not those of an exchange",
                             "write multiprocessors, tokens, dispatch_us, combine_us");
  found.rows = read_rows(entry.at("rows"), found.system.gpu);
  return found;
}

namespace {

std::string word_of(const JsonValue& json, const char* key) {
  const auto found = json.find(key);
  return found ? found->text() : "";
}

bool contains(const JsonValue& rule, const char* key, const std::string& text) {
  const auto part = rule.find(key);
  return !part || text.find(part->text()) != text.npos;
}

// Bandwidth of one GPU, from "8x50 GB/s per node", "32 x 100 Gb/s", "1600 Gb/s per node", "50 GB/s
// per GPU", "CX7 400 Gb/s".
std::optional<BytesPerSecond> rate_in(const JsonValue& json, const std::string& text,
                                      int gpus_per_node) {
  static const std::regex pattern{
      R"((?:^|[^\w.+-])(?:(\d{1,4}) ?x ?)?(\d{1,9}(?:\.\d{1,9})?) ?(GB/s|Gb/s)( per node)?)"
      R"(( per GPU)?)"};
  std::smatch found;
  const bool stated = std::regex_search(text, found, pattern);
  if (!stated && text.find("GB/s") == text.npos && text.find("Gb/s") == text.npos) return {};
  double rate = 0.0;
  if (stated) rate = std::stod(found[2]) * (found[3] == "GB/s" ? 1e9 : 1e9 / 8);
  if (found[1].matched) rate *= std::stod(found[1]);
  // So many NICs are those of a node.
  if (found[4].matched || (found[1].matched && !found[5].matched)) rate /= gpus_per_node;
  if (rate <= 0.0)
    json.fail("the rate of the network '" + shown_text(text) + "' cannot be read",
              "write it like 50 GB/s per GPU or 8x400 Gb/s per node");
  return BytesPerSecond{rate};
}

// The network that a log describes, over the system's own.
void set_network(System& system, const JsonValue& json, const std::string& inter,
                 const JsonValue& networks) {
  for (const JsonValue& rule : networks.elements()) {
    rule.allow_only({"inter_contains", "network", "efficiency", "gigabits", "source"});
    if (!contains(rule, "inter_contains", inter)) continue;
    const double own = system.nic.si() * system.nics_per_node / system.gpus_per_node;
    double rate = own;
    if (const auto stated = rate_in(json, inter, system.gpus_per_node))
      rate = stated->si();
    else if (rule.has("gigabits"))
      rate = rule.at("gigabits").number(1.0, 1e5) * 1e9 / 8;
    const NetworkKind network = read_network(rule.at("network").text(), rule.place());
    const double efficiency =
        rule.has("efficiency") ? rule.at("efficiency").number(0.01, 1.0) : network.efficiency;
    // A network other than the system's, to which its sweeps do not apply.
    constexpr double same = 0.02;
    if (std::abs(rate / own - 1.0) > same ||
        std::abs(efficiency / system.network_efficiency - 1.0) > same)
      system.name = "another network";
    system.nic = (rate / own) * system.nic;
    system.network_efficiency = efficiency;
    system.network_latency = network.latency;
    system.network_chunk_latency = network.chunk_latency;
    system.network = network;
    return;
  }
}

System system_of(const JsonValue& json, bool leaves_node) {
  if (!json.is_object()) return read_system(json.text(), json.place());
  const JsonValue known =
      JsonValue::read_file(find_in_catalog("calibration/data", "collective_systems", json.place()));
  const std::string gpu = word_of(json, "gpu");
  for (const JsonValue& rule : known.at("systems").elements()) {
    rule.allow_only({"gpu_contains", "intra_contains", "inter_contains", "refused", "system",
                     "inter", "source"});
    std::string inter = word_of(json, "inter");
    if (!contains(rule, "gpu_contains", gpu) || !contains(rule, "inter_contains", inter) ||
        !contains(rule, "intra_contains", word_of(json, "intra")))
      continue;
    if (const auto reason = rule.find("refused")) json.fail(reason->text(), "leave the case out");
    System system = read_system(rule.at("system").text(), json.place());
    if (rule.has("inter")) inter = rule.at("inter").text();
    const bool leaves_domain = leaves_node && system.nvlink_domain == system.gpus_per_node;
    if (leaves_domain && inter.empty())
      json.fail("the network between the nodes is not stated",
                "name it: \"inter\": \"InfiniBand, 50 GB/s per GPU\"");
    if (leaves_domain) set_network(system, json, inter, known.at("networks"));
    return system;
  }
  json.fail("the GPU '" + shown_text(gpu) + "' is not known",
            "add it to calibration/data/collective_systems.json");
}

CollectiveKind kind_of(const JsonValue& json) {
  if (const auto kind = collective_named(json.text())) return *kind;
  json.fail("'" + shown_text(json.text()) + "' is not a collective",
            suggestion(json.text(), collective_names()));
}

}  // namespace

bool is_collective_case(const JsonValue& entry) {
  return entry.is_object() && entry.has("collective");
}

CollectiveCase read_collective_case(const JsonValue& entry) {
  constexpr int most_ranks = 1 << 20;
  CollectiveCase one;
  one.id = entry.at("id").text();
  if (!entry.has("points"))
    entry.fail("holds no points of bytes and time", "a case needs them to be compared");
  const auto columns = entry.at("columns").elements();
  if (columns.size() != 2 || columns[0].text() != "bytes" || columns[1].text() != "time_us")
    entry.at("columns").fail("are not bytes and time_us", "write [\"bytes\", \"time_us\"]");
  one.shape.kind = kind_of(entry.at("collective"));
  const int ranks = static_cast<int>(entry.at("ranks").integer(2, most_ranks));
  if (const auto nodes = entry.find("nodes"))
    one.nodes = static_cast<int>(nodes->integer(1, ranks));
  const bool leaves_node = !entry.has("nodes") || one.nodes > 1;
  one.system = system_of(entry.at("system"), leaves_node);
  if (!entry.has("nodes"))
    one.nodes = (ranks + one.system.gpus_per_node - 1) / one.system.gpus_per_node;
  one.shape.group = group_on(one.system, ranks, one.nodes);
  one.points = parse_curve_points(entry.at("points"));
  return one;
}

}  // namespace orrery
