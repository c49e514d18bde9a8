// Ties the page together: a state, what the server says of it, and what is drawn.

import * as api from "./api";
import * as view from "./answer_view";
import { ClusterView, loadLegend } from "./cluster_view";
import { announce, byId, fill } from "./dom";
import { seconds } from "./format";
import { BatchesView } from "./batches_view";
import { fillCatalog, KnobsView, title } from "./knobs_view";
import { ExpertsView } from "./experts_view";
import { showKinds } from "./kinds_view";
import { MemoryView } from "./memory_view";
import { RooflineView } from "./roofline_view";
import { SearchView } from "./search_view";
import { showStages } from "./stages_view";
import { SweepView } from "./sweep_view";
import { changed, decode, encode, History, same, State } from "./state";
import { legend, TimelineView } from "./timeline_view";
import type { Timeline } from "./timeline_data";
import { Views } from "./views";

const timeline = new TimelineView();
let answer: api.Answer | null = null;
let painted: Promise<void> = Promise.resolve();
let pinned: view.Pinned | null = null;
let comparing: AbortController | null = null;
const memory = new MemoryView(timeline, () => answer?.result?.layer_kinds ?? []);
const cluster = new ClusterView(timeline, (from, to, signal) =>
  api.linkLoads(answer!.state, from, to, signal));
const roofline = new RooflineView();
const experts = new ExpertsView(() => !!answer?.result && "routing" in answer.result);
const views = new Views([memory, cluster, roofline, experts], api.drawing,
                        () => answer?.result ? answer.state : null,
                        () => { if (answer) writeAddress(); });

// For tests and measurements.
const probe = {
  pictures: [] as number[],  // ms from a turn of a knob to the frame that shows its answer
  settled: 0,                // replies that came whole
  timeline, memory, cluster, roofline, experts, views,
  get answer() { return answer; },
  get search() { return search; },
  get batches() { return batches; },
  get sweep() { return sweep; },
  slices: 0,
};
(window as unknown as Record<string, unknown>).explorer = probe;

function initial(): { state: State; pin: State | null; views: string } {
  const state = decode(location.hash);
  const pin = state.pin ? decode(state.pin) : null;
  const views = state.views ?? "";
  delete state.pin;
  delete state.views;
  return { state, pin, views };
}

const begun = initial();
const history = new History(begun.state);

// --- Questions: one is in work, and the newest waits. ---

interface Asked { state: State; repair: boolean; at: number; answered: boolean;
                  abort: AbortController }
let inWork: Asked | null = null;
let next: { state: State; repair: boolean; at: number } | null = null;

function ask(repair = false, at = performance.now()): void {
  next = { state: history.now, repair: repair || (next?.repair ?? false), at };
  // What is drawn already needs no more; what is not yet gets a moment, lest a slider that moves on
  // and on never shows anything.
  if (inWork && (inWork.answered || at - inWork.at > 400)) inWork.abort.abort();
  else if (inWork) return;
  if (!inWork) work();
}

async function work(): Promise<void> {
  while (next) {
    const now: Asked = { ...next, answered: false, abort: new AbortController() };
    next = null;
    inWork = now;
    views.cancel();
    document.body.classList.add("working");
    try {
      await api.ask(now.state, now.repair, {
        answer: (got) => {
          now.answered = true;
          if (!next) take(got, now);
        },
        // Figures first: all else waits until they are on the screen.
        knobs: (list) => { painted.then(() => { if (inWork === now && !next) showKnobs(list); }); },
        timeline: (got) => { painted.then(() => { if (!next) takeTimeline(got); }); },
      }, now.abort.signal);
      await painted;
      ++probe.settled;
    } catch (error) {
      if (!now.abort.signal.aborted) {
        if (error instanceof api.SenselessQuestion) history.reject(now.state);
        fail(error as Error);
        knobs.restore();
        views.follow();
      }
    }
    inWork = null;
  }
  document.body.classList.remove("working");
}

function fail(error: Error): void {
  const box = byId("failure");
  box.hidden = false;
  const gone = error instanceof TypeError;
  box.textContent = gone ? "The server is not there any more: start orrery explore again."
    : error.message;
  announce(box.textContent);
}

// --- What the server says ---

function take(got: api.Answer, asked: Asked): void {
  answer = got;
  byId("failure").hidden = true;
  history.settle(got.state);
  forgetChanges();
  writeAddress();
  show();
  painted = new Promise((done) => requestAnimationFrame(() => setTimeout(() => {
    probe.pictures.push(performance.now() - asked.at);
    if (probe.pictures.length > 1000) probe.pictures.shift();
    done();
  })));
}

function show(): void {
  if (!answer) return;
  const { result } = answer;
  view.showRefusal(answer, (changes) => turn(changes));
  view.showStrip(answer);
  byId("results").hidden = !result;
  byId<HTMLElement>("heading").textContent = answer.heading?.join(" · ") ?? "";
  byId("command").textContent = answer.command;
  document.title = result ? `${seconds(result.step_time_s)} · ${result.model} · Orrery`
    : "cannot run · Orrery";
  const memory = result?.memory ?? answer.refused?.memory;
  byId("memory-section").hidden = !memory;
  byId("links-section").hidden = !result;
  if (memory) view.showMemory(memory, result?.layer_kinds);
  if (result) {
    view.showFigures(result, pinned);
    view.showCriticalPath(result, pinned);
    view.showLinks(result);
    showStages(result);
    showKinds(result);
    view.showBasis(result);
    announce(`Step time ${seconds(result.step_time_s)}`);
  } else {
    timeline.show(null);
    fill(byId("timeline-legend"));
  }
  for (const kind of ["report", "trace", "result", "megatron", "pin"])
    byId<HTMLButtonElement>(kind).disabled = !result && kind !== "megatron";
  for (const key of ["model", "system"])
    byId<HTMLSelectElement>(key).value = answer.state[key] ?? "";
  byId<HTMLInputElement>("tokens").value = answer.state.tokens ?? "";
  byId<HTMLButtonElement>("undo").disabled = !history.canUndo;
  byId<HTMLButtonElement>("redo").disabled = !history.canRedo;
  showPin();
}

function showKnobs(list: api.Knob[]): void {
  knobs.show(list);
  search.offer(list);
  sweep.offer(list);
}

function takeTimeline(got: Timeline | null): void {
  probe.slices = got?.header.slices ?? 0;
  timeline.show(got);
  fill(byId("timeline-legend"), got && legend(got));
  views.follow();
  compare();
  if (!answer) return;
  search.follow(answer);
  batches.follow(answer);
  sweep.follow(answer);
}

// --- What the user does ---

function turn(changes: State, along = "", repair = false): void {
  const before = history.now;
  history.go(changed(before, changes), along);
  if (!same(before, history.now)) ask(repair);
}

// Another plan as a whole: what it does not say is open.
function load(state: State): void {
  turn({ ...Object.fromEntries(Object.keys(history.now).map((key) => [key, ""])), ...state });
}

const knobs = new KnobsView((changes, along) => turn(changes, along));
const search = new SearchView(load);
const sweep = new SweepView(load);
const batches = new BatchesView((changes) => turn(changes));

function writeAddress(): void {
  const state = { ...history.now };
  if (pinned) state.pin = encode(pinned.state);
  if (views.opened !== "") state.views = views.opened;
  const hash = "#" + encode(state);
  if (hash !== location.hash) window.history.replaceState(null, "", hash);
}

function travel(go: () => void): void {
  go.call(history);
  byId<HTMLButtonElement>("undo").disabled = !history.canUndo;
  byId<HTMLButtonElement>("redo").disabled = !history.canRedo;
  ask();
}

function pin(): void {
  pinned = pinned ? null : answer?.result ? { state: history.now, result: answer.result } : null;
  writeAddress();
  show();
  compare();
}

function showPin(): void {
  const button = byId<HTMLButtonElement>("pin");
  button.textContent = pinned ? "Unpin A" : "Pin as A";
  button.setAttribute("aria-pressed", String(!!pinned));
  const box = byId("pinned");
  box.hidden = !pinned;
  if (!pinned) {
    view.showComparison(null);
    return;
  }
  const other = pinned.state;
  const keys = [...new Set([...Object.keys(other), ...Object.keys(history.now)])]
    .filter((key) => other[key] !== history.now[key]);
  const told = keys.map((key) =>
    `${title(key)} ${other[key] ?? "open"} → ${history.now[key] ?? "open"}`);
  byId("pinned-text").textContent = told.length === 0 ? "B is still A: turn a knob."
    : `A → B: ${told.join(", ")}`;
  byId("pinned-swap").hidden = told.length === 0;
}

async function compare(): Promise<void> {
  comparing?.abort();
  const result = answer?.result;
  const a = pinned;
  if (!a?.result || !result || same(a.state, history.now) || a.result.model !== result.model) {
    view.showComparison(null);
    return;
  }
  comparing = new AbortController();
  const { signal } = comparing;
  try {
    const found = await api.compare(a.state, history.now, signal);
    if (!signal.aborted && pinned) view.showComparison(found);
  } catch {
    if (!signal.aborted) view.showComparison(null);
  }
}

let trying: AbortController | null = null;
async function tryChanges(): Promise<void> {
  trying?.abort();
  const mine = trying = new AbortController();
  const button = byId<HTMLButtonElement>("try-changes");
  button.disabled = true;
  try {
    const list = await api.singleChanges(history.now, mine.signal);
    if (!mine.signal.aborted) view.showChanges(list, (changes) => turn(changes));
  } catch (error) {
    if (!mine.signal.aborted) fail(error as Error);
  }
  if (trying === mine) button.disabled = false;
}

// They were of the plan before.
function forgetChanges(): void {
  trying?.abort();
  trying = null;
  byId<HTMLButtonElement>("try-changes").disabled = false;
  view.showChanges(null, () => undefined);
}

// A link may hold a pinned plan: its figures are asked for once.
async function takePin(state: State): Promise<void> {
  pinned = { state, result: null };
  try {
    const text = await (await api.download("result", state)).text();
    pinned = { state, result: JSON.parse(text) };
  } catch {
    pinned = null;
  }
  show();
  compare();
}

async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    tell(`${what} copied`);
  } catch {
    // No leave to write there: who wants it can mark it.
    const range = document.createRange();
    range.selectNodeContents(byId("command"));
    getSelection()?.removeAllRanges();
    getSelection()?.addRange(range);
    tell("Marked: copy it with Ctrl+C");
  }
}

let telling = 0;
function tell(text: string): void {
  const box = byId("toast");
  box.textContent = text;
  box.hidden = false;
  announce(text);
  clearTimeout(telling);
  telling = window.setTimeout(() => { box.hidden = true; }, 2500);
}

async function save(kind: string, name: string): Promise<void> {
  try {
    const url = URL.createObjectURL(await api.download(kind, history.now));
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
    tell(`${name} downloaded`);
  } catch (error) {
    fail(error as Error);
  }
}

// "--recompute selective:core_attn" or "recompute=full": any option, typed.
function typeOption(text: string): void {
  const changes: State = {};
  for (const match of text.matchAll(/(?:--)?([\w]+)(?:\s+|=)("[^"]*"|[^\s]+)/g))
    changes[match[1]] = match[2].replaceAll('"', "");
  if (Object.keys(changes).length === 0) fail(new Error("Write it like --recompute full"));
  else turn(changes);
}

function wire(): void {
  fill(byId("cluster-legend"), loadLegend());
  const on = (id: string, act: () => void) => byId(id).addEventListener("click", act);
  on("undo", () => travel(history.undo));
  on("redo", () => travel(history.redo));
  on("pin", pin);
  on("try-changes", tryChanges);
  on("pinned-swap", () => {
    if (!pinned || !answer?.result) return;
    const a = pinned.state;
    pinned = { state: history.now, result: answer.result };
    load(a);
  });
  on("copy-command", () => copy(answer?.command ?? "", "Command"));
  on("copy-link", () => copy(location.href, "Link"));
  on("report", () => save("report", "orrery-report.html"));
  on("trace", () => save("trace", "orrery-trace.json"));
  on("result", () => save("result", "orrery-result.json"));
  on("megatron", () => save("megatron", "megatron-arguments.txt"));
  byId<HTMLInputElement>("tokens").addEventListener("change", (event) =>
    turn({ tokens: (event.target as HTMLInputElement).value.trim() }));
  const option = byId<HTMLInputElement>("option");
  byId("option-form").addEventListener("submit", (event) => {
    event.preventDefault();
    typeOption(option.value);
    option.value = "";
  });
  addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    if ((event.target as Element).matches("input[type=text]")) return;
    event.preventDefault();
    travel(event.shiftKey ? history.redo : history.undo);
  });
  addEventListener("hashchange", () => {
    const said = initial();
    views.opened = said.views;
    if (!same(said.state, history.now)) {
      history.go(said.state);
      ask();
    }
    if (said.pin && !same(said.pin, pinned?.state ?? {})) takePin(said.pin);
  });
}

async function start(): Promise<void> {
  wire();
  views.opened = begun.views;
  try {
    fillCatalog(await api.catalog(), history.now, (changes) => turn(changes, "", true));
  } catch (error) {
    fail(error as Error);
  }
  ask();
  if (begun.pin) await takePin(begun.pin);
}

start();
