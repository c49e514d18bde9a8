#include "tests/properties/plan_case.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <sstream>
#include <stdexcept>

#include "sim/plan/plan_keys.hpp"
#include "sim/plan/software_keys.hpp"
#include "sim/search/dimension.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery {
namespace {

template <class Values>
auto one_of(std::mt19937_64& random, const Values& values) {
  return *(std::begin(values) + static_cast<std::ptrdiff_t>(random() % std::size(values)));
}

bool chance(std::mt19937_64& random, unsigned percent) { return random() % 100 < percent; }

constexpr const char* systems[] = {"dgx-a100-80gb",      "dgx-h100",
                                   "dgx-h200",           "dgx-b200",
                                   "gb200-nvl72",        "hgx-h100-roce",
                                   "l40s-pcie",          "dgx-1-v100",
                                   "hgx-h100-dragonfly", "dgx-h100-superpod",
                                   "four-by-four",       "dgx-b300",
                                   "hgx-h800",           "hgx-h100-leaf-spine-2to1"};
constexpr const char* models[] = {"gpt2",       "llama3.2-1b",  "llama3-8b",     "gemma-2-9b",
                                  "qwen3-0.6b", "mixtral-8x7b", "qwen3-30b-a3b", "megatron-1.7b"};

}  // namespace

Model PlanCase::make_model() const {
  static std::map<std::string, Model> known;
  if (!model.empty()) {
    const auto found = known.find(model);
    return found != known.end() ? found->second
                                : known.emplace(model, read_model(model, test_place)).first->second;
  }
  Model made = experts > 0 ? small_mixture(layers, width, heads, vocab, experts, per_token)
                           : small_gpt(layers, width, heads, vocab);
  made.max_sequence = 1 << 16;
  made.rotary = true;
  return made;
}

PlanRequest PlanCase::request() const {
  PlanRequest wanted;
  wanted.gbs = batch;
  wanted.seq = seq;
  for (const auto& [key, value] : keys) set_plan_flag(wanted, key, value);
  return wanted;
}

// Reading a software, or all of them, would take longer than an answer.
std::optional<Scenario> PlanCase::scenario(const Model& of, const System& on) const {
  struct Known {
    Software software;
    std::vector<Software> near;
  };
  static std::map<std::string, Known> known;
  try {
    const PlanRequest wanted = request();
    const std::string name = default_software(wanted, on);
    auto found = known.find(name);
    if (found == known.end()) {
      Software software = read_software(name, test_place);
      std::vector<Software> near = software_near(software);
      found = known.emplace(name, Known{std::move(software), std::move(near)}).first;
    }
    const auto near = [&]() -> const std::vector<Software>& { return found->second.near; };
    return make_scenario(of, on, found->second.software, near, wanted, gpus, test_place);
  } catch (const Error&) {
    return std::nullopt;
  }
}

const System& PlanCase::machine() const {
  static std::map<std::string, System> known;
  const auto found = known.find(system);
  return found != known.end()
             ? found->second
             : known.emplace(system, read_system(system, test_place)).first->second;
}

std::optional<Scenario> PlanCase::scenario() const { return scenario(make_model(), machine()); }

Scenario PlanCase::scenario_as_read() const {
  return make_scenario(make_model(), machine(), request(), gpus, test_place);
}

std::string PlanCase::text() const {
  std::string flags = " --system " + system + " --gpus " + std::to_string(gpus) + " --gbs " +
                      std::to_string(batch) + " --seq " + std::to_string(seq);
  for (const auto& [key, value] : keys) flags += " --" + key + " " + value;
  if (!model.empty()) return "orrery estimate --model " + model + flags;
  return "a model of " + std::to_string(layers) + " layers, width " + std::to_string(width) + ", " +
         std::to_string(heads) + " heads, vocabulary " + std::to_string(vocab) + ", " +
         std::to_string(experts) + " experts of which " + std::to_string(per_token) +
         " are visited:" + flags;
}

PlanCase case_of(const std::string& text) {
  PlanCase one;
  const std::size_t at = text.find(" --");
  const std::string beginning = text.substr(0, at);
  const bool made =
      std::sscanf(beginning.c_str(),
                  "a model of %d layers, width %" SCNd64 ", %" SCNd64 " heads, vocabulary %" SCNd64
                  ", %" SCNd64 " experts of which %" SCNd64 " are visited:",
                  &one.layers, &one.width, &one.heads, &one.vocab, &one.experts,
                  &one.per_token) == 6;
  if (at == text.npos || (!made && beginning != "orrery estimate"))
    throw std::invalid_argument{"'" + text + "' is no plan as plan_properties prints it"};
  std::istringstream words{text.substr(at)};
  for (std::string flag, value; words >> flag >> value;) {
    const std::string key = flag.substr(2);
    if (key == "model")
      one.model = value;
    else if (key == "system")
      one.system = value;
    else if (key == "gpus")
      one.gpus = std::stoi(value);
    else if (key == "gbs")
      one.batch = std::stoll(value);
    else if (key == "seq")
      one.seq = std::stoll(value);
    else
      one.keys[key] = value;
  }
  return one;
}

PlanCase sample_case(std::mt19937_64& random) {
  PlanCase sampled;
  if (chance(random, 35)) {
    sampled.model = one_of(random, models);
  } else {
    sampled.layers = 1 + static_cast<int>(random() % 12);
    sampled.heads = std::int64_t{1} << (2 + random() % 4);
    sampled.width = sampled.heads * one_of(random, std::initializer_list<std::int64_t>{64, 128});
    sampled.vocab = 1000 + static_cast<std::int64_t>(random() % 100'000);
    if (chance(random, 40)) {
      sampled.experts = std::int64_t{1} << (1 + random() % 5);
      sampled.per_token =
          1 + static_cast<std::int64_t>(
                  random() % static_cast<unsigned>(std::min<std::int64_t>(sampled.experts, 4)));
    }
  }
  sampled.system = one_of(random, systems);
  sampled.gpus = 1 << (random() % 7);
  sampled.batch = sampled.gpus * (std::int64_t{1} << (random() % 5));
  sampled.seq = std::int64_t{512} << (random() % 5);
  const Model model = sampled.make_model();
  for (const PlanDimension& dimension : plan_dimensions(model, sampled.gpus, sampled.batch))
    if (!dimension.values.empty() && chance(random, 40)) {
      // Small values are sampled more often: with uniform values hardly any plan would divide.
      const std::size_t most = dimension.is_shape()
                                   ? std::min<std::size_t>(4, dimension.values.size())
                                   : dimension.values.size();
      sampled.keys[dimension.key] = dimension.values[random() % most];
    }
  // Layers of a whole model that are all visited otherwise take long, and have little to say.
  if (model.experts && chance(random, sampled.model.empty() ? 40 : 5))
    sampled.keys["routing"] = one_of(
        random, std::initializer_list<const char*>{"zipf:0.5", "zipf:1.2", "aux-loss", "bias"});
  return sampled;
}

std::vector<PlanCase> simpler(const PlanCase& failing) {
  std::vector<PlanCase> all;
  const auto with = [&](auto change) {
    all.push_back(failing);
    change(all.back());
  };
  for (const auto& [key, value] : failing.keys) with([&](PlanCase& c) { c.keys.erase(key); });
  if (failing.gpus > 1)
    with([](PlanCase& c) { c.gpus /= 2, c.batch = std::max<std::int64_t>(1, c.batch / 2); });
  if (failing.batch > 1) with([](PlanCase& c) { c.batch /= 2; });
  if (failing.seq > 512) with([](PlanCase& c) { c.seq /= 2; });
  if (failing.system != "dgx-h100") with([](PlanCase& c) { c.system = "dgx-h100"; });
  if (failing.model.empty()) {
    if (failing.layers > 1) with([](PlanCase& c) { c.layers /= 2; });
    if (failing.experts > 0) with([](PlanCase& c) { c.experts = 0; });
    if (failing.vocab > 1024) with([](PlanCase& c) { c.vocab = 1024; });
  }
  return all;
}

}  // namespace orrery
