python -m dynamo.frontend --router-mode kv --http-port 8000 &
CUDA_VISIBLE_DEVICES=0,1 python3 -m dynamo.vllm --model Qwen/Qwen3-32B-FP8 \
  --tensor-parallel-size 2 --is-prefill-worker \
  --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_both"}' &
CUDA_VISIBLE_DEVICES=2,3 python3 -m dynamo.vllm --model Qwen/Qwen3-32B-FP8 \
  --tensor-parallel-size 2 --is-prefill-worker \
  --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_both"}' &
CUDA_VISIBLE_DEVICES=4,5,6,7 python3 -m dynamo.vllm --model Qwen/Qwen3-32B-FP8 \
  --tensor-parallel-size 4 \
  --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_both"}' --is-decode-worker
