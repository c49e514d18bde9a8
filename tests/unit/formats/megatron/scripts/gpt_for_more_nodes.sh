#!/bin/bash
# One node's worth of ranks, for a model that needs sixteen; the tokenizer's files come as words.
GPUS_PER_NODE=8
NUM_NODES=1
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
OUT=$1 #<where to write>
VOCAB=$2 #<folder>/gpt2-vocab.json
MERGES=$3

LAUNCH=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
)
SHAPE=(
    --num-layers 96
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
    --attention-backend auto # or another
)
BATCH=(
    --micro-batch-size 1
    --global-batch-size 1536
    --step-batch-size-schedule "0:16 2.4B:320 12B:1536"
    --fp16
)
RANKS=(
    --tensor-model-parallel-size 8
    --pipeline-model-parallel-size 16
)
torchrun ${LAUNCH[@]} pretrain_gpt.py \
    ${SHAPE[@]} \
    ${BATCH[@]} \
    ${RANKS[@]} \
    --vocab-file $VOCAB --merge-file $MERGES --split 949,50,1 \
    --save $OUT --tensorboard-dir "${OUT}/board"
