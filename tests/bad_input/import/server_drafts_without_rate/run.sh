vllm serve zai-org/GLM-4.5-Air --speculative-config '{"method":"mtp","num_speculative_tokens":1}'
