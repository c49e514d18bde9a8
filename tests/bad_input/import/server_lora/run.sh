vllm serve Qwen/Qwen3-8B \
  --enable-lora --max-loras 4
