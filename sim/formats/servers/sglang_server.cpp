#include <algorithm>

#include "sim/formats/servers/server_reader.hpp"
#include "sim/model/layer_pattern.hpp"
#include "sim/serving/served_layers.hpp"

namespace orrery {

// Names as of python/sglang/srt/server_args.py.
void ServerReader::read_sglang() {
  if (having("node_rank").number("node_rank", 0) > 0) part_.is_further_node = true;
  const std::int64_t ranks = count("tp_size|tp|tensor_parallel_size", 1);
  const std::int64_t copies = count("dp_size|dp|data_parallel_size", 1);
  const bool attention = flag("enable_dp_attention", false) && copies > 1;
  const std::string all_to_all = word("moe_a2a_backend", "none");
  const bool deep =
      (all_to_all != "none" && all_to_all != "None") || flag("enable_deepep_moe", false);
  // Ranks are those of all attention replicas together; DeepEP shards experts over all of them.
  if (attention && ranks % copies != 0)
    refuse("dp_size|dp|data_parallel_size",
           "does not divide the " + std::to_string(ranks) + " ranks of tp_size", "write a divisor");
  if (attention && !part_.model.experts)
    refuse("enable_dp_attention",
           "copies attention of a model without experts, which share nothing",
           "leave it out: --set enable_dp_attention=false");
  part_.keys["tp"] = attention ? ranks / copies : ranks;
  part_.keys["pp"] = count("pp_size|pp|pipeline_parallel_size", 1);
  // With DeepEP the server sets ep_size to tp_size, whatever was asked for.
  const std::int64_t stated = count("ep_size|ep|expert_parallel_size", 1);
  const std::int64_t parts = deep ? ranks : stated;
  if (part_.model.experts) {
    if (ranks % parts != 0)
      refuse("ep_size|ep|expert_parallel_size",
             "does not divide the " + std::to_string(ranks) + " ranks of tp_size",
             "write a divisor");
    part_.keys["dp"] = attention ? copies : 1;
    part_.keys["ep"] = parts;
    part_.keys["moe_tp"] = ranks / parts;
  }
  if (!attention && copies > 1) part_.keys["replicas"] = copies;
  read_dispatch("enable_two_batch_overlap", "ep_num_redundant_experts");
  refuse_on("cpu_offload_gb", "keeps weights on the host, which is not modelled");
  refuse_on("enable_lora|lora_paths", "serves LoRA adapters, which are not modelled");
  refuse_on("is_embedding", "makes no answers");
  refuse_on("attn_cp_size|attention_context_parallel_size",
            "cuts attention over ranks by tokens, which is not modelled");
  read_formats("quantization", "dtype", "kv_cache_dtype");
  read_states("mamba_ssm_dtype", "mamba_full_memory_ratio");
  read_windows();
  if (const std::string runner = word("moe_runner_backend", "auto");
      part_.model.experts && runner != "auto" && runner != "flashinfer_mxfp4")
    part_.keys["trtllm_gen"] = runner.starts_with("flashinfer_trtllm");
  // Both are of all copies together.
  const std::int64_t share = attention ? copies : 1;
  const auto take_shared = [&](const char* key, const std::string& paths) {
    take_count(key, paths);
    if (part_.keys.contains(key))
      part_.keys[key] = std::max<std::int64_t>(1, part_.keys[key].get<std::int64_t>() / share);
  };
  const std::string parts_of_prompts = "chunked_prefill_size";
  if (having(parts_of_prompts).number(parts_of_prompts, 1) == -1) {
    part_.keys["chunked"] = false;
    take_count("budget", "max_prefill_tokens");
  } else {
    take_shared("budget", parts_of_prompts);
    if (has("max_prefill_tokens")) note("max_prefill_tokens", "is read only without chunks");
  }
  if (flag("enable_mixed_chunk", false)) part_.keys["mixed"] = true;
  take_shared("max_seqs", "max_running_requests");
  take_length("context_length");
  take_share("mem_fraction_static");
  take_count("block", "page_size");
  part_.prefix_cache = !flag("disable_radix_cache", false);
  if (flag("enable_hierarchical_cache", false)) {
    if (word("hicache_size", "0") != "0")
      take_host_memory("hicache_size", 1e9, 1);
    else
      note("enable_hierarchical_cache",
           "has host memory of hicache_ratio times the GPU's cache, which is not counted: give it "
           "in GB, --set hicache_size=64");
    const std::string policy = word("hicache_write_policy", "write_through");
    if (policy != "write_through")
      note("hicache_write_policy", "is " + policy + "; modelled is write_through");
    if (has("hicache_storage_backend"))
      note("hicache_storage_backend", "is a tier behind the host's memory, which is not counted");
  }
  const std::string mode = word("disaggregation_mode", "null");
  if (mode == "prefill") part_.role = ServerRole::prefill;
  if (mode == "decode") part_.role = ServerRole::decode;
  read_prefill_delay(attention && part_.model.experts.has_value());
  read_receive_interval(attention);
  read_sglang_draft();
}

// Models without windows have no such pool.
void ServerReader::read_windows() {
  const std::string path = "swa_full_tokens_ratio";
  const Model& model = part_.model;
  const bool has_windows =
      model.window > 0 ||
      (model.pattern && std::ranges::any_of(model.pattern->shapes,
                                            [](const Model& shape) { return shape.window > 0; }));
  if (has_compressed_attention(model) && engine_.memory.window_ratio > 0.0)
    take_ratio("window_ratio", path, 1.0);
  else if (has(path) && (has_windows || has_compressed_attention(model)))
    note(path,
         "is left out: a pool for windows alone is modelled for compressed attention in the "
         "engine sglang, and layers with a window keep all tokens");
}

// Servers that only decode ignore it (managers/scheduler.py).
void ServerReader::read_prefill_delay(bool shares_experts) {
  const std::string most = "prefill_delayer_max_delay_passes";
  if (!flag("enable_prefill_delayer", false)) return;
  const std::int64_t passes = having(most).number(most, 30);
  if (passes < 0 || passes > 1 << 20)
    refuse(most, "is " + std::to_string(passes), "write a number of iterations, as 30");
  if (!shares_experts || part_.role == ServerRole::decode) return;
  if (part_.role == ServerRole::prefill)
    return note("enable_prefill_delayer", "is not modelled in a pool that prefills only");
  part_.keys["prefill_delay"] = passes;
}

// An interval of at most 1 receives requests in every step (managers/scheduler_recv_skipper.py).
void ServerReader::read_receive_interval(bool copies_attention) {
  const std::string path = "scheduler_recv_interval";
  const std::int64_t steps = having(path).number(path, 1);
  if (steps <= 1) return;
  if (steps > 1 << 20)
    refuse(path, "is " + std::to_string(steps), "write a number of decode steps, as 30");
  if (copies_attention || part_.keys["pp"] != 1 || part_.role != ServerRole::all)
    return note(path, "is left out: it is modelled for one attention rank, one stage and no pools");
  part_.keys["receive_interval"] = steps;
}

void ServerReader::read_sglang_draft() {
  const std::string algorithm = "speculative_algorithm|speculative_algo";
  if (!has(algorithm)) return;
  const std::string model = word("speculative_draft_model_path|speculative_draft_model", "");
  const bool own = part_.model.prediction_layers > 0;
  const std::string method = having(algorithm).choice(algorithm, {{"NEXTN", "mtp"},
                                                                  {"EAGLE", own ? "mtp" : "eagle3"},
                                                                  {"EAGLE3", "eagle3"},
                                                                  {"STANDALONE", "draft"},
                                                                  {"NGRAM", "ngram"}});
  const std::string steps = "speculative_num_steps", wide = "speculative_eagle_topk";
  if (having(wide).number(wide, 1) != 1)
    refuse(wide, "drafts a tree of tokens, which is not modelled", "write 1: --set " + wide + "=1");
  const std::string drafts = method == "ngram" ? "speculative_num_draft_tokens" : steps;
  if (!has(drafts))
    refuse(algorithm, "drafts as many tokens as the engine chooses", "add " + drafts);
  having("speculative_num_draft_tokens").find("speculative_num_draft_tokens");
  read_draft(method, model, having(drafts).number(drafts, 1), drafts);
}

}  // namespace orrery
