read -r -d '' command <<EOF
openrlhf.cli.train_sft \
   --data.max_len 4096 --train.batch_size 128 --train.micro_batch_size 4 \
   --model.model_name_or_path meta-llama/Llama-3.1-8B --ds.zero_stage 3
EOF
deepspeed --module $command
