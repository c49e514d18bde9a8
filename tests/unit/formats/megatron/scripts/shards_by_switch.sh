#!/bin/bash
USE_FSDP=${USE_FSDP:-1}
STRATEGY=${STRATEGY:-"optim_grads_params"}
PREFIX=""
if [ "${USE_UV:-1}" = 1 ]; then
    PREFIX="uv run"
fi
ARGS=(
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32
    --group-query-attention --num-query-groups 8 --seq-length 8192
    --max-position-embeddings 8192 --position-embedding-type rope --swiglu
    --normalization RMSNorm --untie-embeddings-and-output-weights --disable-bias-linear
    --micro-batch-size 1 --global-batch-size 128 --bf16 --use-distributed-optimizer
    --tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Meta-Llama-3-8B
)
if [ "${USE_FSDP}" = 1 ]; then
    unset CUDA_DEVICE_MAX_CONNECTIONS
    ARGS=(
        "${ARGS[@]}"
        --use-megatron-fsdp
        --data-parallel-sharding-strategy ${STRATEGY}
        # --outer-dp-sharding-strategy ${OUTER}
        --ckpt-format fsdp_dtensor
    )
fi
if [ "${PROFILE:-0}" = 1 ]; then
    PROFILE_CMD=(nsys profile --trace=cuda -o "$OUT")
else
    PROFILE_CMD=()
fi
$PREFIX "${PROFILE_CMD[@]}" python -m torch.distributed.run --nproc-per-node=8 --nnodes=2 \
    "pretrain_gpt.py" \
    ${ARGS[@]}
