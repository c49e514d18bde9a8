docker run --gpus all ghcr.io/huggingface/text-generation-inference:3.0 \
  --model-id Qwen/Qwen3-32B --num-shard 4
