NPROC_PER_NODE=8 swift sft --model Qwen/Qwen3-8B --tuner_type full --max_length 4096
