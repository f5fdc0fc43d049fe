// Draw the whole page, and redraw it after each change of filter or baseline.
readAddress();
const tables = [];
for (const data of page.tables) {
  const place = document.getElementById(`table-${data.name}`);
  if (place && data.rows) tables.push(new Table(data, place));
}

// Filter a static drawing; return how many of its parts are shown.
const showParts = (svg) => {
  const axes = Object.entries(JSON.parse(svg.dataset.parts));
  const isOut = (part) =>
    axes.some(([axis, values]) => values[part] !== null && !isChosen(axis, values[part]));
  let shown = 0;
  for (const one of svg.querySelectorAll("[data-part]")) {
    // An element that several rows share is hidden with the last of them.
    const out = one.dataset.part.split(" ").every(isOut);
    // Not `hidden`: a saved SVG file ignores it.
    if (out) one.setAttribute("display", "none");
    else one.removeAttribute("display");
    shown += !out;
  }
  return shown;
};

// Filter all static drawings by the rows that they show.
const showFigures = () => {
  for (const one of document.querySelectorAll("[data-axes]")) {
    const of = JSON.parse(one.dataset.axes);
    one.hidden = Object.entries(of).some(([axis, value]) => !isChosen(axis, value));
  }
  for (const figure of document.querySelectorAll("figure")) {
    const shown = [...figure.querySelectorAll("[data-parts]")].map(showParts);
    if (shown.length) figure.hidden = !shown.some(Boolean);
  }
  for (const note of document.querySelectorAll(".under-baseline")) note.hidden = !asked.base;
};

// Show the figures of the first screen: as measured, or as ratios to the baseline.
const showAnswers = () => {
  showContests();
  if (asked.chosen.has("framework") || asked.chosen.has("compiler")) return;
  const column = fastest?.shown.find((one) => one.name === "median");
  const ratios = column && ratiosOf(fastest);
  for (const row of document.querySelectorAll("[data-answer]")) {
    const cell = row.querySelector(".figure");
    const flags = cell.querySelector(".why")?.textContent ?? "";
    const figures = ratios && valuesOf(column.raw, fastest.rows);
    if (!ratios || figures[row.dataset.answer] === null) continue;
    const { ratio, why } = ratios(figures, Number(row.dataset.answer));
    cell.innerHTML = why
      ? cellHtml(DASH, why)
      : cellHtml(inTimes(ratio), `\u00f7 ${asked.base.value} ${flags}`.trim());
  }
};

drawAll = () => {
  showAsked();
  showAnswers();
  showFigures();
  for (const table of tables) table.draw();
  drawCharts();
};

const toAnchor = () => {
  const name = decodeURIComponent(location.hash.slice(1));
  tables.some((table) => {
    const isOurs = name.startsWith(`${table.data.name}-`);
    return isOurs && table.reveal(name.slice(table.data.name.length + 1));
  });
};

if (embedded) {
  startBar();
  if (bar.hidden) bar.innerHTML = '<button type="reset"></button><p class="note"></p>';
  drawAll();
  toAnchor();
  window.addEventListener("hashchange", toAnchor);
  window.addEventListener("popstate", () => {
    readAddress();
    drawAll();
  });
}

const anchors = new Map(
  [...document.querySelectorAll("nav a")].map((a) => [a.getAttribute("href").slice(1), a]),
);
const watcher = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      const anchor = anchors.get(entry.target.id);
      if (entry.isIntersecting) anchor?.setAttribute("aria-current", "true");
      else anchor?.removeAttribute("aria-current");
    }
  },
  { rootMargin: "-20% 0px -70% 0px" },
);
for (const section of document.querySelectorAll("section")) watcher.observe(section);
