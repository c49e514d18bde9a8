set -x
GPUS=8
MODEL_ARGS=(
   --actor.model_name_or_path Qwen/Qwen2.5-7B-Instruct
   --actor.num_nodes 1
   --actor.num_gpus_per_node ${GPUS}
   # --actor.entropy_coef 0.001
   --reward.remote_url reward.py
)
ray job submit --address="http://127.0.0.1:8265" -- \
   python3 -m openrlhf.cli.train_ppo_ray \
   ${MODEL_ARGS[@]} \
   --train.colocate_all \
   --vllm.num_engines 4 \
   --vllm.tensor_parallel_size 2 \
   --vllm.gpu_memory_utilization 0.6 \
   --vllm.enable_sleep \
   --ds.enable_sleep \
   --ds.zero_stage 3 \
   --ds.packing_samples \
   --actor.gradient_checkpointing_enable \
   --algo.advantage.estimator group_norm \
   --algo.kl.init_coef 1e-5 \
   --rollout.batch_size 128 \
   --rollout.n_samples_per_prompt 8 \
   --rollout.micro_batch_size 16 \
   --train.batch_size 256 \
   --train.micro_batch_size 8 \
   --data.max_len 4096 \
   --rollout.max_new_tokens 3072 \
   --actor.adam.lr 5e-7 --ckpt.save_steps -1
