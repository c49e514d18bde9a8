python3 -m sglang.launch_server --model-path acme/Own-9B --tp 2
