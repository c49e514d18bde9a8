NPROC_PER_NODE=8 megatron rlhf --rlhf_type dpo --model Qwen/Qwen3-8B --max_length 4096
