FORCE_TORCHRUN=1 llamafactory-cli train full.yaml
