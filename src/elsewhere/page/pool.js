// The page of the pool: a token in, then level, map, fakes and devices. The token stays in this variable alone.

import { TownMap } from "./map.js";
import { Stepper, clockOf, controls, dayBar, el, letter, make, many, ranked, staysOf, whole } from "./parts.js";

const LISTED = 60; // fakes at a time
const CLOCK = { slots: 72, step_minutes: 20, start: "00:00" }; // the steps of a day on this page
const pool = { token: null, head: null, days: new Map(), day: 0, facts: [], shown: [], chosen: null, listed: LISTED };

class Refusal extends Error {
  constructor(status, told) {
    super(told);
    this.status = status;
  }
}

async function ask(path, { method = "GET", body } = {}) {
  let answer;
  try {
    answer = await fetch(path, {
      method, body: body && JSON.stringify(body), cache: "no-store", credentials: "omit",
      headers: { authorization: `Bearer ${pool.token}`, ...(body && { "content-type": "application/json" }) },
    });
  } catch {
    throw new Refusal(0, "The service does not answer: is it still running?");
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => null);
  throw new Refusal(answer.status, told?.error?.message || `status ${answer.status}`);
}

function words(error) {
  if (error.status === 401) return "This token is not valid, or is valid no more.";
  if (error.status === 403) return "This is the token of a device. The owner’s is needed.";
  return `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}`;
}

// the door

el("enter").addEventListener("submit", async (event) => {
  event.preventDefault();
  pool.token = el("token").value.trim();
  el("token-wrong").textContent = "";
  if (!/^[\x21-\x7e]+$/.test(pool.token)) {
    el("token-wrong").textContent = words({ status: 401 });
    return;
  }
  try {
    const [level, head] = await Promise.all(["/v1/devices", "/v1/pool"].map(async (path) => (await ask(path)).json()));
    pool.head = { ...head, ...CLOCK };
    await dayOf(0);
    el("token").value = "";
    open(level);
  } catch (error) {
    pool.token = null;
    el("token-wrong").textContent = words(error);
    el("token").select();
  }
});

el("lock").addEventListener("click", () => location.reload());

async function dayOf(n) {
  if (!pool.days.has(n)) {
    const day = await (await ask(`/v1/pool/days/${n}`)).json();
    pool.days.set(n, { ...day, r: day.visits.map(placesOf) });
  }
  return pool.days.get(n);
}

// The place at each step of a day, -1 before the first visit; between two visits where the last one was.
function placesOf(visits) {
  if (visits === null) return [];
  const r = new Array(CLOCK.slots).fill(-1);
  for (const [from, , place] of visits) r.fill(place, Math.floor(from / CLOCK.step_minutes));
  return r;
}

function open(level) {
  const { head } = pool;
  el("gate").hidden = true;
  el("inside").hidden = el("lock").hidden = false;
  el("laboratory").hidden = !head.laboratory;
  el("sources").textContent = head.towns.length ? head.sources : "";
  el("days-box").hidden = head.days < 2;
  el("day").replaceChildren(...Array.from({ length: head.days }, (_, n) => make("option", { value: n }, `${n + 1} of ${head.days}`)));
  showLevel(level);
  useDay(0);
  map.set(head.places, head.towns);
  stepper.set(head.slots, (slot) => clockOf(head, slot));
  stepper.go(Math.floor(head.slots / 3));
  el("map").focus({ preventScroll: true });
}

// level and devices

function showLevel(level) {
  const given = level.lives - level.free, buckets = Math.floor(level.free / level.bucket);
  const devices = level.devices.filter((device) => device.role === "device");
  const tiles = [
    ["fakes in the pool", level.lives], ["given away", given],
    ["left to give", level.free], ["devices with a valid token", devices.filter((d) => d.valid).length],
  ];
  el("tiles").replaceChildren(...tiles.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, whole(value)))));
  el("gauge-given").style.width = `${(100 * given) / level.lives}%`;
  el("gauge").setAttribute("aria-label", `${whole(given)} of ${whole(level.lives)} fakes given away`);
  const last = buckets === 0
    ? "The pool is spent: no device can be given another bucket. Publish a new pool."
    : `Enough for ${many(buckets, "more bucket")}.`;
  el("level-said").textContent = `A bucket holds ${many(level.bucket, "fake")}, which nobody else is given. ${last}`;
  el("tiles").children[2].classList.toggle("bad", buckets === 0);
  el("state").textContent = `${whole(level.free)} of ${whole(level.lives)} left`;
  const rows = devices.map((device) => {
    const state = device.valid ? "valid" : device.expires && Date.parse(device.expires) < Date.now() ? "expired" : "shut out";
    const out = make("button", { type: "button", "data-id": device.id, "aria-label": `Shut out ${device.label || "this device"}` }, "Shut out");
    out.addEventListener("click", () => shutOut(out));
    return make("tr", { class: device.valid ? null : "gone" },
      make("th", { scope: "row" }, device.label || "without a name"), make("td", {}, device.created),
      make("td", {}, device.expires ? device.expires.slice(0, 10) : "no end"), make("td", {}, state), make("td", {}, device.valid ? out : ""));
  });
  if (!rows.length) rows.push(make("tr", {}, make("td", { colspan: 5, class: "gone" }, "No device has a token yet.")));
  el("devices").replaceChildren(...rows);
}

async function refreshLevel() {
  showLevel(await (await ask("/v1/devices")).json());
}

async function shutOut(button) {
  if (!button.classList.contains("danger")) {
    button.classList.add("danger");
    button.textContent = "For good?";
    button.addEventListener("blur", () => {
      button.classList.remove("danger");
      button.textContent = "Shut out";
    }, { once: true });
    return;
  }
  try {
    await ask(`/v1/devices/${encodeURIComponent(button.dataset.id)}`, { method: "DELETE" });
    await refreshLevel();
    el("devices-title").scrollIntoView({ block: "nearest" });
  } catch (error) {
    el("devices-wrong").textContent = words(error);
  }
}

el("admit").addEventListener("submit", async (event) => {
  event.preventDefault();
  el("devices-wrong").textContent = "";
  const days = el("days").value;
  try {
    const body = { label: el("label").value.trim(), expires_days: days === "" ? null : Number(days) };
    const made = await (await ask("/v1/devices", { method: "POST", body })).json();
    el("new-token").textContent = made.token;
    el("new").hidden = false;
    el("new").focus();
    el("admit").reset();
    await refreshLevel();
  } catch (error) {
    el("devices-wrong").textContent = words(error);
  }
});

el("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(el("new-token").textContent);
    el("copy").textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(el("new-token"));
    el("copy").textContent = "Selected";
  }
  setTimeout(() => { el("copy").textContent = "Copy"; }, 2000);
});

// the map and the day

const map = new TownMap(el("map"), { onPick: (place) => { el("by-place").value = String(place); filter(); } });
const stepper = new Stepper({ slider: el("slot"), back: el("back"), next: el("next"), play: el("play") }, show);

const placeName = (place) => {
  const { names, categories } = pool.head.places;
  const category = categories && categories[place] ? ` (${categories[place]})` : "";
  return `${names && names[place] ? names[place] : `place ${place}`}${category}`;
};

async function useDay(n) {
  const { head } = pool;
  const day = await dayOf(n).catch((error) => { el("said").textContent = words(error); return null; });
  if (!day) return;
  pool.day = n;
  el("day").value = String(n);
  pool.r = day.r;
  const visitors = new Int32Array(head.places.lat.length);
  pool.facts = day.r.map((r) => {
    let moves = 0;
    for (let t = 1; t < r.length; t++) moves += r[t] !== r[t - 1] && r[t] >= 0 && r[t - 1] >= 0;
    const places = new Set(r.filter((place) => place >= 0));
    places.forEach((place) => { visitors[place] += 1; });
    return { moves, places };
  });
  const busiest = [...visitors.keys()].filter((p) => visitors[p]).sort((a, b) => visitors[b] - visitors[a]);
  const kept = el("by-place").value;
  el("by-place").replaceChildren(
    make("option", { value: "" }, "any place"),
    ...busiest.map((p) => make("option", { value: p }, `${placeName(p)}: ${many(visitors[p], "fake")}`)),
  );
  el("by-place").value = busiest.includes(Number(kept)) ? kept : "";
  filter();
}

function filter() {
  const id = el("by-id").value.trim().toLowerCase();
  const [least, most] = (el("by-moves").value || "0,99999").split(",").map(Number);
  const place = el("by-place").value === "" ? null : Number(el("by-place").value);
  pool.shown = [];
  pool.facts.forEach(({ moves, places }, i) => {
    if (!pool.r[i].length || moves < least || moves > most) return;
    if (place !== null && !places.has(place)) return;
    if (id && !pool.head.lives[i].toLowerCase().startsWith(id)) return;
    pool.shown.push(i);
  });
  // circles keep their scale over the whole day
  const L = pool.head.slots, count = new Int32Array(pool.head.places.lat.length);
  pool.most = 1;
  for (let t = 0; t < L; t++) {
    count.fill(0);
    for (const i of pool.shown) if (pool.r[i][t] >= 0) pool.most = Math.max(pool.most, ++count[pool.r[i][t]]);
  }
  pool.listed = LISTED;
  if (pool.chosen !== null && !pool.shown.includes(pool.chosen)) choose(null);
  list();
  show(stepper.slot);
}

function list() {
  const { shown, head, facts } = pool;
  el("matches").textContent = shown.length === head.lives.length ? `all ${whole(shown.length)}` : `${whole(shown.length)} of ${whole(head.lives.length)}`;
  el("list").replaceChildren(...shown.slice(0, pool.listed).map((i) => {
    const id = head.lives[i], { moves, places } = facts[i];
    const row = make("button", { type: "button", "data-life": i, "aria-pressed": String(i === pool.chosen), "aria-label": `Fake ${id.slice(0, 8)}, ${many(places.size, "place")}, ${many(moves, "move")}` },
      make("code", {}, id.slice(0, 8)), make("small", {}, `${many(places.size, "place")}`), dayBar(pool.r[i]));
    row.addEventListener("click", () => choose(i === pool.chosen ? null : i));
    return make("li", {}, row);
  }));
  if (!shown.length) el("list").append(make("li", {}, make("p", { class: "note" }, "No fake is like that. “Show all” takes the filter away.")));
  const left = shown.length - pool.listed;
  el("more").hidden = left <= 0;
  el("more").textContent = `Show ${whole(Math.min(left, LISTED))} more of ${whole(Math.max(0, left))}`;
}

el("more").addEventListener("click", () => {
  const first = pool.listed;
  pool.listed += LISTED;
  list();
  el("list").children[first]?.querySelector("button")?.focus();
});

function choose(i) {
  pool.chosen = i;
  el("one").hidden = i === null;
  for (const row of el("list").querySelectorAll("button")) row.setAttribute("aria-pressed", String(Number(row.dataset.life) === i));
  if (i !== null) {
    const day = pool.r[i], dates = pool.days.get(pool.day).dates;
    pool.letters = new Map(ranked(day).map((place, rank) => [place, letter(rank)]));
    el("one-title").textContent = `Fake ${pool.head.lives[i].slice(0, 8)}${pool.head.days > 1 ? `, day ${pool.day + 1}` : ""}${dates && dates[i] ? `, ${dates[i]}` : ""}`;
    const hours = [0, 0.25, 0.5, 0.75].map((part) => make("span", {}, clockOf(pool.head, Math.round(part * day.length))));
    el("one-strip").replaceChildren(dayBar(day, "The day of this fake, one block for each stay"), make("div", { class: "hours" }, ...hours, make("span", {}, clockOf(pool.head, day.length))));
    el("stays").replaceChildren(...staysOf(day).map(([place, from, to]) => make("li", { "data-from": from, "data-to": to },
      make("b", {}, pool.letters.get(place)), ` ${clockOf(pool.head, from)}–${clockOf(pool.head, to)} ${placeName(place)}`)));
  }
  show(stepper.slot);
}

el("none").addEventListener("click", () => {
  choose(null);
  el("map").focus();
});

function show(slot, before = null) {
  const { head, r, shown, chosen } = pool;
  if (!r) return;
  const count = new Int32Array(head.places.lat.length), moves = [];
  let there = 0, moved = 0;
  for (const i of shown) {
    const place = r[i][slot];
    if (place < 0 || place === undefined) continue;
    count[place] += 1;
    there += 1;
    if (slot && r[i][slot - 1] >= 0 && r[i][slot - 1] !== place) moved += 1;
    if (before !== null && r[i][before] >= 0 && r[i][before] !== place) moves.push(r[i][before], place);
  }
  const clock = clockOf(head, slot);
  el("clock").textContent = clock;
  const scene = { count, most: pool.most, total: shown.length, moves };
  let said = `At ${clock}, ${many(there, "fake")} ${there === 1 ? "is" : "are"} at ${many(count.filter((n) => n > 0).length, "place")}; ${whole(moved)} ${moved === 1 ? "has" : "have"} just moved.`;
  if (chosen !== null && r[chosen].length) {
    const place = r[chosen][slot];
    Object.assign(scene, { way: r[chosen], here: place, letters: pool.letters });
    said = place < 0 ? `At ${clock}, it is not known where this fake is.` : `At ${clock}, this fake is at ${placeName(place)} (${pool.letters.get(place)}), with ${many(count[place] - 1, "other fake")}.`;
    for (const stay of el("stays").children) stay.classList.toggle("now", slot >= stay.dataset.from && slot < stay.dataset.to);
  }
  if (!stepper.playing || chosen !== null) el("said").textContent = said;
  el("map").setAttribute("aria-label", `Map of the fakes. ${said}`);
  map.show(scene);
}

el("day").addEventListener("change", async () => {
  stepper.stop();
  const { chosen } = pool;
  await useDay(Number(el("day").value));
  choose(chosen !== null && pool.r[chosen].length ? chosen : null);
});
el("filter").addEventListener("submit", (event) => event.preventDefault());
el("filter").addEventListener("input", filter);
el("clear").addEventListener("click", () => { el("filter").reset(); filter(); });
controls(map, stepper, choose, () => [pool.shown, pool.chosen]);
