#!/usr/bin/env python3
"""Converts exported aiconfigurator tables of inference kernels to calibration/data/serving.

    convert_serving_tables.py FOLDER [OUTPUT]

FOLDER holds one JSON file a table: `kind`, `gpu`, `engine`, `dtype`, `kv_dtype`, `source` (repo,
path, commit), `columns` and `rows`, microseconds last. What is left out, and why, stands in
LEFT_OUT and in the code below. A row of the output holds the sizes of `columns` and then a time for
each size of `at`; 0 says that none was measured.
"""

import collections
import json
import pathlib
import sys

GPUS = {
    "A100-SXM4-80GB": "a100-sxm-80gb",
    "H100-SXM 80GB": "h100-sxm",
    "H200-SXM": "h200-sxm",
    "B200-SXM": "b200-sxm",
    "B300-SXM": "b300-sxm",
    "GB200": "gb200",
    "GB300": "gb300",
    "L40S": "l40s",
    "RTX PRO 6000 Blackwell Server": "rtx-pro-6000-blackwell",
}

# Weights and what they are multiplied with; `w4a16` reads 4-bit weights, multiplies in 16 bits.
FORMATS = {
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8_block",
    "nvfp4": "nvfp4",
    "int8_wo": "int8",
    "int4_wo": "int4",
    "w4a16_mxfp4": "mxfp4",
    "w4a8_mxfp4_mxfp8": "mxfp4",
}

# (kind, columns of the output, the column that times run along)
OPS = {
    "gemm_table": ("gemm", ["n", "k"], "m"),
    "attention_decode_table": (
        "decode_attention", ["batch", "heads", "kv_heads", "head_dim", "window"], "context"),
    "attention_fwd_table": (
        "prefill_attention", ["batch", "heads", "kv_heads", "head_dim"], "seq"),
    "mla_decode_table": ("latent_decode", ["batch", "heads"], "context"),
    "mla_fwd_table": ("latent_prefill", ["batch", "heads"], "seq"),
    "moe_table": (
        "experts", ["hidden", "inter", "topk", "experts", "moe_tp", "moe_ep"], "tokens"),
    "dispatched_prompts_table": (
        "dispatched_prompts", ["hidden", "inter", "topk", "experts", "moe_tp", "moe_ep"], "tokens"),
    "dispatched_experts_table": (
        "dispatched_experts", ["hidden", "inter", "topk", "experts", "moe_tp", "moe_ep"], "tokens"),
    "allreduce_table": ("all_reduce", ["gpus"], "elements"),
    "mla_bmm_table": ("latent_products", ["heads"], "tokens"),
}

# Kernels of mixers with a state. Heads are those of values, each with a state of 128 x 128, or of
# 64 x 128 in a state space; key heads do not matter (2 % in vLLM's tables). What is not named here
# is left out: fused kernels that convolve as well, since not all engines' releases have them, and
# steps that verify drafts.
SCAN = (["heads", "batch"], "seq")
STEP = (["heads"], "batch")
CONVOLUTION = (["channels", "batch"], "seq")
CONVOLUTION_STEP = (["channels"], "batch")
STATE_OPS = {
    ("gdn_table", "chunk_gated_delta_rule"): ("delta_rule", *SCAN),
    ("gdn_table", "chunk_gated_delta_rule_flashinfer"): ("delta_rule", *SCAN),
    ("gdn_table", "chunk_gated_delta_rule_triton"): ("delta_rule", *SCAN),
    ("gdn_table", "fused_recurrent_gated_delta_rule"): ("delta_rule_step", *STEP),
    ("gdn_table", "fused_recurrent_gated_delta_rule_packed_decode"): ("delta_rule_step", *STEP),
    ("gdn_table", "causal_conv1d_fn"): ("convolution", *CONVOLUTION),
    ("gdn_table", "causal_conv1d_update"): ("convolution_step", *CONVOLUTION_STEP),
    ("kda_table", "chunk_kda"): ("channel_delta_rule", *SCAN),
    ("kda_table", "chunk_kda_with_fused_gate"): ("channel_delta_rule", *SCAN),
    ("kda_table", "flashkda_fwd"): ("channel_delta_rule", *SCAN),
    ("kda_table", "fused_recurrent_kda_packed_decode"): ("channel_delta_rule_step", *STEP),
    ("mamba2_table", "mamba_chunk_scan_combined"): ("state_space", *SCAN),
    ("mamba2_table", "causal_conv1d_fn"): ("convolution", *CONVOLUTION),
    ("mamba2_table", "causal_conv1d_update"): ("convolution_step", *CONVOLUTION_STEP),
}
STATE_KINDS = sorted({kind for kind, _ in STATE_OPS})

# Whole modules of attention, projections included: hidden channels, ranks of queries and heads of
# the index by model. Layers that take the choice of an earlier one (GLM-5.2) are an op of their own.
# Heavily compressed attention has no index: one head stands for none, and one rank of queries for
# queries of one product.
MODULE_KINDS = {
    "dsa_decode_module_table": "sparse_decode", "dsa_prefill_module_table": "sparse_prefill",
    "csa_decode_module_table": "csa_decode", "csa_prefill_module_table": "csa_prefill",
    "hca_decode_module_table": "hca_decode", "hca_prefill_module_table": "hca_prefill",
    "msa_decode_module_table": "msa_decode", "msa_prefill_module_table": "msa_prefill"}
MODULE_MODELS = {"DeepSeek-V3.2": (7168, 1536, 64), "GLM-5": (6144, 2048, 32),
                 "DeepSeek-V4-Flash": (4096, 1024, 64), "DeepSeek-V4-Pro": (7168, 1536, 64),
                 "MiniMax-M3": (6144, 1, 4)}
MODULE_COLUMNS = ["hidden", "q_rank", "index_heads", "heads", "batch"]

# Mixing of residual streams before and after both sub-layers of a layer.
STREAM_KINDS = {"mhc_table": {"pre": "streams_pre", "post": "streams_post"}}

# One request takes 0.7 and 2.3 ms, 15 to 50 times as long as on any other GPU.
EMULATED = [("rtx-pro-6000-blackwell", "csa"), ("rtx-pro-6000-blackwell", "hca")]

# Rows of like sizes differ by up to 30 times: left out, every second is missed by more than half.
SCATTERED = [("b200-sxm", "msa_prefill_module_table", "trtllm"),
             ("b300-sxm", "msa_prefill_module_table", "trtllm")]

# Tables of experts and of those behind an all-to-all.
EXPERTS = ["moe_table", "dispatched_prompts_table", "dispatched_experts_table"]

# Routers whose rows are those of a rank with its even share of the tokens: SGLang's tables have an
# even one, TensorRT-LLM's a load balancer (EPLB). How much more the fullest rank has, the simulator
# says (sim/serving/deployment.hpp).
EVEN_ROUTERS = {"sglang": "uniform", "trtllm": "power_law_1.01_eplb"}

# Up to ten times the dense 16-bit peak where other tables of the GPU reach 0.4 to 0.8 of it.
IMPOSSIBLE_PREFILLS = [("h200-sxm", "bfloat16"), ("h200-sxm", "fp8"),
                       ("rtx-pro-6000-blackwell", "fp8")]

# vLLM's products in fp8 with a scale a tensor: 1.3 to 1.6 PFLOP/s above 256 tokens, where the
# tables of training steps and of blocks of 128 reach 2.3, and where published steps of Llama 70B on
# B200 took a fifth less than these say (InferenceX). Engines run other kernels there.
SLOW_FP8 = ["b200-sxm", "b300-sxm", "gb200", "gb300"]
SLOW_FP8_ABOVE = 256

BLACKWELL = ["b200-sxm", "b300-sxm", "gb200", "gb300", "rtx-pro-6000-blackwell"]


# Kernels that were launched one by one, where engines replay a graph: no row is below 100 to 300 us,
# whatever its sizes, where the same kernels of other engines take 9 to 15 us. What is longer than
# twice the shortest row hides its launch.
LAUNCHED_ONE_BY_ONE = [("mla_decode_table", "vllm"), ("mla_fwd_table", "vllm")]
LAUNCHED_GEMM = ("rtx-pro-6000-blackwell", "fp8_block", "vllm")


def left_out(table, engine):
    """Why a table is not converted; "" where it is."""
    kind = table["kind"]
    if kind not in OPS and kind not in STATE_KINDS and kind not in MODULE_KINDS \
            and kind not in STREAM_KINDS:
        return "the simulator has no use for it"
    if any(GPUS.get(table["gpu"]) == gpu and kind.startswith(of) for gpu, of in EMULATED):
        return "kernels that emulate what the GPU lacks"
    if (GPUS.get(table["gpu"]), kind, engine) in SCATTERED:
        return "its rows scatter"
    if kind == "gemm_table" and table["dtype"] not in FORMATS:
        return "a format that no deployment can ask for"
    if (kind, engine) in LAUNCHED_ONE_BY_ONE:
        return "its rows are launches: 100 us and more for a request of two tokens"
    if kind == "attention_fwd_table" and engine == "vllm" and \
            (GPUS[table["gpu"]], table["kv_dtype"]) in IMPOSSIBLE_PREFILLS:
        return "most prompts over 1,024 tokens beat the peak of the tensor cores"
    if kind == "attention_fwd_table" and engine == "trtllm" and table["kv_dtype"] == "fp8" and \
            table["dtype"] != "fp8":
        return "TensorRT-LLM multiplies in 8 bits where its cache has 8"
    if table["dtype"] == "w4a16_mxfp4" and engine == "trtllm" and GPUS[table["gpu"]] in BLACKWELL:
        return "TensorRT-LLM multiplies mxfp4 with mxfp8 on Blackwell"
    if kind == "moe_table" and table["dtype"] == "w4a16_mxfp4" and engine == "vllm" and \
            GPUS[table["gpu"]] in BLACKWELL:
        return "four times what whole steps took: vLLM runs FlashInfer's kernels here"
    if kind == "moe_table" and table["dtype"] == "int4_wo" and engine == "vllm":
        return "about twice what a whole layer of Kimi-K2 took in measured runs"
    return ""


def is_even(sizes):
    """Whether the row of an even router stands for the model's own. The power law sends two pairs
    of five to one of 8 experts, where the shares of Mixtral's lie about an eighth (arXiv
    2401.04088, figure 7). And of several ranks it times the one with most, to which it sends
    nearly all that few tokens visit: by their times rows of 4 and 8 tokens of Qwen3 235B on 4 ranks
    read 16 and 19 experts, where even draws bring 9.8 and 15.8 to the fullest rank and an even
    router has 8 and 16."""
    pairs = sizes["tokens"] * sizes["topk"]
    if sizes["experts"] == 8:
        return sizes["tokens"] >= 16  # Fewer do not visit all of them.
    return sizes["moe_ep"] > 1 and 2 * pairs <= sizes["experts"]


def rows_of(table):
    """(sizes by column, time) of the rows that are used."""
    names = table["columns"][:-1]
    launched = table["kind"] == "gemm_table" and \
        (GPUS[table["gpu"]], table["dtype"], table["engine"].split(" ")[0]) == LAUNCHED_GEMM
    least = 2 * min(row[-1] for row in table["rows"]) if launched else 0
    routers = {}  # Of tokens and a layout of experts: which were timed.
    if "distribution" in names:
        at = names.index("distribution")
        for row in table["rows"]:
            routers.setdefault(tuple(row[:at] + row[at + 1:-1]), set()).add(row[at])
    for row in table["rows"]:
        sizes = dict(zip(names, row))
        if row[-1] < least:
            continue
        if table["kind"].startswith("dispatched"):
            if sizes["distribution"] == EVEN_ROUTERS[table["engine"].split(" ")[0]]:
                yield sizes, row[-1]
            continue
        if routers:
            known = routers[tuple(row[:at] + row[at + 1:-1])]
            even = is_even(sizes) and "balanced" in known
            if sizes["distribution"] != ("balanced" if even else "power_law_1.2"):
                continue  # Other routers load their experts unevenly.
        if sizes.get("kernel", "").endswith("_eager"):
            continue  # With its launch, which engines hide in a CUDA graph.
        if sizes.get("prefix", 0) != 0:
            continue  # Too few to interpolate in.
        if sizes.get("dtype", "bfloat16") != "bfloat16":
            continue
        if table["kind"] == "gemm_table" and table["dtype"] == "fp8" and \
                table["engine"].startswith("vllm") and GPUS[table["gpu"]] in SLOW_FP8 and \
                sizes["m"] > SLOW_FP8_ABOVE:
            continue
        if table["dtype"] == "w4a16_mxfp4" and table["engine"].startswith("vllm") and \
                sizes["moe_ep"] > 1:
            continue  # They take as long as on one rank, so that none was left out.
        yield sizes, row[-1]


def state_rows(table):
    """(op, sizes by column, time) of the kernels of a mixer with a state."""
    names = table["columns"][:-1]
    engine = table["engine"].split(" ")[0]
    for row in table["rows"]:
        sizes = {**table.get("fixed", {}), **dict(zip(names, row))}
        if (table["kind"], sizes["kernel"]) not in STATE_OPS or sizes["phase"] == "verify":
            continue
        op = STATE_OPS[table["kind"], sizes["kernel"]][0]
        if table["kind"] == "mamba2_table":
            sizes["channels"] = sizes["heads"] * sizes["head_dim"] + \
                2 * sizes["groups"] * sizes["state"]
        else:
            if op.startswith("convolution") and engine == "trtllm":
                continue  # Of key channels alone; its rows of state spaces have all.
            sizes["channels"] = 128 * (2 * sizes["k_heads"] + sizes["v_heads"])
            sizes["heads"] = sizes["v_heads"]
        yield op, sizes, row[-1]


def module_rows(table):
    """(op, weights, kv, sizes, time) of modules of attention."""
    op = MODULE_KINDS[table["kind"]]
    for row in table["rows"]:
        sizes = {**table.get("fixed", {}), **dict(zip(table["columns"], row))}
        hidden, q_rank, index_heads = MODULE_MODELS[sizes["model"]]
        if op.startswith("hca"):
            index_heads = 1
        sizes |= {"hidden": hidden, "q_rank": q_rank, "index_heads": index_heads}
        if "prefill" in op:
            sizes["context"] = sizes["new"] + sizes["prefix"]
        shared = "_shared" if sizes["kernel"] == "skip_indexer" else ""
        yield op + shared, FORMATS[sizes["gemm_dtype"]], FORMATS[sizes["kv_dtype"]], sizes, row[-1]


def module_tables(table):
    """All tables of a file of modules, by file name."""
    engine, version = table["engine"].split(" ", 1)
    columns = MODULE_COLUMNS + (["new"] if "prefill" in table["kind"] else [])
    rows = collections.defaultdict(lambda: collections.defaultdict(dict))
    for op, weights, kv, sizes, time in module_rows(table):
        key = tuple(sizes[column] for column in columns)
        rows[op, weights, kv][key][sizes["context"]] = time
    source = table["source"]
    for (op, weights, kv), times in rows.items():
        at = sorted({size for row in times.values() for size in row})
        yield f"{op}-{weights}-kv-{kv}-{engine}.json", {
            "schema": "orrery.serving_kernels/1", "gpu": GPUS[table["gpu"]], "op": op,
            "weights": weights, "kv": kv, "engine": engine, "version": version,
            "source": f"{source['repo']} {source['commit'][:12]} {source['path']}",
            "columns": columns, "along": "context", "at": at,
            "rows": [list(key) + [times[key].get(size, 0) for size in at] for key in sorted(times)]}


def stream_tables(table):
    """Both tables of a file of residual streams, by file name."""
    engine, version = table["engine"].split(" ", 1)
    source = table["source"]
    for half, op in STREAM_KINDS[table["kind"]].items():
        times = collections.defaultdict(dict)
        for row_half, hidden, tokens, time in table["rows"]:
            if row_half == half:
                times[hidden][tokens] = time
        at = sorted({size for row in times.values() for size in row})
        yield f"{op}-{engine}.json", {
            "schema": "orrery.serving_kernels/1", "gpu": GPUS[table["gpu"]], "op": op,
            "engine": engine, "version": version,
            "source": f"{source['repo']} {source['commit'][:12]} {source['path']}",
            "columns": ["hidden"], "along": "tokens", "at": at,
            "rows": [[hidden] + [times[hidden].get(size, 0) for size in at]
                     for hidden in sorted(times)]}


def converted(table, part=None):
    engine, version = table["engine"].split(" ", 1)
    if table["kind"] in STATE_KINDS:
        columns, along = next(shape[1:] for shape in STATE_OPS.values() if shape[0] == part)
        rows = ((sizes, time) for op, sizes, time in state_rows(table) if op == part)
        op = part
    else:
        op, columns, along = OPS[table["kind"]]
        rows = ((sizes, time) for sizes, time in rows_of(table)
                if not part or sizes["op"] == part)
        op = op if not part else part.replace("mla_gen_", "latent_")
    times = collections.defaultdict(dict)
    for sizes, time in rows:
        key = tuple(sizes[column] for column in columns)
        kept = times[key].get(sizes[along])
        times[key][sizes[along]] = time if kept is None else min(kept, time)
    at = sorted({size for row in times.values() for size in row})
    source = table["source"]
    json_rows = [list(key) + [times[key].get(size, 0) for size in at] for key in sorted(times)]
    formats = {}
    if table["kind"] == "gemm_table" or table["kind"] in EXPERTS:
        formats["weights"] = FORMATS[table["dtype"]]
    if "kv_dtype" in table:
        formats["kv"] = FORMATS[table["kv_dtype"]]
    return {
        "schema": "orrery.serving_kernels/1",
        "gpu": GPUS[table["gpu"]],
        "op": op,
        **formats,
        "engine": engine,
        "version": version,
        "source": f"{source['repo']} {source['commit'][:12]} {source['path']}",
        "columns": columns,
        "along": along,
        "at": at,
        "rows": json_rows,
    }


def file_name(table, op):
    words = [op]
    if table["kind"] == "gemm_table" or table["kind"] in EXPERTS:
        words.append(FORMATS[table["dtype"]])
    if "kv_dtype" in table:
        words.append("kv-" + FORMATS[table["kv_dtype"]])
    words.append(table["engine"].split(" ")[0])
    return "-".join(words) + ".json"


def text_of(table):
    head = {key: value for key, value in table.items() if key != "rows"}
    lines = json.dumps(head)[:-1] + ', "rows": [\n'
    lines += ",\n".join(json.dumps(row, separators=(",", ":")) for row in table["rows"])
    return lines + "\n]}\n"


def main():
    folder = pathlib.Path(sys.argv[1])
    output = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else
                          pathlib.Path(__file__).parent / "data" / "serving")
    for path in sorted(folder.glob("*.json")):
        table = json.loads(path.read_text())
        engine = table.get("engine", " ").split(" ")[0]
        reason = left_out(table, engine)
        if reason:
            print(f"{path.name}: left out: {reason}")
            continue
        if table["kind"] in MODULE_KINDS or table["kind"] in STREAM_KINDS:
            tables = module_tables if table["kind"] in MODULE_KINDS else stream_tables
            for name, result in tables(table):
                target = output / result["gpu"] / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text_of(result))
            continue
        parts = ["mla_gen_pre", "mla_gen_post"] if table["kind"] == "mla_bmm_table" else \
            sorted({op for op, _, _ in state_rows(table)}) if table["kind"] in STATE_KINDS else \
            [None]
        for part in parts:
            result = converted(table, part)
            if not result["rows"]:
                continue
            target = output / result["gpu"] / file_name(table, result["op"])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text_of(result))


if __name__ == "__main__":
    main()
