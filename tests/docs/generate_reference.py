#!/usr/bin/env python3
"""usage: generate_reference.py [--check] ORRERY

Writes the pages of docs/reference/generated that describe what the program and its catalog contain:
the commands, the parameters, models, systems, and what is measured for which GPU. Pages of accuracy
in the same folder come from tests/validation. --check changes nothing, and fails where a page is
stale.
"""

import json
import re
import subprocess
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/reference/generated"
ENGINES = ["vllm", "sglang", "trtllm"]
# A model of each kind that fits on two GPUs in any format.
KINDS = {
    "dense": "llama3.1-8b",
    "experts": "qwen3-30b-a3b",
    "experts, latent attention": "deepseek-v2-lite",
    "experts, windows": "gpt-oss-20b",
}
# An iteration with decodes and a prompt.
ITERATION = "16x2048+1024"


class Program:
    def __init__(self, path):
        self.path = str(Path(path).resolve())

    def run(self, *arguments):
        """What the program prints, or nothing where it refuses."""
        done = subprocess.run(
            [self.path, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        return done.stdout if done.returncode == 0 else ""

    def lines(self, *arguments):
        text = self.run(*arguments)
        if not text:
            sys.exit(f"{self.path} {' '.join(arguments)}: no answer")
        return text.splitlines()

    def names(self, word):
        return [line.split()[0] for line in self.lines("list", word)]


def table(head, rows, right=()):
    """A table of Markdown; columns of `right` are aligned to the right."""
    rule = ["---:" if column in right else "---" for column in range(len(head))]
    lines = ["| " + " | ".join(row) + " |" for row in [head, *rows]]
    lines.insert(1, "|" + "|".join(rule) + "|")
    return "\n".join(lines) + "\n"


def wrapped(text):
    """A page with paragraphs of at most 100 columns; tables and what a program prints stay."""
    lines, paragraph, fenced = [], [], False

    def flush():
        if any(len(line) > 100 for line in paragraph):
            indent = "  " if paragraph[0].startswith("- ") else ""
            joined = " ".join(line.strip() for line in paragraph)
            lines.extend(
                textwrap.wrap(
                    joined,
                    100,
                    subsequent_indent=indent,
                    break_long_words=False,
                    break_on_hyphens=False,
                )
            )
        else:
            lines.extend(paragraph)
        paragraph.clear()

    for line in text.split("\n"):
        fenced ^= line.startswith("```")
        if fenced or not line or line[0] in "|#`" and not line.startswith("`orrery"):
            flush()
            lines.append(line)
            continue
        if line.startswith("- "):
            flush()
        paragraph.append(line)
    flush()
    return "\n".join(lines)


def thousands(number):
    return f"{number:,}"


# Manual pages, of which each section is a heading and blocks: text, or an option and what it does.
def plain(text):
    text = re.sub(r"\\f[BIRP]", "", text)
    return text.replace("\\-", "-").replace("\\&", "").replace("\\(aq", "'").replace("\\e", "\\")


def sections_of(page):
    """[(level, heading, [("text", lines) or ("code", lines) or ("option", name, values, text)])]"""
    sections = []
    option, code = None, False
    for line in page.splitlines():
        macro, _, rest = line.partition(" ")
        if macro in (".SH", ".SS"):
            sections.append((1 if macro == ".SH" else 2, plain(rest).strip('"'), []))
            option = None
        elif not sections or macro == ".TH":
            continue
        elif macro == ".nf":
            code = True
            sections[-1][2].append(("code", []))
        elif macro == ".fi":
            code = False
        elif code:
            sections[-1][2][-1][1].append(plain(line))
        elif macro == ".TP":
            option = "next"
        elif macro in (".B", ".BI", ".BR", ".I") and option == "next":
            words = re.findall(r'"([^"]*)"|(\S+)', plain(rest))
            name, *values = [quoted or bare for quoted, bare in words]
            option = ["option", name.strip(), " ".join(values).strip(), ""]
            sections[-1][2].append(option)
        elif macro in (".PP", ".P", ".br", ".LP"):
            option = None
            sections[-1][2].append(("text", []))
        elif option and option != "next":
            option[3] = (option[3] + " " + plain(line)).strip()
        else:
            if not sections[-1][2] or sections[-1][2][-1][0] != "text":
                sections[-1][2].append(("text", []))
            sections[-1][2][-1][1].append(plain(line))
    return sections


def linked(text, up="../../../"):
    """Pages that the text names become links; `up` leads from its page to docs/."""
    return re.sub(r"\bdocs/((?:[a-z-]+/)+[a-z-]+)\.md", rf"[\1]({up}\1.md)", text)


def cell(text, up="../../../"):
    return linked(text, up).replace("|", "\\|")


def markdown_of(blocks):
    text, rows = "", []

    def flush():
        nonlocal text, rows
        if rows:
            text += table(["option", "meaning"], rows) + "\n"
        rows = []

    for block in blocks:
        if block[0] == "option":
            _, name, values, what = block
            rows.append([f"`{(name + ' ' + values).strip()}`".replace("|", "\\|"), cell(what)])
            continue
        flush()
        lines = [line for line in block[1] if line or block[0] == "code"]
        if block[0] == "code" and lines:
            text += "```\n" + "\n".join(lines) + "\n```\n\n"
        elif lines:
            text += linked(" ".join(lines)) + "\n\n"
    flush()
    return text


def head_of(name, what):
    question = f"Which options does `orrery {name}` have ({what})?"
    text = """This page is a reference for everybody who works at the command line. It is generated
        from the table against which the program parses its arguments."""
    return f"# orrery {name}\n\n" + " ".join([question, *text.split()]) + "\n\n"


def commands(program, pages):
    with tempfile.TemporaryDirectory() as folder:
        program.run("manual", "--output", folder)
        manuals = {path.stem: path.read_text() for path in sorted(Path(folder).glob("*.1"))}
    rows = []
    for line in program.lines("--help"):
        match = re.match(r"  ([a-z][a-z-]+)  +(\S.*)", line)
        if not match or f"orrery-{match[1]}" not in manuals:
            continue
        name, what = match[1], match[2]
        rows.append([f"[`{name}`](commands/{name}.md)", cell(what)])
        text = head_of(name, what)
        for level, heading, blocks in sections_of(manuals[f"orrery-{name}"]):
            if heading in ("NAME", "SEE ALSO", "EXIT STATUS", "FILES", "ENVIRONMENT"):
                continue
            body = markdown_of(blocks)
            if not body:
                continue
            title = {"SYNOPSIS": "Usage", "DESCRIPTION": "Description", "OPTIONS": "Options"}
            shown = title.get(heading, heading.capitalize() if level == 1 else heading)
            shown = re.sub(r"^Orrery ", "orrery ", shown)
            text += "#" * (level + 1) + f" {shown}\n\n" + body
        pages[f"commands/{name}.md"] = text.rstrip("\n") + "\n"
    pages["commands.md"] = (
        "# Commands\n\nWhich commands does `orrery` have? This page lists them for everybody who\n"
        "works at the command line, each with a page of its options. Results go to stdout,\n"
        "everything else to stderr. All commands have the same [exit\n"
        "codes](../output.md#exit-codes).\n\n"
        "`orrery COMMAND --help` shows the options that are used most, and `--help all` all of\n"
        "them. A name means the same in all commands, and may be written with hyphens or\n"
        "underscores. An option of vLLM, SGLang, TensorRT-LLM, Slurm, nccl-tests, Megatron-LM or\n"
        "DeepSpeed that has another name here is answered with that name. `--quiet` leaves out\n"
        "notes and progress, but not errors.\n\n"
        + table(["command", "answers"], rows)
    )
    return manuals


def options_of(manual, known):
    """The options of the section that has option `known`: [(name, values, text)]."""
    for _, _, blocks in sections_of(manual):
        options = [block[1:] for block in blocks if block[0] == "option"]
        if any(name == known for name, _, _ in options):
            return options
    sys.exit(f"no manual page has {known}")


def parameters(program, manuals, pages):
    plan = json.loads(
        program.run(
            *"estimate --model llama3-8b --system dgx-h100 --gpus 64 --gbs 256 --json".split()
        )
    )["plan"]
    served = json.loads(
        program.run(
            *"serve --model llama3.1-8b --system dgx-h100 --gpus 8 --engine vllm --json".split(),
            *"--step 1x1024".split(),
        )
    )["deployment"]

    def rows_of(manual, defaults):
        rows = []
        for name, values, what in options_of(manual, "--tp"):
            # The one key whose option has another name: --budget is money.
            key = name.removeprefix("--").replace("max-num-batched-tokens", "budget")
            if key in defaults:
                value = defaults[key]
                shown = json.dumps(value) if isinstance(value, bool) else str(value)
                default = "" if value is None else f"`{shown}`"
                shown_values = f"`{values}`".replace("|", "\\|")
                rows.append([f"`{key}`", shown_values, default, cell(what, "../../")])
        return rows

    pages["parameters.md"] = f"""# Parameters

Which parameters do a training plan and a deployment have, and which values may they take? This page
is a reference for options of commands, keys of plan files and `plan` in `--json`, which have the
same names.

A plan file is a JSON object with these keys and, optionally, `model`, `system` and `gpus`.

## Parameters of a plan

Defaults are those of Llama 3 8B on 64 GPUs of a DGX H100 with a batch of 256, where `dp` follows
from the others. Framework presets have [defaults of their own](../frameworks.md).

{table(["parameter", "values", "default", "meaning"], rows_of(manuals["orrery-estimate"], plan))}
## Parameters of a deployment

Defaults are those of Llama 3.1 8B on 8 GPUs of a DGX H100 with vLLM. [Serve](../../guides/serve.md)
explains them.

{table(["parameter", "values", "default", "meaning"], rows_of(manuals["orrery-serve"], served))}"""


def models(program, pages):
    def row(name):
        lines = program.lines("check", "--model", name)
        facts = dict(re.split(r"  +", line.strip(), maxsplit=1) for line in lines[1:])
        if "heads x head size" not in facts:  # Layers of several kinds.
            mixers = [value for key, value in facts.items() if key.startswith("mixer ")]
            return [
                f"`{name}`",
                facts["layers"],
                thousands(int(facts["hidden"])),
                "",
                facts["parameters"],
                facts.get("active a token", ""),
                ", ".join(sorted({mixer.replace("_", " ") for mixer in mixers})),
            ]
        heads = re.match(r"(\d+) x \d+, (\d+) ", facts["heads x head size"])
        kinds = [kind for kind in ("experts", "windows") if kind in facts]
        if any("latent" in key or "latent" in value for key, value in facts.items()):
            kinds.append("latent attention")
        every = heads.groups() if heads else (facts["heads x head size"].split()[0],) * 2
        return [
            f"`{name}`",
            facts["layers"],
            thousands(int(facts["hidden"])),
            " / ".join(every),
            facts["parameters"],
            facts.get("active a token", ""),
            ", ".join(kinds),
        ]

    with ThreadPoolExecutor() as pool:
        rows = list(pool.map(row, program.names("models")))
    head = ["name", "layers", "hidden", "heads / kv", "parameters", "active", "has"]
    pages["models.md"] = f"""# Catalog of models

Which models come with Orrery, and what are their sizes? This page is for people who look for a name
to write after `--model`. [Your own models](../../guides/own-models-and-systems.md#models) are
files.

Each file in `workloads/models` names its source. *active* counts the parameters that a token
visits, embeddings included.

{table(head, rows, right=range(1, 6))}
OPT's 350M, whose tables are narrower than its layers, is refused. SmolLM3's layers without
positions count like the others. MPT has llm-foundry's 50,368 rows (the published 7B checkpoint has
50,432) and 56 heads in its 30B. Gemma 3 and DeepSeek-V3 are counted without image tower and
prediction layer, BLOOM without the norm of its embedding (28,672). GPT-OSS's sinks and expert
biases are counted.
"""


def value_of(document, key):
    value = document.get(key, "-")
    return str(value["value"] if isinstance(value, dict) else value)


def number_of(document, key):
    return value_of(document, key).split()[0]


def read(path):
    return json.loads(path.read_text())


def catalog(kind):
    return {path.stem: read(path) for path in sorted((ROOT / "topologies" / kind).glob("*.json"))}


def domain_of(system):
    if system.get("wiring") == "pcie":
        return "none"
    return value_of(system, "nvlink_domain" if "nvlink_domain" in system else "gpus_per_node")


# Systems with round numbers, for tests.
TESTS_OWN = ("test-gpu", "test-network", "two-gpus", "four-by-four")


def systems(pages):
    gpus = [
        [
            f"`{name}`",
            *[number_of(gpu, key) for key in ("peak_16bit", "peak_fp8", "peak_fp4")],
            value_of(gpu, "memory"),
            *[number_of(gpu, f"{key}_bandwidth") for key in ("memory", "nvlink", "pcie")],
            number_of(gpu, "multiprocessors"),
            number_of(gpu, "power"),
        ]
        for name, gpu in catalog("gpus").items()
        if name not in TESTS_OWN
    ]
    rows = []
    for name, system in catalog("systems").items():
        if name in TESTS_OWN:
            continue
        shape = system.get("fabric_shape", {}).get("kind", "")
        rows.append(
            [
                f"`{name}`",
                f"`{system['gpu']}`",
                value_of(system, "gpus_per_node"),
                domain_of(system),
                system.get("wiring", ""),
                number_of(system, "scale_up_bandwidth"),
                f"{value_of(system, 'nics_per_node')} x {value_of(system, 'nic_bandwidth')}",
                system.get("fabric", "") + (f", {shape}" if shape else ""),
            ]
        )
    networks = [
        [
            f"`{name}`",
            network["title"],
            *[value_of(network, key) for key in ("latency", "chunk_latency", "efficiency")],
        ]
        for name, network in catalog("networks").items()
        if name not in TESTS_OWN
    ]
    gpu_head = ["GPU", "fp16/bf16 TFLOP/s", "fp8", "fp4", "memory", "GB/s", "NVLink GB/s"]
    gpu_head += ["PCIe GB/s", "SMs", "W"]
    head = ["system", "GPU", "GPUs a node", "NVLink domain", "wiring", "GB/s a GPU", "NICs a node"]
    head += ["network"]
    network_head = ["network", "what it is", "latency", "more in large messages", "efficiency"]
    pages["systems.md"] = f"""# Catalog of GPUs and systems

Which GPUs and systems does Orrery know, and which of their figures are uncertain? This page is for
people who look for a name to write after `--gpu` or `--system`. [Your own
systems](../../guides/own-models-and-systems.md#systems) are files.

Each file in `topologies` names the source of every figure. Peaks are dense, and bandwidths are per
direction. Memory is what CUDA reports to a program, 1 to 2 % less than what is sold.

## GPUs

{table(gpu_head, gpus, right=range(1, 10))}
## Systems

A system without a described fabric has one switch that never blocks.

{table(head, rows)}
## Networks between nodes

Latencies are those of a hop, software to software; a system may have an efficiency of its own.

{table(network_head, networks)}
## Uncertain figures

- Latencies within nodes are NCCL's constants for its own algorithms, not measurements of each
  machine.
- Each kind of network was measured on one to three clusters. Two clusters of a kind differ by 15 to
  40 % in medium sizes. `tcpx`, `omni-path`, `efa-v3` and `efa-v4` rest on parts of one sweep.
- Some peaks cannot be sustained: `h100-96gb-hbm2e` runs at 500 W, but has the H100's peak.
- The PCIe servers are common designs, not particular products. How fast more than two of their GPUs
  exchange depends on the machine ([collectives](../../explanation/collectives.md#inside-one-domain)).
- `switch_latency` is 0.2 us for InfiniBand and 0.75 us for Ethernet, on the assumption that NCCL's
  constants include three switches. Data sheets say 0.13 us and up for the switch alone.
- The switch counts of `dgx-a100-superpod` were checked against their own arithmetic (1,120 cables a
  level, 40 ports a switch). Its leaf-spine links are two cables.
"""


def by_gpu(entries):
    return {entry["gpu"]: entry["use"] for entry in entries}


def between_nodes(gpu, sweeps):
    """On which systems with `gpu` collectives were measured between how many nodes."""
    found = []
    for name, system in catalog("systems").items():
        curves = sweeps.get(name, []) if system["gpu"] == gpu else []
        nodes = sorted({curve["nodes"] for curve in curves} - {1})
        if nodes:
            found.append(f"{name}: {', '.join(map(str, nodes))}")
    return "; ".join(found)


def training_rows():
    data = ROOT / "calibration/data"
    stand_ins = read(data / "kernels/stand_ins.json")
    tables_of, attention_of, trained_of = [
        by_gpu(stand_ins[kind]) for kind in ("tables", "attention", "training_attention")
    ]
    exchange = read(data / "expert_exchange.json")
    exchanged = {fit["gpu"] for fit in exchange["fits"]}
    sweeps = {path.stem: read(path)["curves"] for path in (data / "collectives").glob("*.json")}
    systems_of = {}
    for name, system in catalog("systems").items():
        systems_of.setdefault(system["gpu"], []).append(name)

    rows = []
    for gpu in catalog("gpus"):
        if gpu in TESTS_OWN:
            continue
        own = data / f"kernels/{gpu}.json"
        used = gpu if own.exists() else tables_of.get(gpu)
        kernels = read(data / f"kernels/{used}.json") if used else {}
        lent = "" if used == gpu else f"of {used}: "
        formats = ", ".join(entry["dtype"] for entry in kernels.get("gemm", []))
        bases = kernels.get("attention_forward", {}).get("bases", [])
        heads = ", ".join(str(base["head_dim"]) for base in bases)
        if not heads and gpu in attention_of:
            lent, heads = "", f"of {attention_of[gpu]}"
        trained = f"of {trained_of[gpu]}" if gpu in trained_of else "by formula"
        if (data / f"training_attention/{gpu}.json").exists():
            trained = "measured"
        # Sweeps of a GPU are of one NVLink domain, those of a system of whatever it has.
        curves = list(sweeps.get(gpu, []))
        for name in systems_of.get(gpu, []):
            curves += [curve for curve in sweeps.get(name, []) if curve["nodes"] == 1]
        ranks = sorted({curve["ranks"] for curve in curves})
        sent = "default"
        if gpu in exchange["stand_ins"]:
            sent = f"of {exchange['stand_ins'][gpu]['value']}"
        if gpu in exchanged:
            sent = "measured"
        rows.append(
            [
                gpu,
                lent + formats if formats else "default",
                lent + heads if heads else "default",
                trained,
                ", ".join(map(str, ranks)) or "by formula",
                between_nodes(gpu, sweeps) or "by formula",
                sent,
            ]
        )
    return rows


def served_rows(program):
    chips = {}
    for name, system in catalog("systems").items():
        if system["gpu"] not in TESTS_OWN and "fabric_shape" not in system:
            chips.setdefault(system["gpu"], name)
    tables = ROOT / "calibration/data/serving"
    known = [path.name for path in sorted(tables.iterdir()) if path.is_dir()]

    def formats_of(engine):
        listed = read(ROOT / f"workloads/engines/{engine}.json")["weights"]["value"]
        return [weights for weights in listed if weights != "fp16"]

    def status(gpu, kind, engine, weights):
        """"", "borrowed" or "default", or nothing where it is refused."""
        words = f"--model {KINDS[kind]} --system {chips[gpu]} --gpus 2 --tp 2 --engine {engine}"
        text = program.run(
            "serve", *words.split(), "--weights", weights, "--step", ITERATION, "--json"
        )
        if not text:
            return None
        step = json.loads(text)["step"]
        whole = sum(part["s"] for part in step["parts"])
        assumed = sum(part["s"] for part in step["parts"] if part["basis"] == "default")
        if assumed > 0.05 * whole:
            return "default"
        others = [table for table in step["tables"] if f" of {engine} " not in table]
        return "borrowed" if others or step["measured_gpu"] != gpu else ""

    cases = [
        (gpu, kind, engine, weights)
        for gpu in known
        for kind in KINDS
        for engine in ENGINES
        for weights in formats_of(engine)
    ]
    with ThreadPoolExecutor() as pool:
        found = dict(zip(cases, pool.map(lambda case: status(*case), cases)))

    def cell_of(gpu, kind, engine):
        parts = []
        for mark in ("", "borrowed", "default"):
            formats = [w for w in formats_of(engine) if found[gpu, kind, engine, w] == mark]
            if formats:
                parts.append(f"{mark} {', '.join(formats)}".strip())
        return "; ".join(parts) or "refused"

    # GPUs that have the same formats share a row.
    rows = {}
    for kind in KINDS:
        for gpu in known:
            cells = tuple(cell_of(gpu, kind, engine) for engine in ENGINES)
            rows.setdefault((kind, cells), []).append(gpu)
    return [[kind, ", ".join(gpus), *cells] for (kind, cells), gpus in rows.items()]


def support(program, pages):
    kinds = ", ".join(f"{model} ({kind})" for kind, model in KINDS.items())
    head = ["GPU", "products", "attention, heads of", "training attention", "collectives, ranks"]
    head += ["between nodes (nodes)", "DeepEP"]
    pages["support.md"] = f"""# Support matrix

What is measured, borrowed from a related GPU, assumed, or refused for my GPU, model, engine and
number format? This page is for people who want to know what an answer would rest on. `orrery
estimate` and `orrery serve --step` state it for each answer (*Times from*, *basis*).

## Training

*of X* are the tables of a related GPU, scaled by the peaks; *default* is a formula with assumed
efficiencies. fp16 uses bf16's products. Times between measured shapes are interpolated.
Memory-bound kernels follow from bytes and a measured or assumed copy rate, and Hybrid-EP from
figures of GB200 and H100.

{table(head, training_rows())}
All GPUs train dense models, models with experts, latent attention, windows and parallel blocks;
windows and products in fp32 and tf32 are *default* everywhere. A format that a GPU lacks is
refused, as are layers with linear attention, state spaces and encoders.

## Serving

Formats of weights that are answered, for an iteration of 16 decodes over 2,048 tokens and a prompt
of 1,024 tokens on two GPUs. Models are {kinds}.
Experts have the format of the weights. Formats without a mark rest on tables of this engine and
GPU, *borrowed* ones in part on tables of another engine or GPU, and *default* ones for more than 5
% of the time on assumptions. A format that is not listed is refused by the engine, the GPU or the
model.

{table(["model", "GPU", *ENGINES], served_rows(program))}
Other GPUs are priced by assumed shares of their peaks. Linear and sparse attention are refused.
"""


def main(arguments):
    check = arguments[:1] == ["--check"]
    if len(arguments) != 1 + check:
        sys.exit(__doc__)
    program = Program(arguments[-1])
    pages = {}
    manuals = commands(program, pages)
    parameters(program, manuals, pages)
    models(program, pages)
    systems(pages)
    support(program, pages)
    stale = []
    for name, page in pages.items():
        path, text = FOLDER / name, wrapped(page)
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    gone = {path.name for path in (FOLDER / "commands").glob("*.md")} - {
        Path(name).name for name in pages if name.startswith("commands/")
    }
    for name in sorted(gone):
        stale.append(f"commands/{name}")
        if not check:
            (FOLDER / "commands" / name).unlink()
    for name in stale if check else []:
        print(f"docs/reference/generated/{name} is stale: run tests/docs/generate_reference.py "
              "build/release/orrery")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
