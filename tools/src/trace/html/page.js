// Draws TRACE (see html/mod.rs) on the canvas. Times are µs.
"use strict";
const canvas = document.getElementById("timeline");
const hover = document.getElementById("hover");
const pen = canvas.getContext("2d");
const LABELS = 150, AXIS = 24, ROW = 58, BAR = 20, BUDGET = 20, ARROWS = 14;
const view = { from: 0, to: Math.max(TRACE.end, 1) };

// A colour for each payer, apart from each other by the golden angle.
const colours = TRACE.payers.map((_, i) => `hsl(${(i * 137.5 + 210) % 360}, 62%, 58%)`);
const x = (time) => LABELS + (time - view.from) / (view.to - view.from) * (canvas.clientWidth - LABELS);
const timeAt = (px) => view.from + (px - LABELS) / (canvas.clientWidth - LABELS) * (view.to - view.from);
const top_of = (row) => AXIS + row * ROW;
const base_of = (row) => top_of(row) + ARROWS + BAR;
const visible = (time) => time >= view.from && time <= view.to;

// Index of the first element of `list`, in the order of time, that ends after `time`.
function first_after(list, time, end) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (end(list[middle]) < time) low = middle + 1; else high = middle;
  }
  return low;
}

function shown(time) {
  return time >= 1e6 ? (time / 1e6).toFixed(6) + " s"
    : time >= 1e3 ? (time / 1e3).toFixed(4) + " ms" : time.toFixed(3) + " µs";
}

function line(x1, y1, x2, y2) {
  pen.beginPath(); pen.moveTo(x1, y1); pen.lineTo(x2, y2); pen.stroke();
}

function arrow(x1, y1, x2, y2, size) {
  const angle = Math.atan2(y2 - y1, x2 - x1);
  line(x1, y1, x2, y2);
  pen.beginPath();
  pen.moveTo(x2, y2);
  for (const side of [-0.5, 0.5]) {
    pen.lineTo(x2 - size * Math.cos(angle + side), y2 - size * Math.sin(angle + side));
  }
  pen.fill();
}

function axis(height) {
  const span = view.to - view.from;
  const rough = span / Math.max(2, (canvas.clientWidth - LABELS) / 120);
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  pen.fillStyle = "#555"; pen.strokeStyle = "#eee"; pen.lineWidth = 1;
  for (let time = Math.ceil(view.from / step) * step; time <= view.to; time += step) {
    line(x(time), AXIS, x(time), height);
    pen.fillText(shown(time), x(time) + 3, 15);
  }
}

function draw_runs(row, index) {
  const base = base_of(index);
  let painted = -1, colour = -1;
  for (let i = first_after(row.runs, view.from, (run) => run[1]); i < row.runs.length; i++) {
    const [from, to, , payer] = row.runs[i];
    if (from > view.to) break;
    const left = Math.max(x(from), LABELS), width = Math.max(x(to) - left, 0.5);
    // What is narrower than a pixel is drawn once for each pixel and payer.
    if (left + width <= painted && colour === payer) continue;
    pen.fillStyle = colours[payer];
    pen.fillRect(left, base - BAR, width, BAR);
    if (TRACE.payers[payer] !== row.name && width > 2) {
      pen.strokeStyle = "#000"; pen.strokeRect(left + 0.5, base - BAR + 0.5, width - 1, BAR - 1);
    }
    painted = Math.floor(left + width) + 1; colour = payer;
  }
}

function draw_budget(row, index) {
  if (!row.budget.length) return;
  const most = row.budget.reduce((most, [, left]) => Math.max(most, left), 1);
  const floor = base_of(index) + BUDGET;
  const y = (left) => floor - left / most * (BUDGET - 3);
  const start = Math.max(0, first_after(row.budget, view.from, (b) => b[0]) - 1);
  pen.strokeStyle = "#777"; pen.lineWidth = 1; pen.beginPath();
  let drawn = -2, last;
  for (let i = start; i < row.budget.length; i++) {
    const [time, left] = row.budget[i];
    const px = Math.max(x(time), LABELS);
    if (last === undefined) pen.moveTo(px, y(left));
    else if (px - drawn >= 0.5) { pen.lineTo(px, y(last)); pen.lineTo(px, y(left)); drawn = px; }
    last = left;
    if (time > view.to) break;
  }
  pen.stroke();
}

function draw_marks(row, index) {
  const base = base_of(index), head = base - BAR - ARROWS;
  pen.lineWidth = 1.5;
  const each = (list, time_of, draw) => {
    for (let i = first_after(list, view.from, time_of); i < list.length; i++) {
      if (time_of(list[i]) > view.to) break;
      draw(list[i]);
    }
  };
  const same = (time) => time, first = (pair) => pair[0];
  pen.strokeStyle = pen.fillStyle = "#0a7";
  each(row.releases, same, (time) => arrow(x(time), base, x(time), head, 6));
  pen.strokeStyle = pen.fillStyle = "#c30";
  each(row.deadlines, same, (time) => arrow(x(time), head, x(time), base, 6));
  each(row.ends, first, ([time, ok]) => {
    pen.fillStyle = ok ? "#0a7" : "#c30";
    pen.beginPath(); pen.arc(x(time), base - BAR - 4, 3.5, 0, 7); pen.fill();
  });
  pen.fillStyle = "#c00";
  each(row.faults, first, ([time]) => pen.fillText("✖", x(time) - 5, head + 8));
}

function draw_arrows() {
  const start = first_after(TRACE.arrows, view.from, (arrow) => arrow[0]);
  let last = new Map();
  for (let i = start; i < TRACE.arrows.length; i++) {
    const [time, from, to, back] = TRACE.arrows[i];
    if (time > view.to) break;
    const key = from * 1000 + to, px = x(time);
    if (px - (last.get(key) ?? -9) < 3) continue;
    last.set(key, px);
    pen.strokeStyle = pen.fillStyle = back ? "#88a" : "#226"; pen.lineWidth = 1;
    const down = to > from;
    arrow(px, base_of(from) - (down ? 0 : BAR), px, base_of(to) - (down ? BAR : 0), 6);
  }
}

function draw() {
  const ratio = window.devicePixelRatio || 1;
  const height = AXIS + TRACE.rows.length * ROW + 8;
  canvas.style.height = height + "px";
  canvas.width = canvas.clientWidth * ratio; canvas.height = height * ratio;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.font = "12px system-ui, sans-serif";
  pen.clearRect(0, 0, canvas.clientWidth, height);
  axis(height);
  TRACE.rows.forEach((row, index) => {
    pen.strokeStyle = "#ccc"; pen.lineWidth = 1;
    line(0, base_of(index), canvas.clientWidth, base_of(index));
    draw_budget(row, index);
    draw_runs(row, index);
    draw_marks(row, index);
  });
  draw_arrows();
  pen.strokeStyle = "#a0c"; pen.fillStyle = "#a0c";
  TRACE.modes.filter(([time]) => visible(time)).forEach(([time, mode]) => {
    line(x(time), AXIS, x(time), height);
    pen.fillText("mode " + mode, x(time) + 3, AXIS + 10);
  });
  pen.clearRect(0, 0, LABELS - 2, height);
  pen.fillStyle = "#222";
  TRACE.rows.forEach((row, index) => pen.fillText(row.name, 8, base_of(index) - 5, LABELS - 16));
}

function zoom(centre, factor) {
  const span = Math.min(Math.max((view.to - view.from) * factor, 0.01), TRACE.end * 1.1 + 1);
  const share = (centre - view.from) / (view.to - view.from);
  view.from = centre - share * span; view.to = view.from + span;
  draw();
}

canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(timeAt(event.offsetX), Math.exp(event.deltaY * 0.002));
}, { passive: false });
canvas.addEventListener("dblclick", () => { view.from = 0; view.to = Math.max(TRACE.end, 1); draw(); });
let held = null;
canvas.addEventListener("mousedown", (event) => { held = timeAt(event.offsetX); });
window.addEventListener("mouseup", () => { held = null; });
canvas.addEventListener("mousemove", (event) => {
  const time = timeAt(event.offsetX);
  if (held !== null) {
    view.from += held - time; view.to += held - time;
    draw();
    return;
  }
  const row = TRACE.rows[Math.floor((event.offsetY - AXIS) / ROW)];
  let text = shown(time);
  if (row) {
    const run = row.runs[first_after(row.runs, time, (run) => run[1])];
    text += "   " + row.name;
    if (run && run[0] <= time) {
      text += `: runs ${shown(run[0])} to ${shown(run[1])} (${shown(run[1] - run[0])}) on core ${run[2]}`
        + ` on the time of ${TRACE.payers[run[3]]}`;
    }
    const left = row.budget[first_after(row.budget, time, (b) => b[0]) - 1];
    if (left) text += `   budget ${shown(left[1])}`;
  }
  hover.textContent = text;
});
window.addEventListener("resize", draw);
draw();
