"use strict";
(() => {
  const held = document.getElementById("planner-data");
  if (!held) return;
  const data = JSON.parse(held.textContent);
  const at = (name) => document.getElementById("planner-" + name);

  // Numbers as bayescale/report/words.py writes them.
  const number = (value, significant = 3) => {
    if (!Number.isFinite(value)) return Number.isNaN(value) ? "-" : String(value);
    if (value === 0) return "0";
    const [mantissa, exponent] = value.toExponential(significant - 1).split("e");
    const rounded = Number(mantissa + "e" + exponent), size = Math.abs(rounded);
    if (size >= 1e-4 && size < 1e6) {
      const [whole, part] = rounded.toFixed(Math.max(0, significant - 1 - Number(exponent))).split(".");
      return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? "." + part : "");
    }
    return (mantissa.includes(".") ? mantissa.replace(/0+$/, "").replace(/\.$/, "") : mantissa) + "e" + Number(exponent);
  };
  const count = (value, significant = 3) => {
    if (!Number.isFinite(value)) return number(value, significant);
    const rounded = Number(value.toExponential(significant - 1));
    if (Math.abs(rounded) >= 1e15) return number(rounded, significant);
    for (const [size, name] of [[1e12, " T"], [1e9, " B"], [1e6, " M"], [1e3, " K"]])
      if (Math.abs(rounded) >= size) return number(rounded / size, significant) + name;
    return number(rounded, significant);
  };
  const digits = ([median, lower, upper]) => {
    const width = upper - lower, size = Math.max(Math.abs(lower), Math.abs(median), Math.abs(upper));
    if (!Number.isFinite(width)) return 3;
    if (width <= 0 || size === 0) return 5;
    return Math.min(5, Math.max(3, Math.floor(Math.log10(size)) - Math.floor(Math.log10(width / 4)) + 1));
  };
  const interval = (ends, write = number) => {
    const [median, lower, upper] = ends.map((end) => write(end, digits(ends)));
    return `${median} [${lower}, ${upper}]`;
  };

  // Draws: numbers of single precision, lowest byte first.
  const unpacked = (text) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0)), view = new DataView(bytes.buffer);
    return Float64Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
  };
  const groups = data.groups.map((g) => ({
    ...g, tokens: unpacked(g.tokens), loss: unpacked(g.loss), lowest: unpacked(g.lowest), best: unpacked(g.best),
  }));

  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
  const quantile = (sorted, p) => {
    const place = p * (sorted.length - 1), low = Math.floor(place), high = Math.min(low + 1, sorted.length - 1);
    return sorted[low] + (place - low) * (sorted[high] - sorted[low]);
  };
  const ends = (values) => {
    const sorted = Float64Array.from(values).sort();
    return [0.5, (1 - data.level) / 2, (1 + data.level) / 2].map((p) => quantile(sorted, p));
  };
  // Mean of the worst draws, a draw on the edge by its part (Rockafellar & Uryasev 2000).
  const risk = (values, tail) => {
    const worst = tail * values.length, whole = Math.min(Math.floor(worst + 1e-9), values.length);
    if (whole === values.length) return mean(values);
    const sorted = Float64Array.from(values).sort();
    const sum = sorted.subarray(sorted.length - whole).reduce((a, b) => a + b, 0);
    return (sum + (worst - whole) * sorted[sorted.length - whole - 1]) / worst;
  };

  const curve = (g, k, m) => g.loss.subarray((k * g.sizes + m) * g.draws, (k * g.sizes + m + 1) * g.draws);
  // Weights of a parabola through three neighbours, the middle one m, at a place counted in steps.
  const around = (g, place) => {
    const m = Math.min(Math.max(Math.round(place), 1), g.sizes - 2), t = place - m;
    return [[m - 1, t * (t - 1) / 2], [m, 1 - t * t], [m + 1, t * (t + 1) / 2]];
  };
  const chosen = (g, k, tail) => {
    const risks = Array.from({ length: g.sizes }, (_, m) => risk(curve(g, k, m), tail));
    const m = risks.reduce((best, r, i) => (r < risks[best] ? i : best), 0);
    if (m === 0 || m === g.sizes - 1) return m;
    const [a, b, c] = [risks[m - 1], risks[m], risks[m + 1]], bend = a - 2 * b + c;
    return bend > 0 ? m + (a - c) / (2 * bend) : m;
  };
  const read = (text) => {
    const found = /^([\d.]+(?:e\d+)?)\s*([kmbt]?)$/i.exec(text.trim().replaceAll(",", ""));
    return found ? Number(found[1]) * { "": 1, k: 1e3, m: 1e6, b: 1e9, t: 1e12 }[found[2].toLowerCase()] : NaN;
  };
  const wanted = (g, k) => {
    const text = at("size").value;
    at("wrong").textContent = "";
    if (!text.trim()) return chosen(g, k, Number(at("risk").value));
    const place = (Math.log(read(text)) - g.low[k]) / g.step[k];
    if (place >= 0 && place <= g.sizes - 1) return place;
    const least = Math.exp(g.low[k]), most = Math.exp(g.low[k] + (g.sizes - 1) * g.step[k]);
    at("wrong").textContent =
      `A size at this budget is a number from ${count(least)} to ${count(most)}, as 7B; shown is the best one.`;
    return chosen(g, k, Number(at("risk").value));
  };

  const update = () => {
    const g = groups[at("group") ? Number(at("group").value) : 0], slider = at("budget");
    slider.max = g.budgets.length - 1;
    const k = Number(slider.value), place = wanted(g, k), near = around(g, place);
    const draws = Array.from({ length: g.draws }, (_, s) => s), one = (values, s) => values[k * g.draws + s];
    const loss = draws.map((s) => near.reduce((sum, [m, w]) => sum + w * curve(g, k, m)[s], 0));
    const regret = loss.map((value, s) => Math.max(0, value - one(g.lowest, s)));
    const n = Math.exp(g.low[k] + place * g.step[k]);
    const d = Math.exp(near.reduce((sum, [m, w]) => sum + w * g.tokens[k * g.sizes + m], 0));
    const factor = g.budgets[k] / data.largest;
    at("flop").textContent = number(g.budgets[k]) + " FLOP";
    slider.setAttribute("aria-valuetext", number(g.budgets[k]) + " FLOP");
    at("n").textContent = count(n);
    at("d").textContent = count(d);
    at("ratio").textContent = number(d / n);
    at("loss").textContent = `${interval(ends(loss))} ${data.unit}`;
    at("regret").textContent = `${number(mean(regret))} on average, ${interval(ends(regret))} ${data.unit}`;
    at("best").textContent = interval(ends(draws.map((s) => Math.exp(one(g.best, s)))), count);
    at("factor").textContent = factor <= 1 ? "inside the data" : `${number(factor)} times: extrapolation`;
    draw(g, k, place);
  };

  const box = { left: 70, right: 405, top: 12, bottom: 185 };
  const put = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    at("curve").append(made);
  };
  const draw = (g, k, place) => {
    at("curve").replaceChildren();
    const given = Array.from({ length: g.sizes }, (_, m) =>
      Float64Array.from(curve(g, k, m), (value, s) => Math.max(0, value - g.lowest[k * g.draws + s])).sort());
    const lines = [given.map(mean), given.map((sorted) => quantile(sorted, (1 + data.level) / 2))];
    const top = Math.min(Math.max(...lines[0]), 4 * Math.max(lines[1][Math.round(place)], 1e-6));
    const x = (m) => box.left + (box.right - box.left) * m / (g.sizes - 1);
    const y = (value) => box.bottom - (box.bottom - box.top) * Math.min(value / top, 1);
    lines.forEach((line, i) => put("polyline", {
      points: line.map((value, m) => `${x(m).toFixed(1)},${y(value).toFixed(1)}`).join(" "),
      class: i ? "upper" : "average",
    }));
    put("line", { x1: x(place), x2: x(place), y1: box.top, y2: box.bottom, class: "chosen" });
    put("path", { d: `M${box.left},${box.top}V${box.bottom}H${box.right}`, class: "axes" });
    for (const share of [0, 0.5, 1])
      put("text", { x: box.left - 6, y: y(share * top) + 4, "text-anchor": "end" }, number(share * top, 2));
    for (const m of [0, (g.sizes - 1) / 2, g.sizes - 1])
      put("text", { x: x(m), y: box.bottom + 18, "text-anchor": m ? (m < g.sizes - 1 ? "middle" : "end") : "start" },
        count(Math.exp(g.low[k] + m * g.step[k])));
    put("text", { x: (box.left + box.right) / 2, y: 223, "text-anchor": "middle" }, "N (parameters)");
  };

  at("budget").max = groups[0].budgets.length - 1;
  at("budget").value = groups[0].start;
  const form = document.getElementById("planner");
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = at("found").hidden = false;
  update();
})();
