#!/bin/bash
source "$(dirname "$0")/conf/$1.sh"
torchrun --nproc_per_node 8 pretrain_gpt.py ${MODEL[@]} --micro-batch-size 1 --bf16
