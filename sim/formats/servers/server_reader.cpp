#include "sim/formats/servers/server_reader.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>

#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/value_list.hpp"
#include "sim/model/model_name.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/served_layers.hpp"
#include "sim/serving/speculation.hpp"

namespace orrery {
namespace {

// These are the limits of a deployment's keys (sim/serving/deployment_keys.cpp).
constexpr std::int64_t most_ranks = 1 << 10;
constexpr std::int64_t most_tokens = 1 << 30;

// The file wins over the words in TensorRT-LLM (trtllm-serve: "overwrites the parameters specified
// by cli"), and the words over the file in the others.
bool prefers_file(ServerKind kind) { return kind == ServerKind::trtllm; }

}  // namespace

ServerReader::ServerReader(const ServerCommand& command, const RecipeAnswers& answers,
                           const ServingEngine& engine)
    : command_{command},
      answers_{answers},
      engine_{engine},
      preferred_{prefers_file(command.kind) ? command.file : command.words},
      other_{prefers_file(command.kind) ? command.words : command.file} {
  part_.keys = nlohmann::ordered_json::object();
}

ServedPart ServerReader::read() {
  read_model();
  switch (command_.kind) {
    case ServerKind::vllm:
      read_vllm();
      break;
    case ServerKind::sglang:
      read_sglang();
      break;
    case ServerKind::trtllm:
      read_trtllm();
      break;
  }
  note_rest();
  return std::move(part_);
}

std::int64_t ServerReader::count(const std::string& paths, std::int64_t absent) const {
  return having(paths).count(paths, absent, most_ranks);
}

void ServerReader::take_count(const char* key, const std::string& paths) {
  if (!has(paths)) return;
  part_.keys[key] = having(paths).count(paths, 1, most_tokens);
}

void ServerReader::take_share(const std::string& paths) {
  if (!has(paths)) return;
  const std::string text = word(paths, "");
  char* end = nullptr;
  const double share = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(share >= 0.01 && share <= 1.0))
    having(paths).fail(paths, "is '" + shown_text(text) + "'", "write a share from 0.01 to 1");
  part_.keys["kv_share"] = share;
}

// "16k" is 16,000, "16K" 16,384 (vllm/utils/argparse_utils.py, human_readable_int).
std::int64_t ServerReader::tokens_of(const std::string& paths) const {
  const std::string text = word(paths, "");
  char* end = nullptr;
  double tokens = std::strtod(text.c_str(), &end);
  constexpr std::array<std::pair<const char*, double>, 4> units{
      {{"k", 1e3}, {"K", 1024.0}, {"m", 1e6}, {"M", 1024.0 * 1024.0}}};
  for (const auto& [unit, size] : units)
    if (std::string_view{end} == unit) tokens *= size, end += 1;
  if (text.empty() || *end != '\0' ||
      !(tokens >= 1.0 && tokens <= static_cast<double>(most_tokens)))
    having(paths).fail(paths, "is '" + shown_text(text) + "'",
                       "write a number of tokens: 32768, 32k or 32K");
  return static_cast<std::int64_t>(tokens);
}

void ServerReader::take_length(const std::string& paths) {
  const std::int64_t own =
      checkpoint_.max_length > 0
          ? checkpoint_.max_length
          : longest_of_name(part_.checkpoint).value_or(part_.model.max_sequence);
  const std::string text = word(paths, "");
  if (text == "auto" || text == "-1")
    return note(paths, "is what fits, which is not computed here");
  if (text.empty()) {
    if (own > 0) part_.keys["max_length"] = own;
    return;
  }
  const std::int64_t length = tokens_of(paths);
  part_.keys["max_length"] = length;
  if (own > 0 && length > own)
    note(paths, "is longer than the model's " + plural(own, "token") +
                    ", with which engines start only if they are told so");
}

void ServerReader::take_host_memory(const std::string& paths, double unit, std::int64_t ranks) {
  if (!has(paths)) return;
  const std::string text = word(paths, "");
  char* end = nullptr;
  const double size = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(size >= 0.0 && size * unit <= 1e15))
    having(paths).fail(paths, "is '" + shown_text(text) + "'", "write a size of memory");
  if (size > 0.0)
    part_.keys["host_kv"] =
        std::to_string(std::llround(size * unit / static_cast<double>(ranks))) + " B";
}

void ServerReader::note(const std::string& paths, const std::string& sentence) {
  part_.notes.push_back(having(paths).name(paths) + " " + sentence);
}

void ServerReader::refuse(const std::string& paths, const std::string& sentence,
                          const std::string& remedy) const {
  having(paths).fail(paths, sentence, remedy);
}

void ServerReader::refuse_on(const std::string& paths, const std::string& sentence) const {
  const Settings& settings = having(paths);
  if (!is_on(settings, paths) || settings.word(paths, "") == "1") return;
  settings.fail(paths, sentence, "leave it out: --set " + settings.name(paths) + "=0");
}

void ServerReader::read_model() {
  const std::string paths = "model|model_path|model_tag";
  const std::string name = word(paths, "");
  part_.checkpoint = name;
  if (answers_.model) {
    part_.model = *model_of_answer(answers_);
    part_.catalog_name = catalog_model(*answers_.model).value_or("");
    if (part_.catalog_name != *answers_.model) part_.catalog_name.clear();
  } else if (name.empty()) {
    fail_input(command_.words.place(), command_.program + " names no model",
               "give it: --model NAME or a config.json");
  } else if (const auto known = catalog_model(read_checkpoint_name(name).model)) {
    part_.catalog_name = *known;
    part_.model = orrery::read_model(*known, {"", ""});
  } else if (auto model = model_by_name(name, answers_)) {
    part_.model = std::move(*model);
  } else {
    having(paths).need_set(paths, name, "NAME");
    refuse(paths, "is " + shown_text(name) + ", a model that is not known",
           "give its shape: --model NAME or a config.json");
  }
  checkpoint_ = read_checkpoint(name);
}

// The checkpoint's own files take precedence over its name, and its name over the catalog.
CheckpointFormats ServerReader::read_checkpoint(const std::string& name) const {
  if (!part_.catalog_name.empty()) return formats_of_name(name, &part_.model);
  std::string folder = answers_.model.value_or(name);
  if (folder.ends_with("config.json")) folder.erase(folder.size() - 11);
  if (!folder.empty() && !folder.ends_with('/')) folder += '/';
  std::optional<JsonValue> beside;
  const std::string path = folder + "hf_quant_config.json";
  if (answers_.other_file)
    if (const auto text = answers_.other_file(path)) beside = JsonValue::parse(*text, path);
  if (const auto stated = formats_of_files(part_.model, beside)) return *stated;
  return formats_of_name(name, nullptr);
}

// `quantization`, `dtype`, `cache`: paths; "": the engine has none.
void ServerReader::read_formats(const std::string& quantization, const std::string& dtype,
                                const std::string& cache) {
  Dtype weights = checkpoint_.weights;
  Dtype attention = checkpoint_.attention;
  Dtype experts = checkpoint_.experts;
  const std::string base = dtype.empty() ? "bf16"
                                         : having(dtype).choice(dtype, {{"auto", "bf16"},
                                                                        {"bfloat16", "bf16"},
                                                                        {"half", "fp16"},
                                                                        {"float16", "fp16"},
                                                                        {"float32", "fp32"},
                                                                        {"float", "fp32"}});
  if (base == "fp32")
    refuse(dtype, "is 32 bits, which have no prices", "write bfloat16: --set dtype=bfloat16");
  const std::string requested = quantization.empty() ? "" : word(quantization, "");
  const auto is = [&](std::initializer_list<const char*> all) {
    return std::find(all.begin(), all.end(), requested) != all.end();
  };
  const auto stated = std::ranges::find_if(served_formats(), [&](const ServedFormat& served) {
    return std::ranges::count(served.quantizations, requested) > 0;
  });
  if (stated == served_formats().end()) {
    if (!is({"", "auto", "none", "None"}) &&
        !(is({"compressed-tensors", "compressed_tensors"}) && checkpoint_.is_quantised()))
      refuse(quantization, "is '" + shown_text(requested) + "', a format that is not known here",
             "write the nearest: fp8, modelopt_fp4, mxfp4, awq, as --set quantization=fp8");
  } else if (stated->format == Dtype::mxfp4) {
    if (part_.model.experts && experts != Dtype::mxfp4)
      weights = attention = Dtype::bf16, experts = Dtype::mxfp4;
    else if (!part_.model.experts)
      weights = attention = Dtype::mxfp4;
  } else if (requested.starts_with("experts_")) {
    experts = stated->format;
  } else if (!checkpoint_.is_quantised()) {
    weights = attention = experts = stated->format;
  } else if (const Dtype own = is_narrow(weights) ? weights : experts;
             own != stated->format && !std::ranges::count(stated->finer, own)) {
    weights = attention = experts = stated->format;
  }
  // vLLM's loader makes fp32 scales of quantised ones (bitsandbytes_loader.py, dequantize_dq),
  // which SGLang's keeps.
  const bool expands = command_.kind == ServerKind::vllm;
  for (Dtype* const format : {&weights, &attention, &experts})
    if (*format == Dtype::nf4 || *format == Dtype::nf4_dq)
      *format = expands ? Dtype::nf4 : Dtype::nf4_dq;
  if (base == "fp16") {
    for (Dtype* const format : {&weights, &attention, &experts})
      if (*format == Dtype::bf16) *format = Dtype::fp16;
  }
  part_.keys["weights"] = name(weights);
  if (attention != weights) part_.keys["attention"] = name(attention);
  if (part_.model.experts) part_.keys["experts"] = name(experts);
  if (checkpoint_.ends_16bit > 0 && is_narrow(weights))
    part_.keys["ends_16bit"] = checkpoint_.ends_16bit;
  bool is_kv_of_checkpoint = false;
  if (!cache.empty()) {
    const bool takes_checkpoints = checkpoint_.kv && engine_.takes_kv_of_checkpoint;
    const std::string own = has_compressed_attention(part_.model) ? name(Dtype::fp8)
                            : takes_checkpoints                   ? name(*checkpoint_.kv)
                                                                  : base;
    const std::string kv = having(cache).choice(cache, {{"auto", own},
                                                        {"bfloat16", "bf16"},
                                                        {"bf16", "bf16"},
                                                        {"float16", "fp16"},
                                                        {"half", "fp16"},
                                                        {"fp8", "fp8"},
                                                        {"fp8_e4m3", "fp8"},
                                                        {"fp8_e5m2", "fp8"},
                                                        {"fp8_inc", "fp8"},
                                                        {"nvfp4", "nvfp4"},
                                                        {"fp4_e2m1", "nvfp4"}});
    part_.keys["kv"] = kv;
    is_kv_of_checkpoint = takes_checkpoints && kv == own;
  }
  if (checkpoint_.said_by.empty()) return;
  std::string all = part_.checkpoint + " is taken to be in " + name(weights);
  if (attention != weights) all += ", attention in " + name(attention);
  if (part_.model.experts && experts != weights) all += ", experts in " + name(experts);
  if (part_.keys.contains("ends_16bit"))
    all += ", " + plural(checkpoint_.ends_16bit, "layer") + " at each end in 16 bits";
  if (is_kv_of_checkpoint) all += ", keys and values in " + name(*checkpoint_.kv);
  part_.notes.push_back(all + ", by " + checkpoint_.said_by);
}

void ServerReader::read_states(const std::string& format, const std::string& ratio) {
  if (!has_states(part_.model)) return;  // The servers ignore both.
  if (word(format, "auto") != "auto")
    part_.keys["states"] = having(format).choice(
        format, {{"float32", "fp32"}, {"bfloat16", "bf16"}, {"float16", "fp16"}});
  if (!ratio.empty()) take_ratio("state_ratio", ratio, 1000.0);
}

void ServerReader::take_ratio(const char* key, const std::string& path, double most) {
  if (!has(path)) return;
  const std::string text = word(path, "");
  char* end = nullptr;
  const double share = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(share >= 0.001 && share <= most))
    having(path).fail(path, "is '" + shown_text(text) + "'",
                      "write a ratio from 0.001 to " + fixed(most, 0));
  part_.keys[key] = share;
}

// A balancer of experts, and halves of a batch that hide each other's all-to-all.
void ServerReader::read_dispatch(const std::string& overlap, const std::string& redundant) {
  const auto degree = [&](const char* key) {
    return part_.keys.contains(key) ? part_.keys[key].get<int>() : 1;
  };
  const bool copies_attention = degree("dp") > 1 && degree("ep") > 1;
  const bool balances = flag("enable_eplb", false);
  if (balances) {
    if (copies_attention) {
      part_.keys["eplb"] = true;
      if (const std::int64_t copies = having(redundant).number(redundant, 0); copies > 0)
        part_.keys["redundant_experts"] = copies;
    } else {
      note("enable_eplb", "balances experts, which counts where attention is copied (dp)");
    }
  }
  if (!flag(overlap, false)) return;
  if (copies_attention && (balances || degree("ep") > most_undispatched))
    part_.keys["two_batch"] = true;
  else
    note(overlap, "overlaps two halves of a batch, which is modelled for an all-to-all of experts");
}

// `method`: "mtp", "eagle3", "draft" or "ngram".
void ServerReader::read_draft(const std::string& method, const std::string& model,
                              std::int64_t tokens, const std::string& paths) {
  if (tokens < 1 || tokens > 16)
    refuse(paths, "drafts " + std::to_string(tokens) + " tokens a step", "write 1 to 16");
  std::string text = method + ":";
  if (method == "draft") {
    const auto known = catalog_model(read_checkpoint_name(model).model);
    if (!known)
      refuse(paths, "drafts with " + shown_text(model) + ", a model that is not known",
             "name one of orrery list models by --set");
    text += *known + ":";
  }
  const auto accepted = answers_.set.find("accepted");
  if (accepted == answers_.set.end())
    refuse(paths, "drafts tokens, and how many are accepted depends on what is asked",
           "give it as the engine logs it: --accepted 0.7, or --accepted 0.8/0.6/0.4 by position");
  text += std::to_string(tokens) + "@" + accepted->second;
  // Its own errors explain wrong rates.
  part_.keys["speculate"] = speculation_text(parse_speculation(text, {"--accepted", ""}));
}

namespace {

// Settings that are on and not priced so. All engines share the list: their names do not clash.
constexpr std::array<PricedOtherwise, 21> otherwise{
    {{"enforce_eager|disable_cuda_graph", "launches kernels one by one; assumed: CUDA graphs"},
     {"moe_config.load_balancer",
      "balances experts; their load is that of the tables' router (docs/explanation/serving.md): "
      "orrery serve --eplb true"},
     {"swap_space", "was for preemption by swapping; modelled is computing again"},
     {"stream_interval", "sends several tokens at a time; ITL is priced token by token"},
     {"disable_overlap_schedule|disable_overlap_scheduler",
      "prepares iterations one after the other; assumed: the overlapped host"},
     {"limit_mm_per_prompt|enable_multimodal", "concerns images, which are not modelled"},
     {"kv_cache_config.max_tokens|max_total_tokens|num_gpu_blocks_override",
      "limits the KV cache, which is priced as the memory allows"},
     {"kv_cache_config.max_attention_window", "limits attention; windows are those of the model"},
     {"enable_torch_compile", "compiles kernels; assumed: those of the tables"},
     {"scheduling_policy", "orders requests; modelled is first come, first served"},
     {"schedule_policy", "orders requests; modelled is first come, first served"},
     {"attention_dp_config.enable_balance",
      "waits to balance prompts over copies, which is not modelled"},
     {"dp_shared_prefix", "is not modelled"},
     {"max_mamba_cache_size",
      "fixes the pool of states, which is priced by its share of the memory"},
     {"mamba_block_size|mamba_cache_mode",
      "says where states of prefixes are kept; modelled are the ends of blocks"},
     {"num_scheduler_steps", "makes several steps at once, which is not modelled"},
     {"num_continuous_decode_steps", "makes several steps at once, which is not modelled"},
     {"prefill_max_requests", "limits prompts of an iteration, which only the budget does here"},
     {"max_num_partial_prefills",
      "limits prompts of an iteration, which only the budget does here"},
     {"long_prefill_token_threshold", "cuts long prompts, which only the budget does here"},
     {"guided_decoding_backend|structured_outputs_config",
      "constrains answers, whose cost is not modelled"}}};

// Settings that change no price: names, places, logs, texts, and what the tables have settled.
const std::vector<std::string> harmless_server_keys = words_in(R"(
    additional_config allow_ all2all_backend api_ attention_backend async_scheduling attn_backend
    backend batch_wait cache_transceiver_config chat_template collect_ compilation_config config
    constrained_json cuda_graph crash_dump data_parallel_address
    data_parallel_backend data_parallel_hybrid_lb data_parallel_rpc data_parallel_size_local
    data_parallel_start_rank decode_attention_backend decode_log_interval deepep_mode default_
    disable_custom_all_reduce disable_log disable_shared_experts_fusion disaggregation_ dist_
    distributed_executor download_dir dyn_ enable_auto_tool enable_cache_report enable_flashinfer
    enable_iter enable_log enable_metrics enable_prompt_tokens_details enable_request_id
    enable_server_load endpoint extra_engine_args extra_llm_api_options fail_fast fp8_gemm
    generation_config gpus_per_node hf_ host http ipc is_ iter_ kv_events_config
    kv_transfer_config load_balance load_format log_ mamba_ master_ max_beam_width max_input_len
    max_logprobs metadata_server metrics mm_ model_impl moe_a2a_backend
    moe_config.backend moe_config.max_num_tokens moe_dense_tp_size moe_runner_backend multi_modal
    nccl_ nnodes num_nodes no_log nsys num_postprocess numa otlp override_ perf_metrics pod_ip
    port postprocess prefill_attention_backend preferred_sampling print_iter_log quiet random_seed
    reasoning_parser request_plane response_role return_ revision root_path sampling_
    schedule_conservativeness seed served_model_name shutdown skip_server_warmup
    skip_tokenizer_init speculative_config. speculative_draft ssl_ stream_output tokenizer tool_
    trust_remote_code uvicorn use_tqdm warmups watchdog_timeout web)");

}  // namespace

void ServerReader::note_rest() {
  if (!flag("async_scheduling", true))
    note("async_scheduling", "is off; assumed: the overlapped host");
  for (const Settings* settings : {&command_.words, &command_.file}) {
    note_otherwise(*settings, otherwise, part_.notes);
    note_unread(*settings, harmless_server_keys, part_.notes);
  }
}

namespace {

using Json = nlohmann::ordered_json;

// Sorts keys in the order of docs/explanation/serving.md.
Json ordered(const Json& keys) {
  Json all = Json::object();
  for (const DeploymentKey& key : deployment_keys())
    if (keys.contains(key.name)) all[key.name] = keys[key.name];
  return all;
}

// Servers of one kind are replicas of each other.
struct Pool {
  std::optional<Json> keys;
  std::int64_t servers = 0;
};

void add(Pool& pool, const ServedPart& part, const ServerCommand& command) {
  ++pool.servers;
  if (pool.keys && *pool.keys != part.keys)
    fail_input(command.words.place(),
               "starts servers that differ: " + pool.keys->dump() + " and " + part.keys.dump(),
               "give a script that starts one of them");
  pool.keys = part.keys;
}

Json finished(const Pool& pool) {
  Json keys = *pool.keys;
  keys["replicas"] = keys.value("replicas", std::int64_t{1}) * pool.servers;
  return ordered(keys);
}

std::int64_t gpus_of(const Json& keys) {
  std::int64_t gpus = 1;
  for (const char* degree : {"tp", "pp", "dp", "replicas"})
    gpus *= keys.value(degree, std::int64_t{1});
  return gpus;
}

std::string answer(const RecipeAnswers& answers, const char* key) {
  const auto found = answers.set.find(key);
  return found == answers.set.end() ? "" : found->second;
}

// Refuses formats that the engine lacks, which `orrery serve` would refuse as well.
void need_formats(const ServingEngine& engine, const Pool& pool, const Place& place) {
  if (!pool.keys) return;
  for (const auto& [key, known] :
       {std::pair{"weights", &engine.weights}, std::pair{"attention", &engine.weights},
        std::pair{"experts", &engine.experts}, std::pair{"kv", &engine.kv}}) {
    const auto found = pool.keys->find(key);
    if (found == pool.keys->end() || !found->is_string()) continue;
    const std::string word = found->get<std::string>();
    if (std::find(known->begin(), known->end(), word) == known->end())
      fail_infeasible(place,
                      "needs " + word + " for " + key + ", which the engine '" + engine.name +
                          "' lacks: it has " + joined(*known),
                      "name an engine that has it by --engine: orrery list engines");
  }
}

// The profile of vLLM's release; others have one of their newest alone.
std::string profile_of(const StartedServers& started, std::vector<std::string>& notes) {
  const std::string usual = name(started.servers.front().kind);
  if (!started.vllm_release || started.servers.front().kind != ServerKind::vllm) return usual;
  const auto& [major, minor] = *started.vllm_release;
  // The releases that the titles of workloads/engines/vllm*.json name.
  const std::string profile = major > 0 || minor >= 14 ? usual
                              : minor >= 8             ? "vllm-2025"
                                                       : "vllm-2024";
  if (profile != usual)
    notes.push_back("vLLM " + std::to_string(major) + "." + std::to_string(minor) +
                    " is priced as " + profile + "; of the newest: --engine " + usual);
  return profile;
}

}  // namespace

ImportedRun import_servers(const std::vector<RecipeFile>& files, const RecipeAnswers& answers) {
  const StartedServers started = find_servers(files, answers);
  ImportedRun run;
  run.notes = started.notes;
  const std::string engine = answer(answers, "engine");
  const std::string engine_word = engine.empty() ? profile_of(started, run.notes) : engine;
  const ServingEngine priced = read_serving_engine(engine_word, {"--engine", ""});
  std::optional<ServedPart> first;
  Pool pools[3];
  for (const ServerCommand& command : started.servers) {
    ServedPart part = ServerReader{command, answers, priced}.read();
    for (const std::string& note : part.notes)
      if (std::find(run.notes.begin(), run.notes.end(), note) == run.notes.end())
        run.notes.push_back(note);
    if (part.is_further_node) continue;
    if (first &&
        (first->model.name != part.model.name || first->prefix_cache != part.prefix_cache ||
         started.servers.front().kind != command.kind))
      fail_input(command.words.place(), "starts servers of different models or engines",
                 "give a script that starts one of them");
    add(pools[static_cast<std::size_t>(part.role)], part, command);
    if (!first) first = std::move(part);
  }
  const Place place = started.servers.front().words.place();
  if (!first)
    fail_input(place, "starts further nodes of a server, but not its first",
               "give the command of the first node");
  const Pool& all = pools[0];
  const Pool& prefill = pools[1];
  const Pool& decode = pools[2];
  if (all.keys ? prefill.keys || decode.keys : !prefill.keys || !decode.keys)
    fail_input(place,
               all.keys ? "starts servers of pools and servers without"
                        : std::string{"starts no server that "} +
                              (prefill.keys ? "goes on with the prompts" : "computes prompts"),
               "give a script that starts both pools, or neither");
  Json file = Json::object();
  file["schema"] = "orrery.deployment/1";
  if (first->catalog_name.empty())
    file["model"] = Json::parse(first->model.document->compact());
  else
    file["model"] = first->catalog_name;
  file["checkpoint"] = first->checkpoint;
  for (const Pool& pool : pools) need_formats(priced, pool, place);
  file["engine"] = engine_word;
  if (!answer(answers, "system").empty()) file["system"] = answer(answers, "system");
  if (all.keys) {
    const Json keys = finished(all);
    file["gpus"] = gpus_of(keys);
    file.update(keys);
  } else {
    file["prefill"] = finished(prefill);
    file["decode"] = finished(decode);
  }
  if (!first->prefix_cache) file["prefix_cache"] = false;
  if (!started.router.empty()) file["router"] = started.router;
  run.json = file.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  return run;
}

}  // namespace orrery
