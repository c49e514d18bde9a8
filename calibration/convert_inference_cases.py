#!/usr/bin/env python3
"""Converts collected measurements of inference to the cases of tests/validation/inference.

    convert_inference_cases.py FOLDER FAMILY...

Reads FOLDER/FAMILY.json and writes tests/validation/inference/FAMILY.json: the deployment in the
keys of `orrery serve`, models by their names in workloads/models. Cases whose format or shape no
key can say keep it, and are refused by name when they are predicted.
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parent.parent

MODELS = {  # Names of checkpoints.
    "codellama/CodeLlama-7b-hf": "codellama-7b",
    "deepseek-ai/DeepSeek-V2-Lite-Chat": "deepseek-v2-lite",
    "google/gemma-2-27b-it": "gemma-2-27b",
    "google/gemma-3-12b-it": "gemma-3-12b",
    "google/gemma-3-27b-it": "gemma-3-27b",
    "ibm-granite/granite-3.1-8b-instruct": "granite-3.1-8b",
    "ibm-granite/granite-vision-3.3-2b": "granite-vision-3.3-2b",
    "meta-llama/Llama-3.1-8B-Instruct": "llama3.1-8b",
    "microsoft/phi-4": "phi-4",
    "moonshotai/Kimi-Dev-72B": "qwen2.5-72b",
    "openai/gpt-oss-20b": "gpt-oss-20b",
    "Qwen/Qwen2.5-72B-Instruct": "qwen2.5-72b",
    "redhatai/Llama-3.3-70B-Instruct-quantized.w8a8": "llama3.1-70b",
    "RedHatAI/Mistral-Small-3.1-24B-Instruct-2503-quantized.w8a8": "mistral-small-24b",
    "RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a8": "llama3.1-8b",
    "RedHatAI/Qwen2.5-7B-Instruct-quantized.w8a8": "qwen2.5-7b",
}

KEYS = {"tp": "tp", "pp": "pp", "ep": "ep", "attention_dp": "dp", "moe_tp": "moe_tp",
        "replicas": "replicas", "max_batched_tokens": "budget", "max_seqs": "max_seqs",
        "weight_dtype": "weights", "moe_dtype": "experts", "kv_dtype": "kv",
        "gpu_memory_fraction": "kv_share", "kv_memory_fraction": "kv_share",
        "chunked_prefill": "chunked", "block_size": "block"}

WORDS = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "int4_wo": "int4",
         "w4a16_mxfp4": "mxfp4"}


def engine_of(deployment):
    version = deployment.get("engine_version", "")
    if version.startswith("2023"):
        return "huggingface-2023"
    if version.startswith("2024"):
        return deployment["engine"] + "-2024"
    older = re.match(r"0\.(\d+)", version)
    if deployment["engine"] == "vllm" and older and int(older.group(1)) < 14 and \
            not deployment.get("async_scheduling"):
        return "vllm-2025"
    return deployment["engine"]


def converted(case):
    said = case["deployment"]
    deployment = {}
    for key, ours in KEYS.items():
        value = said.get(key)
        if value in (None, "auto"):
            continue
        deployment[ours] = WORDS.get(value, value)
    name = case["model"]["name"]
    if said.get("quantization"):
        deployment["weights"] = said["quantization"]
    elif "w8a8" in name:
        deployment["weights"] = "int8"
    elif said.get("dtype", "auto") != "auto":
        deployment["weights"] = WORDS[said["dtype"]]
    if name == "openai/gpt-oss-20b":
        deployment["experts"] = "mxfp4"  # As it was published.
    result = {"id": case["id"], "source": case["source"], "system": case["system"],
              "gpus": case["gpus"], "model": MODELS.get(name, name), "engine": engine_of(said),
              "deployment": deployment}
    if case.get("workload"):
        result["workload"] = case["workload"]
    for key in ("speculative", "disaggregated", "prefix_caching", "async_scheduling",
                "stream_interval"):
        if key in said:
            result.setdefault("serving", {})[key] = said[key]
    result["measured"] = case["measured"]
    for key in ("peers", "notes"):
        if case.get(key):
            result[key] = case[key]
    return result


def main():
    folder = pathlib.Path(sys.argv[1])
    for family in sys.argv[2:]:
        cases = [converted(case) for case in json.loads((folder / f"{family}.json").read_text())]
        target = ROOT / "tests" / "validation" / "inference" / f"{family}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join(json.dumps(case) for case in cases)
        target.write_text("[\n" + lines + "\n]\n")


if __name__ == "__main__":
    main()
