// The studio: a run as its owner sees it. The key after the # of the address is exchanged once for the token of this tab.

import { TownMap } from "./map.js";
import { Stepper, clockOf, controls, dayBar, el, extent, make, many, shape, whole } from "./parts.js";

const LISTED = 60, INKS = 8;
const it = { day: 0, chosen: null, only: null, listed: LISTED, order: [] };

async function token() {
  const key = location.hash.slice(1);
  history.replaceState(null, "", "/");
  if (key) {
    const answer = await fetch("/open", { method: "POST", body: key, cache: "no-store" });
    if (answer.ok) sessionStorage.setItem("token", (await answer.json()).token);
    else if (!sessionStorage.getItem("token")) throw new Error((await answer.json()).error);
  }
  return sessionStorage.getItem("token");
}

async function begin() {
  try {
    const answer = await fetch("/run", { cache: "no-store", headers: { authorization: `Bearer ${await token()}` } });
    const told = await answer.json();
    if (!answer.ok) throw new Error(told.error);
    open(told);
  } catch (error) {
    el("gate-said").textContent = error instanceof TypeError ? "The studio does not answer: is it still running?" : `This tab cannot be opened: ${error.message}`;
  }
}

const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.0995 ? 1 : 0)} %`;
const className = (k) => (k < 0 ? "no class" : `class ${k + 1}`);
const classInk = (k) => (k < 0 ? "var(--base)" : `var(--k${k % INKS})`);
const classOf = (place) => (it.run.label && place >= 0 ? it.run.label[place] : -1);

function open(run) {
  it.run = run;
  const { fakes, audit, test } = run;
  el("gate").hidden = true;
  el("inside").hidden = false;
  el("title").textContent = run.name;
  document.title = `${run.name}: elsewhere studio`;
  el("state").textContent = `preset ${run.preset}${run.laboratory ? ", a laboratory run" : ""}`;
  el("advice").hidden = !audit;
  if (audit) {
    el("advice").classList.add({ no: "bad", yes: "good", care: "care" }[audit.advice.level] || "care");
    el("advice-words").textContent = `${audit.advice.words}.`;
    el("advice-because").textContent = audit.advice.because;
  }
  const learnt = audit ? audit.rows.filter((row) => row.kind === "bad").length : null;
  const tiles = [[run.total > fakes.length ? `fakes, of which ${whole(fakes.length)} are shown` : "fakes", whole(run.total)], ["classes of places", run.label ? run.kappa : "–"],
    ["of the attempts passed the test", test ? percent(test.tally.passed / Math.max(1, test.tally.tested)) : "–"], ["attacks learnt something", learnt ?? "–"]];
  el("tiles").replaceChildren(...tiles.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value)))));
  const [, days] = extent(fakes.map((fake) => fake.r.length));
  el("days-box").hidden = days < 2;
  el("day").replaceChildren(...Array.from({ length: days }, (_, n) => make("option", { value: n }, `${n + 1} of ${days}`)));
  it.like = fakes.map((fake) => likeness(fake));
  if (run.label === null) el("map-title").textContent = "Where they are";
  for (const box of el("by").querySelectorAll("[value=like], [value=unlike]")) box.hidden = !fakes[0].skeleton;
  el("by").querySelector("[value=out]").hidden = !test;
  showThresholds();
  showAudit();
  if (run.places.lat) map.set(run.places, run.ground);
  else {
    document.querySelector(".mapbox").hidden = true;
    el("no-map").hidden = false;
  }
  useDay(0);
  stepper.set(run.slots, (slot) => clockOf(run, slot));
  stepper.go(Math.floor(run.slots / 3));
}

// Share of the slots at which fake and skeleton are in the same class, of those where both are known; null without any.
function likeness(fake) {
  if (!fake.skeleton) return null;
  let same = 0, both = 0;
  fake.r.forEach((day, d) => day.forEach((place, t) => {
    if (place < 0 || fake.skeleton[d][t] < 0) return;
    both += 1;
    same += classOf(place) === fake.skeleton[d][t];
  }));
  return both ? same / both : null;
}

// the map

const map = new TownMap(el("map"), { onPick: (place) => { only(it.only === classOf(place) ? null : classOf(place)); } });
const stepper = new Stepper({ slider: el("slot"), back: el("back"), next: el("next"), play: el("play") }, show);

function useDay(n) {
  const { run } = it;
  it.day = n;
  it.r = run.fakes.map((fake) => fake.r[n] || []);
  const R = run.places.lat ? run.places.lat.length : run.label ? run.label.length : 1 + extent(it.r.flat())[1];
  it.places = R;
  it.most = 1;
  const count = new Int32Array(R);
  // how full each class is by slot, for the legend
  it.curve = Array.from({ length: run.label ? run.kappa : 0 }, () => new Int32Array(run.slots));
  for (let t = 0; t < run.slots; t++) {
    count.fill(0);
    for (const day of it.r) {
      const place = day[t];
      if (place === undefined || place < 0) continue;
      it.most = Math.max(it.most, ++count[place]);
      const k = classOf(place);
      if (k >= 0) it.curve[k][t] += 1;
    }
  }
  legend();
  sort();
}

function legend() {
  const { run } = it;
  if (!run.label) return;
  const sizes = it.curve.map((_, k) => run.label.filter((label) => label === k).length);
  el("classes").replaceChildren(...it.curve.map((curve, k) => {
    const top = Math.max(1, ...it.curve.flatMap((other) => [...other])), L = curve.length;
    const line = [...curve].map((n, t) => `L${t + 0.5} ${20 - (19 * n) / top}`).join("");
    const area = shape("path", { d: `M0.5 20${line}L${L - 0.5} 20Z`, class: "stay" });
    area.style.setProperty("--c", classInk(k));
    const spark = shape("svg", { viewBox: `0 0 ${L} 20`, preserveAspectRatio: "none", role: "img", "aria-label": `how many are there over the day; most at ${clockOf(run, curve.indexOf(Math.max(...curve)))}` }, area);
    const button = make("button", { type: "button", "aria-pressed": String(it.only === k) }, make("b", {}, className(k)), make("small", {}, many(sizes[k], "place")), spark);
    button.addEventListener("click", () => only(it.only === k ? null : k));
    return make("li", {}, button);
  }));
}

function only(k) {
  it.only = k;
  [...el("classes").children].forEach((item, i) => item.firstChild.setAttribute("aria-pressed", String(i === k)));
  show(stepper.slot);
}

function show(slot, before = null) {
  const { run, r, chosen } = it;
  if (!r) return;
  const count = new Int32Array(it.places), moves = [];
  let there = 0;
  for (const day of r) {
    const place = day[slot];
    if (place === undefined || place < 0 || (it.only !== null && classOf(place) !== it.only)) continue;
    count[place] += 1;
    there += 1;
    if (before !== null && day[before] >= 0 && day[before] !== place) moves.push(day[before], place);
  }
  const clock = clockOf(run, slot);
  el("clock").textContent = clock;
  let said = `At ${clock}, ${many(there, "fake")} ${there === 1 ? "is" : "are"} at ${many(count.filter((n) => n > 0).length, "place")}${it.only === null ? "" : ` of ${className(it.only)}`}.`;
  const scene = { count, most: it.most, total: run.fakes.length, moves };
  if (run.label) scene.ink = (place) => (classOf(place) < 0 ? map.ink.base : map.ink[`k${classOf(place) % INKS}`]);
  if (chosen !== null && r[chosen].length) {
    const place = r[chosen][slot], fake = run.fakes[chosen];
    scene.way = r[chosen];
    scene.here = place;
    scene.letters = new Map([...new Set(r[chosen])].map((p) => [p, classOf(p) < 0 ? "" : String(classOf(p) + 1)]));
    const own = fake.skeleton ? fake.skeleton[it.day][slot] : null;
    said = place < 0 ? `At ${clock}, it is not known where this fake is.` : `At ${clock}, this fake is in ${className(classOf(place))}${own === null ? "" : `, its skeleton in ${className(own)}`}.`;
    for (const mark of document.querySelectorAll("#one .mark")) mark.setAttribute("x", slot);
  }
  if (!stepper.playing || chosen !== null) el("said").textContent = said;
  el("map").setAttribute("aria-label", `Map of the fakes by class. ${said}`);
  map.show(scene);
}

// the fakes

function sort() {
  const { fakes } = it.run, by = el("by").value;
  it.order = fakes.map((_, i) => i).filter((i) => it.r[i].length);
  if (by === "like" || by === "unlike") it.order.sort((a, b) => (by === "like" ? it.like[b] - it.like[a] : it.like[a] - it.like[b]));
  if (by === "out") it.order = it.order.filter((i) => fakes[i].verdict !== null && !passes("accepted", fakes[i].verdict));
  it.listed = LISTED;
  if (it.chosen !== null && !it.order.includes(it.chosen)) choose(null);
  list();
}

function list() {
  const { fakes } = it.run, { order } = it;
  el("matches").textContent = order.length === fakes.length ? `all ${whole(order.length)}` : `${whole(order.length)} of ${whole(fakes.length)}`;
  el("list").replaceChildren(...order.slice(0, it.listed).map((i) => {
    const like = it.like[i] === null ? "" : `${percent(it.like[i])} alike`;
    const row = make("button", { type: "button", "data-fake": i, "aria-pressed": String(i === it.chosen), "aria-label": `Fake ${fakes[i].id.slice(0, 8)} ${like}` },
      make("code", {}, fakes[i].id.slice(0, 8)), make("small", {}, like), dayBar(it.r[i], { inks: it.run.label ? (place) => classInk(classOf(place)) : null }));
    row.addEventListener("click", () => choose(i === it.chosen ? null : i));
    return make("li", {}, row);
  }));
  if (!order.length) el("list").append(make("li", {}, make("p", { class: "note" }, "None: at these thresholds every published fake passes.")));
  const left = order.length - it.listed;
  el("more").hidden = left <= 0;
  el("more").textContent = `Show ${whole(Math.min(left, LISTED))} more of ${whole(Math.max(0, left))}`;
}

el("more").addEventListener("click", () => { it.listed += LISTED; list(); });
el("filter").addEventListener("input", sort);
el("filter").addEventListener("submit", (event) => event.preventDefault());
el("none").addEventListener("click", () => { choose(null); el("map").focus(); });
el("day").addEventListener("change", () => { stepper.stop(); const { chosen } = it; useDay(Number(el("day").value)); choose(chosen); });

function strip(box, classes) {
  const bar = dayBar(classes, { inks: classInk, label: box });
  bar.append(shape("rect", { x: stepper.slot, y: 1, width: 1, height: 18, class: "mark" }));
  const L = classes.length, hours = [0, 0.25, 0.5, 0.75, 1].map((part) => make("span", {}, clockOf(it.run, Math.round(part * L))));
  el(box).replaceChildren(bar, make("div", { class: "hours" }, ...hours));
}

function choose(i) {
  it.chosen = i;
  el("one").hidden = i === null;
  for (const row of el("list").querySelectorAll("button")) row.setAttribute("aria-pressed", String(Number(row.dataset.fake) === i));
  if (i !== null) {
    const fake = it.run.fakes[i], { test } = it.run;
    el("one-title").textContent = `Fake ${fake.id.slice(0, 8)}${fake.r.length > 1 ? `, day ${it.day + 1}` : ""}`;
    strip("fake-strip", it.run.label ? it.r[i].map(classOf) : it.r[i]);
    el("skeleton-box").hidden = !fake.skeleton;
    if (fake.skeleton) strip("skeleton-strip", fake.skeleton[it.day]);
    el("one-said").textContent = it.like[i] === null ? "" : `Fake and skeleton are in the same class at ${percent(it.like[i])} of the slots${fake.r.length > 1 ? " of all its days" : ""}.${test?.parameters.shift ? ` A fake may be up to ${many(test.parameters.shift / 60, "hour")} early or late.` : ""}`;
    const v = test && fake.verdict !== null ? Object.fromEntries(["sim", "shared", "sim_s", "alternates", "closest"].map((n) => [n, test.accepted[n][fake.verdict]])) : null;
    const facts = v ? [["places in common with its seed", v.shared], ["geographic similarity to its seed", v.sim.toFixed(3)], ["semantic similarity to its seed", v.sim_s.toFixed(3)],
      ["people as similar to it, counted up to k − 1", v.alternates], ["largest geographic similarity to another seed", test.quantile === null ? "not measured" : v.closest.toFixed(3)]] : [];
    el("one-verdict").replaceChildren(...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value)))));
  }
  show(stepper.slot);
}

// thresholds

// A rule: what a slider moves, and whether a fake that was measured so passes; null means "as in the run".
const RULES = [
  { name: "similarity", value: "sim", words: "geographic similarity to the seed, at most", parameter: "par_s", low: 0, high: 1, step: 0.01, least: false },
  { name: "intersection", value: "shared", words: "places in common with the seed, at most", parameter: "par_i", low: 0, high: 20, step: 1, least: false },
  { name: "differential", value: "alternates", words: "people as similar as the seed (k), at least", parameter: "k", low: 1, step: 1, least: true, less: 1 },
  { name: "others", value: "closest", words: "geographic similarity to any other seed, at most", low: 0, high: 1, step: 0.01, least: false },
  { name: "min_sim", value: "sim_s", words: "semantic similarity to the seed, at least", parameter: "min_sim", low: 0, high: 1, step: 0.01, least: true },
];

const format = (rule, at) => (rule.step === 1 ? String(at) : at.toFixed(2));

function passesRule(rule, side, i) {
  const { test } = it.run;
  if (rule.at === null) return (test[side].bits[i] & test.rules[rule.name]) === 0;
  const measured = test[side][rule.value][i] + (rule.less || 0);
  return rule.least ? measured >= rule.at : measured <= rule.at;
}

const passes = (side, i) => it.rules.every((rule) => passesRule(rule, side, i));

function showThresholds() {
  const { test, preset } = it.run;
  el("as-run").hidden = !test;
  if (!test) {
    el("thresholds-none").hidden = false;
    el("thresholds-none").textContent = ["deniable", "private"].includes(preset) ? `The preset ${preset} tests no fake: its theorem covers whatever is drawn.` : "This run has kept no verdicts (studio.npz in its private folder).";
    return;
  }
  it.rules = RULES.filter((rule) => !(rule.name === "others" && test.quantile === null) && !(rule.name === "differential" && test.not_run.includes("differential"))).map((rule) => {
    const mine = { ...rule, at: null }; // null: as in the run
    if (rule.name === "differential") mine.high = test.parameters.k;
    if (rule.name === "intersection") {
      const aligned = test.parameters.intersection === "aligned";
      if (aligned) Object.assign(mine, { value: "aligned", words: "slots at the same place as the seed, at most" });
      mine.high = Math.max(5, extent(test.accepted[mine.value])[1], extent(test.rejected[mine.value])[1]);
      if (!aligned && it.run.fakes.some((fake) => fake.r.length > 1)) mine.asRun = "as many as half of the strangers share";
    }
    if (rule.name === "similarity" && extent(test.accepted.sim)[1] > test.parameters.par_s) mine.asRun = "as similar as the strangers who are least so";
    if (rule.name === "intersection" && !mine.asRun && extent(test.accepted[mine.value])[1] > test.parameters.par_i) mine.asRun = "as many as the strangers who share least";
    mine.off = test.not_run.includes(rule.name);
    mine.run = rule.name === "others" ? test.quantile : test.parameters[rule.parameter] ?? (rule.least ? rule.low : rule.high);
    return mine;
  });
  el("sliders").replaceChildren(...it.rules.map((rule, i) => {
    const input = make("input", { type: "range", id: `rule-${i}`, min: rule.low, max: rule.high, step: rule.step, "aria-describedby": `rule-${i}-said` });
    input.value = rule.run;
    const out = make("output", { for: `rule-${i}`, id: `rule-${i}-at` });
    input.addEventListener("input", () => { rule.at = Number(input.value); recount(); });
    return make("div", { class: "slider" }, make("label", { for: `rule-${i}` }, rule.words), make("div", { class: "controls" }, input, out), make("p", { class: "note", id: `rule-${i}-said` }));
  }));
  el("thresholds-note").textContent = `Counted on the ${many(test.accepted.sim.length + test.rejected.sim.length, "attempt")} of this run, each measured by all rules. Looser thresholds would let the generator try others, and k beyond ${test.parameters.k} and the allowed difference (par_d) cannot be told from what was measured: make another run.`;
  recount();
}

function recount() {
  const { test } = it.run, n = { accepted: test.accepted.sim.length, rejected: test.rejected.sim.length };
  const all = n.accepted + n.rejected;
  const count = (rule) => ["accepted", "rejected"].reduce((sum, side) => {
    for (let i = 0; i < n[side]; i++) sum += rule ? passesRule(rule, side, i) : passes(side, i);
    return sum;
  }, 0);
  it.rules.forEach((rule, i) => {
    el(`rule-${i}-at`).textContent = rule.at === null ? "as run" : format(rule, rule.at);
    el(`rule-${i}-said`).textContent = `alone it lets ${percent(count(rule) / Math.max(1, all))} pass; in the run ${rule.off ? "it was off" : rule.asRun || format(rule, rule.run)}`;
  });
  const passed = count(null);
  const stay = it.run.fakes.filter((fake) => fake.verdict !== null && passes("accepted", fake.verdict)).length;
  el("accepted").replaceChildren(make("b", {}, percent(passed / Math.max(1, all))), make("span", {}, ` of the attempts would pass all rules (in the run ${percent(n.accepted / Math.max(1, all))}); ${whole(stay)} of the ${whole(it.run.fakes.length)} published fakes${it.run.total > it.run.fakes.length ? " that are shown" : ""} would stay.`));
  if (it.r && el("by").value === "out") sort();
}

el("as-run").addEventListener("click", () => {
  it.rules.forEach((rule, i) => { rule.at = null; el(`rule-${i}`).value = rule.run; });
  recount();
});

// the audit

function showAudit() {
  const { audit } = it.run;
  if (!audit) {
    el("sentence").textContent = "This run was not judged (judgement.json in its private folder): nothing is known about privacy.";
    document.querySelector(".audit").parentElement.hidden = el("outcome").parentElement.hidden = true;
    return;
  }
  el("sentence").textContent = audit.sentence;
  const kinds = [...new Set(audit.rows.map((row) => row.outcome))];
  el("outcome").replaceChildren(make("option", { value: "" }, "all attacks"), ...kinds.map((kind) => make("option", { value: kind }, `${kind}: ${audit.rows.filter((row) => row.outcome === kind).length}`)));
  const draw = () => {
    const rows = audit.rows.filter((row) => !el("outcome").value || row.outcome === el("outcome").value);
    el("audit").replaceChildren(...rows.map((row) => make("tr", {},
      make("th", { scope: "row" }, make("b", {}, row.name), ` ${row.question}`, row.words ? make("details", {}, make("summary", {}, "what it found"), make("p", {}, row.words)) : ""),
      make("td", {}, make("span", { class: `verdict ${row.kind}` }, `${row.sign} ${row.outcome}`)),
      ...["reached", "interval", "strangers", "guessing", "bar"].map((name) => make("td", {}, row[name])))));
  };
  el("outcome").addEventListener("change", draw);
  draw();
}

controls(map, stepper, choose, () => [it.order, it.chosen]);

begin();
