#!/bin/bash
NNODES=${SLURM_NNODES:-"4"}
MODEL=(
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32
    --group-query-attention --num-query-groups 8 --seq-length 4096
    --max-position-embeddings 32768 --normalization RMSNorm --position-embedding-type rope
    --swiglu --untie-embeddings-and-output-weights --disable-bias-linear
)
EXPERTS=(--num-experts 8 --moe-router-topk 2 --moe-token-dispatcher-type alltoall)
DATA=(--tokenizer-type Llama2Tokenizer --tokenizer-model $2 --data-path $3)
TRAIN=(--micro-batch-size 1 --global-batch-size 256 --bf16
    --pipeline-model-parallel-size 4 --expert-model-parallel-size 8 --use-distributed-optimizer
    --sequence-parallel --overlap-grad-reduce --overlap-param-gather)
LOG=(--log-interval 1 \
    --save-interval 1000)

if [ -n "${WANDB_API_KEY}" ]; then
    LOG+=(--wandb-project ${WANDB_PROJECT:-"experts"})
fi

torchrun --nproc_per_node 8 --nnodes $NNODES pretrain_gpt.py \
    ${MODEL[@]} ${EXPERTS[@]} ${DATA[@]} ${TRAIN[@]} ${LOG[@]}
