// Filter of the whole page; charts that follow it, show their values and can be saved; links to rows.
const bar = document.getElementById("ask");

const pickHtml = (axis) => {
  const boxes = choices.get(axis).map(
    (value) =>
      `<label><input type="checkbox" name="${axis}" value="${escaped(value)}"> ${escaped(value)}</label>`,
  );
  return (
    `<details class="pick" data-axis="${axis}"><summary></summary>` +
    `<fieldset><legend>${axis}</legend>${boxes.join("")}</fieldset></details>`
  );
};

const showChosen = () => {
  for (const pick of bar.querySelectorAll(".pick")) {
    const values = chosen.get(pick.dataset.axis);
    const words = !values ? "all" : values.size > 1 ? `${values.size} chosen` : [...values][0];
    pick.querySelector("summary").innerHTML = `${pick.dataset.axis} <b>${escaped(words)}</b>`;
    pick.classList.toggle("chosen", Boolean(values));
    for (const box of pick.querySelectorAll("input")) box.checked = values?.has(box.value) ?? false;
  }
  bar.querySelector("[type=reset]").hidden = !chosen.size;
};

const startBar = () => {
  const axes = AXES.filter((axis) => choices.get(axis).length > 1);
  const button = document.getElementById("filter");
  const unfold = (isOpen) => {
    bar.hidden = !isOpen;
    button.setAttribute("aria-expanded", String(isOpen));
  };
  button.hidden = !axes.length;
  button.addEventListener("click", () => unfold(bar.hidden));
  unfold(chosen.size > 0);
  bar.innerHTML = `${axes.map(pickHtml).join("")}<button type="reset">Reset</button>`;
  bar.addEventListener("change", ({ target: { name } }) => {
    const boxes = [...bar.querySelectorAll(`input[name="${name}"]:checked`)];
    if (boxes.length) chosen.set(name, new Set(boxes.map((box) => box.value)));
    else chosen.delete(name);
    writeAddress();
    drawAll();
  });
  bar.addEventListener("reset", (event) => {
    event.preventDefault();
    chosen.clear();
    writeAddress();
    drawAll();
    bar.querySelector("summary").focus();
  });
  bar.addEventListener("submit", (event) => event.preventDefault());
  // Only one list is open at a time; Escape closes it.
  const close = (but) => {
    for (const pick of bar.querySelectorAll(".pick[open]")) if (pick !== but) pick.open = false;
  };
  bar.addEventListener("toggle", (event) => event.target.open && close(event.target), true);
  bar.addEventListener("keydown", (event) => {
    const pick = event.target.closest(".pick[open]");
    if (event.key !== "Escape" || !pick) return;
    close();
    pick.querySelector("summary").focus();
  });
  document.addEventListener("click", (event) => close(event.target.closest(".pick")));
};

// ---- what the filter leaves ----------------------------------------------------------------------

const parsed = new WeakMap();
const isLeft = (element) => {
  if (!parsed.has(element)) parsed.set(element, JSON.parse(element.dataset.axes));
  const axes = parsed.get(element);
  return [...chosen].every(([axis, values]) => !(axis in axes) || values.has(axes[axis]));
};

// Filter the answers: settings, and the frameworks in them.
const showSettings = () => {
  const settings = [...document.querySelectorAll(".setting")];
  for (const setting of settings) {
    const bars = [...setting.querySelectorAll("[data-axes]")];
    for (const one of bars) one.hidden = !isLeft(one);
    setting.hidden = !isLeft(setting) || (bars.length > 0 && bars.every((one) => one.hidden));
  }
  for (const rest of document.querySelectorAll(".rest")) rest.hidden = !rest.querySelector(".setting:not([hidden])");
  const note = document.getElementById("filtered");
  if (!note) return;
  note.hidden = !chosen.size;
  const count = settings.filter((one) => !one.hidden).length;
  note.textContent = `The filter leaves ${count} of ${settings.length} settings. Sentence and verdicts are about all frameworks.`;
};

// Filter a drawing; return how many of its parts are shown.
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

const showFigures = () => {
  for (const figure of document.querySelectorAll("figure")) {
    const shown = [...figure.querySelectorAll("[data-parts]")].map(showParts);
    const isOut = shown.length > 0 && !shown.some(Boolean);
    figure.hidden = isOut || ("axes" in figure.dataset && !isLeft(figure));
  }
};

// ---- charts --------------------------------------------------------------------------------------

const tip = elementOf('<div id="tip" hidden></div>');
document.body.append(tip);
document.addEventListener("pointermove", (event) => {
  const shown = event.target.closest?.("[data-tip]");
  tip.hidden = !shown;
  if (!shown) return;
  tip.textContent = shown.dataset.tip;
  const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, room))}px`;
  tip.style.top = `${event.clientY + 14}px`;
});

// Save a drawing as a file of its own, with the colours of the page.
const saveFigure = (figure) => {
  const svg = figure.querySelector("svg");
  const copy = svg.cloneNode(true);
  for (const unseen of copy.querySelectorAll("[pointer-events]")) unseen.remove();
  const style = getComputedStyle(document.documentElement);
  copy.setAttribute("font-family", "DejaVu Sans, Noto Sans, Roboto, sans-serif");
  copy.setAttribute("style", "background: var(--bg)");
  const text = new XMLSerializer()
    .serializeToString(copy)
    .replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  const title = figure.querySelector("h3, h4").textContent;
  link.download = `${title.toLowerCase().replace(/[^a-z0-9.]+/g, "-").replace(/^-|-$/g, "")}.svg`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
};

for (const figure of document.querySelectorAll("figure")) {
  const title = escaped(figure.querySelector("h3, h4").textContent);
  const button = elementOf(`<button type="button" class="save" aria-label="Save ${title} as SVG">SVG</button>`);
  button.addEventListener("click", () => saveFigure(figure));
  figure.append(button);
}

// ---- page ----------------------------------------------------------------------------------------

const tables = page.tables.flatMap((data) => {
  const place = document.getElementById(`table-${data.name}`);
  return place && data.rows ? [new Table(data, place)] : [];
});

// Draw tables that can be seen; others when their part is unfolded.
const drawTable = (table) => {
  const part = table.place.closest("details");
  table.isStale = Boolean(part && !part.open);
  if (!table.isStale) table.draw();
};
const drawAll = () => {
  showChosen();
  showSettings();
  showFigures();
  tables.forEach(drawTable);
};
document.addEventListener("toggle", (event) => {
  for (const table of tables) if (table.isStale && event.target.contains(table.place)) drawTable(table);
}, true);

// Unfold what the address names: a part, or a row.
const toAnchor = () => {
  const name = decodeURIComponent(location.hash.slice(1));
  const table = tables.find((one) => name.startsWith(`${one.data.name}-`));
  const part = table ? table.place.closest("details") : document.getElementById(name)?.closest("details");
  if (part) part.open = true;
  if (!table) return part?.scrollIntoView();
  table.draw();
  table.reveal(name.slice(table.data.name.length + 1));
};

readAddress();
startBar();
drawAll();
toAnchor();
window.addEventListener("hashchange", toAnchor);
window.addEventListener("popstate", () => {
  readAddress();
  drawAll();
});
