#!/bin/bash
ARGS="--num-layers 7 --hidden-size 4096 --num-attention-heads 32 --seq-length 8192"
ARGS+=" --micro-batch-size 1 --global-batch-size 64 --bf16 --tokenizer-model $TOKENIZER"
torchrun --nproc_per_node 8 pretrain_gpt.py $ARGS
