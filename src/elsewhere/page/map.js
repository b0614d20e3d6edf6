// A map on a canvas: names of towns, places, how many are where, one life's way. Nothing is fetched.

import { extent } from "./parts.js";

const calm = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");
const INKS = ["paper", "card", "ink", "soft", "line", "fake", "base", "land", "built", "name"];

// The ends that hold nearly all of `values`: a few far places must not shrink a town.
function ends(values) {
  const sorted = Float64Array.from(values).sort();
  const all = [sorted[0], sorted[sorted.length - 1]];
  const cut = Math.floor(sorted.length / 50);
  const most = [sorted[cut], sorted[sorted.length - 1 - cut]];
  return 2 * (most[1] - most[0]) < all[1] - all[0] && most[1] > most[0] ? most : all;
}

const steps = (rough) => {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [5, 2, 1].map((m) => m * power).find((m) => m <= rough);
};

export class TownMap {
  constructor(canvas, { onPick = () => {} } = {}) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.below = document.createElement("canvas");
    this.onPick = onPick;
    this.scene = {};
    this.ready = false;
    new ResizeObserver(() => this.resize()).observe(canvas);
    dark.addEventListener("change", () => this.refresh());
    this.dragging();
  }

  // Places {lat, lon}, and the towns around them.
  set(places, towns) {
    const middle = places.lat.reduce((sum, lat) => sum + lat, 0) / places.lat.length;
    this.narrow = Math.max(0.01, Math.cos((middle * Math.PI) / 180));
    // degrees of latitude on both axes, north up
    this.x = Float64Array.from(places.lon, (lon) => lon * this.narrow);
    this.y = Float64Array.from(places.lat, (lat) => -lat);
    this.towns = towns;
    const [[west, east], [north, south]] = [extent(this.x), extent(this.y)];
    const area = (east - west) * (south - north);
    this.spacing = Math.max(0.002, 0.95 * Math.sqrt(area / this.x.length));
    this.ready = true;
    this.resize(true);
  }

  colours() {
    const style = getComputedStyle(document.documentElement);
    this.ink = Object.fromEntries(INKS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }

  refresh() {
    this.colours();
    this.drawGround();
    this.draw();
  }

  resize(fit = false) {
    const ratio = Math.min(3, devicePixelRatio || 1);
    const { clientWidth, clientHeight } = this.canvas;
    if (!this.ready || !clientWidth || !clientHeight) return;
    const turned = this.width !== clientWidth || this.height !== clientHeight;
    if (!turned && !fit) return;
    [this.width, this.height, this.ratio] = [clientWidth, clientHeight, ratio];
    for (const sheet of [this.canvas, this.below]) {
      sheet.width = clientWidth * ratio;
      sheet.height = clientHeight * ratio;
    }
    this.fit();
  }

  fit() {
    const [west, east] = ends(this.x);
    const [north, south] = ends(this.y);
    const room = 38;
    const wide = Math.max(east - west, 0.01), tall = Math.max(south - north, 0.01);
    this.scale = Math.min((this.width - 2 * room) / wide, (this.height - 2 * room) / tall);
    this.least = this.scale / 3;
    this.across = Math.sqrt(wide * tall);
    this.at = [(west + east) / 2, (north + south) / 2];
    this.refresh();
  }

  zoom(factor) {
    this.scale = Math.max(this.least, Math.min(this.least * 200, this.scale * factor));
    this.refresh();
  }

  px(x) {
    return this.width / 2 + (x - this.at[0]) * this.scale;
  }

  py(y) {
    return this.height / 2 + (y - this.at[1]) * this.scale;
  }

  dragging() {
    let from = null, moved = false;
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button !== 0) return;
      from = [event.clientX, event.clientY];
      moved = false;
    });
    addEventListener("pointermove", (event) => {
      if (!from || !this.ready) return;
      const [dx, dy] = [event.clientX - from[0], event.clientY - from[1]];
      if (!moved && Math.hypot(dx, dy) < 5) return;
      moved = true;
      if (event.pointerType === "touch") return;
      from = [event.clientX, event.clientY];
      this.at = [this.at[0] - dx / this.scale, this.at[1] - dy / this.scale];
      this.refresh();
    });
    addEventListener("pointerup", (event) => {
      if (from && !moved && this.ready) {
        const box = this.canvas.getBoundingClientRect();
        const place = this.nearest(event.clientX - box.left, event.clientY - box.top);
        if (place >= 0) this.onPick(place);
      }
      from = null;
    });
    addEventListener("pointercancel", () => { from = null; });
  }

  nearest(x, y) {
    let found = -1, least = 22;
    for (let i = 0; i < this.x.length; i++) {
      const off = Math.hypot(this.px(this.x[i]) - x, this.py(this.y[i]) - y);
      if (off < least) [found, least] = [i, off];
    }
    return found;
  }

  drawGround() {
    const c = this.below.getContext("2d"), { ink } = this;
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.fillStyle = ink.land;
    c.fillRect(0, 0, this.width, this.height);
    // where places lie, a town: the ground is a little darker
    c.fillStyle = ink.built;
    c.filter = "blur(8px)";
    const reach = Math.max(5, Math.min(60, this.spacing * this.scale));
    c.beginPath();
    for (let i = 0; i < this.x.length; i++) {
      const [x, y] = [this.px(this.x[i]), this.py(this.y[i])];
      if (x < -reach || y < -reach || x > this.width + reach || y > this.height + reach) continue;
      c.moveTo(x + reach, y);
      c.arc(x, y, reach, 0, 2 * Math.PI);
    }
    c.fill();
    c.filter = "none";
    c.fillStyle = ink.base;
    c.globalAlpha = 0.55;
    c.beginPath();
    for (let i = 0; i < this.x.length; i++) {
      const [x, y] = [this.px(this.x[i]), this.py(this.y[i])];
      c.moveTo(x + 1.3, y);
      c.arc(x, y, 1.3, 0, 2 * Math.PI);
    }
    c.fill();
    c.globalAlpha = 1;
  }

  names(c) {
    const taken = [];
    c.font = "600 12px system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif";
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.lineJoin = "round";
    for (const [name, lon, lat] of this.towns) {
      const x = this.px(lon * this.narrow), y = this.py(-lat), half = c.measureText(name).width / 2 + 6;
      if (x - half < 0 || x + half > this.width - 50 || y < 12 || y > this.height - 40) continue;
      if (taken.some((t) => Math.abs(t[0] - x) < t[2] + half && Math.abs(t[1] - y) < 20)) continue;
      taken.push([x, y, half]);
      c.strokeStyle = this.ink.land;
      c.lineWidth = 3.5;
      c.globalAlpha = 0.8;
      c.strokeText(name, x, y);
      c.globalAlpha = 1;
      c.fillStyle = this.ink.name;
      c.fillText(name, x, y);
      if (taken.length >= 12) break;
    }
  }

  // Draw a scene: `count` (how many are at each place), `total` and `most` (all, and the largest count),
  // `way` (places of one life in order), `here` (where it is now), `moves` (pairs of places, between two slots).
  show(scene) {
    this.scene = scene;
    cancelAnimationFrame(this.frame);
    if (!this.ready || !this.width) return;
    if (!scene.moves || !scene.moves.length || calm.matches) {
      this.draw();
      return;
    }
    const begun = performance.now(), length = 380;
    const step = (now) => {
      const share = Math.min(1, (now - begun) / length);
      this.draw(share);
      if (share < 1) this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
  }

  // The area of a circle is how many are there; all circles together cover a quarter of the town at most.
  radius(count) {
    const { most = 1, total = 1 } = this.scene;
    const unit = Math.min(6, 24 / Math.sqrt(most), this.across * this.scale * Math.sqrt(0.25 / Math.PI / Math.max(1, total)));
    return Math.max(1.8, unit * Math.sqrt(count));
  }

  draw(share = 1) {
    if (!this.ready || !this.width) return;
    const c = this.context, { ink, scene } = this;
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.drawImage(this.below, 0, 0);
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const moving = share < 1 && scene.moves ? scene.moves : [];
    const coming = new Map();
    for (let i = 0; i < moving.length; i += 2) coming.set(moving[i + 1], (coming.get(moving[i + 1]) || 0) + 1);
    if (scene.count) {
      c.globalAlpha = scene.way ? 0.2 : 0.78;
      for (let i = 0; i < this.x.length; i++) {
        const count = scene.count[i] - (coming.get(i) || 0);
        if (count <= 0) continue;
        const [x, y] = [this.px(this.x[i]), this.py(this.y[i])];
        if (x < -30 || y < -30 || x > this.width + 30 || y > this.height + 30) continue;
        c.fillStyle = ink.fake;
        c.beginPath();
        c.arc(x, y, this.radius(count), 0, 2 * Math.PI);
        c.fill();
        c.lineWidth = 1;
        c.strokeStyle = ink.card;
        c.stroke();
      }
      c.globalAlpha = 0.85;
      const eased = share * share * (3 - 2 * share);
      for (let i = 0; i < moving.length; i += 2) {
        const [a, b] = [moving[i], moving[i + 1]];
        c.fillStyle = ink.fake;
        c.beginPath();
        c.arc(this.px(this.x[a] + eased * (this.x[b] - this.x[a])), this.py(this.y[a] + eased * (this.y[b] - this.y[a])), 2.4, 0, 2 * Math.PI);
        c.fill();
      }
      c.globalAlpha = 1;
    }
    this.names(c);
    if (scene.way) this.drawWay(c, scene);
    this.drawScale(c, scene);
  }

  drawWay(c, { way, here, letters }) {
    const ink = this.ink.fake;
    const visited = way.filter((place, i) => place >= 0 && place !== way[i - 1]);
    c.strokeStyle = ink;
    c.lineWidth = 2;
    c.lineJoin = "round";
    c.beginPath();
    visited.forEach((place, i) => c[i ? "lineTo" : "moveTo"](this.px(this.x[place]), this.py(this.y[place])));
    c.stroke();
    c.font = "700 11px system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif";
    c.textAlign = "center";
    c.textBaseline = "middle";
    for (const place of new Set(visited)) {
      const [x, y] = [this.px(this.x[place]), this.py(this.y[place])], at = place === here;
      c.beginPath();
      c.arc(x, y, at ? 12 : 9, 0, 2 * Math.PI);
      c.fillStyle = at ? ink : this.ink.card;
      c.fill();
      c.lineWidth = at ? 3 : 2;
      c.strokeStyle = at ? this.ink.card : ink;
      c.stroke();
      if (at) {
        c.beginPath();
        c.arc(x, y, 15, 0, 2 * Math.PI);
        c.lineWidth = 2;
        c.strokeStyle = ink;
        c.stroke();
      }
      c.fillStyle = at ? this.ink.card : this.ink.ink;
      if (letters) c.fillText(letters.get(place) || "", x, y + 0.5);
    }
  }

  drawScale(c, scene) {
    const perKm = this.scale / 111.2, km = steps((0.22 * this.width) / perKm), wide = km * perKm, y = this.height - 16;
    c.strokeStyle = this.ink.soft;
    c.fillStyle = this.ink.soft;
    c.lineWidth = 1.5;
    c.beginPath();
    c.moveTo(14, y - 4);
    c.lineTo(14, y);
    c.lineTo(14 + wide, y);
    c.lineTo(14 + wide, y - 4);
    c.stroke();
    c.font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif";
    c.textBaseline = "alphabetic";
    c.textAlign = "left";
    c.fillText(km >= 1 ? `${km} km` : `${Math.round(1000 * km)} m`, 20 + wide, y + 1);
    if (!scene.count || !scene.most || this.width < 330) return;
    let right = this.width - 14;
    const middle = this.height - 10 - this.radius(scene.most);
    c.textAlign = "right";
    c.textBaseline = "middle";
    for (const count of [...new Set([scene.most, Math.max(1, Math.round(scene.most / 4)), 1])]) {
      const r = this.radius(count), words = count === scene.most ? `${count} ${count === 1 ? "fake" : "fakes"}` : String(count);
      c.fillText(words, right, middle);
      right -= c.measureText(words).width + 6 + r;
      c.globalAlpha = 0.78;
      c.fillStyle = this.ink.fake;
      c.beginPath();
      c.arc(right, middle, r, 0, 2 * Math.PI);
      c.fill();
      c.globalAlpha = 1;
      c.fillStyle = this.ink.soft;
      right -= r + 12;
    }
  }
}
