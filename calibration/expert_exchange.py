#!/usr/bin/env python3
"""Fits the constants of MoE dispatch and combine to measured tables of NVIDIA's aiconfigurator.

    calibration/expert_exchange.py --constants calibration/data \\
        --cases tests/validation/moe tables.json

aiconfigurator (github.com/ai-dynamo/aiconfigurator, Apache-2.0) keeps its DeepEP measurements as
parquet files under systems/data/<gpu>/comm/sglang. The input of this script is a JSON list of such
files, each exported as an object: source {title, repo, path, commit}, columns, rows. DeepEP's own
README figures in the list (config, measured) become validation cases and are fitted nowhere; tables
of other kernels are left out.

The formula is that of docs/explanation/collectives.md; sim/moe/expert_exchange.cpp evaluates
the same one. Written are its constants for each kernel, GPU and step, from all tables (expert_exchange.json) and
without the tables of each shape in turn (GPU, kernel, nodes, hidden, top_k, experts:
expert_exchange_left_out.json), and the tables themselves as validation cases. Only Python's own
library is needed; it takes some minutes. Afterwards run hybrid_ep.py, whose fits this one drops.
"""

import argparse
import json
import math
import multiprocessing
import pathlib
import sys

from kernel_fit import nelder_mead

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The word in aiconfigurator's paths, our GPU, our system, GPUs of a node. A GB200 or GB300 tray has
# four: that its tables are of four ranks shows in how time grows with top_k (docs).
GPUS = {
    "h100_sxm": ("h100-sxm", "dgx-h100", 8),
    "h200_sxm": ("h200-sxm", "dgx-h200", 8),
    "b200_sxm": ("b200-sxm", "dgx-b200", 8),
    "gb200": ("gb200", "gb200-nvl72", 4),
    "gb300": ("gb300", "gb300-nvl72", 4),
}
KERNELS = {"normal": "deepep", "ll": "deepep_low_latency"}
# Least squares of logarithms, but absolute and capped: single odd rows are harmless.
START = {
    "base_us": 20.0, "expert_us": 2.0, "token_us_per_kb": 0.3, "network_base_us": 5.0,
    "network_hop_us": 10.0, "scale_up_efficiency": 0.7, "copy_gb_per_s": 40.0, "copy_us": 0.1,
    "token_gb_per_s": 12.0,
}
LOCAL = {
    "deepep": ("base_us", "token_us_per_kb", "scale_up_efficiency", "copy_gb_per_s", "copy_us",
               "token_gb_per_s"),
    "deepep_low_latency": ("base_us", "expert_us", "scale_up_efficiency", "token_gb_per_s"),
}
REMOTE = {
    "deepep": ("network_hop_us", "copy_gb_per_s"),
    "deepep_low_latency": ("network_base_us", "network_hop_us"),
}


SOURCE = ("fitted by calibration/expert_exchange.py to the DeepEP tables of NVIDIA aiconfigurator "
          "(ai-dynamo/aiconfigurator, systems/data/*/comm/sglang, commit 095f58a5)")
STAND_INS = {
    "h800-sxm": ("h100-sxm", "an H100 with fewer NVLinks (NVIDIA H800 datasheet, 2023)"),
    "h100-96gb-hbm2e": ("h100-sxm", "another memory; copies go through the same multiprocessors"),
    "b300-sxm": ("b200-sxm", "the same links; not measured"),
    "b200-sxm": ("gb200", "hybridep: its authors' one figure of B200 is 2 % from GB200's "
                          "(calibration/hybrid_ep.json)"),
    "gb300": ("gb200", "hybridep: the same links; not measured"),
    "h200-sxm": ("h100-sxm", "the same links; not measured between nodes"),
    "h100-sxm": ("gb200", "hybridep inside a node: copied by the same bulk instructions, relative "
                          "to the links' rate; not measured"),
}
DEFAULT = {"value": "h100-sxm",
           "source": "a GPU without tables is taken to copy as an H100 does: an assumption"}


def number(text):
    return float(text.split()[0])


def system_of(name):
    """Bandwidth of the scale-up port and payload of the NIC in GB/s, and multiprocessors."""
    system = json.loads((ROOT / "topologies/systems" / f"{name}.json").read_text())
    gpu = json.loads((ROOT / "topologies/gpus" / f"{system['gpu']}.json").read_text())
    nic = number(system["nic_bandwidth"]["value"]) / 8
    share = system["nics_per_node"]["value"] / system["gpus_per_node"]["value"]
    return (number(system["scale_up_bandwidth"]["value"]),
            system["network_efficiency"]["value"] * share * nic, gpu["multiprocessors"]["value"])


def distinct(parts, experts, top_k):
    """Of `parts` equal shares of the experts, how many do a token's experts lie in (mean)?"""
    missed = 1.0
    for i in range(top_k):
        missed *= max(0, experts - experts // parts - i) / (experts - i)
    return parts * (1.0 - missed)


def read_tables(path):
    """One table for each shape in a file: a dict with rows of (sms, tokens, dispatch, combine)."""
    tables = []
    for entry in json.loads(pathlib.Path(path).read_text()):
        columns = entry.get("columns", [])
        if "dispatch_transmit_us" not in columns and "dispatch_avg_t_us" not in columns:
            continue
        source = entry["source"]
        gpu, system, node = GPUS[source["path"].split("/data/")[1].split("/")[0]]
        version = source["path"].split("/")[-2]
        shapes = {}
        for values in entry["rows"]:
            row = dict(zip(columns, values))
            shape = (row["node_num"], row["hidden_size"], row["num_topk"], row["num_experts"])
            if row["op_name"] == "ll":
                measured = (0, row["num_token"], row["dispatch_avg_t_us"], row["combine_avg_t_us"])
            else:
                # The notify kernel waits for what the network still carries: only both together
                # say how long a step takes.
                assert row["dispatch_sms"] == row["combine_sms"]
                measured = (row["dispatch_sms"], row["num_token"],
                            row["dispatch_transmit_us"] + row["dispatch_notify_us"],
                            row["combine_transmit_us"] + row["combine_notify_us"])
            shapes.setdefault((row["op_name"], shape), []).append(measured)
        for (op, (nodes, hidden, top_k, experts)), rows in shapes.items():
            kernel = KERNELS[op]
            tables.append({
                "id": f"{gpu} {kernel} {nodes}x{node} h{hidden} k{top_k} e{experts} "
                      f"sglang {version}",
                "source": f"{source['title']}: {source['repo']}, {source['path']}, "
                          f"commit {source['commit']}",
                "gpu": gpu, "system": system, "dispatcher": kernel, "ranks": nodes * node,
                "nodes": nodes, "hidden": hidden, "top_k": top_k, "experts": experts,
                "rows": sorted(rows)})
    return tables


def readme_cases(path):
    """DeepEP's published figures (docs/legacy.md of its repository) on H800, as times.

    Normal kernels are given as bandwidth: bytes that arrive over NVLink (one node), or are sent to
    nodes, its own included (several), over the time; fp8 with scales or 16 bits for each channel.
    Tokens pick at most four groups, one group a node (DeepEP tests/test_internode.py, which also
    runs on 24 multiprocessors).
    """
    cases = []
    for entry in json.loads(pathlib.Path(path).read_text()):
        config, measured = entry.get("config", {}), entry.get("measured", {})
        if not entry["id"].startswith("deepep-v1-"):
            continue
        nodes, tokens, hidden, top_k = (config["ep"] // 8, config["tokens"], config["hidden"],
                                        config["topk"])
        case = {"id": entry["id"], "source": f"DeepEP: {entry['source']['repo']}, "
                f"{entry['source']['path']}, commit {entry['source']['commit']}",
                "system": "hgx-h800", "dispatcher": "deepep_low_latency", "ranks": config["ep"],
                "nodes": nodes, "hidden": hidden, "top_k": top_k, "experts": 256}
        if config["kernel"] == "normal":
            case["dispatcher"] = "deepep"
            picked = min(nodes, 4)
            if nodes > 1:
                case.update(groups=nodes, groups_per_token=picked)
            arrive = distinct(picked, 256 * picked // nodes, top_k) if nodes > 1 else distinct(
                8, 256, top_k)
            copies = tokens * arrive * hidden / 1e3
            times = (24, tokens, copies * (1 + 4 / 128) / measured["dispatch_bottleneck_GBs"],
                     copies * 2 / measured["combine_bottleneck_GBs"])
        else:
            times = (0, tokens, measured["dispatch_us"], measured["combine_us"])
        cases.append(dict(case, rows=[times]))
    return cases


def shape_of(table):
    return tuple(table[key] for key in ("dispatcher", "gpu", "nodes", "hidden", "top_k", "experts"))


def samples(table, step):
    """What the formula needs of each row: its terms for constants of one, and ln of the time."""
    scale_up, nic, multiprocessors = system_of(table["system"])
    n, nodes, k, experts = (table[key] for key in ("ranks", "nodes", "top_k", "experts"))
    node, hidden = n // nodes, table["hidden"]
    kilobytes = (hidden + 4 * hidden / 128 + 12 * k + 16 if step == "dispatch"
                 else 2 * hidden + 4 * k + 16) / 1e3
    found = []
    for sms, tokens, dispatch, combine in table["rows"]:
        if table["dispatcher"] == "deepep":
            ranks = distinct(n, experts, k)
            port = tokens * ranks * (node - 1) / node
            network = tokens * distinct(nodes, experts, k) * (nodes - 1) / nodes
        else:
            ranks = 0.0
            port = tokens * k * (node - 1) / n
            network = tokens * k * (nodes - 1) / nodes
            sms = math.ceil(experts / math.ceil(experts / multiprocessors))
        # Kilobytes over GB/s are microseconds.
        found.append((port * kilobytes / scale_up, network * kilobytes / nic,
                      tokens * ranks * kilobytes / sms, tokens * ranks / sms,
                      tokens * kilobytes / sms, experts / 128, kilobytes,
                      1.0 if nodes > 1 else 0.0, math.log2(nodes),
                      math.log(dispatch if step == "dispatch" else combine)))
    return found


def predict(constants, sample):
    port, network, copies_kb, copies, tokens_kb, experts, kilobytes, remote, hops, _ = sample
    get = constants.get
    body = [port / constants["scale_up_efficiency"], network,
            copies_kb / get("copy_gb_per_s", math.inf) + copies * get("copy_us", 0.0) +
            tokens_kb / get("token_gb_per_s", math.inf)]
    return (constants["base_us"] + experts * get("expert_us", 0.0) +
            kilobytes * get("token_us_per_kb", 0.0) + remote * get("network_base_us", 0.0) +
            hops * get("network_hop_us", 0.0) + sum(part ** 4 for part in body) ** 0.25)


def fit(rows, names, known):
    def loss(point):
        constants = dict(known, **{n: math.exp(v) for n, v in zip(names, point)})
        return sum(min(abs(math.log(predict(constants, row)) - row[-1]), 0.5)
                   for row in rows) / len(rows)

    start = [math.log(START[name]) for name in names]
    found = nelder_mead(loss, start, 0.4, 400)
    found = nelder_mead(loss, found[1], 0.2, 300)
    return {n: float(f"{math.exp(v):.4g}") for n, v in zip(names, found[1])}


def fitted(kernel, gpu, step, tables):
    """The constants inside a domain and, where tables leave it, across domains."""
    rows = {True: [], False: []}
    for table in tables:
        if table["dispatcher"] == kernel and table["gpu"] == gpu:
            rows[table["nodes"] > 1] += samples(table, step)
    local = fit(rows[False], LOCAL[kernel], {})
    if not rows[True]:
        return local, None
    known = dict(local)
    if kernel == "deepep":  # The kernel between nodes is another one: its copies cost otherwise.
        for name in ("copy_us", "token_gb_per_s"):
            known.pop(name)
    return local, fit(rows[True], REMOTE[kernel], known)


def errors(constants, rows):
    found = [math.exp(math.log(predict(constants, row)) - row[-1]) - 1.0 for row in rows]
    return sum(map(abs, found)) / len(found)


def combined(kernel, local, remote):
    if kernel == "deepep":
        return {**{k: v for k, v in local.items() if k not in ("copy_us", "token_gb_per_s")},
                **remote}
    return {**local, **remote}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--constants", required=True)
    parser.add_argument("--cases", required=True)
    parser.add_argument("tables")
    arguments = parser.parse_args()
    tables = read_tables(arguments.tables)

    jobs = []
    for kernel in LOCAL:
        for gpu, _, _ in GPUS.values():
            own = [t for t in tables if t["dispatcher"] == kernel and t["gpu"] == gpu]
            for step in ("dispatch", "combine") if own else ():
                for without in [None] + sorted({shape_of(t) for t in own}):
                    jobs.append((kernel, gpu, step, without,
                                 [t for t in own if shape_of(t) != without]))
    with multiprocessing.Pool() as pool:
        parts = pool.starmap(fitted, [(kernel, gpu, step, rest)
                                      for kernel, gpu, step, _, rest in jobs], chunksize=1)

    entries = []
    totals = {"in sample": [], "left out": []}
    for (kernel, gpu, step, without, _), (local, remote) in zip(jobs, parts):
        entry = {"dispatcher": kernel, "gpu": gpu, "step": step}
        if without:
            entry["without"] = dict(zip(("nodes", "hidden", "top_k", "experts"), without[2:]))
        else:
            whole = (local, remote)
        entry["local"] = local
        if remote:
            entry["remote"] = remote
        entries.append(entry)
        for table in tables if without else ():
            if shape_of(table) != without:
                continue
            rows = samples(table, step)
            for name, constants in (("in sample", whole), ("left out", (local, remote))):
                used = combined(kernel, *constants) if table["nodes"] > 1 else constants[0]
                totals[name].append(errors(used, rows))
            print(f"{table['id']} {step}: {100 * totals['in sample'][-1]:.1f} % in sample, "
                  f"{100 * totals['left out'][-1]:.1f} % left out")
    for name, found in totals.items():
        print(f"{name}: mean of {len(found)} tables {100 * sum(found) / len(found):.2f} %")

    write_constants(pathlib.Path(arguments.constants), entries)
    write_cases(pathlib.Path(arguments.cases), tables, readme_cases(arguments.tables))


def write_constants(folder, entries):
    def lines(chosen):
        return ",\n    ".join(json.dumps(entry) for entry in chosen)

    head = '{\n  "schema": "orrery.expert-exchange/1",\n  "source": ' + json.dumps(SOURCE) + ',\n'
    stand_ins = ",\n".join(f'    {json.dumps(gpu)}: {json.dumps({"value": v, "source": source})}'
                           for gpu, (v, source) in STAND_INS.items())
    (folder / "expert_exchange.json").write_text(
        head + '  "stand_ins": {\n' + stand_ins + '\n  },\n  "default": ' + json.dumps(DEFAULT) +
        ',\n  "fits": [\n    ' + lines(e for e in entries if "without" not in e) + "\n  ]\n}\n")
    (folder / "expert_exchange_left_out.json").write_text(
        head + '  "fits": [\n    ' + lines(e for e in entries if "without" in e) + "\n  ]\n}\n")


def write_cases(folder, tables, readme):
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"deepep-{gpu}": sorted((t for t in tables if t["gpu"] == gpu), key=shape_of)
             for gpu, _, _ in GPUS.values()}
    for name, cases in {**files, "deepep-readme": readme}.items():
        written = []
        for case in cases:
            head = {key: value for key, value in case.items() if key not in ("gpu", "rows")}
            head["columns"] = ["multiprocessors", "tokens", "dispatch_us", "combine_us"]
            lines = [", ".join(json.dumps([r[0], r[1], round(r[2], 2), round(r[3], 2)])
                               for r in case["rows"] if r[0] == sms)
                     for sms in sorted({row[0] for row in case["rows"]})]
            written.append(json.dumps(head)[:-1] + ',\n   "rows": [\n    ' +
                           ",\n    ".join(lines) + "]}")
        (folder / f"{name}.json").write_text("[\n  " + ",\n  ".join(written) + "\n]\n")


if __name__ == "__main__":
    sys.exit(main())
