#!/bin/bash
#SBATCH --nodes=8 --ntasks-per-node=1
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-8}
TP=${TP:-4}   # tensor parallel
PP=2

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NNODES
    --master_addr $MASTER_ADDR
)
MODEL_ARGS=(
    --num-layers 32 --hidden-size 4096
    --ffn-hidden-size 14336
    --num-attention-heads 32
    --group-query-attention --num-query-groups 8
    --seq-length 8192
    --max-position-embeddings 8192
    --swiglu --normalization RMSNorm --position-embedding-type rope
    --untie-embeddings-and-output-weights
    --disable-bias-linear
    --vocab-size 128256
)
TRAIN="--micro-batch-size 1 --global-batch-size $GBS \
  --lr 1.0e-4 --bf16 --use-distributed-optimizer --overlap-grad-reduce --log-interval 10"
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${MODEL_ARGS[@]} \
    $TRAIN \
    --tensor-model-parallel-size ${TP} --sequence-parallel \
    --pipeline-model-parallel-size $PP | tee log
