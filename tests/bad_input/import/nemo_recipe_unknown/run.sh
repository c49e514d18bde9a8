python scripts/performance/setup_experiment.py -m llama -mr llama3_80b -ng 64 -g h100
