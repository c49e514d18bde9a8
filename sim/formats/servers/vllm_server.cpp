#include "sim/formats/servers/server_reader.hpp"

namespace orrery {

// Names as of vllm/engine/arg_utils.py.
void ServerReader::read_vllm() {
  for (const char* further : {"node_rank", "data_parallel_start_rank", "data_parallel_rank"})
    if (having(further).number(further, 0) > 0) part_.is_further_node = true;
  if (flag("headless", false)) part_.is_further_node = true;
  const std::int64_t tp = count("tensor_parallel_size|tp", 1);
  const std::int64_t copies = count("data_parallel_size|dp", 1);
  part_.keys["tp"] = tp;
  part_.keys["pp"] = count("pipeline_parallel_size|pp", 1);
  const bool parts = flag("enable_expert_parallel|ep", false);
  if (part_.model.experts) {
    part_.keys["dp"] = copies;
    part_.keys["ep"] = parts ? tp * copies : 1;
    part_.keys["moe_tp"] = parts ? 1 : tp * copies;
  } else if (copies > 1) {
    part_.keys["replicas"] = copies;
  }
  read_dispatch("enable_dbo", "eplb_config.num_redundant_experts|num_redundant_experts");
  for (const char* cut : {"decode_context_parallel_size|dcp", "prefill_context_parallel_size|pcp"})
    refuse_on(cut, "cuts the KV cache over ranks by tokens, which is not modelled");
  refuse_on("cpu_offload_gb", "keeps weights on the host, which is not modelled");
  refuse_on("enable_lora", "serves LoRA adapters, which are not modelled");
  const std::string runner = word("runner|task", "auto");
  if (runner != "auto" && runner != "generate")
    refuse("runner|task", "is " + runner + ", which makes no answers", "import servers that do");
  read_formats("quantization|q", "dtype", "kv_cache_dtype");
  read_states("mamba_ssm_cache_dtype", "");
  if (has("max_num_batched_tokens")) part_.keys["budget"] = tokens_of("max_num_batched_tokens");
  take_count("max_seqs", "max_num_seqs");
  take_length("max_model_len");
  take_share("gpu_memory_utilization");
  take_count("block", "block_size");
  if (has("enable_chunked_prefill")) part_.keys["chunked"] = flag("enable_chunked_prefill", true);
  part_.prefix_cache = flag("enable_prefix_caching", true);
  // vllm/config/cache.py: GiB, of all ranks of a copy together.
  const std::int64_t ranks = tp * part_.keys["pp"].get<std::int64_t>();
  if (word("kv_offloading_backend", "native") == "native")
    take_host_memory("kv_offloading_size", 1024.0 * 1024.0 * 1024.0, ranks);
  else
    note("kv_offloading_backend", "keeps keys and values in ways that are not modelled");
  read_vllm_draft();
  read_vllm_role();
}

void ServerReader::read_vllm_draft() {
  const std::string all = "speculative_config";
  if (!has(all)) return;
  const std::string size = all + ".num_speculative_tokens";
  const std::string model = word(all + ".model", "");
  const std::string stated = word(all + ".method", "");
  const auto says = [&](const char* text) {
    return (stated.empty() ? model : stated).find(text) != std::string::npos;
  };
  if (word(all + ".draft_tensor_parallel_size", "1") != "1")
    note(all + ".draft_tensor_parallel_size", "is read as the model's own");
  const std::string method = says("mtp") || says("MTP")                  ? "mtp"
                             : says("eagle") || says("EAGLE")            ? "eagle3"
                             : says("ngram")                             ? "ngram"
                             : stated.empty() || stated == "draft_model" ? "draft"
                                                                         : "";
  if (method.empty())
    refuse(all + ".method", "is '" + stated + "', a way to draft that is not modelled",
           "write mtp, eagle3, draft_model or ngram");
  if (!has(size)) refuse(all, "does not say num_speculative_tokens", "add it");
  read_draft(method, model, having(size).number(size, 1), size);
}

void ServerReader::read_vllm_role() {
  // Dynamo's workers (components/src/dynamo/vllm/args.py).
  const std::string mode = word("disaggregation_mode", "");
  if (flag("is_prefill_worker", false) || mode == "prefill") part_.role = ServerRole::prefill;
  if (flag("is_decode_worker", false) || mode == "decode") part_.role = ServerRole::decode;
  const std::string transfer = "kv_transfer_config";
  if (!has(transfer)) return;
  const std::string connector = word(transfer + ".kv_connector", "");
  const std::string role = word(transfer + ".kv_role", "");
  const std::string bytes = transfer + ".kv_connector_extra_config.cpu_bytes_to_use";
  if (connector == "OffloadingConnector" && has(bytes))
    take_host_memory(bytes, 1.0,
                     part_.keys["tp"].get<std::int64_t>() * part_.keys["pp"].get<std::int64_t>());
  else if (connector.find("Offloading") != connector.npos ||
           connector.find("LMCache") != connector.npos)
    note(transfer + ".kv_connector", "keeps keys and values outside the GPU, which is not counted");
  if (role == "kv_producer") part_.role = ServerRole::prefill;
  if (role == "kv_consumer") part_.role = ServerRole::decode;
  const bool is_dynamo = command_.program.starts_with("dynamo");
  if (role == "kv_both" && connector.find("Nixl") != connector.npos && !is_dynamo &&
      part_.role == ServerRole::all)
    refuse(transfer + ".kv_role", "does not say whether it computes prompts or goes on with them",
           "write kv_producer or kv_consumer, which NixlConnector takes as well");
}

}  // namespace orrery
