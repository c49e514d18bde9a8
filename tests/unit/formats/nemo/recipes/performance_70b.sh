#!/bin/bash
# Llama 3 70B as Megatron-Bridge's performance scripts start it, with twice the batch.
export NCCL_ALGO=^NVLS,NVLSTree
GPUS=${GPUS:-64}
PRECISION=${1:-fp8_cs}

python scripts/performance/setup_experiment.py \
  --account research -p batch -t 00:20:00 \
  -i nvcr.io/nvidia/nemo:26.04 \
  -m llama -mr llama3_70b --task pretrain \
  -ng $GPUS -g h100 -c ${PRECISION} \
  -gb 256 -tp 4 -ms 50 \
  model.cross_entropy_fusion_impl=native
