// Draw tables from their rows: sorted, with details unfolded, a page at a time.
const FIRST = 25; // rows that a table shows at once
const MORE = 200;

const elementOf = (html) => {
  const template = document.createElement("template");
  template.innerHTML = html.trim();
  return template.content.firstElementChild;
};

// Return a cell, with flags and their meaning, or why the figure is missing.
const cellHtml = (text, small) => {
  if (!small) return escaped(text);
  const words = small.split(" ");
  const meaning = words.filter((word) => word in page.flags).map((word) => `${word}: ${page.flags[word]}`);
  const title = meaning.length ? ` title="${escaped(meaning.join("\n"))}"` : "";
  return `${escaped(text)} <span class="why"${title}>${escaped(small)}</span>`;
};

class Table {
  constructor(data, place) {
    Object.assign(this, { data, place });
    // {column, down}; null keeps the order of the declaration.
    const first = data.shown.find((column) => column.name && column.name === data.order?.name);
    this.sorted = first ? { column: first, down: data.order.down } : null;
    this.limit = FIRST;
    this.open = new Set();
    this.ids = valuesOf(data.ids, data.rows);
    this.grid = place.querySelector("table");
    this.body = this.grid.tBodies[0];
    this.count = elementOf('<p class="count" role="status"></p>');
    this.further = elementOf('<p class="further"><button type="button"></button></p>');
    this.grid.before(this.count);
    this.grid.after(this.further);
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.grid.tHead.addEventListener("click", (event) => {
      const head = event.target.closest("th");
      if (event.target.closest("button")) this.sortBy(head.cellIndex);
    });
    this.further.firstChild.addEventListener("click", () => {
      const next = Math.min(this.limit, this.order.length - 1);
      this.limit += MORE;
      this.draw();
      this.body.querySelectorAll("button.unfold")[next]?.focus();
    });
  }

  // Return the columns that the filter keeps: a table with a column per framework has only the chosen.
  get columns() {
    const across = this.data.across;
    return this.data.shown.filter(
      (column) => !across || !column.answer || isChosen(across, column.name),
    );
  }

  cellOf(column, row) {
    const [text, small = ""] = valuesOf(column.cells, this.data.rows)[row].split("\t");
    return { text, small };
  }

  // Return what cells are compared by, number or text; null for a missing value, which comes last.
  keyOf(column, row) {
    const { text } = this.cellOf(column, row);
    if (column.kind !== "number") return text && text !== DASH ? text : null;
    const [nodes, devices] = text.match(/^(\d+)n(\d+)g$/)?.slice(1).map(Number) ?? [];
    const number = nodes ? nodes * devices + nodes / 1e4 : parseFloat(text);
    return Number.isNaN(number) ? null : number;
  }

  sortBy(place) {
    const column = this.columns[place];
    // The first click sorts numbers downwards and texts upwards.
    const down = this.sorted?.column === column ? !this.sorted.down : column.kind === "number";
    this.sorted = { column, down };
    this.ranking = null;
    this.draw();
    this.grid.tHead.rows[0].cells[place].firstChild.focus(); // the header cells were rebuilt
  }

  // Return all rows in order.
  ranked() {
    if (!this.ranking) {
      const rows = Array.from({ length: this.data.rows }, (_, row) => row);
      this.ranking = this.sorted ? this.sortedRows(rows, this.sorted) : rows;
    }
    return this.ranking;
  }

  sortedRows(rows, { column, down }) {
    const keys = rows.map((row) => this.keyOf(column, row));
    const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : naturally(a, b));
    return rows.sort((first, second) => {
      const [a, b] = [keys[first], keys[second]];
      if (a === null || b === null) return (a === null) - (b === null) || first - second;
      return (down ? compare(b, a) : compare(a, b)) || first - second;
    });
  }

  draw() {
    this.order = this.ranked().filter(testOf(this.data));
    const columns = this.columns;
    const heads = columns.map((column) => {
      const isSorted = this.sorted?.column === column;
      const direction = !isSorted ? "none" : this.sorted.down ? "descending" : "ascending";
      const title = column.meaning ? ` title="${escaped(column.meaning.replaceAll("`", ""))}"` : "";
      return (
        `<th scope="col" class="${column.kind}" aria-sort="${direction}"><button type="button"${title}>` +
        `${escaped(column.title)}</button></th>`
      );
    });
    this.grid.tHead.innerHTML = `<tr>${heads.join("")}</tr>`;
    const shown = this.order.slice(0, this.limit);
    this.body.innerHTML = shown.map((row) => this.rowHtml(columns, row)).join("");
    const all = this.data.rows;
    const rows = `${all} row${all === 1 ? "" : "s"}`;
    const words = [chosen.size ? `${this.order.length} of ${rows}` : rows];
    const ignored = [...chosen.keys()].filter(
      (axis) => !(axis in this.data.axes) && this.data.across !== axis,
    );
    if (ignored.length) words.push(`not filtered by ${ignored.join(", ")}, which its rows do not have`);
    this.count.textContent = words.join("; ");
    const rest = this.order.length - shown.length;
    this.further.hidden = !rest;
    this.further.firstChild.textContent = `Show ${Math.min(rest, MORE)} more of ${rest}`;
  }

  rowHtml(columns, row) {
    const isOpen = this.open.has(row);
    const cells = columns.map((column, place) => {
      const { text, small } = this.cellOf(column, row);
      const look = column.looks?.[text] ?? "";
      const missing = text === DASH ? "missing" : "";
      const kind = `${look || column.kind} ${missing} ${column.answer ? "answer" : "key"}`.trim();
      const unfold = place
        ? ""
        : `<button type="button" class="unfold" aria-expanded="${isOpen}" aria-label="More about ` +
          `${escaped(text)}"><span aria-hidden="true">\u25b8</span></button>`;
      return `<td class="${kind}" data-title="${escaped(column.title)}">${unfold}${cellHtml(text, small)}</td>`;
    });
    const id = escaped(`${this.data.name}-${this.ids[row]}`);
    const more = isOpen ? this.moreHtml(columns, row) : "";
    return `<tr id="${id}" data-row="${row}">${cells.join("")}</tr>${more}`;
  }

  moreHtml(columns, row) {
    const data = this.data;
    const facts = data.unfolded
      .map((column) => [column.title, this.cellOf(column, row)])
      .filter(([, { text, small }]) => text || small)
      .map(([title, { text, small }]) => `<div><dt>${escaped(title)}</dt><dd>${cellHtml(text, small)}</dd></div>`);
    const behind = (data.behind ?? [])
      .map((one) => [valuesOf(one.labels, data.rows)[row], valuesOf(one.cases, data.rows)[row]])
      .filter(([, place]) => place >= 0);
    for (const [label, place] of behind) {
      const links = recordsOf(place).map(
        ([text, href]) =>
          `<a href="${escaped(href)}" aria-label="record of repeat ${escaped(text)}">${escaped(text)}</a>`,
      );
      facts.push(`<div><dt>records ${escaped(label)}</dt><dd>${links.join(" ")}</dd></div>`);
    }
    const commands = behind.map(([label, place]) => commandHtml(label, place)).join("");
    const link =
      '<p class="take"><button type="button" data-copy-link>Copy a link to this row</button>' +
      '<span role="status"></span></p>';
    return (
      `<tr class="more"><td colspan="${columns.length}"><dl class="facts">${facts.join("")}</dl>` +
      `${commands}${link}</td></tr>`
    );
  }

  clicked(event) {
    const row = event.target.closest("tr");
    if (event.target.closest("button.unfold")) return this.unfold(row);
    const copy = event.target.closest("[data-copy]");
    if (copy) return copied(copy.parentElement.querySelector("code").textContent, copy);
    const link = event.target.closest("[data-copy-link]");
    if (link) copied(`${location.href.split("#")[0]}#${row.previousElementSibling.id}`, link);
  }

  unfold(line) {
    const row = Number(line.dataset.row);
    const isOpen = !this.open.delete(row);
    if (isOpen) this.open.add(row);
    line.querySelector("button.unfold").setAttribute("aria-expanded", String(isOpen));
    if (isOpen) line.insertAdjacentHTML("afterend", this.moreHtml(this.columns, row));
    else line.nextElementSibling.remove();
  }

  // Show and unfold the row of this name.
  reveal(name) {
    const row = this.ids.indexOf(name);
    const place = this.order.indexOf(row);
    if (place < 0) return;
    this.limit = Math.max(this.limit, place + 1);
    this.open.add(row);
    this.draw();
    document.getElementById(`${this.data.name}-${name}`).scrollIntoView({ block: "center" });
  }
}

const ofCase = (number, place) => valuesOf(number, page.cases.count)[place];

// Return text and address of each link.
const recordsOf = (place) => {
  const parts = ofCase(page.cases.records, place).split("\t");
  return parts.flatMap((text, at) => (at % 2 ? [] : [[text, parts[at + 1]]]));
};

// Return the command of the first repeat, with a button that copies it.
const commandHtml = (label, place) => {
  const command = ofCase(page.cases.commands, place);
  if (!command) return "";
  return (
    `<p class="take"><button type="button" data-copy>Copy the command of this run${label ? ` (${escaped(label)})` : ""}` +
    `</button><span role="status"></span> <code>${escaped(command)}</code></p>`
  );
};

// Say after the button whether copying worked; without a clipboard, show the text for selection.
const copied = async (text, button) => {
  const answer = button.parentElement.querySelector("[role=status]");
  try {
    await navigator.clipboard.writeText(text);
    answer.textContent = " copied";
  } catch {
    answer.textContent = ` the browser refuses; copy it yourself: ${text}`;
  }
};
