vllm serve $MODEL --tensor-parallel-size 8
