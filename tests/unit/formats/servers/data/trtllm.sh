#!/usr/bin/bash
EXTRA_CONFIG_FILE="gptoss-fp4.yml"
TP=${TP:-4}
EP_SIZE=${EP_SIZE:-1}
cat > $EXTRA_CONFIG_FILE << EOF
cuda_graph_config:
    enable_padding: true
    max_batch_size: 128
enable_attention_dp: false
kv_cache_config:
    dtype: fp8
    enable_block_reuse: false
    free_gpu_memory_fraction: 0.85
print_iter_log: true
stream_interval: 20
num_postprocess_workers: 4
moe_config:
    backend: TRTLLM
EOF
mpirun -n 1 --oversubscribe --allow-run-as-root \
    trtllm-serve openai/gpt-oss-120b --max_batch_size 128 --max_num_tokens 20000 \
    --backend pytorch --tp_size $TP --ep_size=$EP_SIZE --trust_remote_code \
    --extra_llm_api_options $EXTRA_CONFIG_FILE --port 8888
