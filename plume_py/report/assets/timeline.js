// The timeline of a counterexample: a lane per session, its transactions from left to right, by the clock where it is known.

const NARROWEST = 1.2; // per cent of a lane that the shortest transaction takes

// Who stands in which lane: the whole history if it is small, else the transactions of the example.
function timelineLanes(example) {
  const at = new Map(example.transactions.map((txn, i) => [text(txn.id), i]));
  const whole = data.histories[example.history].lanes;
  const all = whole.map(([session, txns]) => [text(session), txns.map(([id, status]) => ({ id, status, number: at.get(text(id)) }))]);
  if (!isTimed(example) && all.some(([, txns]) => txns.some((txn) => txn.number === undefined))) return all;
  const lanes = new Map([...new Set(example.sessions.map(text))].map((name) => [name, []]));
  example.transactions.forEach((txn, number) => lanes.get(text(txn.session)).push({ id: txn.id, status: txn.status, number }));
  return [...lanes];
}

function isTimed(example) {
  return example.transactions.length > 0 && example.transactions.every((txn) => txn.time);
}

// By the clock: from the first start to the last end, in per cent.
function clockOf(example) {
  const first = Math.min(...example.transactions.map((txn) => txn.time[0]));
  const span = Math.max(...example.transactions.map((txn) => txn.time[1])) - first || 1e-6;
  const share = (t) => 100 * (t - first) / span;
  return { span, place: (number) => {
    const [start, end] = example.transactions[number].time.map(share), width = Math.max(NARROWEST, end - start);
    return [Math.min(start, 100 - width), width];
  } };
}

// Without a clock: who comes after whom by session order and reads.
function rankOf(example) {
  const rows = rowsOf(example, edgesOf(example)), width = 100 / (Math.max(...rows, 0) + 1);
  return (number) => [rows[number] * width, width * 0.96];
}

function duration(seconds) {
  return seconds < 1e-6 ? `${(seconds * 1e9).toFixed(0)} ns` : seconds < 0.001 ? `${(seconds * 1e6).toFixed(0)} µs` : seconds < 1 ? `${(seconds * 1e3).toPrecision(3)} ms` : `${seconds.toPrecision(3)} s`;
}

function timeline(example, choose) {
  const lanes = timelineLanes(example), clock = isTimed(example) ? clockOf(example) : null;
  const whole = lanes.some(([, txns]) => txns.some(({ number }) => number === undefined));
  const place = clock ? clock.place : whole ? null : rankOf(example);
  const rows = lanes.map(([name, txns]) => el("div", { class: "session" }, el("bdi", { class: "session-name", title: name }, short(name, 12)),
    el("div", { class: place ? "track clock" : "track" }, txns.map((txn) => bar(example, txn, place, choose)))));
  const words = clock ? `By the clock: ${duration(clock.span)} from the first start to the last end.`
    : whole ? "All of the history, each session in its order, the example marked; no clock is known."
      : "In the order of sessions and reads, as far as there is one; no clock is known.";
  return el("details", { class: "timeline", open: "" }, el("summary", {}, "Timeline"), rows, el("p", { class: "note" }, words));
}

function bar(example, { id, status, number }, place, choose) {
  const outcome = status === "committed" ? "" : `, ${status}`;
  if (number === undefined) return el("span", { class: `bar-txn ${status}`, title: `${short(id, 300)}${outcome}` }, short(id, 8));
  const txn = example.transactions[number];
  const when = txn.time ? `, ${duration(txn.time[1] - txn.time[0])}` : "";
  const button = el("button", { type: "button", class: `bar-txn shown ${status}`, "data-bar": number, onclick: () => choose(number),
    title: `${short(id, 300)}, session ${short(txn.session, 100)}, number ${txn.nth + 1} of its session, ${txn.place}${outcome}${when}` }, short(id, 20));
  if (place) {
    const [left, width] = place(number);
    button.style.left = `${left}%`;
    button.style.width = `${width}%`;
  }
  return button;
}
