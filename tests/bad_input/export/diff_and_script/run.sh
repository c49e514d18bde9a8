torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 16 --hidden-size 2048 \
  --num-attention-heads 32 --seq-length 8192 --max-position-embeddings 8192 \
  --vocab-size 32000 --micro-batch-size 1 --global-batch-size 8 --bf16
