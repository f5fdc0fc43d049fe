// Bar to choose the filter and the baseline of all tables and charts.
const bar = document.getElementById("ask");
let drawAll = () => {};

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

const baselineHtml = () => {
  const groups = BASELINES.filter((axis) => choices.get(axis).length > 1).map((axis) => {
    const options = choices.get(axis).map(
      (value) => `<option value="${axis}:${escaped(value)}">${escaped(value)}</option>`,
    );
    return `<optgroup label="${axis}">${options.join("")}</optgroup>`;
  });
  return groups.length
    ? `<label class="base">Baseline <select name="base"><option value="">none</option>${groups.join("")}</select></label>`
    : "";
};

const showAsked = () => {
  for (const pick of bar.querySelectorAll(".pick")) {
    const values = asked.chosen.get(pick.dataset.axis);
    const words = !values ? "all" : values.size > 1 ? `${values.size} chosen` : [...values][0];
    pick.querySelector("summary").innerHTML =
      `${pick.dataset.axis} <b>${escaped(words)}</b>`;
    pick.classList.toggle("chosen", Boolean(values));
    for (const box of pick.querySelectorAll("input")) box.checked = values?.has(box.value) ?? false;
  }
  const select = bar.querySelector("select");
  if (select) select.value = asked.base ? `${asked.base.axis}:${asked.base.value}` : "";
  bar.querySelector("[type=reset]").hidden = !asked.chosen.size && !asked.base;
  const note = bar.querySelector(".note");
  note.hidden = !asked.base;
  note.textContent = asked.base
    ? `Figures are divided by those of ${asked.base.value}, everything else equal. A ratio has no ` +
      "interval here: what is shown by the repeats stands in the tables of speed-ups and leads."
    : "";
};

const startBar = () => {
  const axes = AXES.filter((axis) => choices.get(axis).length > 1);
  if (!axes.length) return;
  bar.innerHTML =
    axes.map(pickHtml).join("") + baselineHtml() +
    '<button type="reset">Reset</button><p class="note" role="status"></p>';
  bar.hidden = false;
  bar.addEventListener("change", (event) => {
    const { name, value } = event.target;
    if (name === "base") {
      const [axis, ...rest] = value.split(":");
      asked.base = value ? { axis, value: rest.join(":") } : null;
    } else {
      const boxes = [...bar.querySelectorAll(`input[name="${name}"]:checked`)];
      if (boxes.length) asked.chosen.set(name, new Set(boxes.map((box) => box.value)));
      else asked.chosen.delete(name);
    }
    writeAddress();
    drawAll();
  });
  bar.addEventListener("reset", (event) => {
    event.preventDefault();
    asked.chosen.clear();
    asked.base = null;
    writeAddress();
    drawAll();
    bar.querySelector("summary").focus();
  });
  bar.addEventListener("submit", (event) => event.preventDefault());
  // Only one list is open at a time; Escape closes it.
  bar.addEventListener("toggle", (event) => {
    if (!event.target.open) return;
    for (const other of bar.querySelectorAll(".pick[open]")) if (other !== event.target) other.open = false;
  }, true);
  const close = (pick) => {
    pick.open = false;
  };
  bar.addEventListener("keydown", (event) => {
    const pick = event.target.closest(".pick[open]");
    if (event.key !== "Escape" || !pick) return;
    close(pick);
    pick.querySelector("summary").focus();
  });
  document.addEventListener("click", (event) => {
    for (const pick of bar.querySelectorAll(".pick[open]")) if (!pick.contains(event.target)) close(pick);
  });
};
