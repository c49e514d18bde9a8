docker run --rm --gpus all --ipc host vllm/vllm-openai:v0.15.1 \
  --model deepseek-ai/DeepSeek-R1-0528 --tensor-parallel-size 1 -dp 8 --enable-expert-parallel \
  --enable-eplb --async-scheduling \
  --speculative-config '{"method": "deepseek_mtp", "num_speculative_tokens": 2}'
