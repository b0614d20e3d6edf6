// What the page is made of: elements, the clock of a pool, the strip of a day, and stepping through it.

export const el = (id) => document.getElementById(id);

const SVG = "http://www.w3.org/2000/svg";

// An element with attributes and children; text never becomes markup.
export function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export const whole = (n) => n.toLocaleString("en");
export const many = (n, one) => `${whole(n)} ${n === 1 ? one : `${one}s`}`;

// The least and the largest of many values; Math.max(...values) takes some ten thousand only.
export function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

// "08:30" of a slot; `start` says when slot 0 begins
export function clockOf(head, slot) {
  const [h, m] = head.start.split(":").map(Number);
  const minutes = Math.round(60 * h + m + slot * head.step_minutes) % 1440;
  return `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
}

// The places of a day by the time spent there, the longest first.
export function ranked(day) {
  const time = new Map();
  for (const place of day) if (place >= 0) time.set(place, (time.get(place) || 0) + 1);
  return [...time.keys()].sort((a, b) => time.get(b) - time.get(a));
}

// The stays of a day: [place, first slot, slot after the last].
export function staysOf(day) {
  const stays = [];
  for (let t = 0; t < day.length; t++) {
    const last = stays[stays.length - 1];
    if (last && last[0] === day[t]) last[2] = t + 1;
    else stays.push([day[t], t, t + 1]);
  }
  return stays.filter((stay) => stay[0] >= 0);
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
export const letter = (rank) => (rank < 26 ? LETTERS[rank] : LETTERS[rank % 26] + Math.floor(rank / 26));

// A bar of the day: one block for each stay, the darker the more time is spent there.
export function dayBar(day, label = "The day") {
  const order = ranked(day);
  const svg = shape("svg", {
    viewBox: `0 0 ${day.length} 20`, preserveAspectRatio: "none", role: "img", "aria-label": label,
  });
  for (const [place, from, to] of staysOf(day)) {
    const rank = order.indexOf(place);
    const block = shape("rect", { x: from, y: 0, width: to - from, height: 20, class: "stay" });
    block.style.fillOpacity = Math.max(0.16, 0.9 * 0.62 ** rank);
    svg.append(block);
  }
  return svg;
}

// Steps through the slots of a day by slider, buttons and keys; calls `show(slot, before)` for each.
export class Stepper {
  constructor({ slider, back, next, play }, show) {
    Object.assign(this, { slider, back, next, playing: null, show, button: play });
    slider.addEventListener("input", () => this.go(Number(slider.value)));
    back.addEventListener("click", () => this.by(-1));
    next.addEventListener("click", () => this.by(1));
    play.addEventListener("click", () => this.toggle());
  }

  get slot() {
    return Number(this.slider.value);
  }

  set(length, words) {
    this.slider.max = length - 1;
    this.words = words;
    this.go(Math.min(this.slot, length - 1));
  }

  go(slot, before = null) {
    const last = Number(this.slider.max);
    const to = Math.max(0, Math.min(last, slot));
    this.slider.value = to;
    this.slider.setAttribute("aria-valuetext", this.words(to));
    this.back.disabled = to === 0;
    this.next.disabled = to === last;
    this.show(to, before);
  }

  by(step) {
    this.go(this.slot + step);
  }

  toggle() {
    if (this.playing) this.stop();
    else {
      if (this.slot === Number(this.slider.max)) this.go(0);
      this.button.setAttribute("aria-pressed", "true");
      this.button.textContent = "Pause";
      this.playing = setInterval(() => {
        if (this.slot === Number(this.slider.max)) this.stop();
        else this.go(this.slot + 1, this.slot);
      }, 420);
    }
  }

  stop() {
    clearInterval(this.playing);
    this.playing = null;
    this.button.setAttribute("aria-pressed", "false");
    this.button.textContent = "Play";
  }
}

// Buttons and keys of a map: zoom, step through the day, choose the fake before or after. `which` gives the fakes in
// their order, and the chosen one.
export function controls(map, stepper, choose, which) {
  const closer = () => map.zoom(1.6), farther = () => map.zoom(1 / 1.6), fit = () => map.fit();
  const beside = (step) => {
    const [order, chosen] = which();
    if (!order.length) return;
    const at = order.indexOf(chosen);
    choose(order[(at + step + order.length + (at < 0 && step < 0)) % order.length]);
  };
  const keys = {
    ArrowLeft: () => stepper.by(-1), ArrowRight: () => stepper.by(1), Home: () => stepper.go(0), End: () => stepper.go(1e9),
    " ": () => stepper.toggle(), ArrowDown: () => beside(1), ArrowUp: () => beside(-1), Escape: () => choose(null),
    "+": closer, "=": closer, "-": farther, "0": fit,
  };
  el("closer").addEventListener("click", closer);
  el("farther").addEventListener("click", farther);
  el("fit").addEventListener("click", fit);
  el("map").addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
}
