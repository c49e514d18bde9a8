#include "sim/posttraining/rl_job.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/value_list.hpp"
#include "sim/layers/step_cost.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {
namespace {

// Far more than any step has; packing them takes seconds.
constexpr std::int64_t most_samples = 1 << 16;
Notation<LengthDistribution> lengths_of() {
  return written<LengthDistribution>(
      "LENGTHS",
      [](const JsonValue& v) {
        return parse_length_distribution(
            v.is_number() ? std::to_string(v.integer(1, 1 << 24)) : v.text(), v.place());
      },
      length_distribution_text);
}

Notation<Seconds> time_with_unit() {
  return {Form::word, "TIME", {}, [](const JsonValue& v) {
            if (v.is_number()) v.fail("has no unit", "write it like 5s");
            return parse_duration(v.text(), v.place());
          }};
}

std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

void need_divides(const Place& at, std::int64_t whole, const std::string& what, std::int64_t part,
                  const std::string& remedy) {
  if (whole % part != 0)
    fail_infeasible(at, grouped(whole) + " " + what + " do not divide by " + grouped(part), remedy);
}

// "--sp: needs tp; use --tp 2" of a plan's options, by those of a loop: "--training: sp: needs tp;
// use tp=2".
std::string by_training_keys(const std::string& message) {
  std::string all;
  std::vector<std::string> words = split(message, " ");
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    const std::string key = word.starts_with("--") ? word.substr(2, word.find(':') - 2) : "";
    const bool is_key = !key.empty() && key != "gpus" && find_plan_key(key);
    if (is_key && word.ends_with(':'))
      word = "--training: " + word.substr(2);
    else if (is_key && i + 1 < words.size())
      word = key + "=" + words[++i];
    all += (i == 0 || all.empty() ? "" : " ") + word;
  }
  return all;
}

class JobMaker {
 public:
  JobMaker(const Model& model, const System& system, const RlFramework& framework,
           const RlRequest& request, int gpus, const Place& at, const RlJob* like)
      : request_{request}, at_{at}, like_{like} {
    job_.model = model;
    job_.system = system;
    job_.framework = framework;
    job_.request = request;
    job_.gpus = gpus;
  }

  RlJob make(bool trains) {
    split_gpus();
    choose_parts();
    draw();
    overlap();
    job_.rollout = rollout();
    if (trains) plan_training();
    return std::move(job_);
  }

 private:
  void split_gpus() {
    job_.colocated = !request_.rollout_gpus;
    job_.rollout_gpus = request_.rollout_gpus.value_or(job_.gpus);
    job_.train_gpus = job_.colocated ? job_.gpus : job_.gpus - job_.rollout_gpus;
    if (job_.train_gpus < 1)
      fail_input(at_ / "rollout_gpus", "leaves no GPU to train", "use fewer than --gpus");
  }

  // Prompts under way: a batch for each step that answers may be behind.
  void overlap() {
    if (request_.max_staleness == 0) {
      if (request_.prompts_in_flight)
        fail_input(at_ / "prompts_in_flight", "is of a loop that generates while it trains",
                   "add max_staleness, or leave it out");
      if (request_.in_flight_updates)
        fail_input(at_ / "in_flight_updates", "is of a loop that generates while it trains",
                   "add max_staleness, or leave it out");
      if (request_.whole_batches)
        fail_input(at_ / "whole_batches", "is of a loop that generates while it trains",
                   "add max_staleness, or leave it out");
      return;
    }
    if (job_.colocated)
      fail_input(at_ / "max_staleness", "needs GPUs that generate while others train",
                 "add rollout_gpus, or leave it out");
    const std::int64_t a_step = job_.generated_prompts();
    job_.whole_batches = request_.whole_batches.value_or(job_.framework.whole_batches);
    if (job_.whole_batches) {
      if (request_.prompts_in_flight)
        fail_input(at_ / "prompts_in_flight", "is a step's prompts where whole_batches is true",
                   "leave one of them out");
      job_.prompts_in_flight = a_step;
      return;
    }
    const std::int64_t most = a_step * (request_.max_staleness + 1);
    job_.prompts_in_flight = request_.prompts_in_flight.value_or(a_step * request_.max_staleness);
    if (job_.prompts_in_flight > most)
      fail_infeasible(
          at_ / "prompts_in_flight",
          grouped(job_.prompts_in_flight) + " prompts under way are more than those of " +
              plural(request_.max_staleness + 1, "step") + ": the last ones would be staler than " +
              plural(request_.max_staleness, "step"),
          "use at most " + grouped(most));
  }

  void choose_parts() {
    const RlFramework& usual = job_.framework;
    job_.critic = request_.algorithm == RlAlgorithm::ppo;
    job_.reference =
        request_.reference.value_or(usual.reference && request_.algorithm != RlAlgorithm::dapo);
    job_.old_logprobs = request_.old_logprobs.value_or(usual.old_logprobs);
    job_.transfer = transfer_of(usual, request_, at_);
    job_.frees_weights = job_.colocated && request_.free_weights.value_or(usual.frees_weights);
    job_.frees_optimizer =
        job_.colocated && request_.free_optimizer.value_or(usual.frees_optimizer);
  }

  void draw() {
    const std::int64_t prompts = request_.prompts, samples = request_.samples;
    if (prompts < 1) fail_input(at_ / "prompts", "is missing", "write how many prompts a step has");
    if (prompts * samples > most_samples)
      fail_input(at_ / "samples", "makes " + grouped(prompts * samples) + " samples of a step",
                 "use at most " + grouped(most_samples));
    if (like_) {
      job_.max_response = like_->max_response;
      job_.generated = like_->generated;
      job_.samples = like_->samples;
      job_.statistics = like_->statistics;
    } else {
      draw_anew(prompts, samples);
    }
    const std::int64_t batch = request_.train_batch.value_or(prompts * samples);
    if (batch > prompts * samples)
      fail_input(at_ / "train_batch",
                 "is more than the " + grouped(prompts * samples) + " samples of a step",
                 "use at most as many");
    need_divides(at_ / "train_batch", prompts * samples, "samples of a step", batch,
                 "use a divisor of them");
    job_.optimizer_steps = request_.epochs * (prompts * samples / batch);
  }

  void draw_anew(std::int64_t prompts, std::int64_t samples) {
    const SampleLengths lengths = lengths_of_samples();
    job_.max_response = lengths.max_response;
    const auto more = static_cast<std::int64_t>(
        std::ceil(static_cast<double>(prompts) * request_.oversampling - 1e-9));
    job_.generated = draw_samples(lengths, more, samples, request_.seed);
    job_.samples = job_.generated;
    if (more > prompts) job_.samples = draw_samples(lengths, prompts, samples, request_.seed);
    job_.statistics = statistics_of(job_.samples, lengths);
  }

  // Tokens at which an answer is cut, as far as limits say it; nothing: they do not.
  std::optional<std::int64_t> limit_of_answers(double prompt) const {
    std::optional<std::int64_t> most = request_.max_response;
    if (request_.max_sample) {
      const std::int64_t rest = *request_.max_sample - std::llround(prompt);
      most = std::min(most.value_or(rest), std::max<std::int64_t>(1, rest));
    }
    return most;
  }

  SampleLengths lengths_of_samples() const {
    SampleLengths lengths;
    if (request_.max_sample) lengths.max_sample = *request_.max_sample;
    lengths.given = request_.lengths;
    if (lengths.given.empty()) {
      lengths_of_distributions(lengths);
    } else {
      for (const auto& [key, given] :
           {std::pair{"prompt_length", request_.prompt_length.has_value()},
            {"response_length", request_.response_length.has_value()},
            {"mean_response", request_.mean_response.has_value()}})
        if (given) fail_input(at_ / key, "is said by the file of lengths, too", "keep one of them");
      std::uint32_t longest = 1;
      for (const Sample& sample : lengths.given) longest = std::max(longest, sample.response);
      lengths.max_response = longest;
    }
    if (request_.max_sample) lengths.max_response = *request_.max_sample - 1;
    if (request_.max_response) lengths.max_response = *request_.max_response;
    if (const std::int64_t prompt = longest_prompt(lengths); prompt >= lengths.max_sample)
      fail_no_room(prompt, lengths.max_sample);
    return lengths;
  }

  [[noreturn]] void fail_no_room(std::int64_t prompt, std::int64_t most) const {
    fail_input(at_ / "max_sample",
               "is " + grouped(most) + ", which leaves no answer to a prompt of " +
                   plural(prompt, "token"),
               "raise it, or use shorter prompts");
  }

  static std::int64_t longest_prompt(const SampleLengths& lengths) {
    std::int64_t longest = 1;
    for (const Sample& sample : lengths.given)
      longest = std::max<std::int64_t>(longest, sample.prompt);
    if (lengths.given.empty()) {
      // A log-normal one has no longest: what a draw has is cut, its median must leave an answer.
      const LengthDistribution& prompt = lengths.prompt;
      const bool ends = prompt.kind == LengthDistribution::Kind::uniform;
      longest = std::llround(ends ? prompt.high : prompt.low);
    }
    return longest;
  }

  void lengths_of_distributions(SampleLengths& lengths) const {
    if (!request_.prompt_length)
      fail_input(at_ / "prompt_length", "is missing",
                 "write its tokens, or give lengths as a file");
    lengths.prompt = *request_.prompt_length;
    if (request_.max_sample && longest_prompt(lengths) >= *request_.max_sample)
      fail_no_room(longest_prompt(lengths), *request_.max_sample);
    const std::optional<std::int64_t> limit = limit_of_answers(lengths.prompt.mean());
    if (request_.mean_response) {
      if (request_.response_length)
        fail_input(at_ / "mean_response", "is said by response_length, too", "keep one of them");
      if (!limit)
        fail_input(at_ / "max_response", "is missing",
                   "write the tokens at which an answer is cut");
      const double mean = *request_.mean_response;
      const auto most = static_cast<double>(*limit);
      if (mean >= most)
        fail_input(at_ / "mean_response",
                   fixed(mean, 0) + " is not below the " + fixed(most, 0) +
                       " tokens at which answers are cut",
                   "raise max_response, or write response_length");
      lengths.response.kind = LengthDistribution::Kind::lognormal;
      lengths.response.sigma = RlRequest::usual_sigma;
      lengths.response.low = median_of_cut_mean(mean, RlRequest::usual_sigma, most);
    } else if (request_.response_length) {
      lengths.response = *request_.response_length;
    } else {
      fail_input(at_ / "response_length", "is missing",
                 "write it, or mean_response and max_response");
    }
    const bool ends = lengths.response.kind != LengthDistribution::Kind::lognormal;
    if (!limit && !ends)
      fail_input(at_ / "max_response", "is missing", "write the tokens at which an answer is cut");
    lengths.max_response =
        limit.value_or(static_cast<std::int64_t>(std::ceil(lengths.response.high)));
  }

  ServingSetup rollout() {
    const RlFramework& usual = job_.framework;
    const RolloutMode& mode =
        request_.async_engine.value_or(usual.async_engine || request_.max_staleness > 0)
            ? usual.asynchronous
            : usual.in_process;
    job_.routing = request_.routing.value_or(mode.routing);
    DeploymentRequest request = request_.rollout;
    const int engine_gpus =
        request.tp.value_or(1) * request.pp.value_or(1) * request.dp.value_or(1);
    if (!job_.colocated && job_.rollout_gpus % engine_gpus != 0)
      fail_infeasible(
          at_ / "rollout_gpus",
          plural(job_.rollout_gpus, "GPU") + " do not divide into engines of " +
              std::to_string(engine_gpus),
          "use a multiple of " + std::to_string(engine_gpus) + ", or smaller degrees in --rollout");
    if (!request.max_seqs) request.max_seqs = mode.max_seqs;
    if (!request.budget) request.budget = mode.budget;
    if (!request.tp) request.tp = 1;
    // Frameworks start the engine for the longest sample that there may be.
    if (!request.max_length) request.max_length = longest_sample();
    if (!request.weights) request.weights = Dtype::bf16;
    if (!request.kv_share) request.kv_share = usual.kv_share;
    const std::string engine = request_.engine.value_or(usual.engine);
    ServingSetup setup{job_.model, job_.system, read_serving_engine(engine, at_ / "engine"), {}};
    setup.deployment = make_deployment(setup.model, setup.system, setup.engine, request,
                                       job_.rollout_gpus, Place{"--rollout", ""});
    setup.engine.host.gap_per_request += mode.each_token;
    return setup;
  }

  // Tokens of a document at which its attention takes as many operations as its products.
  double square() const {
    constexpr std::int64_t one = 1024;
    const double short_one = model_flop(job_.model, 1, one, true).si() / one;
    const double long_one = model_flop(job_.model, 1, 2 * one, true).si() / (2 * one);
    const double slope = (long_one - short_one) / one;  // Flop a token and token of the document.
    return slope > 0.0 ? (short_one - slope * one) / slope : 1e18;
  }

  void plan_training() {
    PlanRequest request = request_.training;
    const Place at = at_ / "training";
    if (request.software.empty()) request.software = job_.framework.software;
    if (!request_.says("recompute") && request.recompute == RecomputeChoice{})
      request.recompute = job_.framework.recompute;
    if (request.gbs || request.seq || request.documents.given())
      fail_input(at, "says gbs, seq or documents, which follow from the samples", "leave them out");
    const std::int64_t longest = longest_sample();
    const int model_ranks = request.tp * request.pp * request.cp;
    need_divides(at, job_.train_gpus, "GPUs that train", model_ranks,
                 "choose tp, pp and cp that divide them");
    const int ranks = job_.train_gpus / model_ranks;
    const std::int64_t micro = request.mbs.value_or(1);
    const std::int64_t steps_of = job_.optimizer_steps / request_.epochs;
    const std::int64_t batch = static_cast<std::int64_t>(job_.samples.size()) / steps_of;
    PackingRule rule;
    rule.packing = request_.packing.value_or(job_.framework.packing);
    refuse_unused(rule.packing);
    rule.samples = request_.micro_samples.value_or(micro);
    rule.round = job_.framework.round_tokens;
    rule.longest = round_up(longest, rule.round);
    rule.tokens = request_.train_tokens.value_or(rule.longest * micro);
    rule.ranks = ranks;
    rule.equal_bins = request.pp > 1;
    // Whether the plan shards weights is for its software to say, whatever the micro-batches.
    const auto tokens = static_cast<double>(longest);
    const Plan plan = scenario(request, {request.pp, tokens, tokens, 1.0}, tokens).plan;
    rule.square = square();  // Of a model that training has prices for.
    rule.meets_each = plan.shards_weights() || plan.ep > 1;
    if (rule.packing == SamplePacking::bins) need_room(rule.tokens, longest, "train_tokens");
    // NeMo-RL (distributed/batched_data_dict.py) and verl (workers/fsdp_workers.py) assert it.
    need_divides(at_ / "train_batch", batch, "samples of an optimizer step", ranks,
                 "choose GPUs, tp, pp and cp so that the data-parallel ranks divide them");
    job_.batches = pack_samples(job_.samples, batch, rule);
    // Chunks of an interleaved pipeline take turns in whole rounds of its ranks.
    if (request.vpp.value_or(1) > 1) {
      MicroBatches& all = job_.batches;
      const std::int64_t rounds = round_up(all.count, request.pp);
      all.tokens *= static_cast<double>(all.count) / static_cast<double>(rounds);
      all.count = rounds;
    }
    job_.training = scenario(request, job_.batches, job_.batches.tokens);
    job_.fullest = scenario(request, job_.batches, largest_micro_batch(rule, batch));

    PlanRequest forward = request;
    forward.vpp.reset();
    forward.schedule.reset();
    PackingRule pass = rule;
    pass.samples = request_.pass_samples.value_or(rule.samples);
    pass.tokens = request_.pass_tokens.value_or(rule.tokens);
    if (pass.packing == SamplePacking::bins) need_room(pass.tokens, longest, "pass_tokens");
    job_.pass_batches =
        pack_samples(job_.samples, static_cast<std::int64_t>(job_.samples.size()), pass);
    job_.pass = scenario(forward, job_.pass_batches, job_.pass_batches.tokens);
    job_.fullest_pass =
        scenario(forward, job_.pass_batches,
                 largest_micro_batch(pass, static_cast<std::int64_t>(job_.samples.size())));
  }

  void refuse_unused(SamplePacking packing) const {
    const bool by_tokens = packs_by_tokens(packing);
    const auto refuse = [&](const char* key, bool given, const char* other) {
      if (given)
        fail_input(at_ / key, "says nothing where packing is " + name(packing),
                   std::string{"use "} + other + ", or leave it out");
    };
    refuse("micro_samples", by_tokens && request_.micro_samples, "train_tokens");
    refuse("pass_samples", by_tokens && request_.pass_samples, "pass_tokens");
    refuse("train_tokens", !by_tokens && request_.train_tokens, "micro_samples");
    refuse("pass_tokens", !by_tokens && request_.pass_tokens, "pass_samples");
  }

  std::int64_t longest_sample() const {
    std::int64_t prompt = 1;
    for (const Sample& sample : job_.samples)
      prompt = std::max<std::int64_t>(prompt, sample.prompt);
    return std::min(prompt + job_.max_response, request_.max_sample.value_or(1 << 30));
  }

  // Samples without padding come together by chance: four standard deviations above the mean, which
  // one micro-batch of 30,000 exceeds, or the longest ones where there are few.
  double largest_micro_batch(const PackingRule& rule, std::int64_t batch) const {
    if (rule.packing == SamplePacking::bins) return static_cast<double>(rule.tokens);
    if (rule.packing == SamplePacking::balanced) {
      // A rank has its share of the batch, and a twentieth more, where that is less.
      const double share = 1.05 * static_cast<double>(job_.statistics.tokens) *
                           static_cast<double>(batch) /
                           static_cast<double>(std::ssize(job_.samples) * rule.ranks);
      // A sample that is longer than the limit is a micro-batch of its own.
      return std::max(static_cast<double>(rule.longest),
                      std::min(static_cast<double>(rule.tokens), share));
    }
    const auto together = static_cast<double>(rule.samples);
    const double padded = together * static_cast<double>(rule.longest);
    if (rule.packing == SamplePacking::padded) return padded;
    double sum = 0.0, squares = 0.0;
    for (const Sample& sample : job_.samples) {
      const auto tokens = static_cast<double>(round_up(sample.tokens(), rule.round));
      sum += tokens;
      squares += tokens * tokens;
    }
    const auto count = static_cast<double>(job_.samples.size());
    const double mean = sum / count, variance = std::max(0.0, squares / count - mean * mean);
    return std::min(padded, together * mean + 4.0 * std::sqrt(together * variance));
  }

  void need_room(std::int64_t tokens, std::int64_t longest, const char* key) const {
    if (tokens < longest)
      fail_infeasible(at_ / key,
                      "a micro-batch of " + grouped(tokens) + " tokens does not hold a sample of " +
                          grouped(longest),
                      "raise it, or lower max_response");
  }

  Scenario scenario(PlanRequest request, const MicroBatches& batches, double tokens) const {
    const std::int64_t multiple = std::int64_t{2} * request.cp * request.tp;
    request.seq = round_up(std::llround(std::ceil(tokens)), multiple);
    request.mbs = 1;
    const int ranks = job_.train_gpus / (request.tp * request.pp * request.cp);
    request.gbs = batches.count * ranks;
    request.documents.text = "samples";
    request.documents.whole = true;
    request.documents.lengths = std::make_shared<const std::vector<double>>(1, batches.attended);
    try {
      return make_scenario(job_.model, job_.system, request, job_.train_gpus, at_ / "training");
    } catch (const Error& error) {
      throw Error{error.kind(), {"", ""}, by_training_keys(error.what()), ""};
    }
  }

  const RlRequest& request_;
  const Place at_;
  const RlJob* like_;
  RlJob job_;
};

}  // namespace

const std::vector<Field<RlRequest>>& rl_keys() {
  using R = RlRequest;
  const auto tokens = whole(1, 1 << 24);
  static const std::vector<Field<RlRequest>> keys{
      field("algorithm", &R::algorithm, one_of<RlAlgorithm>(),
            "grpo (default), dapo: without a reference, or ppo: with a critic"),
      field("prompts", &R::prompts, whole(1, most_samples), "prompts of a step"),
      field("samples", &R::samples, whole(1, most_samples), "answers to each of them (1)"),
      field("train_batch", &R::train_batch, whole(1, most_samples),
            "samples of an optimizer step (default: all of a step)"),
      field("epochs", &R::epochs, whole(1, 1000), "times that each sample is trained on (1)"),
      field("prompt_length", &R::prompt_length, lengths_of(),
            "tokens of a prompt: 512, 100..900 or lognormal:300,0.5 (median, sigma)"),
      field("response_length", &R::response_length, lengths_of(), "tokens of an answer, likewise"),
      field("mean_response", &R::mean_response, real(1, 1 << 24),
            "its mean, in place of response_length: log-normal of sigma 0.7, cut at max_response"),
      field("max_response", &R::max_response, tokens, "tokens at which an answer is cut"),
      field("max_sample", &R::max_sample, whole(2, 1 << 24),
            "tokens of a prompt and its answer together at which it is cut, too"),
      field("train_tokens", &R::train_tokens, tokens,
            "tokens of a micro-batch of packed samples (default: the longest prompt and "
            "max_response)"),
      field("pass_tokens", &R::pass_tokens, tokens, "the same for log-probabilities"),
      field("micro_samples", &R::micro_samples, whole(1, most_samples),
            "samples of a micro-batch, where they are not packed by tokens (mbs)"),
      field("pass_samples", &R::pass_samples, whole(1, most_samples),
            "the same for log-probabilities"),
      field("packing", &R::packing, one_of<SamplePacking>(),
            "how micro-batches are made (default: as the framework does)"),
      field("sample_routing", &R::routing, one_of<SampleRouting>(),
            "how samples are spread over replicas of the engine (likewise)"),
      field("async_engine", &R::async_engine, truth(),
            "the engine runs beside the process that calls it (likewise)"),
      field("reference", &R::reference, truth(), "log-probabilities of a reference model"),
      field("old_logprobs", &R::old_logprobs, truth(),
            "the policy's log-probabilities are computed again before training"),
      field("free_weights", &R::free_weights, truth(),
            "the trainer's weights leave the GPUs for a rollout"),
      field("free_optimizer", &R::free_optimizer, truth(), "the same of its optimizer's state"),
      field("reward", &R::reward, time_with_unit(), "time of a step's rewards, as 5s"),
      field("oversampling", &R::oversampling, real(1.0, 16.0),
            "samples generated for each that is trained on"),
      field("rollout_gpus", &R::rollout_gpus, whole<int>(1, 1 << 20),
            "GPUs that generate, apart from those that train (default: all do both)"),
      field("weight_transfer", &R::transfer, any_text(),
            "way of the weights to the engine, of those in the framework's file"),
      field("max_staleness", &R::max_staleness, whole<int>(0, 1000),
            "steps by which weights that began an answer may be behind (0: synchronous)"),
      field("in_flight_updates", &R::in_flight_updates, truth(),
            "answers go on while new weights arrive"),
      field("whole_batches", &R::whole_batches, truth(),
            "the samples of a step begin when all of those before have ended (likewise)"),
      field("prompts_in_flight", &R::prompts_in_flight, whole(1, 1 << 26),
            "prompts that are answered at a time (default: those of max_staleness steps)"),
      field("engine", &R::engine, any_text(), "serving engine: orrery list engines"),
      field("seed", &R::seed, whole(0, std::int64_t{1} << 53), "of the order of samples (1)"),
  };
  return keys;
}

void read_rl_request(RlRequest& request, const JsonValue& json, std::vector<std::string> others) {
  require_schema(json, "orrery.post/1");
  others.push_back("schema");
  read_rl_keys(request, json, std::move(others));
}

void read_rl_keys(RlRequest& request, const JsonValue& json, std::vector<std::string> others) {
  for (const char* key : {"training", "rollout"}) others.push_back(key);
  std::vector<Field<RlRequest>> keys;
  for (const Field<RlRequest>& key : rl_keys()) keys.push_back(optional(key));
  read_fields(json, keys, request, std::move(others));
  if (const auto training = json.find("training")) {
    read_plan(request.training, *training);
    for (const std::string& key : training->keys()) request.training_keys.push_back(key);
  }
  if (const auto rollout = json.find("rollout")) read_deployment(request.rollout, *rollout);
}

WeightTransfer transfer_of(const RlFramework& framework, const RlRequest& request,
                           const Place& at) {
  const std::string way =
      request.transfer.value_or(request.rollout_gpus ? framework.apart : framework.colocated);
  const auto found = framework.transfers.find(way);
  if (found != framework.transfers.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, transfer] : framework.transfers) names.push_back(name);
  fail_input(at / "weight_transfer", "'" + shown_text(way) + "' is unknown to " + framework.name,
             suggestion(way, names));
}

void parse_training_keys(const std::string& text, RlRequest& request, const Place& at) {
  std::vector<std::string> seen;
  for (const std::string& item : split_list(text, at)) {
    const std::size_t sign = item.find('=');
    if (sign == item.npos || sign == 0 || sign + 1 == item.size())
      fail_input(at, "'" + item + "' says nothing of a plan", "write it like tp=4,pp=2");
    const std::string key = item.substr(0, sign);
    if (std::find(seen.begin(), seen.end(), key) != seen.end())
      fail_input(at, "says '" + key + "' twice", "keep one of them");
    seen.push_back(key);
    set_plan_key(request.training, key,
                 value_of_text(item.substr(sign + 1), at.pointer + " " + key));
    request.training_keys.push_back(key);
  }
}

RlJob make_rl_job(const Model& model, const System& system, const RlFramework& framework,
                  const RlRequest& request, int gpus, const Place& at, const RlJob* like) {
  return JobMaker{model, system, framework, request, gpus, at, like}.make(true);
}

RlJob make_rl_generator(const Model& model, const System& system, const RlFramework& framework,
                        const RlRequest& request, int gpus, const Place& at, const RlJob* like) {
  return JobMaker{model, system, framework, request, gpus, at, like}.make(false);
}

}  // namespace orrery
