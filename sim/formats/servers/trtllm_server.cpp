#include "sim/formats/servers/server_reader.hpp"
#include "sim/serving/served_layers.hpp"

namespace orrery {

// Names as of tensorrt_llm/llmapi/llm_args.py (the file), tensorrt_llm/commands/serve.py and
// Dynamo's components/src/dynamo/trtllm (the words).
void ServerReader::read_trtllm() {
  const std::int64_t ranks = count("tensor_parallel_size|tp_size|tp", 1);
  const bool attention = flag("enable_attention_dp", false) && ranks > 1;
  if (attention && !part_.model.experts)
    refuse("enable_attention_dp",
           "copies attention of a model without experts, which share nothing",
           "leave it out: --set enable_attention_dp=false");
  part_.keys["tp"] = attention ? 1 : ranks;
  part_.keys["pp"] = count("pipeline_parallel_size|pp_size", 1);
  refuse_on("context_parallel_size|cp_size", "cuts tokens over ranks, which is not modelled");
  refuse_on("moe_cluster_parallel_size|cluster_size",
            "cuts experts over clusters of ranks, which is not modelled");
  refuse_on("enable_lora|lora_config", "serves LoRA adapters, which are not modelled");
  if (part_.model.experts) {
    const std::string of_experts = "moe_expert_parallel_size|expert_parallel_size|ep_size|ep",
                      of_each = "moe_tensor_parallel_size";
    std::int64_t ep = having(of_experts).number(of_experts, -1);
    std::int64_t each = having(of_each).number(of_each, -1);
    // mapping.py: each follows from the other; without both, experts are tensor-parallel.
    if (ep < 1 && each < 1) ep = 1;
    if (ep < 1) ep = std::max<std::int64_t>(1, ranks / each);
    if (each < 1) each = std::max<std::int64_t>(1, ranks / ep);
    if (ep * each != ranks || ep > ranks)
      refuse(of_experts,
             "x moe_tensor_parallel_size is " + std::to_string(ep) + " x " + std::to_string(each) +
                 ", not the " + std::to_string(ranks) + " ranks",
             "make both products equal");
    part_.keys["dp"] = attention ? ranks : 1;
    part_.keys["ep"] = ep;
    part_.keys["moe_tp"] = each;
  }
  if (is_on(having("quant_config"), "quant_config"))
    refuse("quant_config", "quantises weights as they are loaded, which is not read",
           "leave it out (--set quant_config=null), and give orrery serve --weights fp8 or nvfp4");
  const std::string cache = "kv_cache_config.dtype|kv_cache_dtype";
  read_formats("", "dtype", cache);
  read_states("kv_cache_config.mamba_ssm_cache_dtype", "");
  if (word(cache, "auto") == "auto" && checkpoint_.is_quantised() && !checkpoint_.kv &&
      checkpoint_.said_by != "quantization_config" && !has_compressed_attention(part_.model))
    part_.notes.push_back(
        "kv_cache_config.dtype is that of the checkpoint, which is not here; "
        "taken are 16 bits: --set kv_cache_config.dtype=fp8");
  take_count("budget", "max_num_tokens");
  take_count("max_seqs", "max_batch_size");
  take_length("max_seq_len");
  take_share(
      "kv_cache_config.free_gpu_memory_fraction|kv_cache_free_gpu_memory_fraction|"
      "free_gpu_memory_fraction");
  take_count("block", "kv_cache_config.tokens_per_block|kv_block_size");
  read_graph_sizes();
  if (has("enable_chunked_prefill")) part_.keys["chunked"] = flag("enable_chunked_prefill", false);
  part_.prefix_cache = flag("kv_cache_config.enable_block_reuse", true);
  take_host_memory("kv_cache_config.host_cache_size", 1.0, 1);
  const std::string policy = "scheduler_config.capacity_scheduler_policy";
  if (word(policy, "GUARANTEED_NO_EVICT") != "GUARANTEED_NO_EVICT")
    note(policy, "is " + word(policy, "") + "; modelled is GUARANTEED_NO_EVICT");
  const std::string mode = word("disaggregation_mode|server_role", "");
  if (mode == "prefill" || mode == "CONTEXT" || mode == "context") part_.role = ServerRole::prefill;
  if (mode == "decode" || mode == "GENERATION" || mode == "generation")
    part_.role = ServerRole::decode;
  read_trtllm_draft();
}

// Without padding only batches of exactly these sizes run as graphs, which is not modelled.
void ServerReader::read_graph_sizes() {
  const std::string sizes = "cuda_graph_config.batch_sizes";
  if (!has(sizes) || !flag("cuda_graph_config.enable_padding", false)) return;
  const SettingsTree* list = having(sizes).find(sizes);
  if (list->kind != SettingsTree::Kind::list) return;
  std::vector<std::string> words;
  for (const SettingsTree& item : list->items) words.push_back(item.text);
  part_.keys["graph_sizes"] = joined(words, "/");
}

void ServerReader::read_trtllm_draft() {
  const std::string all = "speculative_config";
  if (!has(all)) return;
  const std::string kind = all + ".decoding_type";
  const std::string method = having(kind).choice(kind, {{"", "none"},
                                                        {"MTP", "mtp"},
                                                        {"Eagle", "eagle3"},
                                                        {"Eagle3", "eagle3"},
                                                        {"DraftTarget", "draft"},
                                                        {"Draft_Target", "draft"},
                                                        {"NGram", "ngram"}});
  if (method == "none") refuse(all, "does not say decoding_type", "add it");
  const std::string size = method == "mtp" && has(all + ".num_nextn_predict_layers")
                               ? all + ".num_nextn_predict_layers"
                               : all + ".max_draft_len";
  if (!has(size)) refuse(all, "does not say max_draft_len", "add it");
  read_draft(method, word(all + ".speculative_model_dir|" + all + ".speculative_model", ""),
             having(size).number(size, 1), size);
}

}  // namespace orrery
