#include "sim/validation/rl_case.hpp"

#include "sim/core/catalog.hpp"

namespace orrery {
namespace {

constexpr int most_gpus_of_a_step = 1 << 20;
constexpr double longest_step = 1e7;
const std::vector<std::string> quantities{"step_time_s", "generation_s", "logprobs_s", "training_s",
                                          "transfer_s"};

}  // namespace

bool is_rl_case(const JsonValue& entry) { return entry.is_object() && entry.has("job"); }

RlCase read_rl_case(const JsonValue& entry) {
  entry.allow_only({"id", "source", "job", "measured", "notes"});
  RlCase one;
  one.place = entry.place();
  one.id = entry.at("id").text();
  one.title = entry.at("source").at("title").text();
  const JsonValue job = entry.at("job");
  read_rl_keys(one.request, job, {"model", "system", "gpus", "framework"});
  one.model = job.at("model").text();
  one.system = relative_to_file(job.at("system").text(), job.place());
  one.framework = job.at("framework").text();
  one.gpus = static_cast<int>(job.at("gpus").integer(1, most_gpus_of_a_step));
  const JsonValue measured = entry.at("measured");
  measured.allow_only(quantities);
  for (const std::string& quantity : measured.keys())
    one.measured[quantity] = measured.at(quantity).number(1e-6, longest_step);
  return one;
}

}  // namespace orrery
