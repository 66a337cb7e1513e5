// What people do with the page: see paint.js for what it shows.
const tip = byId("tip"), note = byId("note"), filter = byId("filter");

// When there were faults other than of budgets, and jobs that were late.
const PROBLEMS = TRACE.rows.flatMap((row) => [
  ...row.faults.filter(([, what]) => what !== "timeout fault").map(([time]) => time),
  ...row.jobs.filter(([, , deadline, ended]) => deadline !== null && (ended ?? END) > deadline)
    .map(([, , deadline]) => deadline),
]).sort((a, b) => a - b);

function show(from, to) {
  const span = clamp(to - from, 0.02, END * 1.02);
  view.from = clamp(from, -END * 0.01, Math.max(END * 1.01 - span, -END * 0.01));
  view.to = view.from + span;
  paint();
}
function zoom(centre, factor) {
  show(centre - (centre - view.from) * factor, centre + (view.to - centre) * factor);
}
const pan = (share) => show(...[view.from, view.to].map((time) => time + share * (view.to - view.from)));
const middle = () => view.pointer?.time ?? (view.from + view.to) / 2;
const all = () => show(0, END);

function choose() {
  const words = filter.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
  const wanted = (row) => !words.length || words.some((word) => row.name.toLowerCase().includes(word));
  // Partitions and gates above the threads.
  const isThread = (index) => Number(!TRACE.rows[index].windows.length && !TRACE.rows[index].stages.length);
  view.rows = TRACE.rows.map((_, index) => index).filter((index) => wanted(TRACE.rows[index]))
    .sort((a, b) => isThread(a) - isThread(b));
  paint();
}

// The next problem behind the middle of what is seen, or the one before.
function jump(way) {
  const centre = (view.from + view.to) / 2, eps = (view.to - view.from) * 1e-6;
  const next = way > 0 ? PROBLEMS.find((time) => time > centre + eps)
    : PROBLEMS.findLast((time) => time < centre - eps);
  if (next === undefined) { note.textContent = "no more faults or late jobs that way"; return; }
  const half = Math.min(view.to - view.from, END / 20) / 2;
  show(next - half, next + half);
}

const WAITS = ["ready, waits for its turn", "waits for its budget", "waits for an answer"];
function described(time, py) {
  const index = view.rows[placeAt(py)], row = TRACE.rows[index], lines = [shown(time)];
  const core = CORE_IDS[Math.floor((py - PAD) / CORE)];
  const at = (list) => {
    const found = list[firstFrom(list, time, (run) => run[1])];
    return found && found[0] <= time ? found : undefined;
  };
  if (py < coresHeight()) {
    const run = core !== undefined && at(CORES[core]);
    if (core !== undefined) lines.push(`core ${core}: ` + (run ? TRACE.rows[run[2]].name : "idle"));
    return lines.join("\n");
  }
  if (!row) return lines.join("\n");
  lines.push(row.name);
  const run = at(row.runs), wait = at(row.waits);
  if (run) {
    lines.push(`runs for ${lasting(run[1] - run[0])} on core ${run[2]}`, `on the time of ${TRACE.payers[run[3]]}`);
  } else if (wait) lines.push(`${WAITS[wait[2]]}: ${lasting(wait[1] - wait[0])}`);
  const window_ = at(row.windows);
  if (window_) {
    const [from, to, planned, number] = window_;
    lines.push(`window ${number}: ${lasting(to - from)}` + (to > planned ? `, overrun ${lasting(to - planned)}` : ""));
  }
  const stage = at(row.stages);
  if (stage) {
    const [, , what, served, payer] = stage, name = (index) => (index === null ? "nobody" : TRACE.payers[index]);
    lines.push(["waits", "waits without budget", "is served"][what], `${name(served)} is served, ${name(payer)} pays`);
  }
  const reserved = row.reservations.findLast(([since]) => since <= time);
  if (reserved) lines.push(`reservation: ${reserved[1]}`);
  const next = firstFrom(row.budget, time, (point) => point[0]), before = row.budget[next - 1];
  if (before) {
    const after = row.budget[next];
    const left = after?.[2] ? before[1] + (after[1] - before[1]) * (time - before[0]) / (after[0] - before[0])
      : before[1];
    lines.push(`budget left: ${lasting(left)}`);
  }
  const job = row.jobs.findLast(([, released, , ended]) => released !== null && released <= time && (ended ?? END) >= time);
  if (job) {
    const [number, released, deadline, ended] = job;
    const parts = [`job ${number} of ${shown(released)}`];
    if (deadline !== null) parts.push(`due ${shown(deadline)}`);
    if (ended !== null) parts.push(`took ${lasting(ended - released)}`);
    lines.push(parts.join(", "));
  }
  const reach = 5 * (view.to - view.from) / plotWidth();
  row.faults.filter(([when]) => Math.abs(when - time) < reach).slice(0, 3)
    .forEach(([when, what]) => lines.push(`${what} at ${shown(when)}`));
  return lines.join("\n");
}

function point(event) {
  const time = timeAt(event.offsetX);
  const inside = event.offsetX >= LABELS && event.offsetX <= LABELS + plotWidth();
  view.pointer = inside ? { time } : null;
  tip.style.display = inside ? "block" : "none";
  if (inside) {
    tip.textContent = described(time, event.offsetY);
    const { offsetWidth: width, offsetHeight: height } = tip;
    tip.style.left = (event.clientX + 16 + width > innerWidth ? event.clientX - width - 12 : event.clientX + 16) + "px";
    tip.style.top = clamp(event.clientY + 14, 0, innerHeight - height - 4) + "px";
  }
  paint();
}

let held = null;
rowsCanvas.addEventListener("pointerdown", (event) => {
  if (event.offsetX < LABELS || event.button !== 0) return;
  rowsCanvas.setPointerCapture(event.pointerId);
  const time = timeAt(event.offsetX);
  if (event.shiftKey) view.measure = [time, time];
  held = { time, measures: event.shiftKey };
  rowsCanvas.classList.toggle("held", !event.shiftKey);
});
rowsCanvas.addEventListener("pointermove", (event) => {
  if (held?.measures) {
    view.measure = [held.time, timeAt(event.offsetX)];
    note.textContent = `measured: ${lasting(Math.abs(view.measure[1] - view.measure[0]))}`;
  } else if (held) {
    const moved = held.time - timeAt(event.offsetX);
    show(view.from + moved, view.to + moved);
  }
  point(event);
});
for (const end of ["pointerup", "pointercancel"]) {
  rowsCanvas.addEventListener(end, () => { held = null; rowsCanvas.classList.remove("held"); });
}
rowsCanvas.addEventListener("pointerleave", () => {
  view.pointer = null; tip.style.display = "none"; paint();
});
rowsCanvas.addEventListener("wheel", (event) => {
  // Over the names, it scrolls.
  if (event.offsetX < LABELS) return;
  event.preventDefault();
  const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
  if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) pan(sideways / plotWidth());
  else zoom(timeAt(event.offsetX), Math.exp(clamp(event.deltaY, -200, 200) * 0.002));
}, { passive: false });
rowsCanvas.addEventListener("dblclick", all);

const look = (event) => {
  if (event.buttons !== 1) return;
  const centre = (event.offsetX - LABELS) / plotWidth() * END, half = (view.to - view.from) / 2;
  show(centre - half, centre + half);
};
overviewCanvas.addEventListener("pointerdown", look);
overviewCanvas.addEventListener("pointermove", look);

const KEYS = {
  ArrowLeft: () => pan(-0.15), a: () => pan(-0.15), ArrowRight: () => pan(0.15), d: () => pan(0.15),
  w: () => zoom(middle(), 0.7), "+": () => zoom(middle(), 0.7), "=": () => zoom(middle(), 0.7),
  s: () => zoom(middle(), 1 / 0.7), "-": () => zoom(middle(), 1 / 0.7),
  Home: () => show(0, view.to - view.from), End: () => show(END - (view.to - view.from), END),
  "0": all, f: all, n: () => jump(1), p: () => jump(-1), "/": () => filter.focus(),
  Escape: () => { view.measure = null; note.textContent = ""; paint(); },
};
window.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === filter) { if (event.key === "Escape") { filter.value = ""; choose(); filter.blur(); } return; }
  const act = KEYS[event.key];
  if (act) { event.preventDefault(); act(); }
});
const BUTTONS = { in: KEYS.w, out: KEYS.s, all, budgets: () => toggle("budgets"), arrows: () => toggle("arrows") };
function toggle(what) {
  view[what] = !view[what];
  document.querySelector(`[data-act="${what}"]`).setAttribute("aria-pressed", view[what]);
  paint();
}
for (const button of document.querySelectorAll("[data-act]")) {
  button.addEventListener("click", () => BUTTONS[button.dataset.act]());
}
filter.addEventListener("input", choose);
// #FROM-TO, in µs, is what is shown first.
const asked = location.hash.match(/^#([\d.]+)-([\d.]+)$/);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readInk(); paint(); });
new ResizeObserver(paint).observe(chart);
readInk();
choose();
if (asked && Number(asked[1]) < Number(asked[2])) show(Number(asked[1]), Number(asked[2]));
