#!/bin/bash
sbatch -p ${PARTITION} \
       --nodes=${NNODES} \
       --export=PARAMETERS start.sh
exit 0
