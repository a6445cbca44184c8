// The page: its state (all of it in the URL fragment, so that a link shows the same), the proof, keyboard, theme, print.

const page = document.getElementById("page");
const state = { c: 0, s: -1, open: new Set(), h: "", p: "", l: "", q: "", page: 0 };
let found = [];
const place = {}; // the elements that change

function build() {
  document.body.append(markers());
  page.append(el("a", { class: "skip", href: "#examples" }, "Skip to the counterexamples"), banner(),
    el("main", {}, summary(), exampleSection(), patternSection()),
    el("footer", {}, `isocheck ${data.version}. Keys: j/k or ↓/↑ step, e why, n/p or →/← counterexample, / search, t theme.`));
}

function banner() {
  return el("header", { class: "banner" }, el("h1", {}, "isocheck report"), headline(),
    el("nav", { "aria-label": "Sections" }, el("a", { href: "#summary" }, "Summary"),
      data.examples.length ? el("a", { href: "#examples" }, "Counterexamples") : null,
      data.examples.length ? el("a", { href: "#patterns" }, "Patterns") : null),
    place.theme = el("button", { type: "button", class: "theme", "aria-keyshortcuts": "t", onclick: toggleTheme }, "Theme"));
}

function exampleSection() {
  if (!data.examples.length) return null;
  place.filters = el("div", {});
  place.list = el("ol", { class: "entries" });
  place.pager = el("div", {});
  place.count = el("p", { class: "note", role: "status" });
  place.detail = el("article", { class: "detail", "aria-labelledby": "example-title" });
  place.live = el("p", { class: "only-heard", "aria-live": "polite" });
  place.print = el("div", { class: "only-print" });
  return el("section", { id: "examples", tabindex: -1, "aria-labelledby": "examples-title" },
    el("h2", { id: "examples-title" }, "Counterexamples"), place.filters,
    el("div", { class: data.examples.length > 1 ? "browse" : "browse single" },
      el("nav", { class: "side", "aria-label": "Counterexamples" }, place.count, place.list, place.pager), place.detail),
    place.live, place.print);
}

// State

function readFragment() {
  const fragment = decodeURI(location.hash.slice(1).replace(/%(?![0-9a-fA-F]{2})/g, "%25"));
  if (fragment && !fragment.includes("=")) return false; // a place on the page, not a state
  const given = new URLSearchParams(location.hash.slice(1));
  for (const name of ["h", "p", "l", "q"]) state[name] = given.get(name) || "";
  found = matching(state);
  const asked = parseInt(given.get("c"), 10) - 1;
  state.c = data.examples[asked] ? asked : found.length ? found[0] : -1;
  const steps = state.c < 0 ? 0 : stepCount(data.examples[state.c]);
  state.s = Math.min(steps, parseInt(given.get("s"), 10) || 0) - 1;
  state.page = Math.max(0, Math.floor(found.indexOf(state.c) / PER_PAGE));
  return true;
}

// A frame within another page may not be allowed to have addresses; it works without.
function address(change, fragment) {
  try { history[change](null, "", `#${fragment}`); } catch { /* see above */ }
}

function writeFragment() {
  const fragment = new URLSearchParams({ ...kept(state), ...(state.c >= 0 ? { c: state.c + 1 } : {}), ...(state.s >= 0 ? { s: state.s + 1 } : {}) });
  address("replaceState", fragment);
}

function change(filter) {
  Object.assign(state, filter, { s: -1, page: 0 });
  found = matching(state);
  if (!found.includes(state.c)) { state.c = found.length ? found[0] : -1; state.open.clear(); }
  state.page = Math.max(0, Math.floor(found.indexOf(state.c) / PER_PAGE));
  writeFragment();
  showList();
  showDetail();
}

function goTo(c) {
  Object.assign(state, { c, s: -1, page: Math.floor(found.indexOf(c) / PER_PAGE) });
  state.open.clear();
  address("pushState", new URLSearchParams({ ...kept(state), c: c + 1 }));
  showList();
  showDetail();
}

function neighbour(by) {
  const at = found.indexOf(state.c) + by;
  if (at >= 0 && at < found.length) goTo(found[at]);
}

// List and detail

function showList() {
  const first = state.page * PER_PAGE;
  place.list.replaceChildren(...found.slice(first, first + PER_PAGE).map((i) => listEntry(i, state)));
  place.pager.replaceChildren(pages(state.page, found.length, PER_PAGE, "counterexamples", (to) => { state.page = to; showList(); }));
  place.count.textContent = found.length === data.examples.length ? plural(found.length, "counterexample")
    : `${number(found.length)} of ${plural(data.examples.length, "counterexample")}`;
}

function showDetail() {
  if (state.c < 0) {
    place.detail.replaceChildren(el("p", { class: "note", id: "example-title" }, "No counterexample matches these filters."));
    return;
  }
  const parts = detail(data.examples[state.c], state.c, "example-title");
  place.detail.replaceChildren(...parts.elements);
  parts.finish();
  place.proof = parts.proof;
  showStep(false);
}

function detail(example, c, titleId) {
  const { drawing, lanes, finish } = picture(example, (step, open) => { if (open) state.open.add(step); select(step); });
  const proof = proofOf(example);
  const frame = el("figure", { tabindex: 0, "aria-label": "Picture of the counterexample" }, drawing);
  return { proof, finish: () => { finish(); frame.after(sideways(frame, drawing)); }, elements: [
    el("header", { class: "detail-head" },
      el("h3", { id: titleId }, `#${c + 1} `, el("a", { href: `#pattern-${example.pattern}` }, patternName(example.pattern)),
        example.aliases.length ? el("span", { class: "aliases" }, ` [${example.aliases.join(", ")}]`) : null),
      el("p", {}, `${example.headline}.`), el("p", {}, `${example.forbidden[0].toUpperCase()}${example.forbidden.slice(1)}.`),
      el("p", { class: "note" }, data.histories.length > 1 ? [el("a", { href: `#history-${example.history}` }, short(data.histories[example.history].name, 80)), " · "] : null,
        "keys: ", example.keys.flatMap((key, i) => [i ? ", " : "", atom(key)]))),
    el("div", { class: lanes > 3 ? "both wide" : "both" },
      el("div", {}, frame, legend(example), timeline(example, point)),
      el("div", { class: "argument" }, el("h4", {}, "Proof"), proof, moves(),
        el("p", { class: "cause" }, el("b", {}, "Usual cause: "), `${example.cause}.`))),
    transactionTable(example),
  ] };
}

// A picture that is wider than its frame says so, and can be made to fit.
function sideways(frame, drawing) {
  const least = drawing.style.minWidth;
  const button = el("button", { type: "button", class: "fit", "aria-pressed": "false", onclick: () => {
    const fits = button.getAttribute("aria-pressed") === "false";
    drawing.style.minWidth = fits ? "0" : least;
    button.setAttribute("aria-pressed", String(fits));
    button.textContent = fits ? "Legible size" : "Fit the width";
  } }, "Fit the width");
  const note = el("p", { class: "note sideways" }, "The picture is wider than this window: scroll it sideways → ", button);
  const show = () => { note.hidden = frame.scrollWidth <= frame.clientWidth + 1 && button.getAttribute("aria-pressed") === "false"; };
  new ResizeObserver(show).observe(frame);
  show();
  return note;
}

// A transaction of the timeline, shown in the picture.
function point(number) {
  paint(place.detail, { lit: new Set([number]), cells: new Set(), owners: new Set(), stepping: true });
  reveal(place.detail.querySelector("figure"));
}

function legend(example) {
  const relations = new Map(Object.entries(data.relations));
  const present = new Set(edgesOf(example).map((edge) => edge.step.relation));
  return el("p", { class: "legend" }, [...relations].filter(([name]) => present.has(name)).map(([name, words]) => el("span", {},
    svg("svg", { width: 40, height: 12, "aria-hidden": "true" }, svg("g", { class: `edge cycle ${name}` },
      svg("path", { class: "line", d: "M2,6 L38,6", "marker-end": `url(#tip-${name})` }))), ` ${name} ${words}`)),
  edgesOf(example).some((edge) => edge.step.assumed) ? el("span", {},
    svg("svg", { width: 40, height: 12, "aria-hidden": "true" }, svg("g", { class: "edge excluded WW" },
      svg("path", { class: "line", d: "M2,6 L38,6" }))), " not: this order leads to a contradiction") : null,
  example.cycle ? el("span", {}, el("i", { class: "key-cycle" }), " on the cycle") : null,
  example.culprits.length ? el("span", {}, el("i", { class: "key-blamed" }), " the read in question") : null);
}

// The proof

function stepCount(example) {
  return example.steps.length || 1;
}

function arrow(example, step) {
  return el("span", { class: `arrow ${step.relation}` }, el("bdi", {}, short(idOf(example, step.from), 60)),
    el("span", { class: "relation" }, ` ${edgeName(step)} → `), el("bdi", {}, short(idOf(example, step.to), 60)));
}

function proofOf(example) {
  const items = example.steps.map((step, i) => el("li", { class: "step", "data-step": i },
    el("button", { type: "button", class: "go", onclick: () => select(i) }, arrow(example, step), el("span", { class: "because" }, step.because)),
    step.evidence && step.evidence.length ? why(example, step, i) : null));
  if (!items.length) {
    items.push(el("li", { class: "step", "data-step": 0 },
      el("button", { type: "button", class: "go", onclick: () => select(0) }, el("span", { class: "because" }, example.conclusion))));
  } else items.push(el("li", { class: "end" }, example.conclusion));
  return el("ol", { class: "proof" }, items);
}

function why(example, step, i) {
  const id = `why-${i}`;
  return [
    el("button", { type: "button", class: "why", "aria-expanded": "false", "aria-controls": id, onclick: () => { toggleWhy(i); select(i); } }, "Why?"),
    el("ol", { class: "evidence", id, hidden: "" }, step.evidence.map((inner, j) => el("li", { "data-evidence": `${i}.${j}` },
      arrow(example, inner), el("span", { class: "because" }, inner.because)))),
  ];
}

function moves() {
  const button = (words, shortcut, act) => el("button", { type: "button", "aria-keyshortcuts": shortcut, onclick: act }, words);
  return el("p", { class: "moves" }, button("‹ Previous step", "k", () => move(-1)), button("Next step ›", "j", () => move(1)));
}

function select(step) {
  state.s = step;
  writeFragment();
  showStep(true);
}

function move(by) {
  if (state.c < 0) return;
  select(Math.max(-1, Math.min(stepCount(data.examples[state.c]) - 1, state.s + by)));
}

function toggleWhy(step) {
  if (!state.open.delete(step)) state.open.add(step);
}

function showStep(focus) {
  const example = data.examples[state.c], step = example.steps[state.s];
  const lit = new Set(), cells = new Set(), owners = new Set();
  const light = (edge, owner) => {
    owners.add(owner);
    lit.add(edge.from).add(edge.to);
    cells.add(`${edge.from} ${edge.cells[0]}`).add(`${edge.to} ${edge.cells[1]}`);
  };
  if (step) light(step, String(state.s));
  if (step && step.reader) { lit.add(step.reader[0]); cells.add(step.reader.join(" ")); }
  if (step && state.open.has(state.s)) step.evidence.forEach((inner, j) => light(inner, `${state.s}.${j}`));
  if (!step && state.s >= 0) example.culprits.forEach((pair) => { lit.add(pair[0]); cells.add(pair.join(" ")); });
  paint(place.detail, { lit, cells, owners, stepping: state.s >= 0 && lit.size > 0 });
  reveal(place.detail.querySelector("figure"));
  showProof(example, focus);
}

// A large picture scrolls to what the step is about.
function reveal(frame) {
  const rects = [...frame.querySelectorAll(".stepping .txn.lit:not(.initial)")].map((box) => box.getBoundingClientRect());
  if (!rects.length) return;
  const window = frame.getBoundingClientRect();
  const span = (from, to, first, last) => {
    const low = Math.min(...rects.map((r) => r[from])), high = Math.max(...rects.map((r) => r[to]));
    return low >= first && high <= last ? 0 : (low + high - first - last) / 2;
  };
  frame.scrollBy(span("left", "right", window.left, window.right), span("top", "bottom", window.top, window.bottom));
}

function paint(root, { lit, cells, owners, stepping }) {
  const drawing = root.querySelector(".picture"), wanted = state.q.trim().toLowerCase();
  drawing.classList.toggle("stepping", stepping);
  const matches = (value) => wanted !== "" && text(value).toLowerCase().includes(wanted);
  const example = data.examples[state.c];
  for (const box of drawing.querySelectorAll(".txn")) {
    const number = Number(box.dataset.txn);
    box.classList.toggle("lit", lit.has(number));
    box.classList.toggle("found", number !== INITIAL && matches(example.transactions[number].id));
  }
  for (const bar of root.querySelectorAll("[data-bar]")) bar.classList.toggle("lit", stepping && lit.has(Number(bar.dataset.bar)));
  for (const cell of drawing.querySelectorAll(".cell")) {
    const [txn, op] = cell.dataset.cell.split(" ").map(Number);
    cell.classList.toggle("lit", cells.has(cell.dataset.cell));
    cell.classList.toggle("found", matches(example.transactions[txn].ops[op][1]));
  }
  for (const edge of drawing.querySelectorAll(".edge")) {
    edge.classList.toggle("lit", edge.dataset.owners.trim().split(" ").some((owner) => owners.has(owner)));
  }
}

function showProof(example, focus) {
  for (const item of place.proof.querySelectorAll("[data-step]")) {
    const i = Number(item.dataset.step), current = i === state.s, open = state.open.has(i);
    const go = item.querySelector(".go"), button = item.querySelector(".why");
    item.classList.toggle("current", current);
    if (current) go.setAttribute("aria-current", "step"); else go.removeAttribute("aria-current");
    if (button) {
      button.setAttribute("aria-expanded", String(open));
      button.textContent = open ? "Hide why" : "Why?";
      item.querySelector(".evidence").hidden = !open;
    }
    if (current && focus) {
      if (!item.contains(document.activeElement)) go.focus({ preventScroll: true });
      item.scrollIntoView({ block: "nearest" });
      place.live.textContent = `Step ${i + 1} of ${stepCount(example)}: ${go.textContent}`;
    }
  }
}

// The same as text, in full: for search in the page, for screen readers, and for what the picture leaves out.
function transactionTable(example) {
  const rows = example.transactions.map((txn) => el("tr", {},
    el("th", { scope: "row" }, atom(txn.id)), el("td", {}, atom(txn.session)), el("td", {}, txn.place, txn.status === "committed" ? "" : `, ${txn.status}`),
    el("td", { class: "ops" }, txn.ops.map((op) => el("span", { class: "op" }, `${op[0]}(`, atom(op[1]), ", ", atom(op[2]), ")")),
      txn.hidden ? el("span", { class: "note" }, ` and ${plural(txn.hidden, "operation")} on other keys`) : null,
      txn.clock ? el("p", { class: "note" }, txn.clock) : null,
      txn.sql.length ? el("pre", { class: "sql" }, txn.sql.map((statement) => `${statement}\n`).join("")) : null)));
  const whole = example.transactions.every((txn) => !txn.hidden || txn.sql.length);
  return el("details", { class: "transactions", open: "" }, el("summary", {}, whole ? "Transactions in full" : "Transactions: what they did to these keys"), el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, ["Transaction", "Session", "Place", "Operations"].map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, rows))));
}

// Keyboard, theme, print

const KEYS = {
  j: () => move(1), k: () => move(-1), n: () => neighbour(1), p: () => neighbour(-1),
  e: explain,
  "/": () => place.filters.querySelector("input").focus(), t: toggleTheme,
};
// Opens the step that the reader is at, or the next one that has something to open.
function explain() {
  const has = (step) => step.evidence && step.evidence.length;
  const at = data.examples[state.c].steps.findIndex((step, i) => i >= state.s && has(step));
  if (at < 0) return;
  toggleWhy(at);
  select(at);
}

const ARROWS = { ArrowDown: "j", ArrowUp: "k", ArrowRight: "n", ArrowLeft: "p" };

function onKey(event) {
  const at = event.target;
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (at.matches("input, select, textarea")) { if (event.key === "Escape") at.blur(); return; }
  // Arrow keys scroll the page and the picture, except where the reader is in the proof.
  const key = ARROWS[event.key] ? (at.closest(".argument") ? ARROWS[event.key] : null) : event.key;
  if (!key || !Object.hasOwn(KEYS, key) || (key !== "t" && (!data.examples.length || (state.c < 0 && key !== "/")))) return;
  event.preventDefault();
  KEYS[key]();
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function showTheme() {
  place.theme.textContent = isDark() ? "☀ Light" : "☾ Dark";
  place.theme.setAttribute("aria-label", `Use the ${isDark() ? "light" : "dark"} theme`);
}

function toggleTheme() {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("isocheck-theme", theme); } catch { /* a page from disk may not be allowed to remember */ }
  showTheme();
}

function rememberedTheme() {
  try {
    const theme = localStorage.getItem("isocheck-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch { /* as above */ }
}

// On paper nothing opens: the page of the list that is on screen is printed in full.
function printAll() {
  const first = state.page * PER_PAGE;
  for (const c of found.slice(first, first + PER_PAGE)) {
    const parts = detail(data.examples[c], c, `printed-${c}`);
    const sheet = el("article", { class: "detail" }, parts.elements);
    place.print.append(sheet);
    sheet.querySelectorAll("[hidden]").forEach((element) => { element.hidden = false; });
    parts.finish();
  }
}

function follow(event) {
  if (readFragment()) {
    place.filters.replaceChildren(filters(state, change));
    state.open.clear();
    showList();
    showDetail();
    const { top, bottom } = place.detail.getBoundingClientRect();
    if (!event || top > innerHeight * 0.5 || bottom < 80) document.getElementById("examples").scrollIntoView();
  } else {
    const ofHistory = /^#history-(\d+)$/.exec(location.hash);
    if (ofHistory && data.histories[ofHistory[1]]) place.showHistory(Number(ofHistory[1]));
    const target = document.getElementById(location.hash.slice(1));
    if (target) target.scrollIntoView();
  }
}

rememberedTheme();
build();
showTheme();
document.addEventListener("keydown", onKey);
if (data.examples.length) {
  found = matching(state);
  place.filters.append(filters(state, change));
  showList();
  showDetail();
  addEventListener("beforeprint", printAll);
  addEventListener("afterprint", () => place.print.replaceChildren());
  addEventListener("hashchange", follow);
  if (location.hash) follow();
}
