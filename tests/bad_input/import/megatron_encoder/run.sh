#!/bin/bash
ARGS="--encoder-num-layers 12 --decoder-num-layers 12 --hidden-size 768"
torchrun --nproc_per_node 8 pretrain_t5.py $ARGS --micro-batch-size 64 --bf16
