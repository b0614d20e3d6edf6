"use strict";
(function () {
  var box = document.getElementById("days-data");
  if (!box) { return; }
  var D = JSON.parse(box.textContent), NS = "http://www.w3.org/2000/svg";
  var el = function (id) { return document.getElementById(id); };
  var map = el("days-map"), which = el("days-which"), slot = el("days-slot"), clock = el("days-clock");
  var back = el("days-back"), next = el("days-next"), play = el("days-play"), said = el("days-said"), strips = el("days-strips");
  var LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", timer = null;
  var SIDES = [["fake", "the fake", "ink-fake", ""], ["real", "the real person", "ink-real", "5 4"]];

  function draw(parent, name, attributes, text) {
    var made = document.createElementNS(NS, name);
    for (var key in attributes) { made.setAttribute(key, attributes[key]); }
    if (text !== undefined) { made.textContent = text; }
    parent.appendChild(made);
    return made;
  }
  function empty(node) { while (node.firstChild) { node.removeChild(node.firstChild); } }

  /* the places of a day, the one with most time first: A, B, C */
  function letters(day, small) {
    var time = {}, order = [];
    day.forEach(function (p) { if (p >= 0) { if (!(p in time)) { time[p] = 0; order.push(p); } time[p] += 1; } });
    order.sort(function (a, b) { return time[b] - time[a]; });
    var name = {};
    order.forEach(function (p, i) {
      var n = i < 26 ? LETTERS[i] : LETTERS[i % 26] + Math.floor(i / 26);
      name[p] = small ? n.toLowerCase() : n;
    });
    return { order: order, name: name };
  }

  var ground = draw(map, "g", { "class": "ink-none" }), moving = draw(map, "g", {});
  map.insertBefore(ground, el("days-names"));
  D.x.forEach(function (x, i) { draw(ground, "circle", { cx: x, cy: D.y[i], r: 2, "class": "fill" }); });

  function off(p) { return D.x[p] < 0 || D.x[p] > D.width || D.y[p] < 0 || D.y[p] > D.height; }

  function strip(day, words, ink, small) {
    var L = day.length, wide = 360, w = wide / L, look = letters(day, small), line = document.createElement("div");
    var label = document.createElement("span");
    label.textContent = words + ": a letter per place, " + (small ? "a" : "A") + " where most time is spent";
    line.appendChild(label);
    var svg = draw(line, "svg", { viewBox: "0 0 360 34", role: "img", "aria-label": "Places of " + words + " over the day" });
    var start = 0;
    for (var t = 1; t <= L; t++) {
      if (t === L || day[t] !== day[start]) {
        var p = day[start];
        if (p >= 0) {
          var rank = look.order.indexOf(p);
          draw(svg, "rect", { x: start * w, y: 2, width: Math.max(1, (t - start) * w - 1), height: 18,
            "class": "fill " + ink, "fill-opacity": Math.max(0.2, 0.75 - 0.13 * rank) });
          if ((t - start) * w > 11) {
            draw(svg, "text", { x: (start + t) / 2 * w, y: 15, "text-anchor": "middle" }, look.name[p]);
          }
        }
        start = t;
      }
    }
    draw(svg, "text", { x: 0, y: 32, "class": "soft" }, D.clock[0]);
    draw(svg, "text", { x: wide / 2, y: 32, "text-anchor": "middle", "class": "soft" }, D.clock[Math.floor(L / 2)]);
    draw(svg, "text", { x: wide, y: 32, "text-anchor": "end", "class": "soft" }, D.clock[L - 1]);
    var cursor = draw(svg, "rect", { y: 0, width: Math.max(2, w), height: 22, fill: "none", stroke: "currentColor", "stroke-width": 2 });
    strips.appendChild(line);
    return function (t) { cursor.setAttribute("x", Math.min(t * w, wide - Math.max(2, w))); };
  }

  var cursors = [];
  function choose() {
    empty(strips);
    cursors = [];
    var day = D.days[+which.value];
    SIDES.forEach(function (s) {
      if (day[s[0]]) { cursors.push(strip(day[s[0]], s[0] === "fake" ? "Fake" : "Real", s[2], s[0] === "real")); }
    });
    show();
  }

  function show() {
    var t = +slot.value, day = D.days[+which.value], words = [];
    empty(moving);
    SIDES.forEach(function (s) {
      var row = day[s[0]];
      if (!row) { return; }
      var look = letters(row, s[0] === "real"), layer = draw(moving, "g", { "class": s[2] }), way = "", last = -1;
      for (var i = 0; i <= t; i++) {
        if (row[i] >= 0 && row[i] !== last) { way += (way ? "L" : "M") + D.x[row[i]] + " " + D.y[row[i]]; last = row[i]; }
      }
      if (way.indexOf("L") > 0) { draw(layer, "path", { d: way, "class": "stroke", "stroke-dasharray": s[3], "stroke-opacity": 0.7, "stroke-linejoin": "round" }); }
      look.order.forEach(function (p) {
        var seen = row.slice(0, t + 1).indexOf(p) >= 0;
        draw(layer, "circle", { cx: D.x[p], cy: D.y[p], r: 3.5, "class": "fill", "fill-opacity": seen ? 0.9 : 0.35 });
        draw(layer, "text", { x: D.x[p] + (s[0] === "fake" ? 10 : -10), y: D.y[p] - 8, "class": "halo", "text-anchor": s[0] === "fake" ? "start" : "end" }, look.name[p]);
      });
      var here = row[t];
      if (here >= 0) {
        if (s[0] === "fake") { draw(layer, "circle", { cx: D.x[here], cy: D.y[here], r: 9, "class": "stroke now" }); }
        else { draw(layer, "rect", { x: D.x[here] - 8, y: D.y[here] - 8, width: 16, height: 16, "class": "stroke now" }); }
        words.push(s[1] + " is at place " + look.name[here] + (D["class"] && D["class"][here] > 0 ? " (class " + D["class"][here] + ")" : "") + (off(here) ? ", off the map" : ""));
      } else { words.push("where " + s[1] + " is, is not known"); }
    });
    clock.textContent = D.clock[t];
    said.textContent = "At " + D.clock[t] + " " + words.join("; ") + ".";
    slot.setAttribute("aria-valuetext", D.clock[t]);
    back.disabled = t === 0;
    next.disabled = t === D.clock.length - 1;
    cursors.forEach(function (move) { move(t); });
  }

  function step(n) {
    slot.value = Math.min(D.clock.length - 1, Math.max(0, +slot.value + n));
    show();
  }
  function stop() {
    if (timer) { clearInterval(timer); timer = null; play.textContent = "Play"; play.setAttribute("aria-pressed", "false"); }
  }
  back.addEventListener("click", function () { stop(); step(-1); });
  next.addEventListener("click", function () { stop(); step(1); });
  slot.addEventListener("input", function () { stop(); show(); });
  which.addEventListener("change", function () { stop(); slot.value = 0; choose(); });
  play.addEventListener("click", function () {
    if (timer) { stop(); return; }
    if (+slot.value === D.clock.length - 1) { slot.value = 0; }
    play.textContent = "Pause";
    play.setAttribute("aria-pressed", "true");
    timer = setInterval(function () { if (+slot.value === D.clock.length - 1) { stop(); } else { step(1); } }, 350);
  });
  choose();
})();
