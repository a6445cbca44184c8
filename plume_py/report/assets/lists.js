// What leads to a counterexample: the summary of each history, the patterns, the filters and the paged list.

const PER_PAGE = 20, HISTORIES_PER_PAGE = 12, LONG_TEXT = 48;
const VERDICT = new Map([[true, ["holds", "good", "✓"]], [false, ["violated", "bad", "✗"]], [null, ["undecided", "open", "?"]]]);

function number(value) {
  return value.toLocaleString("en");
}

function plural(count, word) {
  return `${number(count)} ${count === 1 ? word : `${word}s`}`;
}

// A text of the history: isolated, so that its direction cannot turn the text around it; long ones open on demand.
function atom(value) {
  const whole = text(value);
  if (whole.length <= LONG_TEXT) return el("bdi", { class: "atom" }, whole);
  const shown = el("bdi", { class: "atom" }, short(value, LONG_TEXT));
  const button = el("button", { type: "button", class: "unfold", "aria-expanded": "false", onclick: () => {
    const open = button.getAttribute("aria-expanded") === "false";
    button.setAttribute("aria-expanded", String(open));
    button.textContent = open ? "less" : `all ${number(whole.length)} characters`;
    shown.textContent = open ? whole : short(value, LONG_TEXT);
  } }, `all ${number(whole.length)} characters`);
  return el("span", { class: "long" }, shown, " ", button);
}

function link(parameters, className, ...children) {
  return el("a", { class: className, href: `#${new URLSearchParams(parameters)}` }, ...children);
}

function patternName(pattern) {
  const known = data.patterns[pattern];
  return `${known.label} ${known.name}`.trim(); // the patterns of lists have no letter
}

function chip(level, verdict, history) {
  const [word, tone, sign] = VERDICT.get(verdict.ok);
  const content = [el("b", {}, level), ` ${sign} ${word}`];
  const title = data.levels[level] ? `${data.levels[level].title}: ${data.levels[level].definition}` : level;
  const linked = verdict.taps.some((tap) => data.examples.some((example) => example.history === history && example.pattern === tap));
  if (linked) return fill(link({ h: history, l: level }, `chip ${tone}`, ...content), { title }, []);
  return el("span", { class: `chip ${tone}`, title: verdict.reason || title }, ...content);
}

// Summary

function headline() {
  const count = (wanted) => data.histories.filter(wanted).length;
  const parts = [
    [count((h) => h.ok === false), "violated", "bad"], [count((h) => h.ok === true), "fine", "good"],
    [count((h) => h.ok === null && !h.error), "undecided", "open"], [count((h) => h.error), "not read", "open"],
  ].filter(([n]) => n);
  if (data.histories.length === 1) parts.forEach((part) => { part[0] = ""; });
  return el("span", { class: "headline" }, parts.map(([n, word, tone]) => el("span", { class: `chip ${tone}` }, `${n} ${word}`.trim())));
}

// One history is shown in full; of several, each is a line that opens.
function historyCard(history, i) {
  const title = el("h3", {}, atom(history.name || "history"));
  const chips = el("span", { class: "chips" }, Object.entries(history.levels).map(([level, verdict]) => chip(level, verdict, i)));
  if (data.histories.length === 1) return el("article", { class: "history", id: `history-${i}` }, title, sizes(history), chips, facts(history, i));
  return el("details", { class: "history", id: `history-${i}`, open: data.histories.length < 4 ? "" : null },
    el("summary", {}, title, chips, sizes(history)), facts(history, i));
}

function sizes(history) {
  if (history.error) return el("p", { class: "error" }, history.error);
  return el("p", { class: "sizes" }, [plural(history.transactions, "transaction"), plural(history.operations, "operation"),
    plural(history.sessions, "session"), history.format].filter(Boolean).join(" · "));
}

// How fast runs went is drawn already; it moves to its history.
const speeds = data.histories.map((_, i) => document.getElementById(`speed-${i}`));

function facts(history, i) {
  const taps = Object.keys(history.counts), reasons = new Set(Object.entries(history.levels).filter(([, v]) => v.reason).map(([name, v]) => v.ok === null ? `Undecided: ${v.reason}.` : `${name} ${v.reason}.`));
  const times = Object.entries(history.seconds).filter(([phase, s]) => s >= 0.0005 || phase === "check");
  return [
    [...reasons].map((reason) => el("p", { class: "note" }, reason)),
    history.run.length ? el("details", { class: "run", open: "" }, el("summary", {}, "The run"), el("table", {}, el("tbody", {},
      history.run.map(([name, words]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, words)))))) : null,
    speeds[i],
    history.notes.map((note) => el("p", { class: "note" }, `Note: ${note}.`)),
    taps.length ? countTable(history, i, taps) : null,
    times.length ? el("p", { class: "times" }, `Time: ${times.map(([phase, s]) => `${phase} ${s < 0.1 ? s.toFixed(3) : s.toFixed(2)} s`).join(" · ")}`) : null,
  ].flat();
}

function countTable(history, i, taps) {
  const rows = taps.map((tap) => {
    const examples = data.examples.filter((example) => example.history === i && example.pattern === tap).length;
    return el("tr", {},
      el("th", { scope: "row" }, el("a", { href: `#pattern-${tap}` }, patternName(tap))),
      el("td", {}, data.patterns[tap].description),
      el("td", {}, el("abbr", { title: (data.levels[data.patterns[tap].level] || {}).title }, data.patterns[tap].level)),
      el("td", { class: "count" }, `${history.exact ? "" : "≥ "}${number(history.counts[tap])}`),
      el("td", { class: "count" }, examples ? link({ h: i, p: tap }, "", `show ${number(examples)}`) : "–"));
  });
  return el("div", { class: "scroll" }, el("table", { class: "counts" },
    el("thead", {}, el("tr", {}, ["Pattern", "What happened", "Forbidden from", "Count", "Examples"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, rows)));
}

function summary() {
  const cards = el("div", { class: "histories" });
  const pager = el("div", {});
  const rank = (h) => (h.ok === false ? 0 : h.error ? 1 : h.ok === null ? 2 : 3); // what needs attention comes first
  const order = data.histories.map((_, i) => i).sort((a, b) => rank(data.histories[a]) - rank(data.histories[b]) || a - b);
  const show = (page) => {
    const first = page * HISTORIES_PER_PAGE;
    cards.replaceChildren(...order.slice(first, first + HISTORIES_PER_PAGE).map((i) => historyCard(data.histories[i], i)));
    pager.replaceChildren(pages(page, data.histories.length, HISTORIES_PER_PAGE, "histories", show));
  };
  show(0);
  place.showHistory = (i) => {
    show(Math.floor(order.indexOf(i) / HISTORIES_PER_PAGE));
    document.getElementById(`history-${i}`).open = true;
  };
  return el("section", { id: "summary", "aria-labelledby": "summary-title" }, el("h2", { id: "summary-title" }, "Summary"), cards, pager);
}

function patternSection() {
  const entries = Object.entries(data.patterns).map(([tap, known]) => el("div", { class: "pattern", id: `pattern-${tap}`, tabindex: -1 },
    el("dt", {}, patternName(tap), " ", el("span", { class: "tag" }, `forbidden from ${known.level}`)),
    el("dd", {}, el("p", {}, `${known.description}.`), el("p", {}, el("b", {}, "When: "), `${known.condition}.`),
      el("p", {}, el("b", {}, "Usual cause: "), `${known.cause}.`),
      known.aliases.length ? el("p", {}, el("b", {}, "Also called: "), `${known.aliases.join(", ")}.`) : null,
      data.examples.some((example) => example.pattern === tap) ? el("p", {}, link({ p: tap }, "", "Its counterexamples")) : null)));
  if (!entries.length) return null;
  return el("section", { id: "patterns", "aria-labelledby": "patterns-title" }, el("h2", { id: "patterns-title" }, "Patterns"),
    el("p", { class: "note" }, "t1 –WR(x)→ t3 is the read in question, t2 another writer of x. SO: session order, RT: real time, WR: reads from, "
      + "CO: their causal order, CM: the commit order that the reads force."),
    el("dl", {}, entries));
}

// Filters and the list

// Exact hits first: searching for transaction 12 should not begin with 1120.
function matching(state) {
  const wanted = state.q.trim().toLowerCase();
  const kept = data.examples.map((_, i) => i).filter((i) => {
    const example = data.examples[i];
    if (state.p && example.pattern !== state.p) return false;
    if (state.h !== "" && example.history !== Number(state.h)) return false;
    return !state.l || (data.histories[example.history].levels[state.l] || { taps: [] }).taps.includes(example.pattern);
  });
  if (!wanted) return kept;
  const hits = kept.filter((i) => names(i).some((name) => name.includes(wanted)));
  const exact = new Set(hits.filter((i) => names(i).includes(wanted)));
  return [...hits.filter((i) => exact.has(i)), ...hits.filter((i) => !exact.has(i))];
}

const nameCache = [];
function names(i) {
  const example = data.examples[i];
  nameCache[i] = nameCache[i] || [...example.keys, ...example.transactions.map((txn) => txn.id)].map((value) => text(value).toLowerCase());
  return nameCache[i];
}

function picker(label, name, options, state, change) {
  if (options.length < 2) return null;
  const choice = el("select", { name, onchange: () => change({ [name]: choice.value }) },
    el("option", { value: "" }, "all"), options.map(([value, words]) => el("option", { value }, words)));
  choice.value = state[name];
  return el("label", {}, `${label} `, choice);
}

function filters(state, change) {
  const search = el("input", { type: "search", name: "q", placeholder: "transaction or key", autocomplete: "off", spellcheck: "false", "aria-keyshortcuts": "/" });
  search.value = state.q;
  search.addEventListener("input", () => change({ q: search.value }));
  const levels = [...new Set(data.histories.flatMap((h) => Object.keys(h.levels).filter((level) => h.levels[level].taps.length)))];
  const present = Object.keys(data.patterns).filter((tap) => data.examples.some((example) => example.pattern === tap));
  const histories = [...new Set(data.examples.map((example) => example.history))];
  return el("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
    el("label", { class: "find" }, "Search ", search),
    picker("Pattern", "p", present.map((tap) => [tap, patternName(tap)]), state, change),
    picker("Violates", "l", levels.map((level) => [level, level]), state, change),
    picker("History", "h", histories.map((i) => [String(i), short(data.histories[i].name, 40)]), state, change));
}

function pages(page, total, size, what, go) {
  const last = Math.max(0, Math.ceil(total / size) - 1);
  if (!last) return el("span", {});
  const button = (words, target, name) => el("button", { type: "button", "aria-label": `${name} page of ${what}`,
    disabled: target < 0 || target > last || target === page ? "" : null, onclick: () => go(target) }, words);
  return el("nav", { class: "pager", "aria-label": `Pages of ${what}` },
    button("«", 0, "First"), button("‹", page - 1, "Previous"),
    el("span", {}, `${number(page * size + 1)}–${number(Math.min(total, (page + 1) * size))} of ${number(total)}`),
    button("›", page + 1, "Next"), button("»", last, "Last"));
}

function listEntry(i, state) {
  const example = data.examples[i], known = data.patterns[example.pattern], current = i === state.c;
  const keys = example.keys.slice(0, 3).map((key) => short(key, 14)).join(", ") + (example.keys.length > 3 ? ", …" : "");
  return el("li", {}, fill(link({ ...kept(state), c: i + 1 }, "entry",
    el("span", { class: "entry-name" }, el("b", {}, `#${i + 1} ${known.label}`), ` ${known.name}`),
    el("span", { class: "entry-more" }, `${plural(example.transactions.length, "transaction")} · `, el("bdi", {}, keys))),
  { "aria-current": current ? "true" : null }, []));
}

// The part of the state that a link to another counterexample keeps.
function kept(state) {
  return Object.fromEntries(["h", "p", "l", "q"].filter((name) => state[name] !== "").map((name) => [name, state[name]]));
}
