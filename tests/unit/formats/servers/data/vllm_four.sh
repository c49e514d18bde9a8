#!/bin/bash
# Four replicas of a quantised 70B on one node.
MODEL=${MODEL:-meta-llama/Llama-3.3-70B-Instruct}
TP=2
ARGS="--tensor-parallel-size $TP --quantization fp8 --kv-cache-dtype fp8 --max-model-len 16384"
for i in 0 1 2 3; do
  CUDA_VISIBLE_DEVICES=$((2 * i)),$((2 * i + 1)) VLLM_USE_V1=1 \
    vllm serve $MODEL $ARGS \
      --max-num-seqs 256 --gpu-memory-utilization=0.92 \
      --no-enable-prefix-caching --port $((8000 + i)) \
      --enable-log-requests > server$i.log 2>&1 &
done
wait
