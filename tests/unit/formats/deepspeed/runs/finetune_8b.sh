#!/bin/bash
# All weights of an 8B model on two nodes.
NODES=2
SEQ=${SEQ:-4096}

deepspeed --num_nodes $NODES --num_gpus 8 --hostfile hosts run_clm.py \
  --deepspeed zero3.json \
  --model_name_or_path meta-llama/Llama-3.1-8B \
  --train_file data/train.jsonl \
  --block_size $SEQ \
  --per_device_train_batch_size 4 \
  --gradient_accumulation_steps 2 \
  --gradient_checkpointing True \
  --learning_rate 2e-5 \
  --bf16 \
  --output_dir out
