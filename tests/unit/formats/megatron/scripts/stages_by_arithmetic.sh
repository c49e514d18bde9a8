#!/bin/bash
TOKENIZER="MOCK"
CONFIG=""
while [[ $# -gt 0 ]]; do
    case $1 in
        --tokenizer)
            TOKENIZER="$2"
            shift 2
            ;;
        *)
            echo "Unknown option: $1"
            exit 1
            ;;
    esac
done
GPUS=8
NODES=1
if [ -n "$CONFIG" ]; then
    source "$CONFIG"
fi
GPUS=${GPUS:-4}
WORLD_SIZE=$(($GPUS*$NODES))
PP=${WORLD_SIZE}
ARGS=(
    --num-layers 24 --hidden-size 512 --ffn-hidden-size 2048 --num-attention-heads 64
    --group-query-attention --num-query-groups 8 --disable-bias-linear
    --untie-embeddings-and-output-weights --normalization RMSNorm --seq-length 8192
    --max-position-embeddings 8192 --position-embedding-type yarn --quick-geglu
    --activation-func-clamp-value 7.0 --softmax-type learnable --window-attn-skip-freq 2
    --window-size 127,0 --num-experts 4 --moe-router-topk 2 --moe-ffn-hidden-size 2048
)
if [[ "$TOKENIZER" == "MOCK" ]]; then
    DATA=("--mock-data" "--vocab-size 128256")
fi
python -m torch.distributed.run --nproc_per_node $GPUS --nnodes $NODES pretrain_gpt.py \
    ${ARGS[@]} ${DATA[@]} --micro-batch-size 1 --global-batch-size 128 --bf16 \
    --recompute-activations --pipeline-model-parallel-size ${PP} --sequence-parallel \
    --use-distributed-optimizer
