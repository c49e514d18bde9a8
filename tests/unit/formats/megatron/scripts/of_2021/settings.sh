#!/bin/bash
export PARTITION=<the partition of the job>
export PARAMETERS=" ${EXTRA} \
    --tensor-model-parallel-size ${TP} \
    --pipeline-model-parallel-size ${PP} \
    --micro-batch-size ${MBS} \
    --global-batch-size ${GBS} \
        --num-layers ${LAYERS} \
        --hidden-size ${HIDDEN} \
        --num-attention-heads ${HEADS} \
    --DDP-impl local \
        --seq-length 2048 \
        --max-position-embeddings 2048 \
        --fp16 "
