#!/bin/bash
ARGS="--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 8192"
ARGS+=" --micro-batch-size 1 --global-batch-size $GBS --vocab-size 128256 --bf16"
torchrun --nproc_per_node 8 pretrain_gpt.py $ARGS
