// Paints TRACE (see html/data.rs) as far as `view` shows of it. Times are µs.
"use strict";
const byId = (id) => document.getElementById(id);
const [rowsCanvas, axisCanvas, overviewCanvas] = ["rows", "axis", "overview"].map(byId);
const chart = byId("chart");
const END = Math.max(TRACE.end, 1);
const LABELS = 190, RIGHT = 12, CORE = 26, MARKS = 18, PAD = 6;
// What is seen: from, to; rows by their index; what was measured.
const view = { from: 0, to: END, rows: [], budgets: true, arrows: true, pointer: null, measure: null };
const layout = { width: 0, row: 70, bar: 22, budget: 20 };

const PALETTE = ["#3b78c4", "#e0872d", "#4f9d55", "#b35db0", "#c9a227", "#2f9c9c", "#c4576a", "#7a6fd0",
  "#8a7a52", "#5b8f2e", "#d1699b", "#5d7f99"];
const colourOf = (payer) => PALETTE[payer % PALETTE.length];
const ink = {};
function readInk() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["paper", "band", "ink", "quiet", "rule", "grid", "release", "deadline", "bad",
    "lent", "back", "mode", "ready", "none", "accent"]) {
    ink[name] = style.getPropertyValue("--" + name).trim();
  }
}

// What each core executes: from, to, row, payer.
const CORES = [];
TRACE.rows.forEach((row, index) => row.runs.forEach(([from, to, core, payer]) => {
  (CORES[core] ??= []).push([from, to, index, payer]);
}));
CORES.forEach((runs) => runs.sort((a, b) => a[0] - b[0]));
const CORE_IDS = Object.keys(CORES).map(Number);
const PAYER_OF_ROW = TRACE.rows.map((row) => TRACE.payers.indexOf(row.name));

const plotWidth = () => layout.width - LABELS - RIGHT;
const x = (time) => LABELS + (time - view.from) / (view.to - view.from) * plotWidth();
const timeAt = (px) => view.from + (px - LABELS) / plotWidth() * (view.to - view.from);
const coresHeight = () => CORE_IDS.length * CORE + PAD;
const topOf = (place) => coresHeight() + place * layout.row;
const baseOf = (place) => topOf(place) + MARKS + layout.bar;
const placeAt = (py) => Math.floor((py - coresHeight()) / layout.row);
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// Index of the first element of `list`, in the order of `key`, with a key of at least `value`.
function firstFrom(list, value, key) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(list[middle]) < value) low = middle + 1; else high = middle;
  }
  return low;
}

// `time` with a unit, and as many digits as a `step` of it needs.
function shown(time, step = 0.001) {
  const [unit, name] = END >= 2e6 ? [1e6, "s"] : END >= 2e3 ? [1e3, "ms"] : [1, "µs"];
  const digits = clamp(Math.ceil(-Math.log10(step / unit) - 1e-9), 0, 9);
  return (time / unit).toFixed(digits) + " " + name;
}

// A duration in the unit that fits it.
function lasting(us) {
  const [unit, name] = us >= 1e6 ? [1e6, "s"] : us >= 1e3 ? [1e3, "ms"] : [1, "µs"];
  return Number((us / unit).toFixed(3)) + " " + name;
}
