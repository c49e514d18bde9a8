// The left side: a knob a key, with the values that are legal, and why the others are not.

import type { Catalog, Knob, KnobValue } from "./api";
import { byId, fill, h } from "./dom";
import { words } from "./format";
import type { State } from "./state";

export interface Turn {
  /** `along`: the name of a slider that is being drawn along. */
  (changes: State, along?: string): void;
}

const groups: [string, string, boolean][] = [
  ["cluster", "Cluster", true], ["degrees", "Parallelism", true], ["batch", "Batch", true],
  ["schedule", "Schedule and recomputation", true], ["sharding", "Sharding", true],
  ["precision", "Precision", false], ["attention", "Attention", false],
  ["experts", "Experts", true], ["overlap", "Overlap", false], ["software", "Software", false],
];

const titles: Record<string, string> = {
  gpus: "GPUs", tp: "Tensor parallel", pp: "Pipeline stages", vpp: "Chunks a stage",
  cp: "Context parallel", ep: "Expert parallel", etp: "Experts’ tensor parallel",
  mbs: "Micro-batch", gbs: "Global batch", seq: "Sequence", schedule: "Schedule",
  layers: "Layers of stages", recompute: "Recompute", offload_layers: "Layers offloaded",
  offload_modules: "Parts offloaded", local_batch: "Drained behind, sequences",
  zero: "ZeRO stage", dp_replicate: "Copies of shards",
  offload_optimizer: "Optimizer on the host, %", offload_weights: "Weights on the host", reshard: "Reshard", sp: "Sequence parallel",
  dtype: "Format",
  main_params: "Main parameters", exp_avg: "First moment", exp_avg_sq: "Second moment",
  fp8_params: "Weights in fp8", bf16_start_layers: "First layers in bf16",
  bf16_end_layers: "Last layers in bf16", attention: "Attention", fp8_attention: "Attention in fp8",
  cp_comm: "Context exchange", routing: "Routing", moe_dispatcher: "Dispatcher",
  shared_expert_overlap: "Shared experts beside", ep_overlap: "Experts beside kernels",
  delay_wgrad: "Delay weight gradients", tp_overlap: "Tensor overlap",
  dp_overlap: "Data overlap", cuda_graphs: "CUDA graphs", nccl_algo: "NCCL algorithms",
  nccl_proto: "NCCL protocols", wait_for_others: "Ranks wait for others", software: "Software",
};

export function title(key: string): string { return titles[key] ?? words(key); }

function legal(knob: Knob): KnobValue[] { return knob.values.filter((v) => !v.why_not); }
function shown(word: string): string { return word === "" ? "as it follows" : word; }

function changesOf(knob: Knob, value: KnobValue): State {
  return { [knob.key]: value.word, ...value.also };
}

export class KnobsView {
  private readonly groups = new Map<string, HTMLDetailsElement>();
  private readonly made = new Map<string, { print: string; element: HTMLElement }>();
  private readonly root = byId("knobs");
  private knobs: Knob[] = [];
  private held = "";  // The slider that the pointer holds, which must stay under it.

  constructor(private readonly turn: Turn) {
    addEventListener("pointerup", () => this.release());
    addEventListener("pointercancel", () => this.release());
  }

  private release(): void {
    if (this.held === "") return;
    this.held = "";
    if (this.knobs.length > 0) this.show(this.knobs);
  }

  /** Whatever was turned since shows again what is. */
  restore(): void { this.show(this.knobs); }

  show(knobs: Knob[]): void {
    this.knobs = knobs;
    if (this.held !== "") return;
    const focus = document.activeElement?.id ?? "";
    for (const [part, name, first] of groups) {
      // A key that nothing can be said of here, as `reshard` without shards, is no knob.
      const of = knobs.filter((knob) => knob.part === part && (legal(knob).length > 0 || knob.said));
      this.showGroup(part, name, first, of);
    }
    if (focus !== "" && document.activeElement?.id !== focus)
      document.getElementById(focus)?.focus({ preventScroll: true });
  }

  // Most knobs are after a turn what they were: those stay, as new ones cost the browser more than
  // all else on the page.
  private showGroup(part: string, name: string, first: boolean, of: Knob[]): void {
    let group = this.groups.get(part);
    if (!group) {
      const wide = innerWidth > 820 || part === "cluster" || part === "degrees";
      group = h("details", { open: first && wide }, h("summary", {}, h("h3", {}, name)));
      this.groups.set(part, group);
      this.root.append(group);
    }
    group.hidden = of.length === 0;
    const shown = of.map((knob) => {
      const print = JSON.stringify([knob, knob.values.map((v) => (v.memory ?? 0) > 1)],
                                   (key, value) => (key === "memory" ? undefined : value));
      const known = this.made.get(knob.key);
      if (known?.print === print) {
        reset(known.element);
        return known.element;
      }
      const element = this.knob(knob);
      this.made.set(knob.key, { print, element });
      return element;
    });
    const there = [...group.children].slice(1);
    if (there.length === shown.length)
      shown.forEach((element, i) => { if (there[i] !== element) there[i].replaceWith(element); });
    else
      group.replaceChildren(group.firstElementChild!, ...shown);
  }

  private knob(knob: Knob): HTMLElement {
    const id = `knob-${knob.key}`;
    const few = !knob.numbers && knob.values.length <= 4 &&
      knob.values.reduce((sum, v) => sum + v.word.length, 0) < 26;
    const control = knob.numbers ? this.slider(knob, id) : few ? this.choice(knob, id)
      : this.select(knob, id);
    const reset = knob.said && knob.part !== "cluster" && h("button", {
      class: "reset", title: `Leave ${title(knob.key)} open`, type: "button",
      "aria-label": `Leave ${title(knob.key)} open`, id: `${id}-reset`,
      click: () => this.turn({ [knob.key]: "" }),
    }, "×");
    const classes = ["knob", knob.said ? "said" : "follows", knob.matters ? "" : "idle"];
    return h("div", { class: classes.join(" "), "data-key": knob.key },
             h("div", { class: "knob-head" },
               h("label", { for: id, id: `${id}-label`, title: knob.help }, title(knob.key)),
               reset),
             control, this.refused(knob, id));
  }

  // Why what is missing is missing.
  private refused(knob: Knob, id: string): HTMLElement | null {
    const not = knob.values.filter((v) => v.why_not);
    if (not.length === 0) return null;
    const list = h("details", { class: "why" },
                   h("summary", { id: `${id}-why` },
                     legal(knob).length === 0 ? "no value is legal here"
                       : `${not.length} not legal`));
    list.addEventListener("toggle", () => {
      if (!list.open || list.querySelector("dl")) return;
      list.append(h("dl", {}, ...not.flatMap((v) => [h("dt", {}, shown(v.word)),
                                                     h("dd", {}, v.why_not)])));
    }, { once: true });
    return list;
  }

  private slider(knob: Knob, id: string): HTMLElement {
    const values = legal(knob);
    const at = values.findIndex((v) => v.word === knob.now);
    const typed = h("input", {
      type: "text", inputmode: "numeric", class: "typed", value: knob.now, id: `${id}-typed`,
      "aria-label": `${title(knob.key)}, typed`, autocomplete: "off", spellcheck: "false",
      change: () => {
        const word = typed.value.trim().replaceAll(",", "");
        const known = knob.values.find((v) => v.word === word);
        if (word !== knob.now) this.turn(known ? changesOf(knob, known) : { [knob.key]: word });
      },
    });
    const slider = h("input", {
      type: "range", id, min: 0, max: Math.max(0, values.length - 1), step: 1,
      value: Math.max(0, at), disabled: values.length < 2,
      "aria-valuetext": knob.now, "aria-describedby": `${id}-marks`,
      pointerdown: () => { this.held = knob.key; },
      input: () => {
        const value = values[Number(slider.value)];
        slider.setAttribute("aria-valuetext", value.word);
        typed.value = value.word;
        this.turn(changesOf(knob, value), knob.key);
      },
    });
    const tight = values.filter((v) => (v.memory ?? 0) > 1).length;
    const marks = h("div", { class: "marks", id: `${id}-marks` });
    marks.title = tight > 0 ? `${tight} of ${values.length} values do not fit in memory (hollow)`
      : "every value fits in memory";
    if (values.length <= 48)
      values.forEach((v) => marks.append(h("i", { class: (v.memory ?? 0) > 1 ? "tight" : "" })));
    return h("div", { class: "slider" }, h("div", { class: "track" }, slider, marks), typed);
  }

  private choice(knob: Knob, id: string): HTMLElement {
    const group = h("div", { class: "choice", role: "radiogroup", "aria-labelledby": `${id}-label` });
    knob.values.forEach((value, index) => {
      const input = h("input", {
        type: "radio", name: id, id: index === 0 ? id : `${id}-${index}`, value: value.word,
        disabled: !!value.why_not, checked: value.word === knob.now,
        change: () => this.turn(changesOf(knob, value)),
      });
      const text = value.word === "true" ? "on" : value.word === "false" ? "off" : value.word;
      group.append(h("span", { title: value.why_not ?? null }, input,
                     h("label", { for: input.id }, text)));
    });
    return group;
  }

  private select(knob: Knob, id: string): HTMLElement {
    const select = h("select", {
      id, change: () => {
        const value = knob.values.find((v) => v.word === select.value);
        if (value) this.turn(changesOf(knob, value));
      },
    });
    for (const value of knob.values)
      select.append(h("option", {
        value: value.word, disabled: !!value.why_not, title: value.why_not ?? null,
      }, shown(value.word) + (value.why_not ? " (not legal)" :
        (value.memory ?? 0) > 1 ? " (over memory)" : "")));
    const now = knob.key === "software" && !knob.said ? "" : knob.now;
    select.value = now;
    select.dataset.now = now;
    return select;
  }
}

// A control that was turned and whose turn came to nothing shows again what is.
function reset(knob: HTMLElement): void {
  for (const input of knob.querySelectorAll("input")) {
    if (input.type === "radio") input.checked = input.defaultChecked;
    else if (input.value !== input.defaultValue) input.value = input.defaultValue;
  }
  for (const select of knob.querySelectorAll("select")) select.value = select.dataset.now ?? "";
}

/** Models and systems, which are chosen by name. */
export function fillCatalog(catalog: Catalog, state: State, turn: (changes: State) => void): void {
  for (const [key, list] of [["model", catalog.models], ["system", catalog.systems]] as const) {
    const select = byId<HTMLSelectElement>(key);
    fill(select, ...list.map((item) => h("option", { value: item.word },
                                         item.title === "" ? item.word
                                           : `${item.word} — ${item.title}`)));
    select.value = state[key] ?? "";
    select.addEventListener("change", () => turn({ [key]: select.value }));
  }
}
