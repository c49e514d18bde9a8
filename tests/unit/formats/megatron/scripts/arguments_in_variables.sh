#!/bin/bash
TP=${TP:-4}
EP=${EP:-2}
COMMON="\
  --tensor-model-parallel-size $TP \
  --${PRECISION:-bf16} \
  "
if [ ${GRAPHS:-true} == true ]; then
    COMMON="${COMMON} --cuda-graph-impl=local"
fi
ENVIRONMENT="\
  --micro-batch-size ${MICRO:-1} \
  --global-batch-size ${BATCH:-256} "
OPTIONS="\
  --num-layers 48 --hidden-size 2048 --ffn-hidden-size 6144 --num-attention-heads 32 \
  --kv-channels 128 --group-query-attention --num-query-groups 4 --seq-length 8192 \
  --max-position-embeddings 8192 --normalization RMSNorm --position-embedding-type rope \
  --swiglu --disable-bias-linear --untie-embeddings-and-output-weights --qk-layernorm \
  --num-experts 128 --moe-router-topk 8 --moe-ffn-hidden-size 768 --sequence-parallel \
  --expert-model-parallel-size $EP --vocab-size 151936 \
  "
