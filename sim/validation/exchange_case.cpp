#include "sim/validation/exchange_case.hpp"

#include <cmath>

#include "sim/core/choice.hpp"

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
  found.dispatcher = choice<ExpertDispatcher>(entry.at("dispatcher"), expert_dispatcher_names());
  found.nodes = static_cast<int>(number("nodes"));
  found.group = group_on(found.system, static_cast<int>(number("ranks")), found.nodes);
  found.hidden = number("hidden");
  found.experts.count = number("experts");
  found.experts.per_token = number("top_k");
  if (const auto dispatched = entry.find("dispatched"))
    found.dispatched = choice<Dtype>(*dispatched, dtype_names());
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

}  // namespace orrery
