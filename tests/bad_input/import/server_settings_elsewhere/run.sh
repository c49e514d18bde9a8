trtllm-serve Qwen/Qwen3-8B --extra_llm_api_options /opt/options.yaml
