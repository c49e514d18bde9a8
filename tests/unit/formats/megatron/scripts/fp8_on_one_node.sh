#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=${CUDA_DEVICE_MAX_CONNECTIONS:-1}
OUT=${1:-"out/llama"}
TOKENIZER=${2:-"MOCK"} # a path, or MOCK
mkdir -p "$(dirname "$OUT")"
NUM_LAYERS=32
DTYPE="fp8"
PROGRAM="pretrain_gpt.py"
MODEL=(
    --num-layers $NUM_LAYERS --hidden-size 4096 --ffn-hidden-size 14336
    --num-attention-heads 32 --group-query-attention --num-query-groups 8 --kv-channels 128
    --seq-length 8192 --max-position-embeddings 8192 --position-embedding-type rope
    --swiglu --normalization RMSNorm --untie-embeddings-and-output-weights
    --disable-bias-linear --attention-backend fused
)
TRAINING=(
    --micro-batch-size 1
    --global-batch-size 128
    --bf16
    --grad-reduce-in-bf16
    --cross-entropy-loss-fusion
)
PRECISION=()
if [[ "$DTYPE" == "fp8" ]]; then
    PRECISION+=(
        "--fp8-format hybrid"
        "--fp8-amax-history-len 1024"
        "--fp8-param-gather"
    )
fi
REPLICAS=(--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather)
TRAINING+=("${REPLICAS[@]}")
DATA=()
if [[ "$TOKENIZER" == "MOCK" ]] || [[ -z "$TOKENIZER" ]]; then
    DATA+=("--mock-data" "--tokenizer-type NullTokenizer" "--vocab-size 128256" "--split '99,1,0'")
else
    DATA+=("--tokenizer-type HuggingFaceTokenizer" "--tokenizer-model $TOKENIZER")
fi
if [ ! -f "$PROGRAM" ]; then
    echo "Error: no $PROGRAM"
    exit 1
fi
torchrun --nproc_per_node 8 --nnodes 1 \
    "$PROGRAM" \
    ${MODEL[@]} ${TRAINING[@]} ${PRECISION[@]} \
    --tensor-model-parallel-size 1 --sequence-parallel \
    ${DATA[@]} --save "$OUT"
set +x
