from torchtitan.config import ParallelismConfig
from torchtitan.trainer import Trainer


def ours() -> Trainer.Config:
    return Trainer.Config(parallelism=ParallelismConfig(tensor_parallel_degree=4))
