export MC_TE_METRIC=true
# prefill
python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3-0324 \
  --disaggregation-mode prefill --tp-size 8 --dp-size 8 --enable-dp-attention \
  --moe-a2a-backend deepep --chunked-prefill-size 65536 \
  --max-running-requests 1024 --mem-fraction-static 0.85 --trust-remote-code --disable-radix-cache &
# decode: two nodes
for rank in 0 1; do
python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3-0324 \
  --disaggregation-mode decode --dist-init-addr 10.0.0.2:5757 --nnodes 2 --node-rank $rank \
  --tp-size 16 --dp-size 16 --enable-dp-attention \
  --moe-a2a-backend deepep \
  --max-running-requests 2048 --cuda-graph-max-bs 128 --disable-radix-cache &
done
python3 -m sglang_router.launch_router --pd-disaggregation --policy round_robin
