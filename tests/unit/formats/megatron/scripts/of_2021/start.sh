#!/bin/bash
#SBATCH -t 0:30:00 --exclusive --mem=0 --ntasks-per-node=8
LOG=`date +'%y-%m-%d'`
CMD="python -u code/pretrain_gpt.py ${PARAMETERS}"
srun -l --output=logs/%x_$LOG.log sh -c "${CMD}"
