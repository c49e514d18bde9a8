#!/bin/bash
CODE=${CODE:-"your_path"}
TP=${TP:-1}
EP=${EP:-8}
NODES=${NODES:-32}
ARGS=(
    --tensor-model-parallel-size ${TP} --expert-model-parallel-size ${EP}
    --expert-tensor-parallel-size 1 --use-distributed-optimizer --overlap-grad-reduce
    --micro-batch-size 1 --global-batch-size 2048 --seq-length 4096 --bf16
    --recompute-granularity selective --recompute-modules mlp moe mla_up_proj layernorm
    --tokenizer-type HuggingFaceTokenizer --tokenizer-model deepseek-ai/DeepSeek-V3
    --make-vocab-size-divisible-by 3232
    --num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128
    --kv-channels 128 --max-position-embeddings 4096 --position-embedding-type rope
    --normalization RMSNorm --swiglu --untie-embeddings-and-output-weights
    --disable-bias-linear --multi-latent-attention --qk-layernorm --q-lora-rank 1536
    --kv-lora-rank 512 --num-experts 256 --moe-layer-freq [0]*3+[1]*58
    --moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048
    --moe-router-topk 8 --moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep
    --moe-router-group-topk 4 --moe-router-num-groups 8 --moe-router-enable-expert-bias
)
COMMAND="
cd ${CODE};
export PYTHONPATH=${CODE}:${PYTHONPATH};
python ${CODE}/pretrain_gpt.py ${ARGS[@]}"
LOGS="${OUT}/logs"
mkdir -p ${LOGS} || {
    echo "no folder ${LOGS}"
    exit 1
}
sbatch <<JOB
#!/bin/bash
#SBATCH --job-name=a_name
#SBATCH --nodes=${NODES}
#SBATCH --ntasks-per-node=8
#SBATCH --gres=gpu:8

srun --mpi=pmix -l \
    --container-image=${IMAGE} \
    bash -x -c "${COMMAND}" 2>&1 | tee ${LOGS}/\${SLURM_JOB_ID}.log
JOB
