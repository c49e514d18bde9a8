#include "sim/formats/servers/server_flags.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/formats/servers/server_commands.hpp"
#include "sim/formats/servers/server_reader.hpp"
#include "sim/model/model_name.hpp"

namespace orrery {
namespace {

constexpr double gibibyte = 1024.0 * 1024.0 * 1024.0;

// Written with the digits that reading it back takes.
std::string size_text(double size) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, size);
  return std::string(text, end);
}

std::string share_text(double share) {
  std::string text = std::to_string(share);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

// The name of Hugging Face's hub in the model's source, if it leads back to the model.
std::string hub_name(const Model& model) {
  const std::string mark = "Hugging Face ";
  const std::size_t at = model.source.find(mark);
  if (at != model.source.npos) {
    const std::size_t begin = at + mark.size();
    const std::string name = model.source.substr(begin, model.source.find(' ', begin) - begin);
    if (name.find('/') != name.npos && catalog_model(name) == model.name) return name;
  }
  return model.name;
}

class FlagsWriter {
 public:
  FlagsWriter(const ServerSpec& spec, ServerKind kind)
      : spec_{spec}, kind_{kind}, plan_{spec.plan} {
    // A bare request gives the engine's defaults on this GPU.
    DeploymentRequest bare;
    bare.tp = plan_.tp;
    bare.pp = plan_.pp;
    bare.dp = plan_.dp;
    bare.ep = plan_.ep;
    bare.moe_tp = plan_.moe_tp;
    bare.replicas = 1;
    usual_ = make_deployment(spec.model, spec.system, spec.engine, bare,
                             static_cast<int>(plan_.replica_gpus()), {"", ""});
  }

  ServerFlags write() {
    formats();
    switch (kind_) {
      case ServerKind::vllm:
        vllm();
        break;
      case ServerKind::sglang:
        sglang();
        break;
      case ServerKind::trtllm:
        trtllm();
        break;
    }
    return std::move(flags_);
  }

 private:
  void vllm() {
    add("vllm");
    add("serve");
    add(checkpoint_);
    add("--tensor-parallel-size", plan_.tp);
    if (plan_.pp > 1) add("--pipeline-parallel-size", plan_.pp);
    if (plan_.dp > 1) add("--data-parallel-size", plan_.dp);
    if (plan_.ep > 1) {
      add("--enable-expert-parallel");
      if (plan_.eplb) add("--enable-eplb");
      if (plan_.redundant_experts > 0)
        add("--eplb-config",
            "'{\"num_redundant_experts\":" + std::to_string(plan_.redundant_experts) + "}'");
      if (plan_.two_batch) add("--enable-dbo");
    }
    if (!quantization_.empty()) add("--quantization", quantization_);
    if (half_) add("--dtype", "float16");
    if (!cache_.empty()) add("--kv-cache-dtype", cache_);
    if (plan_.request.states) add("--mamba-ssm-cache-dtype", states_word());
    if (says(&DeploymentRequest::budget, &Deployment::budget))
      add("--max-num-batched-tokens", plan_.budget);
    if (says(&DeploymentRequest::max_seqs, &Deployment::max_seqs))
      add("--max-num-seqs", plan_.max_seqs);
    if (states_length_) add("--max-model-len", plan_.max_length);
    if (says(&DeploymentRequest::kv_share, &Deployment::kv_share))
      add("--gpu-memory-utilization", share_text(plan_.kv_share));
    if (says(&DeploymentRequest::block, &Deployment::block)) add("--block-size", plan_.block);
    if (says(&DeploymentRequest::chunked, &Deployment::chunked))
      add(plan_.chunked ? "--enable-chunked-prefill" : "--no-enable-chunked-prefill");
    if (!spec_.prefix_cache) add("--no-enable-prefix-caching");
    if (plan_.host_kv > Bytes{}) {
      // The flag is in GiB, for all ranks of an attention replica together.
      const double gib = plan_.host_kv.si() / gibibyte * static_cast<double>(plan_.tp * plan_.pp);
      add("--kv-offloading-size", size_text(gib));
      add("--kv-offloading-backend", "native");
    }
    if (plan_.speculation) {
      const Speculation& drafts = *plan_.speculation;
      const char* methods[] = {"mtp", "eagle3", "draft_model", "ngram"};
      std::string json =
          std::string{"'{\"method\":\""} + methods[static_cast<std::size_t>(drafts.method)] + "\"";
      const std::string drafter = drafter_name();
      if (!drafter.empty()) json += ",\"model\":\"" + drafter + "\"";
      add("--speculative-config",
          json + ",\"num_speculative_tokens\":" + std::to_string(drafts.tokens) + "}'");
    }
    if (spec_.role != ServerRole::all)
      add("--kv-transfer-config",
          std::string{"'{\"kv_connector\":\"NixlConnector\",\"kv_role\":\""} +
              (spec_.role == ServerRole::prefill ? "kv_producer" : "kv_consumer") + "\"}'");
  }

  void sglang() {
    for (const char* word : {"python3", "-m", "sglang.launch_server"}) add(word);
    add("--model-path", checkpoint_);
    add("--tp-size", plan_.stage_gpus());
    if (plan_.pp > 1) add("--pp-size", plan_.pp);
    if (plan_.dp > 1) {
      add("--dp-size", plan_.dp);
      add("--enable-dp-attention");
    }
    if (plan_.ep > 1) add("--ep-size", plan_.ep);
    if (plan_.dispatches) add("--moe-a2a-backend", "deepep");
    if (plan_.eplb) add("--enable-eplb");
    if (plan_.redundant_experts > 0) add("--ep-num-redundant-experts", plan_.redundant_experts);
    if (plan_.two_batch) add("--enable-two-batch-overlap");
    if (plan_.prefill_delay > 0) {
      add("--enable-prefill-delayer");
      add("--prefill-delayer-max-delay-passes", plan_.prefill_delay);
    }
    if (plan_.receive_interval > 1) add("--scheduler-recv-interval", plan_.receive_interval);
    if (!quantization_.empty()) add("--quantization", quantization_);
    if (half_) add("--dtype", "float16");
    if (!cache_.empty()) add("--kv-cache-dtype", cache_);
    if (plan_.request.states) add("--mamba-ssm-dtype", states_word());
    if (plan_.request.state_ratio)
      add("--mamba-full-memory-ratio", share_text(*plan_.request.state_ratio));
    if (plan_.request.window_ratio)
      add("--swa-full-tokens-ratio", share_text(*plan_.request.window_ratio));
    if (plan_.request.trtllm_gen)
      add("--moe-runner-backend", *plan_.request.trtllm_gen ? "flashinfer_trtllm" : "triton");
    // Both count for all copies of attention together.
    if (!plan_.chunked) {
      add("--chunked-prefill-size", -1);
      if (says(&DeploymentRequest::budget, &Deployment::budget))
        add("--max-prefill-tokens", plan_.budget);
    } else if (says(&DeploymentRequest::budget, &Deployment::budget)) {
      add("--chunked-prefill-size", plan_.budget * plan_.dp);
    }
    if (plan_.mixed) add("--enable-mixed-chunk");
    if (says(&DeploymentRequest::max_seqs, &Deployment::max_seqs))
      add("--max-running-requests", plan_.max_seqs * plan_.dp);
    if (states_length_) add("--context-length", plan_.max_length);
    if (says(&DeploymentRequest::kv_share, &Deployment::kv_share))
      add("--mem-fraction-static", share_text(plan_.kv_share));
    if (says(&DeploymentRequest::block, &Deployment::block)) add("--page-size", plan_.block);
    if (!spec_.prefix_cache) add("--disable-radix-cache");
    if (plan_.host_kv > Bytes{}) {
      add("--enable-hierarchical-cache");
      const std::int64_t gigabytes =
          std::max<std::int64_t>(1, std::llround(plan_.host_kv.si() / 1e9));
      if (static_cast<double>(gigabytes) * 1e9 != plan_.host_kv.si())
        leave_out("no flag has " + gigabytes_text(plan_.host_kv) +
                  " of host memory; the command takes whole GB");
      add("--hicache-size", gigabytes);
    }
    if (plan_.speculation) {
      const Speculation& drafts = *plan_.speculation;
      const char* algorithms[] = {"NEXTN", "EAGLE3", "STANDALONE", "NGRAM"};
      add("--speculative-algorithm", algorithms[static_cast<std::size_t>(drafts.method)]);
      const std::string drafter = drafter_name();
      if (!drafter.empty()) add("--speculative-draft-model-path", drafter);
      if (drafts.method == DraftMethod::ngram) {
        add("--speculative-num-draft-tokens", drafts.tokens);
      } else {
        add("--speculative-num-steps", drafts.tokens);
        add("--speculative-eagle-topk", 1);
        add("--speculative-num-draft-tokens", drafts.tokens + 1);
      }
    }
    if (spec_.role != ServerRole::all)
      add("--disaggregation-mode", spec_.role == ServerRole::prefill ? "prefill" : "decode");
  }

  // TensorRT-LLM takes all of it by file; its pools are Dynamo's.
  void trtllm() {
    if (spec_.role == ServerRole::all) {
      add("trtllm-serve");
      add(checkpoint_);
      add("--extra_llm_api_options", spec_.settings_file);
    } else {
      for (const char* word : {"python3", "-m", "dynamo.trtllm"}) add(word);
      add("--model-path", checkpoint_);
      add("--disaggregation-mode", spec_.role == ServerRole::prefill ? "prefill" : "decode");
      add("--extra-engine-args", spec_.settings_file);
    }
    set("tensor_parallel_size", plan_.stage_gpus());
    if (plan_.pp > 1) set("pipeline_parallel_size", plan_.pp);
    if (plan_.dp > 1) {
      set("enable_attention_dp", "true");
      if (plan_.tp > 1)
        leave_out("no setting copies attention " + std::to_string(plan_.dp) + " times over " +
                  std::to_string(plan_.stage_gpus()) + " ranks; the command copies it on each");
    }
    if (plan_.ep > 1) set("moe_expert_parallel_size", plan_.ep);
    if (plan_.eplb)
      leave_out("the balancer of experts is a file of its own: moe_config.load_balancer");
    if (plan_.two_batch) leave_out("no setting overlaps two halves of a batch");
    if (plan_.ep > 1 && plan_.moe_tp > 1) set("moe_tensor_parallel_size", plan_.moe_tp);
    if (half_) set("dtype", "float16");
    if (says(&DeploymentRequest::budget, &Deployment::budget)) set("max_num_tokens", plan_.budget);
    if (says(&DeploymentRequest::max_seqs, &Deployment::max_seqs))
      set("max_batch_size", plan_.max_seqs);
    if (states_length_) set("max_seq_len", plan_.max_length);
    if (says(&DeploymentRequest::chunked, &Deployment::chunked))
      set("enable_chunked_prefill", plan_.chunked ? "true" : "false");
    std::string cache;
    const auto keep = [&](const char* key, const std::string& value) {
      cache += std::string{"  "} + key + ": " + value + "\n";
    };
    if (!cache_.empty()) keep("dtype", cache_);
    if (plan_.request.states) keep("mamba_ssm_cache_dtype", states_word());
    if (says(&DeploymentRequest::kv_share, &Deployment::kv_share))
      keep("free_gpu_memory_fraction", share_text(plan_.kv_share));
    if (says(&DeploymentRequest::block, &Deployment::block))
      keep("tokens_per_block", std::to_string(plan_.block));
    if (!spec_.prefix_cache) keep("enable_block_reuse", "false");
    if (plan_.host_kv > Bytes{})
      keep("host_cache_size", std::to_string(std::llround(plan_.host_kv.si())));
    if (!cache.empty()) flags_.settings += "kv_cache_config:\n" + cache;
    if (plan_.request.graph_sizes) {
      std::string sizes;
      for (const std::int64_t size : *plan_.request.graph_sizes)
        sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
      flags_.settings +=
          "cuda_graph_config:\n  enable_padding: true\n  batch_sizes: [" + sizes + "]\n";
    }
    if (plan_.speculation) {
      const Speculation& drafts = *plan_.speculation;
      const char* types[] = {"MTP", "Eagle3", "DraftTarget", "NGram"};
      flags_.settings +=
          std::string{"speculative_config:\n  decoding_type: "} +
          types[static_cast<std::size_t>(drafts.method)] + "\n  " +
          (drafts.method == DraftMethod::mtp ? "num_nextn_predict_layers" : "max_draft_len") +
          ": " + std::to_string(drafts.tokens) + "\n";
      const std::string drafter = drafter_name();
      if (!drafter.empty()) flags_.settings += "  speculative_model_dir: " + drafter + "\n";
    }
  }

  // What was asked for, or differs from what the engine does by itself.
  template <class T>
  bool says(std::optional<T> DeploymentRequest::*asked, T Deployment::*value) const {
    return plan_.request.*asked || plan_.*value != usual_.*value;
  }

  std::string states_word() const {
    return plan_.states == Dtype::fp32   ? "float32"
           : plan_.states == Dtype::bf16 ? "bfloat16"
                                         : "float16";
  }

  void add(const std::string& word) { flags_.command.push_back(word); }
  void add(const char* flag, const std::string& value) {
    flags_.command.emplace_back(flag);
    flags_.command.push_back(value);
  }
  void add(const char* flag, std::int64_t value) { add(flag, std::to_string(value)); }
  void set(const char* key, const std::string& value) {
    flags_.settings += std::string{key} + ": " + value + "\n";
  }
  void set(const char* key, std::int64_t value) { set(key, std::to_string(value)); }
  void leave_out(const std::string& what) { flags_.left_out.push_back(what); }

  // The checkpoint's name gives the weights' format; quantisation by the engine is a flag.
  void formats() {
    const bool with_experts = spec_.model.experts.has_value();
    const Dtype weights = plan_.weights;
    const Dtype experts = with_experts ? plan_.experts : weights;
    half_ = weights == Dtype::fp16 || experts == Dtype::fp16;
    const auto plain = [&](Dtype format) {
      return format == Dtype::fp16 ? Dtype::bf16 : format == Dtype::nf4_dq ? Dtype::nf4 : format;
    };
    const auto is_in = [&](const CheckpointFormats& formats) {
      return plain(weights) == plain(formats.weights) &&
             plain(plan_.attention) == plain(formats.attention) &&
             plan_.ends_16bit == formats.ends_16bit &&
             (!with_experts || plain(experts) == plain(formats.experts));
    };
    CheckpointFormats published = published_formats(spec_.model);
    checkpoint_ = hub_name(spec_.model);
    bool is_known = true;
    if (!spec_.checkpoint.empty()) {
      const auto known = catalog_model(read_checkpoint_name(spec_.checkpoint).model);
      const std::optional<Model> of =
          known ? std::optional{read_model(*known, {"", ""})} : std::nullopt;
      const CheckpointFormats named = formats_of_name(spec_.checkpoint, of ? &*of : nullptr);
      is_known = known.has_value();
      if (!is_known || is_in(named) || !named.is_quantised()) {
        published = named;
        checkpoint_ = spec_.checkpoint;
      }
    }
    const std::string before = checkpoint_;
    const bool as_published = is_in(published) || !is_known;
    if (!is_known && is_narrow(experts))
      leave_out("the format of " + checkpoint_ +
                " is not known here; add --quantization if it "
                "is of 16 bits");
    const ServedFormat& served =
        *std::ranges::find(served_formats(), plain(weights), &ServedFormat::format);
    // Engines quantise 16-bit weights when they load them, but for TensorRT-LLM.
    if (!as_published && served.when_loaded && weights == experts && weights == plan_.attention &&
        !published.is_quantised() && kind_ != ServerKind::trtllm)
      quantization_ = served.quantizations.front();
    if (!as_published && quantization_.empty()) checkpoint_ += served.suffix;
    // One dtype is that of all 16-bit weights.
    const bool mixed_halves =
        with_experts && half_ && (weights == Dtype::bf16 || experts == Dtype::bf16);
    if ((!as_published && experts != weights) || mixed_halves)
      leave_out("no flag has experts in " + name(experts) + " and weights in " + name(weights));
    if (!as_published && plan_.attention != weights)
      leave_out("no flag has attention in " + name(plan_.attention) + " and weights in " +
                name(weights));
    if (!as_published && plan_.ends_16bit > 0)
      leave_out("no flag has the first and the last layers in 16 bits");
    if (checkpoint_ != before)
      leave_out(checkpoint_ + " stands for a checkpoint in " + name(weights) + "; name yours");
    const std::int64_t own =
        published.max_length > 0 ? published.max_length : spec_.model.max_sequence;
    states_length_ = plan_.max_length > 0 && plan_.max_length != own;
    const Dtype usual = published.kv && spec_.engine.takes_kv_of_checkpoint ? *published.kv
                        : half_                                             ? Dtype::fp16
                                                                            : Dtype::bf16;
    if (plan_.kv == usual) return;
    cache_ = plan_.kv == Dtype::bf16   ? "bfloat16"
             : plan_.kv == Dtype::fp16 ? "float16"
                                       : name(plan_.kv);
    if (kind_ == ServerKind::sglang && plan_.kv == Dtype::fp8) cache_ = "fp8_e4m3";
  }

  std::string drafter_name() {
    const Speculation& drafts = *plan_.speculation;
    std::string rates = speculation_text(drafts);
    rates.erase(0, rates.rfind('@') + 1);
    leave_out("no flag says how many drafted tokens are accepted (" + rates + ")");
    if (drafts.method == DraftMethod::draft) return hub_name(*plan_.drafter);
    if (drafts.method != DraftMethod::eagle) return "";
    leave_out("EAGLE3-HEAD stands for the checkpoint of the layer that drafts; name yours");
    return "EAGLE3-HEAD";
  }

  const ServerSpec& spec_;
  ServerKind kind_;
  const Deployment& plan_;
  Deployment usual_;
  ServerFlags flags_;
  std::string checkpoint_;
  bool states_length_ = false;
  std::string cache_;         ///< Format of the KV cache; "": that of the computation.
  bool half_ = false;         ///< 16 bits are float16.
  std::string quantization_;  ///< The format that the engine makes of 16 bits; "": none.
};

}  // namespace

ServerFlags server_flags(const ServerSpec& spec, const Place& at) {
  const std::vector<std::string>& names = enum_words<ServerKind>;
  const auto found = std::find(names.begin(), names.end(), spec.engine.scheduler->name);
  if (found == names.end())
    fail_input(at / "engine", "'" + spec.engine.name + "' has no server that a command starts",
               "use " + alternatives(names));
  return FlagsWriter{spec, static_cast<ServerKind>(found - names.begin())}.write();
}

namespace {

constexpr std::size_t widest = 88;

// Words in lines that end with a backslash.
std::string broken_over_lines(const std::vector<std::string>& words, const std::string& indent) {
  std::string text = indent;
  std::size_t used = indent.size();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool pairs = words[i].starts_with("-") && i + 1 < words.size() && words[i + 1][0] != '-';
    const std::size_t next = words[i].size() + (pairs ? 1 + words[i + 1].size() : 0);
    if (i > 0 && used + 1 + next > widest && (words[i][0] == '-' || i == 1)) {
      text += " \\\n" + indent + "    ";
      used = indent.size() + 4;
    } else if (i > 0) {
      text += " ";
      ++used;
    }
    text += words[i];
    used += words[i].size();
  }
  return text;
}

std::string gpu_list(std::int64_t first, std::int64_t count) {
  std::string list;
  for (std::int64_t gpu = first; gpu < first + count; ++gpu)
    list += (gpu > first ? "," : "") + std::to_string(gpu);
  return list;
}

// Replicas of a pool that lie in one node, as a command or a loop of it.
std::string started(const std::vector<std::string>& command, const std::vector<std::int64_t>& first,
                    std::int64_t gpus, std::int64_t per_node, bool shares_nodes) {
  // A replica over several nodes, or one that has its node to itself, sees all GPUs.
  if (gpus > per_node || (gpus == per_node && !shares_nodes))
    return broken_over_lines(command, "") + "\n";
  std::vector<std::string> words = command;
  if (first.size() == 1) {
    words.front() = "CUDA_VISIBLE_DEVICES=" + gpu_list(first.front(), gpus) + " " + words.front();
    if (shares_nodes) {
      words.push_back("--port");
      words.push_back(std::to_string(8000 + first.front()));
    }
    return broken_over_lines(words, "") + (shares_nodes ? " &\n" : "\n");
  }
  std::string text = "for gpus in";
  for (const std::int64_t one : first) text += " " + gpu_list(one, gpus);
  words.front() = "CUDA_VISIBLE_DEVICES=$gpus " + words.front();
  words.push_back("--port");
  words.push_back("$((8000 + ${gpus%%,*}))");
  return text + "; do\n" + broken_over_lines(words, "  ") + " &\ndone\n";
}

const char* name_of(ServerRole role) {
  return role == ServerRole::prefill ? "prefill" : role == ServerRole::decode ? "decode" : "server";
}

}  // namespace

ServerScript server_script(const Model& model, const System& system, const ServingEngine& engine,
                           const std::vector<ScriptedPool>& pools, bool prefix_cache,
                           const Place& at, const std::string& checkpoint) {
  ServerScript script;
  std::size_t servers = 0;
  for (const ScriptedPool& pool : pools) servers += pool.first_gpus.size();
  const std::int64_t per_node = system.gpus_per_node;
  for (const ScriptedPool& pool : pools) {
    const std::string options = std::string{name_of(pool.role)} + ".yaml";
    const ServerFlags flags = server_flags(
        {model, system, engine, pool.plan, pool.role, prefix_cache, options, checkpoint}, at);
    for (const std::string& what : flags.left_out)
      if (std::find(script.left_out.begin(), script.left_out.end(), what) == script.left_out.end())
        script.left_out.push_back(what);
    if (!flags.settings.empty())
      script.text += "cat > " + options + " <<'END'\n" + flags.settings + "END\n";
    const std::int64_t gpus = pool.plan.replica_gpus();
    // Replicas by node, in the order of their GPUs.
    for (std::size_t i = 0; i < pool.first_gpus.size();) {
      const std::int64_t node = pool.first_gpus[i] / per_node;
      std::vector<std::int64_t> first;
      for (; i < pool.first_gpus.size() && pool.first_gpus[i] / per_node == node; ++i)
        first.push_back(pool.first_gpus[i] % per_node);
      if (gpus > per_node)
        script.text += "# nodes " + std::to_string(node) + " to " +
                       std::to_string(node + (gpus + per_node - 1) / per_node - 1) + "\n";
      else if (servers > 1)
        script.text += "# node " + std::to_string(node) + "\n";
      script.text += started(flags.command, first, gpus, per_node, servers > 1);
    }
  }
  return script;
}

}  // namespace orrery
