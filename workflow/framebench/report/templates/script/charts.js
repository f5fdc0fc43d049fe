// Draw charts that follow filter and baseline: a line for each row, a dot for each repeat.
const PANELS = 6;
const LINES = 40; // lines per panel at most
const WIDE = 760;
const NARROW = 344;
const LINE = 22;
const ROOM = 360; // pixels for labels, left of the lines of a wide chart
const LETTERS = 46; // characters of a label at most, and on a narrow page
const NARROW_LETTERS = 44;
const NAMED = ["framework", "model", "mode", "compiler"];

// Parse through a template, so that the elements are SVG elements.
const drawing = elementOf("<svg></svg>").namespaceURI;
const drawn = (parent, name, attributes, text = "") => {
  const element = document.createElementNS(drawing, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  parent.append(element);
  return element;
};

const readable = (value) => {
  const digits = Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value) || 1)));
  return value.toFixed(Math.min(digits, 6));
};

const ticksOf = (most) => {
  const rough = most / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((one) => one * power >= rough) * power;
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, at) => at * step);
};

const wordsOf = (table, row, take) =>
  table.data.shown
    .filter((column) => !column.answer && take(column.name))
    .map((column) => [column, valuesOf(column.cells, table.data.rows)[row].split("\t")[0]])
    .filter(([, text]) => text && !/^none\b/.test(text))
    .map(([column, text]) => (/^\d+$/.test(text) ? `${column.title} ${text}` : text));

// Group the lines of a panel under headings: first the settings that most frameworks share.
const linesOf = (table, figure, rows) => {
  const { data } = table;
  const columns = [data.axes.devices, data.axes.precision, data.rest].map((one) => valuesOf(one, data.rows));
  const groups = new Map();
  for (const row of rows) {
    const setting = columns.map((column) => column[row]).join("\t");
    if (!groups.has(setting)) groups.set(setting, []);
    groups.get(setting).push(row);
  }
  const shared = [...groups.values()].sort((a, b) => b.length - a.length);
  const lines = [];
  let room = LINES;
  for (const some of shared) {
    if (!room) break;
    if (some.length > room && lines.length) continue;
    const chosen = some.slice(0, room);
    room -= chosen.length;
    const heading = wordsOf(table, chosen[0], (name) => !NAMED.includes(name)).join(" \u00b7 ");
    if (heading) lines.push({ heading });
    for (const row of chosen) lines.push(lineOf(table, figure, row));
  }
  return lines;
};

const lineOf = (table, figure, row) => {
  const { data } = table;
  const framework = "framework" in data.axes ? valuesOf(data.axes.framework, data.rows)[row] : "";
  const place = valuesOf(data.behind[0].cases, data.rows)[row];
  const said = table.said(figure, row);
  const middle = table.keyOf(figure, row);
  const scale = table.ratios ? middle / table.rawOf(figure)[row] : 1;
  const repeats = place >= 0 ? page.cases.repeats[place] : [];
  return {
    label: wordsOf(table, row, (name) => ["framework", "compiler"].includes(name)).join(" + ") || data.title,
    colour: `var(--series-${(page.series[framework] ?? 7) + 1})`,
    values: middle === null ? [] : repeats.map((value) => value * scale),
    middle,
    said: `${said.text} ${said.small}`.trim(),
  };
};

// Cut long labels at the end.
const fitting = (label, narrow) => {
  const most = narrow ? NARROW_LETTERS : LETTERS;
  return label.length <= most ? label : `${label.slice(0, most - 1).replace(/[ ,]+$/, "")}…`;
};

const strips = (lines, axis, isRatio) => {
  const narrow = innerWidth < 640;
  const width = narrow ? NARROW : WIDE;
  const longest = Math.max(...lines.map((line) => line.label?.length ?? 0));
  const left = narrow ? 12 : Math.min(ROOM, 28 + 8 * longest);
  const right = narrow ? 12 : 84;
  let height = 0;
  for (const line of lines) {
    line.top = height;
    line.at = height + (narrow && !line.heading ? 1.35 : 0.5) * LINE;
    height += (narrow && !line.heading ? 2 : 1) * LINE;
  }
  const values = lines.flatMap((line) => line.values ?? []);
  const most = 1.04 * Math.max(...values, isRatio ? 1 : 0);
  const least = Math.min(...values);
  const logarithmic = !isRatio && most > 40 * least && least > 0;
  const span = width - left - right;
  const x = logarithmic
    ? (value) => left + (span * Math.log(value / (least / 1.3))) / Math.log((most * 1.3) / (least / 1.3))
    : (value) => left + (span * value) / most;
  const svg = document.createElementNS(drawing, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height + 44}`);
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("style", "font-size: 13px");
  const powers = Array.from({ length: 40 }, (_, at) => 10 ** Math.floor((at - 20) / 2) * (at % 2 ? 3 : 1));
  const ticks = logarithmic ? powers.filter((tick) => tick >= least / 1.3 && tick <= most * 1.3) : ticksOf(most);
  for (const tick of ticks) {
    drawn(svg, "line", { x1: x(tick), x2: x(tick), y1: 0, y2: height, stroke: "var(--line)" });
    const style = "fill: var(--muted); font-size: 12px; text-anchor: middle";
    drawn(svg, "text", { x: x(tick), y: height + 17, style }, String(+tick.toPrecision(6)));
  }
  if (isRatio) drawn(svg, "line", { x1: x(1), x2: x(1), y1: 0, y2: height, stroke: "var(--muted)" });
  const words = axis + (logarithmic ? " (logarithmic axis)" : "");
  drawn(svg, "text", { x: left + span / 2, y: height + 38, style: "fill: var(--muted); text-anchor: middle" }, words);
  for (const line of lines) {
    const text = line.top + LINE * 0.5 + 4.5;
    if (line.heading) {
      drawn(svg, "text", { x: 8, y: text, style: "fill: var(--muted); font-weight: bold" }, line.heading);
      continue;
    }
    const shown = drawn(svg, "g", { "data-tip": `${line.label}: ${line.said}${line.values.length > 1
      ? `; repeats ${line.values.map(readable).join(", ")}` : ""}` });
    drawn(shown, "rect", { x: 0, y: line.top, width, height: narrow ? 2 * LINE : LINE, fill: "transparent" });
    const anchor = narrow ? "start" : "end";
    drawn(shown, "text", { x: narrow ? 6 : left - 10, y: text, style: `fill: var(--ink); text-anchor: ${anchor}` }, fitting(line.label, narrow));
    if (line.middle === null) {
      drawn(shown, "text", { x: left + 8, y: line.at + 4.5, style: "fill: var(--muted); font-style: italic" }, line.said);
      continue;
    }
    const style = `stroke: ${line.colour}; fill: ${line.colour}`;
    for (const value of line.values) {
      drawn(shown, "circle", { cx: x(value), cy: line.at, r: 3.2, style: `fill: ${line.colour}; opacity: 0.65` });
    }
    const tick = { x1: x(line.middle), x2: x(line.middle), y1: line.at - 7, y2: line.at + 7 };
    drawn(shown, "line", { ...tick, style: `${style}; stroke-width: 2.4` });
    const end = { x: width - 8, y: text, style: "fill: var(--ink); text-anchor: end" };
    drawn(shown, "text", end, readable(line.middle));
  }
  return svg;
};

const figureOf = (table, figure, title, rows) => {
  const lines = linesOf(table, figure, rows);
  const count = lines.filter((line) => !line.heading).length;
  const units = new Set(rows.map((row) => valuesOf(table.data.units, table.data.rows)[row]));
  const isRatio = Boolean(table.ratios);
  const axis = isRatio ? `throughput, times ${asked.base.value}` : `throughput, ${[...units].join(" or ")}`;
  const left = count < rows.length ? `Left out: ${rows.length - count} of ${rows.length} cases` : "Nothing is left out";
  const made = elementOf(
    `<figure class="wide"><h4>${escaped(title)}</h4><div class="chart" role="img" aria-label="Throughput of ` +
      `${count} cases of ${escaped(title)}. The numbers stand in the table ${escaped(table.data.title)}."></div>` +
      "<figcaption>Each repeat is a dot, the tick and the number are the median. " +
      `${left}. ${escaped(table.place.querySelector("caption")?.textContent ?? "")}</figcaption></figure>`,
  );
  made.querySelector(".chart").append(strips(lines, axis, isRatio));
  return made;
};

const drawCharts = () => {
  for (const place of document.querySelectorAll("[data-draws]")) {
    const table = tables.find((one) => one.data.name === place.dataset.draws);
    const figure = table?.data.shown.find((column) => "raw" in column);
    if (!figure || !table.data.behind) continue;
    const panels = new Map();
    const [models, modes] = ["model", "mode"].map((axis) => valuesOf(table.data.axes[axis], table.data.rows));
    for (const row of table.order) {
      const title = `${models[row]}, ${modes[row] === "train" ? "training" : modes[row]}`;
      if (!panels.has(title)) panels.set(title, []);
      panels.get(title).push(row);
    }
    // Training comes before the other modes of a model.
    const orderOf = ([title]) => title.replace(/, training$/, ", ");
    const shown = [...panels].sort((a, b) => naturally(orderOf(a), orderOf(b))).slice(0, PANELS);
    place.replaceChildren(...shown.map(([title, rows]) => figureOf(table, figure, title, rows)));
    const rest = panels.size - shown.length;
    if (rest) place.append(elementOf(`<p class="left-out">${rest} of ${panels.size} panels are not drawn: filter for them.</p>`));
    if (!shown.length) place.append(elementOf('<p class="left-out">The filter leaves no case to draw.</p>'));
  }
  addDownloads();
};

// Show the values under the pointer.
const stepAt = (shown, x) => {
  const values = shown.dataset.values.split(",");
  const { left, width } = shown.getBoundingClientRect();
  const at = Math.max(0, Math.min(values.length - 1, Math.floor(((x - left) / width) * values.length)));
  const number = Number(shown.dataset.first) + at;
  const ahead = Number(shown.dataset.ahead ?? 0);
  const how = !ahead || number <= 0 ? "" : number > ahead ? ", waited for" : ", with the next under way";
  return `${number > 0 ? "step" : "warm-up step"} ${number}${how}: ${values[at]} ${shown.dataset.unit}`;
};
const tip = elementOf('<div id="tip" hidden></div>');
document.body.append(tip);
document.addEventListener("pointermove", (event) => {
  const shown = event.target.closest?.("[data-tip], [data-values]");
  tip.hidden = !shown;
  if (!shown) return;
  tip.textContent = shown.dataset.tip ?? stepAt(shown, event.clientX);
  const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, room))}px`;
  tip.style.top = `${event.clientY + 14}px`;
});
matchMedia("(max-width: 639.9px)").addEventListener("change", () => drawCharts());
