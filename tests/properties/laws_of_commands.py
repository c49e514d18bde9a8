#!/usr/bin/env python3
"""Draws small questions of commands that must agree with each other, and checks that they do.

    tests/properties/laws_of_commands.py ORRERY [COUNT] [SEED] [COMMAND...]

Each function ..._laws draws a question of one command, says in its docstring which laws it checks
on --json answers, and yields those that are broken. Prints them with the commands that were asked,
and exits with 1 if there is one.

Not laws, by design: a forced NCCL_ALGO is never faster (NCCL's tuner is not always right); with a
forced NCCL_PROTO larger messages and faster NICs never take longer (the free choice's time is
multiplied by the ratio of the tuner's own times, which steps by a few per cent); the bus bandwidth
of an all-reduce is below the port's (switches that reduce send each byte once: what the port
carries is checked instead); plans of other frameworks are part of a search (it has one).
"""

import itertools
import json
import math
import pathlib
import shlex
import sys

from questions import catalog, check_all, flags, near, rate

RENTED = ["dgx-h100", "dgx-a100-80gb", "dgx-b200", "gb200-nvl72"]
SYSTEMS = [*RENTED, "l40s-pcie", "hgx-h100-leaf-spine-2to1"]
SMALL_MODELS = ["llama3.2-1b", "qwen3-0.6b", "smollm2-360m", "llama3-8b", "gpt2"]
MICROSECOND = 1e-6  # To which runs round a step.
VERDICTS = ["no", "perhaps", "likely", "surely"]


def search_laws(ask):
    """The best of a search is the best of all its plans, each estimated alone; to fix a key to its
    value changes nothing, and more GPUs never make it slower."""
    gpus = ask.draw(2, 4, 8)
    software, schedules, zero = ask.draw(("megatron-core", ["1f1b", "interleaved"], [1, 0, 2]),
                                         ("zerobubble", ["1f1b", "zb-h1", "zb-h2"], [1, 0]),
                                         ("torchtitan", ["1f1b", "gpipe"], [0, 2, 3]))
    choices = {"tp": [1, 2, 4], "pp": [1, 2], "cp": [1, 2, 4], "mbs": [1, 2, 3], "vpp": [1, 2],
               "recompute": ["none", "selective", "full"], "zero": zero, "schedule": schedules,
               "sp": ["false", "true"], "dp_overlap": ["false", "true"],
               "tp_overlap": ["false", "true"]}
    space = {key: [values[0]] for key, values in choices.items()}
    for key in ask.random.sample(list(choices), len(choices)):
        larger = space | {key: choices[key][:ask.draw(2, 3)]}
        if math.prod(map(len, larger.values())) <= 24:
            space = larger
    asked = (f"--model {ask.draw(*SMALL_MODELS)} --system {ask.draw(*SYSTEMS)} "
             f"--gbs {ask.draw(2, 4, 6, 8)}")
    seq = ask.draw(512, 1024)
    fixed = "".join(f" --fix {key}={','.join(map(str, values))}" for key, values in space.items())
    goal = ask.draw("step_time", "tokens_per_s_per_gpu", "step_time --all-settings --top 100")
    search = (f"search {asked} --fix seq={seq} --fix software={software} -j 1 --objective {goal}"
              f"{fixed}")
    found = ask.json(f"{search} --gpus {gpus}")
    times = {}
    for values in itertools.product(*space.values()):
        plan = dict(zip(space, values))
        result = ask.json(f"estimate {asked} --seq {seq} --software {software} --gpus {gpus} "
                          f"{flags(plan)}")
        if result and result["memory"]["peak_bytes"] <= .95 * result["memory"]["capacity_bytes"]:
            times[values] = result["step_time_s"]
    if found is None or not found["plans"]:
        if times:
            yield f"finds no plan, but these fit: {times}"
        return
    best = found["plans"][0]
    if not times or best["step_time_s"] != min(times.values()):
        yield f"the best takes {best['step_time_s']}, of all plans {times}"
    key = ask.draw(*(key for key in choices if len(space[key]) > 1))
    value = json.dumps(best["plan"][key]).strip('"')
    all_values = ",".join(map(str, space[key]))
    kept = ask.json(search.replace(f"{key}={all_values}", f"{key}={value}") + f" --gpus {gpus}")
    if kept is None or kept["plans"][0]["step_time_s"] != best["step_time_s"]:
        yield f"with {key}={value}, its own, the best is another"
    more = "step_time" in goal and ask.json(f"{search} --gpus {gpus},{2 * gpus}")
    if more is None or more and more["plans"][0]["step_time_s"] > best["step_time_s"]:
        yield "with twice the GPUs allowed the best is slower"


def purchase_laws(ask):
    """A row is the search and the estimate of its system and GPUs; half the rent costs half and
    changes no step; a larger budget admits no less; the order of systems changes no row."""
    systems, gpus = ask.random.sample(RENTED, 2), ask.draw("8", "16", "8,16")
    asked = f"--model {ask.draw(*SMALL_MODELS[:4])} --tokens {ask.draw('1B', '20B', '300B')}"
    rest = (f" --gbs {ask.draw(32, 64)} --fix pp=1 --fix cp=1 --fix tp={ask.draw('1', '2', '1,2')} "
            f"--fix seq={ask.draw(1024, 2048)} -j 1")
    buy = f"buy {asked} {rest} --gpus {gpus} --system "
    answer = ask.json(buy + ",".join(systems))
    if answer is None:
        return
    rows = [row for row in answer["rows"] if "refused" not in row]
    row = ask.draw(*rows)
    size = f"--system {row['system']} --gpus {row['gpus']}"
    found = ask.json(f"search {asked} {rest} --objective training_time {size}")
    if found is None or found["plans"][0]["step_time_s"] != row["result"]["step_time_s"]:
        yield f"the row of {size} is not the best of a search"
    alone = ask.json(row["command"].removeprefix("orrery "))
    if alone is None or alone["step_time_s"] != row["result"]["step_time_s"]:
        yield f"the row of {size} is not what its command estimates"
    else:
        bill = alone["bill"]
        for what, mine, other in (
                ("days", row["days_without_failures"]["middle"] * 86400, bill["training_time_s"]),
                *((f"{key} {end}", row[key][end], bill[other][end]) for end in ("low", "high")
                  for key, other in (("rent_usd", "rent_usd"), ("to_buy_usd", "hardware_usd"),
                                     ("energy_kwh", "energy_kwh")))):
            if not near(mine, other):
                yield f"{what} of the row: {mine}, of its estimate: {other}"

    def by_size(table):
        for row in table["rows"]:
            row.get("result", {}).pop("simulation_wall_s", None)
        return {(one["system"], one["gpus"]): one for one in table["rows"]}

    turned = by_size(ask.json(buy + ",".join(systems[::-1])))
    for size, one in by_size(answer).items():
        if one != turned[size]:
            yield f"in another order of systems the row {size} is another"
    prices = []
    for one in systems:
        gpu = catalog("topologies/systems", one + ".json")["gpu"]
        rent = catalog("topologies/economics", gpu + ".json")["rent_usd_per_gpu_hour"]
        prices.append(ask.file(gpu + ".json", {
            "schema": "orrery.economics/1", "gpu": gpu, "rent_usd_per_gpu_hour":
            rent | {"low": rent["low"] / 2, "high": rent["high"] / 2}}))
    cheap = by_size(ask.json(buy + ",".join(systems) + " --economics " + ",".join(prices)))
    for size, one in by_size(answer).items():
        if "refused" in one:
            continue
        if cheap[size]["result"]["step_time_s"] != one["result"]["step_time_s"]:
            yield f"for half the rent {size} takes another step"
        if any(not near(2 * cheap[size]["rent_usd"][end], one["rent_usd"][end])
               for end in ("low", "high")):
            yield f"half the rent of {size} costs {cheap[size]['rent_usd']}, not half"
    budget = max(1, int(ask.random.uniform(.5, 2) * ask.draw(*rows)["rent_usd"]["high"]))
    small, large = (ask.json(f"{buy}{','.join(systems)} --budget {usd}")
                    for usd in (budget, 2 * budget))
    for size, one in by_size(small).items():
        if "refused" not in one and VERDICTS.index(one["in_budget"]) > VERDICTS.index(
                by_size(large)[size]["in_budget"]):
            yield f"{size} is {one['in_budget']} in the smaller budget alone"
    if set(small["within"]) - set(large["within"]):
        yield "the larger budget admits fewer rows"


def comparison_laws(ask):
    """Plans in the other order have the same times, the difference negated, and the same verdict; a
    plan ties with itself."""
    asked = (f"--model {ask.draw(*SMALL_MODELS)} --system {ask.draw(*SYSTEMS)} --gpus 8 "
             f"--gbs {ask.draw(16, 32)} --seq 1024 --ignore-memory")
    runs = ask.draw(True, False)
    if runs:
        asked += f" --tokens {ask.draw('1B', '100B')} --replicates 30 --spares {ask.draw(0, 2)}"
    one, other = (shlex.quote(flags(ask.some_of({
        "tp": [1, 2, 4], "mbs": [1, 2], "zero": [0, 1, 3], "pp": [1, 2],
        "recompute": ["none", "full"]}, 4))) for _ in range(2))
    first, second, same = (ask.json(f"compare {asked} {plans}") for plans in (
        f"{one} {other}", f"{other} {one}", f"{one} {one}"))
    if first is None or second is None:
        yield from () if first is second else ["can be compared in one order alone"]
        return
    if [plan["step_time_s"] for plan in first["plans"]] != [
            plan["step_time_s"] for plan in second["plans"]][::-1]:
        yield "in the other order steps take another time"
    there, back, none = (answer["differences"][0] for answer in (first, second, same))
    for key, turned in (("step_time_s", "step_time_s"), ("low_s", "high_s"), ("high_s", "low_s")):
        if not math.isclose(there[key], -back[turned], rel_tol=1e-6, abs_tol=3e-9):
            yield f"differ by {key} {there[key]}, in the other order by {back[turned]}"
        if none[key] != 0:
            yield f"a plan differs from itself by {key} {none[key]}"
    if there["tie"] != back["tie"] or not none["tie"]:
        yield f"ties: {there}, in the other order {back}, with itself {none}"
    for plan in first["plans"]:
        bounds = plan["step_time_range"]
        if not bounds["low_s"] <= plan["step_time_s"] <= bounds["high_s"]:
            yield f"a step of {plan['step_time_s']} lies outside of {bounds}"
    if runs:
        there, back, none = (answer["runs"][1]["days_longer"] for answer in (first, second, same))
        if not near(there["by_failures"]["mean"], -back["by_failures"]["mean"], 1e-5):
            yield f"runs differ by {there}, in the other order by {back}"
        if there["tie"] != back["tie"] or not none["tie"] or none["by_failures"]["mean"] != 0:
            yield f"runs tie: {there}, {back} in the other order, {none} with itself"


def run_laws(ask):
    """Goodput and losses add up; what a change saves is the difference of two bills; more spares,
    and a sooner refill of the pool, never lower goodput; twice the tokens take twice the time,
    within what failures spread, and never less than once and the further steps; without failures a
    run is its steps and its checkpoints."""
    nodes, tokens, spares = ask.draw(2, 4, 16), ask.draw(2, 50, 1000), ask.draw(0, 1, 2)
    asked = (f"run --model {ask.draw('llama3-8b', 'llama3.2-1b')} --system {ask.draw(*RENTED[:3])} "
             f"--gpus {8 * nodes} --gbs {16 * nodes} --seq 2048 --tp 2 --replicates 40 "
             f"--seed {ask.random.randrange(1000)}{ask.draw('', ' --elastic', ' --zero 0')}")
    policy = (f" --checkpoint {ask.draw('best', 'store:50steps', 'store:20min,peer:5steps')} "
              f"--reliability {ask.draw('default', 'rsc-1', 'meta-llama3', 'bloom', 'stepfun')}")
    poor = ask.json(f"{asked}{policy} --tokens {tokens}B --spares {spares}")
    if poor is None:
        return
    for one in poor["worth"]:
        what = one["improvement"]
        change = ("--spares " + what.split(" spare")[0] if " instead of " in what else
                  f"--spares {spares} --elastic" if what.startswith("elastic") else None)
        if change is None:
            continue
        changed = ask.json(f"{asked}{policy} --tokens {tokens}B {change}")["bill"]["rent_usd"]
        saved = sorted(poor["bill"]["rent_usd"][end] - changed[end] for end in ("low", "high"))
        for end, of in zip(("low", "high"), saved):
            if abs(one["rent_saved_usd"][end] - of) > 1e-6 * changed["high"]:
                yield f"{what} saves {one['rent_saved_usd']}, and {change} {saved}"
    before = poor
    for better in (f"--spares {spares + 1}", "", f"--spares {spares} --refill 10d",
                   f"--spares {spares} --refill 2h"):
        rich = ask.json(f"{asked}{policy} --tokens {tokens}B {better}")
        if not near(sum(rich["time_shares"].values()), 1, 1e-6):
            yield f"shares of the time do not add up to 1: {rich['time_shares']}"
        for worse in (poor, before) if "2h" in better else (poor,):
            if rich["days"]["mean"] > worse["days"]["mean"] * (1 + 1e-9):
                yield f"with {better or 'all spares'} {rich['days']}, without {worse['days']}"
        before = rich
    twice = ask.json(f"{asked}{policy} --tokens {2 * tokens}B --spares {spares}")
    if (twice["days"]["low"] > 2.04 * poor["days"]["high"] or
            twice["days"]["high"] < 1.96 * poor["days"]["low"]):
        yield f"twice the tokens take {twice['days']}, once {poor['days']}"
    less = twice["days_without_interruption"] - poor["days_without_interruption"]
    if twice["days"]["mean"] < (poor["days"]["mean"] + less) * (1 - 1e-4):
        yield f"twice the tokens take {twice['days']}, once {poor['days']}, {less} without failures"
    quiet = ask.file("quiet.json", {
        "schema": "orrery.reliability/1", "name": "quiet", "title": "hardly anything fails",
        "gpus_per_node": {"value": 8, "source": "a test"}, "causes": [{
            "name": "all", "group": "gpu",
            "rate": {"value": "1e-12 per 1000 node-days", "source": "a test"}}]})
    calm = ask.json(f"{asked} --tokens {tokens}B --reliability {quiet} --storage '100 GB/s' "
                    f"--checkpoint store:{ask.draw(100, 1000)}steps")
    if calm is None:
        return
    tier, step, work = calm["checkpoint"]["tiers"][0], calm["step_time_s"], calm["steps"]
    taken, work, saves = calm["days"]["mean"] * 86400, work * step, work // tier["every_steps"]
    slowed = [tier["step_slowed_s"] * count(tier["write_s"] / step)
              for count in (math.floor, math.ceil)]
    # The last checkpoint ends the run; nothing but its own write goes on then.
    least = work + saves * tier["stall_s"] + (saves - 1) * slowed[0]
    most = work + (saves + 1) * (tier["stall_s"] + slowed[1]) + tier["write_s"]
    if not least * (1 - MICROSECOND / step) <= taken <= most * (1 + MICROSECOND / step):
        yield f"nothing fails, and it takes {taken} s, not {least} to {most}: {tier}"
    if not near(calm["goodput"]["mean"], work / taken, MICROSECOND / step):
        yield f"goodput {calm['goodput']['mean']} is not the steps of {taken} s"


PLANS = {"tp": [1, 2, 4], "pp": [1, 2, 4], "mbs": [1, 2], "zero": [0, 1, 2, 3], "cp": [1, 2],
         "vpp": [2], "ep": [2, 8], "recompute": ["none", "selective", "full", "selective:mlp"],
         "sp": ["true", "false"], "dtype": ["bf16", "fp8", "fp16", "mxfp8"],
         "tp_overlap": ["true", "false"], "dp_overlap": ["true", "false"],
         "attention": ["flash", "unfused"], "cp_comm": ["p2p", "all_gather", "a2a"],
         "exp_avg": ["fp32", "bf16", "fp8"], "cuda_graphs": ["none", "attention", "step"],
         "nccl_algo": ["Ring", "Ring+Tree"], "moe_dispatcher": ["alltoall", "allgather", "deepep"],
         "offload_layers": [1], "offload_modules": ["core_attn"], "offload_optimizer": [50, 100],
         "offload_weights": ["true"],
         "software": ["megatron-core-fp32-reduce", "megatron-bridge"]}
DEPLOYMENTS = {"tp": [1, 2, 4], "pp": [1, 2], "replicas": [1, 2], "weights": ["bf16", "fp8"],
               "kv": ["bf16", "fp8"], "budget": [2048, 8192], "max_seqs": [64, 300],
               "kv_share": [.8, .9], "block": [16, 32], "chunked": ["true", "false"],
               "dp": [1, 2], "ep": [1, 2, 4], "max_length": [5000, 32768]}


NO_GPUS = "orrery: note: the file does not say how many GPUs it uses: give --gpus\n"


def export_laws(ask):
    """What is exported and imported again has the same answer, or a note says what is lost."""
    if ask.draw(True, False):
        model = ask.draw("llama3-8b", "qwen3-0.6b", "mixtral-8x7b", "gpt2", "qwen3-30b-a3b",
                         "deepseek-v2-lite", "gemma-2-9b")
        plan = {"tp": 2, "gbs": 32, "seq": ask.draw(1024, 4096)} | ask.some_of(PLANS, 4)
        program, question = "megatron", "estimate --ignore-memory --system dgx-h100 --gpus 16"
        asked = f"--model {model} {flags(plan)}"
        answers = [("step_time_s",), ("memory", "peak_bytes")]
    else:
        model = ask.draw("llama3.1-8b", "llama3-70b", "mixtral-8x7b", "qwen3-30b-a3b")
        plan = ask.some_of(DEPLOYMENTS, 4)
        program, question = "server", "serve --step 8x1000+512 --system dgx-h100 --gpus 8"
        asked = (f"--model {model} --engine {ask.draw('vllm', 'sglang', 'trtllm')} "
                 f"{flags(plan)}")
        answers = [("step", "step_s"), ("memory", "kv_bytes"),
                   *(("deployment", key) for key in plan)]
    script = ask.text(f"export {program} --system dgx-h100 --gpus {question[-2:]} {asked}")
    lost = ask.notes
    before = script and ask.json(f"{question} {asked}")
    if before is None:
        return
    again = ask.text(f"import {program} {ask.file('script.sh', script)}")
    lost += ask.notes.replace(NO_GPUS, "")
    if again is None:
        yield f"what was exported cannot be imported: {ask.notes}"
        return
    after = ask.json(f"{question} --plan {ask.file('plan.json', again)}")
    if after is None:
        yield f"what was imported has no answer: {ask.notes}"
    for part, *key in answers if after and not lost else ():
        one, other = (answer[part][key[0]] if key else answer[part] for answer in (before, after))
        if one != other:
            yield f"{part} {key}: {one}, after export and import {other}"


def collective_laws(ask):
    """A larger message, or half the rate of the NICs, never takes less; no port carries more than
    its rate; every rank's flows take what those of the classes take; and the algorithm that NCCL
    chooses takes the same if it is forced."""
    system = ask.draw(*SYSTEMS, "aws-p5", "hgx-h100-roce", "dgx-1-v100", "hgx-h100-dragonfly")
    there = catalog("topologies/systems", system + ".json")
    node = there["gpus_per_node"]["value"]
    nodes = ask.draw(1, 1, 2, 3, 4, 8)
    gpus = ask.draw(2, 4, node, node - 1) if nodes == 1 else nodes * ask.draw(node, node, 1, 2)
    kind = ask.draw("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
    size = 4 * gpus * int(2 ** ask.random.uniform(0, 28))
    limits = ask.draw("", "", "", " --nccl-algo Ring", " --nccl-algo Tree", " --hierarchical")
    asked = f"collective {kind} --gpus {gpus} --nodes {nodes}{limits}"
    one = ask.json(f"{asked} --system {system} --bytes {size}")
    if one is None:
        return
    larger = size + 4 * gpus * ask.draw(1, 10, size // gpus // 4)
    more = ask.json(f"{asked} --system {system} --bytes {larger}")
    if more["time_s"] < one["time_s"] * (1 - 1e-9):
        yield f"{size} bytes take {one['time_s']}, {larger} take {more['time_s']}"
    for answer in (one, more):
        ports = answer["scale_up_bytes_per_rank"] / rate(there["scale_up_bandwidth"]["value"])
        if ports > answer["time_s"] * (1 + 1e-6):
            yield f"{answer} carries more than a port in the node can"
        nics, nic = there["nics_per_node"]["value"], rate(there["nic_bandwidth"]["value"])
        wires = answer["network_bytes_per_rank"] / nic / max(1, nics // node)
        if wires > answer["time_s"] * (1 + 1e-6):
            yield f"{answer} carries more than its NIC can"
    unfolded = ask.json(f"{asked} --system {system} --bytes {size} --unfolded")
    if not near(unfolded["time_s"], one["time_s"], 1e-6):
        yield f"folded {one['time_s']}, unfolded {unfolded['time_s']}"
    if not limits:
        forced = ask.json(f"{asked} --system {system} --bytes {size} --nccl-algo "
                          f"{one['algorithm']} --nccl-proto {one['protocol']}")
        if forced and not near(forced["time_s"], one["time_s"]):
            yield f"NCCL chooses {one}, forced it is {forced}"
    slow, fast = (  # Both have names without measurements.
        ask.json(f"{asked} --bytes {size} --system " + ask.file(f"{name}.json", there | {
            "name": name, "nic_bandwidth": {"value": f"{times * nic / 1e9} GB/s", "source": "-"}}))
        for name, times in (("slow", 1), ("fast", 2)))
    if fast["time_s"] > slow["time_s"] * (1 + 1e-9):
        yield f"takes {slow['time_s']}, with twice the NIC {fast['time_s']}"


LAWS = {"search": search_laws, "buy": purchase_laws, "compare": comparison_laws, "run": run_laws,
        "export": export_laws, "collective": collective_laws}


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    laws = [LAWS[name] for name in sys.argv[4:] or LAWS]
    return 1 if check_all(program, laws, count, seed) else 0


if __name__ == "__main__":
    sys.exit(main())
