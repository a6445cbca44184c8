"use strict";
// The picture of one counterexample: a lane per session, a box per transaction, a cell per operation, edges cell to cell.
// Time runs downwards along SO and WR, so that the edges which contradict it are those that point upwards.

const data = JSON.parse(document.getElementById("data").textContent);
const INITIAL = -1;
const CELL = 24, HEAD = 28, ROW_GAP = 42, LANE_HEAD = 34, BAR = 30, CHAR = 7.3, MARGIN = 26, MOST_CELLS = 9, SMALLEST = 0.66;

// Texts of the history reach the page only through here and el(): as text, never as markup.
function text(value) {
  return typeof value === "object" && value !== null ? data.long[value.long] : String(value);
}

function short(value, limit) {
  const whole = [...text(value)];
  return whole.length <= limit ? whole.join("") : whole.slice(0, limit - 1).join("") + "…";
}

// Letters that run right to left stay within their own text; elements would do the same, but not inside a drawing.
function isolated(words) {
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/.test(words) ? `\u2068${words}\u2069` : words;
}

function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

function opText(op, limit) {
  const [kind, key, value] = op;
  const room = limit - kind.length - 4;
  const keyRoom = Math.max(6, room - Math.min(text(value).length, Math.ceil(room / 2)));
  const shownKey = short(key, keyRoom);
  return `${kind}(${isolated(shownKey)}, ${isolated(short(value, Math.max(4, room - shownKey.length)))})`;
}

function idOf(example, number) {
  return number === INITIAL ? "initial state" : text(example.transactions[number].id);
}

function edgeName(step, limit = 60) {
  const name = step.key === null ? step.relation : `${step.relation}(${isolated(short(step.key, limit))})`;
  return step.assumed ? `not ${name}` : name;
}

// Every edge once: those of the argument, then those of the evidence that are not among them.
function edgesOf(example) {
  const edges = new Map();
  const add = (step, owner, label, cycle) => {
    const id = [step.relation, step.from, step.to, step.assumed ? "not" : "", ...step.cells].join(" ");
    if (!edges.has(id)) edges.set(id, { step, cycle, owners: [], label });
    edges.get(id).owners.push(owner);
  };
  example.steps.forEach((step, i) => add(step, String(i), String(i + 1), true));
  example.steps.forEach((step, i) => (step.evidence || []).forEach((inner, j) => {
    add(inner, `${i}.${j}`, `${i + 1}${String.fromCharCode(97 + (j % 26))}`, false);
  }));
  return [...edges.values()];
}

// Rows: the longest way along session order and reads; a read that would close a cycle does not count.
function rowsOf(example, edges) {
  const count = example.transactions.length;
  const next = Array.from({ length: count }, () => []);
  const last = new Map();
  example.transactions.forEach((txn, i) => {
    const session = text(txn.session);
    if (last.has(session)) next[last.get(session)].push(i);
    last.set(session, i);
  });
  for (const { step } of edges) {
    const orders = !step.assumed && (step.relation === "WR" || step.relation === "WW" || step.relation === "SO" || step.relation === "RT");
    if (orders && step.from !== INITIAL && step.to !== INITIAL && !reaches(next, step.to, step.from)) next[step.from].push(step.to);
  }
  const rows = new Array(count).fill(0);
  for (let round = 0; round < count; round++) {
    next.forEach((targets, i) => targets.forEach((j) => { rows[j] = Math.max(rows[j], rows[i] + 1); }));
  }
  return rows;
}

function reaches(next, from, to) {
  const seen = new Set([from]), open = [from];
  while (open.length) {
    const node = open.pop();
    if (node === to) return true;
    for (const other of next[node]) if (!seen.has(other)) { seen.add(other); open.push(other); }
  }
  return false;
}

// Lanes in the order of the sessions' names.
function lanesOf(example) {
  const names = [...new Set(example.sessions.map(text))];
  return { names, homes: example.homes || [], place: example.transactions.map((txn) => names.indexOf(text(txn.session))) };
}

// The cells of a box: those that edges touch, others while there is room, the rest as a number.
function cellsOf(txn, number, used) {
  const touched = txn.ops.map((_, cell) => used.has(`${number} ${cell}`));
  let room = MOST_CELLS - touched.filter(Boolean).length;
  const shown = txn.ops.map((_, cell) => cell).filter((cell) => touched[cell] || room-- > 0);
  return { shown, more: txn.hidden + txn.ops.length - shown.length };
}

function usedCells(example, edges) {
  const used = new Set(example.culprits.map((pair) => pair.join(" ")));
  for (const { step } of edges) {
    used.add(`${step.from} ${step.cells[0]}`).add(`${step.to} ${step.cells[1]}`);
    if (step.reader) used.add(step.reader.join(" "));
  }
  return used;
}

// Characters of an operation and of a key beside an edge: the fewer lanes, the more.
function roomFor(lanes) {
  return lanes < 4 ? { op: 44, key: 28 } : lanes < 6 ? { op: 30, key: 16 } : { op: 24, key: 10 };
}

// Between two lanes there is room for the labels of the edges that run there; those of the evidence show only at times.
function guttersOf(edges, lanes, room) {
  const gutters = new Array(Math.max(0, lanes.names.length - 1)).fill(lanes.names.length < 5 ? 84 : 64);
  for (const { step, label, cycle } of edges) {
    const ends = [step.from, step.to].map((number) => lanes.place[number] ?? 0);
    const width = (label.length + edgeName(step, room.key).length + 1) * 6.6 + 32, at = Math.min(...ends);
    const needed = cycle || gutters.length < 4 ? width : Math.min(width, 96);
    if (at < gutters.length) gutters[at] = Math.max(gutters[at], needed);
  }
  return gutters;
}

function layout(example) {
  const edges = edgesOf(example), used = usedCells(example, edges);
  const rows = rowsOf(example, edges), lanes = lanesOf(example), room = roomFor(lanes.names.length);
  const cells = example.transactions.map((txn, i) => cellsOf(txn, i, used));
  const widest = Math.max(11, ...example.transactions.flatMap((txn, i) => [
    Math.min(room.op, text(txn.id).length + (txn.status === "committed" ? 3 : 12)), ...cells[i].shown.map((cell) => opText(txn.ops[cell], room.op).length)]));
  const width = widest * CHAR + 26;
  const gutters = guttersOf(edges, lanes, room);
  const hasBar = edges.some(({ step }) => step.from === INITIAL || step.to === INITIAL);
  const outer = hasBar ? Math.max(68, ...gutters) * 0.8 : MARGIN; // room for edges from and to the bar beside the outermost lanes
  const left = [outer];
  gutters.forEach((gutter, i) => left.push(left[i] + width + gutter));
  const heights = cells.map((cell) => HEAD + CELL * (cell.shown.length + (cell.more ? 1 : 0)));
  const top = [], bottom = [];
  let y = LANE_HEAD + (hasBar ? BAR + 26 : 0) + 18;
  for (let row = 0; row <= Math.max(...rows, 0); row++) {
    top.push(y);
    bottom.push(y + Math.max(HEAD, ...heights.filter((_, i) => rows[i] === row)));
    y = bottom[row] + ROW_GAP;
  }
  const boxes = example.transactions.map((_, i) => ({
    x: left[lanes.place[i]], y: top[rows[i]], width, height: heights[i],
    lane: lanes.place[i], row: rows[i], ...cells[i],
  }));
  const full = left[left.length - 1] + width + outer;
  return { edges, used, lanes, room, boxes, width, left, outer, top, bottom, hasBar, full, height: y - ROW_GAP + 24 };
}

// Where edges leave and enter: several at one side of one cell stand a little apart.
function ports(plan) {
  const taken = new Map();
  return (number, cell, side) => {
    const box = plan.boxes[number], at = box.shown.indexOf(cell);
    const key = `${number} ${at} ${side}`, nth = taken.get(key) || 0;
    taken.set(key, nth + 1);
    const offset = [0, 6, -6, 3, -3][nth % 5];
    const y = at < 0 ? box.y + HEAD / 2 : box.y + HEAD + CELL * (at + 0.5);
    return [side > 0 ? box.x + box.width : box.x, y + offset];
  };
}

// Long ways run in the gutters and between the rows, never across a box; each takes a track of its own.
function route(plan, step, port, tracks) {
  const track = (name) => { const n = tracks.get(name) || 0; tracks.set(name, n + 1); return n; };
  const barBottom = LANE_HEAD + BAR;
  if (step.from === INITIAL || step.to === INITIAL) {
    const up = step.to === INITIAL, number = up ? step.from : step.to, side = up ? 1 : -1;
    const [x, y] = port(number, up ? step.cells[0] : step.cells[1], side);
    const gx = x + side * (22 + 11 * track(`bar ${plan.boxes[number].lane} ${side}`));
    const way = [[x, y], [gx, y], [gx, barBottom]];
    return rounded(up ? way : way.reverse());
  }
  const a = plan.boxes[step.from], b = plan.boxes[step.to], apart = b.lane - a.lane;
  if (apart === 0) return sameLane(plan, step, a, b, port, track);
  const side = Math.sign(apart);
  const [x1, y1] = port(step.from, step.cells[0], side), [x2, y2] = port(step.to, step.cells[1], -side);
  if (Math.abs(apart) === 1) {
    // Several edges between one pair part: steep ones by their bend, level ones by a bow.
    const nth = track(`pair ${[step.from, step.to].sort()}`) % 3, level = Math.abs(y2 - y1) < 30;
    const bend = (x2 - x1) * (level ? 0.35 : [0.5, 1, 0.15][nth]), bow = level ? [0, 34, -34][nth] : 0;
    return `M${x1},${y1} C${x1 + bend},${y1 + bow} ${x2 - bend},${y2 + bow} ${x2},${y2}`;
  }
  const gap = b.row < a.row ? a.row - 1 : a.row;
  const middle = gap < 0 ? plan.top[0] - 10 : plan.bottom[gap] + 14;
  const gapY = middle + 9 * (track(`row ${gap}`) % 3);
  const g1 = x1 + side * (16 + 8 * (track(`gutter ${a.lane} ${side}`) % 4));
  const g2 = x2 - side * (16 + 8 * (track(`gutter ${b.lane} ${-side}`) % 4));
  return rounded([[x1, y1], [g1, y1], [g1, gapY], [g2, gapY], [g2, y2], [x2, y2]]);
}

function sameLane(plan, step, a, b, port, track) {
  const between = plan.boxes.some((box) => box.lane === a.lane && box.row > a.row && box.row < b.row);
  if (step.relation === "SO" && a.row < b.row && !between) {
    const x = a.x + a.width / 2;
    return `M${x},${a.y + a.height} L${x},${b.y}`;
  }
  const [x1, y1] = port(step.from, step.cells[0], 1), [x2, y2] = port(step.to, step.cells[1], 1);
  const gx = x1 + 22 + 12 * (track(`loop ${a.lane}`) % 4);
  return rounded([[x1, y1], [gx, y1], [gx, y2], [x2, y2]]);
}

function rounded(points) {
  let path = `M${points[0]}`;
  for (let i = 1; i < points.length - 1; i++) {
    const before = toward(points[i], points[i - 1]), after = toward(points[i], points[i + 1]);
    path += ` L${before} Q${points[i]} ${after}`;
  }
  return `${path} L${points[points.length - 1]}`;
}

function toward(from, to) {
  const dx = to[0] - from[0], dy = to[1] - from[1], length = Math.hypot(dx, dy) || 1;
  const share = Math.min(9, length / 2) / length;
  return [from[0] + dx * share, from[1] + dy * share];
}

function drawLanes(plan) {
  return plan.lanes.names.map((name, i) => {
    const x = plan.left[i], home = plan.lanes.homes[i], at = home ? ` on ${home}` : "";
    return svg("g", { class: "lane" },
      svg("rect", { x: x - 10, y: 4, width: plan.width + 20, height: plan.height - 8, rx: 10 }),
      svg("text", { x: x + plan.width / 2, y: 24, "text-anchor": "middle" }, `session ${short(name + at, Math.floor(plan.width / 8) - 8)}`,
        svg("title", {}, `session ${short(name + at, 300)}`)));
  });
}

function drawBox(example, plan, number) {
  const box = plan.boxes[number], txn = example.transactions[number];
  const onCycle = example.cycle && example.steps.some((step) => step.from === number || step.to === number);
  const blamed = new Set(example.culprits.map((pair) => pair.join(" ")));
  const cells = box.shown.map((cell, at) => {
    const op = txn.ops[cell], id = `${number} ${cell}`, y = box.y + HEAD + CELL * at;
    const kind = `cell ${op[0] === "r" ? "read" : "write"}${plan.used.has(id) ? "" : " aside"}${blamed.has(id) ? " blamed" : ""}`;
    return svg("g", { class: kind, "data-cell": id },
      svg("rect", { x: box.x, y, width: box.width, height: CELL }),
      svg("text", { x: box.x + 12, y: y + 16 }, opText(op, plan.room.op)),
      svg("title", {}, `${op[0]}(${short(op[1], 300)}, ${short(op[2], 300)})`));
  });
  const end = box.y + box.height - 8;
  return svg("g", { class: `txn ${txn.status}${onCycle ? " cycle" : ""}`, "data-txn": number },
    svg("rect", { class: "body", x: box.x, y: box.y, width: box.width, height: box.height, rx: 6 }),
    svg("text", { class: "id", x: box.x + 12, y: box.y + 19 }, short(txn.id, plan.room.op - (txn.status === "committed" ? 4 : 12))),
    txn.status === "committed" ? null
      : svg("text", { class: "status", x: box.x + box.width - 8, y: box.y + 19, "text-anchor": "end" }, txn.status),
    cells,
    box.more ? svg("text", { class: "more", x: box.x + 12, y: end }, `+ ${box.more.toLocaleString("en")} more`) : null,
    svg("rect", { class: "frame", x: box.x, y: box.y, width: box.width, height: box.height, rx: 6 }),
    svg("title", {}, `${short(txn.id, 300)}, session ${short(txn.session, 100)}, ${txn.place}`));
}

function drawBar(plan) {
  if (!plan.hasBar) return null;
  return svg("g", { class: "txn initial", "data-txn": INITIAL },
    svg("rect", { class: "body frame", x: 14, y: LANE_HEAD, width: plan.full - 28, height: BAR, rx: 6 }),
    svg("text", { class: "id", x: plan.full / 2, y: LANE_HEAD + 20, "text-anchor": "middle" }, "initial state of every key"));
}

function drawEdges(plan, select) {
  const port = ports(plan), tracks = new Map();
  return plan.edges.map((edge) => {
    const way = route(plan, edge.step, port, tracks), owner = edge.owners[0];
    return svg("g", {
      class: `edge ${edge.step.relation}${edge.cycle ? " cycle" : " evidence"}${edge.step.assumed ? " excluded" : ""}`,
      "data-owners": ` ${edge.owners.join(" ")} `, onclick: () => select(parseInt(owner, 10), !edge.cycle),
    }, svg("path", { class: "hit", d: way }),
    svg("path", { class: "line", d: way, "marker-end": `url(#tip-${edge.step.relation})` }),
    svg("title", {}, edge.step.because));
  });
}

// Labels come last, when the paths can be measured: each moves along its path until it hides no other.
function label(picture, plan) {
  const placed = plan.boxes.map((box) => [box.x, box.y, box.x + box.width, box.y + box.height]);
  [...picture.querySelectorAll(".edge")].forEach((group, i) => {
    const edge = plan.edges[i], path = group.querySelector(".line"), length = path.getTotalLength();
    const words = edgeName(edge.step, plan.room.key), width = words.length * 6.6 + edge.label.length * 7 + 16;
    const spots = [0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78, 0.14].map((share) => path.getPointAtLength(share * length));
    const rect = (p) => [p.x - width / 2, p.y - 10, p.x + width / 2, p.y + 10];
    const free = (r) => placed.every((o) => r[2] < o[0] || r[0] > o[2] || r[3] < o[1] || r[1] > o[3]);
    const spot = spots.find((p) => free(rect(p))) || spots[0], at = rect(spot);
    placed.push(at);
    // Outside their edges' groups: a label must not lie under an edge that comes later.
    picture.append(svg("g", { class: `${group.getAttribute("class")} label`, "data-owners": group.dataset.owners },
      svg("rect", { x: at[0], y: at[1], width, height: 20, rx: 10 }),
      svg("text", { x: spot.x, y: spot.y + 4, "text-anchor": "middle" },
        svg("tspan", { class: "number" }, edge.label), ` ${words}`)));
  });
}

function picture(example, select) {
  const plan = layout(example);
  const drawing = svg("svg", {
    class: "picture", role: "img", width: plan.full, height: plan.height, viewBox: `0 0 ${plan.full} ${plan.height}`,
    "aria-label": `${example.transactions.length} transactions in ${plan.lanes.names.length} sessions; the proof says the same in words`,
  }, drawLanes(plan), drawBar(plan), example.transactions.map((_, i) => drawBox(example, plan, i)), drawEdges(plan, select));
  drawing.style.minWidth = `${plan.full * SMALLEST}px`; // shrinks to fit, but not beyond what can be read
  return { drawing, lanes: plan.lanes.names.length, finish: () => label(drawing, plan) };
}

// Arrow heads, once for all pictures.
function markers() {
  return svg("svg", { width: 0, height: 0, class: "markers", "aria-hidden": "true" },
    svg("defs", {}, ["SO", "RT", "WR", "CM", "WW", "RW"].map((relation) => svg("marker", {
      id: `tip-${relation}`, class: `tip ${relation}`, viewBox: "0 0 10 10", refX: 9, refY: 5,
      markerWidth: 10, markerHeight: 10, markerUnits: "userSpaceOnUse", orient: "auto",
    }, svg("path", { d: "M0,0.5 L10,5 L0,9.5 L2.5,5 z" })))));
}
