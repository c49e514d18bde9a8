#!/bin/bash
# Choose one of [7.5B, 145B].
MODEL_SIZE=7.5B

if [ ${MODEL_SIZE} == "7.5B" ]; then
    TP=4
    PP=1
    MBS=16
    GBS=512
    LAYERS=36
    HIDDEN=4096
    HEADS=32
    NNODES=16
    EXTRA="--activations-checkpoint-method uniform "
elif [ ${MODEL_SIZE} == "145B" ]; then
    TP=8
    PP=8
    MBS=2
    GBS=2304
    LAYERS=80
    HIDDEN=12288
    HEADS=96
    NNODES=192
    EXTRA="--activations-checkpoint-method uniform --num-layers-per-virtual-pipeline-stage 5 "
else
    echo "Invalid configuration"
    exit 1
fi

. `pwd`/settings.sh
. `pwd`/submit.sh
exit 0
