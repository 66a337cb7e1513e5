// Paints what scale.js places.
function prepare(canvas, height) {
  const ratio = window.devicePixelRatio || 1, width = canvas.parentElement.clientWidth;
  canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
  canvas.style.height = height + "px";
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = '12px system-ui, "DejaVu Sans", sans-serif';
  pen.textBaseline = "middle";
  return pen;
}

function line(pen, x1, y1, x2, y2) {
  pen.beginPath(); pen.moveTo(x1, y1); pen.lineTo(x2, y2); pen.stroke();
}

function arrow(pen, px, from, to, size) {
  const way = Math.sign(to - from);
  line(pen, px, from, px, to - way * size);
  pen.beginPath();
  pen.moveTo(px, to);
  pen.lineTo(px - size / 2, to - way * size); pen.lineTo(px + size / 2, to - way * size);
  pen.fill();
}

// `text`, shortened until it is at most `width` wide; nothing if less than `least` letters fit.
function fitted(pen, text, width, least = 1) {
  if (pen.measureText(text).width <= width) return text;
  while (text && pen.measureText(text + "…").width > width) text = text.slice(0, -1);
  return text.length < least ? "" : text + "…";
}

function steps() {
  const rough = (view.to - view.from) / Math.max(2, plotWidth() / 110);
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999);
}

function eachStep(step, draw) {
  for (let n = Math.ceil(view.from / step); n * step <= view.to; n++) draw(n * step);
}

function paintAxis() {
  const pen = prepare(axisCanvas, 26), step = steps();
  pen.fillStyle = ink.quiet; pen.strokeStyle = ink.rule;
  pen.fillText("time", 16, 14);
  eachStep(step, (time) => {
    const px = x(time), label = shown(time, step), half = pen.measureText(label).width / 2;
    line(pen, px, 20, px, 26);
    pen.fillText(label, clamp(px - half, LABELS, layout.width - 2 * half - 2), 11);
  });
  if (view.pointer) {
    const label = shown(view.pointer.time), width = pen.measureText(label).width + 12;
    const left = clamp(x(view.pointer.time) - width / 2, LABELS, layout.width - width);
    pen.fillStyle = ink.accent; pen.fillRect(left, 2, width, 19);
    pen.fillStyle = ink.paper; pen.fillText(label, left + 6, 12);
  }
}

// Stretches of `list`, drawn by `whole`; those of less than a pixel, and of one kind, are added up and
// drawn by `part`, with the share of the pixel.
function paintStretches(list, kind, whole, part) {
  let pixel = -1, sum = 0, of;
  const flush = () => { if (sum > 0) part(pixel, Math.min(1, sum), of); sum = 0; };
  for (let i = firstFrom(list, view.from, (run) => run[1]); i < list.length; i++) {
    const run = list[i];
    if (run[0] > view.to) break;
    const left = Math.max(x(run[0]), LABELS), right = Math.min(x(run[1]), LABELS + plotWidth());
    if (right - left >= 1) { flush(); pixel = -1; whole(left, right - left, run); continue; }
    const at = Math.floor(left);
    if (at !== pixel || kind(run) !== of) { flush(); pixel = at; of = kind(run); }
    sum += right - left;
  }
  flush();
}

function paintCore(pen, core, place) {
  const top = PAD + place * CORE, height = CORE - 6;
  pen.fillStyle = ink.quiet; pen.fillText("core " + core, 16, top + height / 2);
  const fill = (left, width, row, alpha) => {
    pen.globalAlpha = alpha;
    pen.fillStyle = PAYER_OF_ROW[row] < 0 ? ink.none : colourOf(PAYER_OF_ROW[row]);
    pen.fillRect(left, top, width, height);
    pen.globalAlpha = 1;
  };
  paintStretches(CORES[core], (run) => run[2], (left, width, run) => {
    fill(left, Math.max(width - 0.5, 0.5), run[2], 0.9);
    if (width < 16) return;
    pen.fillStyle = "#fff";
    pen.fillText(fitted(pen, TRACE.rows[run[2]].name, width - 8, 5), left + 4, top + height / 2 + 1);
  }, (left, share, row) => fill(left, 1, row, 0.3 + 0.6 * share));
}

function paintRuns(pen, row, index, place) {
  const bar = layout.bar, top = baseOf(place) - bar, own = PAYER_OF_ROW[index];
  // What it waits for: 0 its turn, 1 its budget, 2 an answer.
  pen.lineWidth = 1;
  paintStretches(row.waits, (wait) => wait[2], (left, width, [, , kind]) => {
    if (kind === 2) {
      pen.strokeStyle = ink.lent; pen.setLineDash([2, 3]);
      line(pen, left, top + bar / 2, left + width, top + bar / 2);
      pen.setLineDash([]);
      return;
    }
    pen.fillStyle = kind === 1 ? ink.bad : ink.ready;
    pen.globalAlpha = kind === 1 ? 0.16 : 0.75;
    pen.fillRect(left, top + bar * 0.55, width, bar * 0.45);
    pen.globalAlpha = 1;
  }, () => {});
  const fill = (left, width, payer, alpha) => {
    pen.globalAlpha = alpha; pen.fillStyle = colourOf(payer);
    pen.fillRect(left, top, width, bar);
    pen.globalAlpha = 1;
  };
  paintStretches(row.runs, (run) => run[3], (left, width, [from, to, core, payer]) => {
    fill(left, width, payer, 1);
    if (payer !== own && width > 3) {
      pen.strokeStyle = ink.ink; pen.lineWidth = 1.2;
      pen.strokeRect(left + 0.6, top + 0.6, width - 1.2, bar - 1.2);
    }
    if (width < 16) return;
    const text = payer === own ? lasting(to - from) : "for " + TRACE.payers[payer];
    pen.fillStyle = "#fff";
    const where = CORE_IDS.length > 1 ? `, core ${core}` : "";
    const label = fitted(pen, text + where, width - 8, Infinity) || fitted(pen, text, width - 8, Infinity);
    pen.fillText(label, left + 4, top + bar / 2 + 1);
  }, (left, share, payer) => fill(left, 1, payer, 0.35 + 0.65 * share));
}

// An overrun is seen however short it is.
function paintWindows(pen, row, index, place) {
  const bar = layout.bar, top = baseOf(place) - bar;
  const colour = PAYER_OF_ROW[index] < 0 ? ink.none : colourOf(PAYER_OF_ROW[index]);
  paintStretches(row.windows, () => 0, (left, width, [from, to, planned, number]) => {
    pen.globalAlpha = 0.55; pen.fillStyle = colour; pen.fillRect(left, top + 2, width, bar - 2); pen.globalAlpha = 1;
    if (to > planned) {
      const begin = clamp(x(planned), left, left + width);
      pen.fillStyle = ink.bad; pen.fillRect(begin, top - 3, Math.max(left + width - begin, 1), bar + 3);
    }
    if (width < 16) return;
    pen.fillStyle = "#fff";
    pen.fillText(fitted(pen, `window ${number}: ${lasting(to - from)}`, width - 8, Infinity), left + 4, top + bar / 2 + 1);
  }, (left, share) => {
    pen.globalAlpha = 0.2 + 0.35 * share; pen.fillStyle = colour; pen.fillRect(left, top + 2, 1, bar - 2);
    pen.globalAlpha = 1;
  });
}

// At a gate: whoever waits, and is served, in the colour of who pays.
function paintStages(pen, row, place) {
  const bar = layout.bar, top = baseOf(place) - bar;
  const fill = (left, width, what, payer, share) => {
    const served = what === 2;
    pen.globalAlpha = (served ? 0.9 : what === 1 ? 0.22 : 0.75) * share;
    pen.fillStyle = !served ? (what === 1 ? ink.bad : ink.ready) : payer === null ? ink.none : colourOf(payer);
    pen.fillRect(left, served ? top : top + bar * 0.5, width, served ? bar : bar * 0.5);
    pen.globalAlpha = 1;
  };
  paintStretches(row.stages, (stage) => stage[2], (left, width, [, , what, served, payer]) => {
    fill(left, width, what, payer, 1);
    if (width < 16) return;
    const is_gate = row.name.endsWith(" serves");
    const text = what !== 2 ? (served === null ? "" : TRACE.payers[served] + " is served")
      : is_gate ? TRACE.payers[served] : payer === null ? "nobody pays" : TRACE.payers[payer] + " pays";
    pen.fillStyle = what === 2 ? "#fff" : ink.ink;
    pen.fillText(fitted(pen, text, width - 8, 3), left + 4, top + bar * (what === 2 ? 0.5 : 0.75) + 1);
  }, (left, share, what) => fill(left, 1, what, null, share));
}

function paintBudget(pen, row, index, place) {
  if (!view.budgets || !row.budget.length) return;
  const floor = baseOf(place) + 3 + layout.budget, y = (left) => floor - left / row.most * (layout.budget - 2);
  const colour = PAYER_OF_ROW[index] < 0 ? ink.none : colourOf(PAYER_OF_ROW[index]);
  pen.strokeStyle = ink.rule; pen.setLineDash([1, 3]); pen.lineWidth = 1;
  line(pen, LABELS, y(row.most), LABELS + plotWidth(), y(row.most));
  pen.setLineDash([]);
  const start = Math.max(0, firstFrom(row.budget, view.from, (point) => point[0]) - 1);
  const right = LABELS + plotWidth(), left = clamp(x(row.budget[start][0]), LABELS, right);
  pen.beginPath(); pen.moveTo(left, floor);
  let last = row.budget[start], px = left;
  pen.lineTo(px, y(last[1]));
  for (let i = start + 1; i < row.budget.length; i++) {
    const point = row.budget[i];
    px = clamp(x(point[0]), LABELS, right);
    // It falls along a line while it is used, and is the same in between.
    if (point[0] > view.to && point[2]) {
      const share = (view.to - last[0]) / (point[0] - last[0]);
      pen.lineTo(px, y(last[1] + (point[1] - last[1]) * share));
      last = null;
      break;
    }
    if (!point[2]) pen.lineTo(px, y(last[1]));
    if (point[0] > view.to) { last = null; break; }
    pen.lineTo(px, y(point[1]));
    last = point;
  }
  if (last) { px = clamp(x(TRACE.end), LABELS, right); pen.lineTo(px, y(last[1])); }
  pen.lineTo(px, floor); pen.closePath();
  pen.fillStyle = colour; pen.globalAlpha = 0.18; pen.fill();
  pen.globalAlpha = 0.9; pen.strokeStyle = colour; pen.lineWidth = 1; pen.stroke();
  pen.globalAlpha = 1;
}

// How far apart `count` marks are, in pixels.
const apart = (count) => plotWidth() / Math.max(count, 1);

function paintJobs(pen, row, place) {
  const base = baseOf(place), head = base - layout.bar - MARKS + 2;
  const begin = firstFrom(row.jobs, view.from - row.longest, (job) => job[1] ?? job[2] ?? job[3]);
  let end = begin;
  while (end < row.jobs.length && (row.jobs[end][1] ?? 0) <= view.to) end++;
  const jobs = row.jobs.slice(begin, end), space = apart(jobs.length);
  const seen = (time) => time !== null && time >= view.from && time <= view.to;
  const size = clamp(space / 2, 2.5, 6);
  // Where there are many, they stay above the executions.
  const foot = space < 24 ? base - layout.bar - 1 : base;
  let last = [-9, -9];
  pen.lineWidth = space < 8 ? 1 : 1.5;
  for (const [number, released, deadline, ended] of jobs) {
    const late = deadline !== null && (ended ?? END) > deadline;
    if (late) {
      const from = clamp(x(deadline), LABELS, LABELS + plotWidth());
      const to = clamp(x(ended ?? END), LABELS, LABELS + plotWidth());
      pen.fillStyle = ink.bad; pen.globalAlpha = 0.35;
      pen.fillRect(from, head, Math.max(to - from, 1), MARKS - 2);
      pen.globalAlpha = 1;
    }
    if (seen(released) && x(released) - last[0] >= 2) {
      pen.strokeStyle = pen.fillStyle = ink.release;
      last[0] = x(released);
      arrow(pen, last[0] + 1, foot, head, size);
      if (space > 100) pen.fillText(`job ${number}`, last[0] + 7, head + 6);
    }
    if (seen(deadline) && x(deadline) - last[1] >= 2) {
      pen.strokeStyle = pen.fillStyle = ink.deadline;
      last[1] = x(deadline);
      arrow(pen, last[1] - 1.5, head, foot, size);
    }
    if (seen(ended) && (late || space >= 9)) {
      pen.fillStyle = late ? ink.bad : ink.release; pen.strokeStyle = ink.paper; pen.lineWidth = 1;
      pen.beginPath(); pen.arc(x(ended), base, clamp(space / 6, 2.5, 4), 0, 7); pen.fill(); pen.stroke();
      pen.lineWidth = 1.5;
    }
  }
}

function paintFaults(pen, row, place) {
  const y = topOf(place) + 9, begin = firstFrom(row.faults, view.from, (fault) => fault[0]);
  let last = -9;
  for (let i = begin; i < row.faults.length && row.faults[i][0] <= view.to; i++) {
    const px = x(row.faults[i][0]), is_timeout = row.faults[i][1] === "timeout fault";
    if (px - last < 6) continue;
    last = px;
    pen.lineWidth = 2; pen.strokeStyle = ink.bad;
    if (is_timeout) {
      // An hourglass.
      pen.lineWidth = 1.3;
      pen.beginPath();
      pen.moveTo(px - 3.5, y - 5); pen.lineTo(px + 3.5, y - 5); pen.lineTo(px - 3.5, y + 5);
      pen.lineTo(px + 3.5, y + 5); pen.closePath(); pen.stroke();
    } else {
      line(pen, px - 4, y - 4, px + 4, y + 4); line(pen, px - 4, y + 4, px + 4, y - 4);
    }
  }
}

function paintArrows(pen, places) {
  if (!view.arrows) return;
  const begin = firstFrom(TRACE.arrows, view.from, (arrow) => arrow[0]);
  const end = firstFrom(TRACE.arrows, view.to, (arrow) => arrow[0]);
  const space = apart(end - begin), last = new Map();
  pen.lineWidth = 1; pen.globalAlpha = clamp(space / 24, 0.22, 0.9);
  for (let i = begin; i < end; i++) {
    const [time, giver, getter, back] = TRACE.arrows[i];
    const [from, to] = [places.get(giver), places.get(getter)], px = x(time), key = giver * 4096 + getter;
    if (from === undefined || to === undefined || px - (last.get(key) ?? -9) < 2) continue;
    last.set(key, px);
    pen.strokeStyle = pen.fillStyle = back ? ink.back : ink.lent;
    const top = (place) => baseOf(place) - layout.bar;
    const [begins, ends] = to > from ? [baseOf(from), top(to)] : [top(from), baseOf(to)];
    if (space >= 6) arrow(pen, px, begins, ends, 7); else line(pen, px, begins, px, ends);
  }
  pen.globalAlpha = 1;
}

function paintLabels(pen, height) {
  view.rows.forEach((index, place) => {
    const row = TRACE.rows[index], y = baseOf(place) - layout.bar / 2;
    pen.fillStyle = PAYER_OF_ROW[index] < 0 ? ink.none : colourOf(PAYER_OF_ROW[index]);
    pen.fillRect(6, y - 15, 4, 34);
    pen.fillStyle = ink.ink; pen.font = '600 12px system-ui, "DejaVu Sans", sans-serif';
    pen.fillText(fitted(pen, row.name, LABELS - 26), 16, y - 7);
    pen.fillStyle = ink.quiet; pen.font = '11px system-ui, "DejaVu Sans", sans-serif';
    pen.fillText(fitted(pen, row.about[0], LABELS - 26), 16, y + 7);
    pen.fillText(fitted(pen, row.about[1], LABELS - 26), 16, y + 20);
  });
  pen.strokeStyle = ink.rule; line(pen, LABELS - 4.5, 0, LABELS - 4.5, height);
}

function paintModes(pen, height) {
  pen.strokeStyle = pen.fillStyle = ink.mode; pen.lineWidth = 1.3;
  for (const [time, mode] of TRACE.modes) {
    if (time < view.from || time > view.to) continue;
    line(pen, x(time), 0, x(time), height);
    pen.fillText("mode " + mode, x(time) + 4, height - 8);
  }
}

function paintMeasure(pen, height) {
  if (!view.measure) return;
  const [from, to] = [...view.measure].sort((a, b) => a - b);
  pen.fillStyle = ink.accent; pen.globalAlpha = 0.14;
  pen.fillRect(x(from), 0, x(to) - x(from), height);
  pen.globalAlpha = 1;
}

function paintRows() {
  const room = chart.clientHeight - coresHeight();
  layout.row = clamp(room / Math.max(view.rows.length, 1), 66, 92);
  layout.bar = layout.row * 0.34;
  layout.budget = layout.row - MARKS - layout.bar - 10;
  const height = Math.max(topOf(view.rows.length), 40), pen = prepare(rowsCanvas, height);
  view.rows.forEach((_, place) => {
    pen.fillStyle = place % 2 ? ink.paper : ink.band;
    pen.fillRect(0, topOf(place), layout.width, layout.row);
  });
  pen.strokeStyle = ink.grid; pen.lineWidth = 1;
  eachStep(steps(), (time) => line(pen, Math.round(x(time)) + 0.5, 0, Math.round(x(time)) + 0.5, height));
  CORE_IDS.forEach((core, place) => paintCore(pen, core, place));
  const places = new Map(view.rows.map((index, place) => [index, place]));
  paintArrows(pen, places);
  view.rows.forEach((index, place) => {
    const row = TRACE.rows[index];
    pen.strokeStyle = ink.rule; pen.lineWidth = 1;
    line(pen, LABELS, baseOf(place) + 0.5, LABELS + plotWidth(), baseOf(place) + 0.5);
    paintBudget(pen, row, index, place);
    paintWindows(pen, row, index, place);
    paintStages(pen, row, place);
    paintRuns(pen, row, index, place);
    paintJobs(pen, row, place);
    paintFaults(pen, row, place);
  });
  paintModes(pen, height);
  paintMeasure(pen, height);
  paintLabels(pen, height);
  if (view.pointer) {
    pen.strokeStyle = ink.accent; pen.lineWidth = 1; pen.globalAlpha = 0.6;
    line(pen, x(view.pointer.time), 0, x(view.pointer.time), height);
    pen.globalAlpha = 1;
  }
}

// The whole trace: how busy each pixel's time is, faults and late jobs, and which part is seen.
const busy = { width: 0, shares: [] };
function paintOverview() {
  const pen = prepare(overviewCanvas, 34), width = Math.floor(plotWidth());
  if (busy.width !== width) {
    busy.width = width; busy.shares = new Float64Array(width);
    for (const core of CORE_IDS) {
      for (const [from, to] of CORES[core]) {
        const [left, right] = [from, to].map((time) => clamp(time / END * width, 0, width - 1e-6));
        for (let px = Math.floor(left); px <= Math.floor(right); px++) {
          busy.shares[px] += (Math.min(right, px + 1) - Math.max(left, px)) / CORE_IDS.length;
        }
      }
    }
  }
  pen.fillStyle = ink.quiet; pen.fillText("whole trace", 16, 17);
  pen.fillStyle = ink.band; pen.fillRect(LABELS, 4, width, 26);
  pen.fillStyle = ink.none;
  busy.shares.forEach((share, px) => pen.fillRect(LABELS + px, 30 - 26 * Math.min(1, share), 1, 26 * Math.min(1, share)));
  pen.fillStyle = ink.bad;
  PROBLEMS.forEach((time) => pen.fillRect(LABELS + time / END * width, 4, 1, 4));
  const [left, right] = [view.from, view.to].map((time) => LABELS + clamp(time / END, 0, 1) * width);
  pen.fillStyle = ink.accent; pen.globalAlpha = 0.18; pen.fillRect(left, 2, Math.max(right - left, 2), 30);
  pen.globalAlpha = 1; pen.strokeStyle = ink.accent; pen.lineWidth = 1.5;
  pen.strokeRect(left, 2, Math.max(right - left, 2), 30);
}

let isDue = false;
function paint() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    layout.width = chart.clientWidth;
    paintRows(); paintAxis(); paintOverview();
  });
}
