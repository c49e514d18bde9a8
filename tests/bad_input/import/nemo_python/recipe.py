import nemo_run as run
from nemo.collections import llm

recipe = llm.llama3_8b.pretrain_recipe(num_nodes=2, num_gpus_per_node=8)
