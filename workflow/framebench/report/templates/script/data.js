// Rows of the page, the chosen filter and baseline, and the address that stores them.
const embedded = document.getElementById("rows");
const page = embedded ? JSON.parse(embedded.textContent) : { axes: [], tables: [], cases: {}, series: {}, lists: [] };
const AXES = page.axes;
// Figures of different models or modes have different units: no ratios between them.
const BASELINES = ["framework", "precision", "devices", "compiler"];
// Columns with the figure of a case.
const FIGURES = ["throughput_median", "median"];
const DASH = "\u2013";

const decoded = new Map();
// Decode a list of rows, as page_data.py encodes it.
const valuesOf = (number, count) => {
  if (!decoded.has(number)) {
    const written = page.lists[number];
    const plain = () =>
      "same" in written ? new Array(count).fill(written.same) : written.at.map((at) => written.of[at]);
    decoded.set(number, Array.isArray(written) ? written : plain());
  }
  return decoded.get(number);
};

const escaped = (text) =>
  String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

const naturally = new Intl.Collator("en", { numeric: true }).compare;

// Return the values to choose from, by axis.
const choices = new Map();
for (const axis of AXES) {
  // Rows of a table may belong to all frameworks together.
  const cases = page.tables.filter((table) => Object.keys(table.axes).length > 1);
  const sizes = new Map(cases.map((table) => [table.axes[axis], table.rows]));
  sizes.delete(undefined);
  const found = new Set([...sizes].flatMap(([number, rows]) => [...new Set(valuesOf(number, rows))]));
  found.delete("");
  choices.set(axis, [...found].sort(naturally));
}

// chosen: chosen values by axis; an empty list means all. base: {axis, value} or null.
const asked = { chosen: new Map(), base: null };

const readAddress = () => {
  const given = new URLSearchParams(location.search);
  asked.chosen.clear();
  for (const axis of AXES) {
    const known = given.getAll(axis).filter((value) => choices.get(axis).includes(value));
    if (known.length) asked.chosen.set(axis, new Set(known));
  }
  const [axis, ...value] = (given.get("base") ?? "").split(":");
  const there = BASELINES.includes(axis) && choices.get(axis)?.includes(value.join(":"));
  asked.base = there ? { axis, value: value.join(":") } : null;
};

const queryOf = () => {
  const query = new URLSearchParams();
  for (const [axis, values] of asked.chosen) for (const value of values) query.append(axis, value);
  if (asked.base) query.append("base", `${asked.base.axis}:${asked.base.value}`);
  return query.toString();
};

const writeAddress = () => {
  const query = queryOf();
  history.replaceState(null, "", `${location.pathname}${query && `?${query}`}${location.hash}`);
};

const isChosen = (axis, value) => asked.chosen.get(axis)?.has(value) ?? true;

// Return a function that says whether the filter keeps a row.
const testOf = (table) => {
  const tests = [...asked.chosen]
    .filter(([axis]) => axis in table.axes)
    .map(([axis, values]) => [valuesOf(table.axes[axis], table.rows), values]);
  return (row) => tests.every(([values, wanted]) => wanted.has(values[row]));
};

// ---- ratios to a baseline ------------------------------------------------------------------------

// Return a function for the key that a row shares with its baseline.
const likenessOf = (table, axis) => {
  const others = AXES.filter((other) => other !== axis && other in table.axes);
  // Compilers differ between frameworks: compare only whether there is one.
  const kept = axis === "framework" ? others.filter((other) => other !== "compiler") : others;
  const columns = kept.map((other) => valuesOf(table.axes[other], table.rows));
  columns.push(valuesOf(table.rest, table.rows));
  const ways = valuesOf(table.ways, table.rows);
  if (axis === "framework") columns.push(ways.map((way) => (way === "compiled" ? way : "default")));
  else if (!("compiler" in table.axes)) columns.push(ways);
  return (row) => columns.map((column) => column[row]).join("\t");
};

// Return for each row the number of its baseline, or why it has none; null for rows without this
// axis. In a table with a column per framework, a framework's baseline is in another column.
const baselinesOf = (table, base) => {
  if (!(base.axis in table.axes)) return null;
  // Tables of the same cases share their baselines.
  const cases = JSON.stringify([table.axes, table.rest, table.ways, base]);
  if (!matched.has(cases)) matched.set(cases, matchedRows(table, base));
  return matched.get(cases);
};

const matched = new Map();

const matchedRows = (table, base) => {
  const of = valuesOf(table.axes[base.axis], table.rows);
  const ways = valuesOf(table.ways, table.rows);
  const compilers = "compiler" in table.axes && valuesOf(table.axes.compiler, table.rows);
  const alike = likenessOf(table, base.axis);
  const keys = Array.from({ length: table.rows }, (_, row) => alike(row));
  const candidates = new Map();
  for (let row = 0; row < table.rows; row++) {
    if (of[row] !== base.value) continue;
    if (base.axis === "framework" && ways[row] === "untypical") continue;
    const key = keys[row];
    if (!candidates.has(key)) candidates.set(key, []);
    candidates.get(key).push(row);
  }
  return Array.from({ length: table.rows }, (_, row) => {
    const some = candidates.get(keys[row]) ?? [];
    if (some.length === 1) return some[0];
    const same = some.filter((other) => compilers && compilers[other] === compilers[row]);
    if (same.length === 1) return same[0];
    return some.length ? "several baselines" : "no baseline";
  });
};

// Return a function for {ratio} of a figure, or {why} it has none; null: show figures as measured.
const ratiosOf = (table) => {
  const base = asked.base;
  if (!base || !("ways" in table)) return null;
  if (table.across === base.axis) {
    const column = table.shown.find((one) => one.name === base.value);
    if (!column) return null;
    return (figures, row) => divided(figures[row], valuesOf(column.raw, table.rows)[row]);
  }
  // Rows with one framework each have no baseline among themselves.
  if (!("framework" in table.axes) && "behind" in table) return ratiosOfCases(table);
  const found = baselinesOf(table, base);
  if (!found) return null;
  return (figures, row) =>
    typeof found[row] === "string" ? { why: found[row] } : divided(figures[row], figures[found[row]]);
};

// Return this function for rows that show the figure of a case.
const ratiosOfCases = (table) => {
  const cases = valuesOf(table.behind[0].cases, table.rows);
  const own = ownRows(table.name, new Set(cases));
  const ratios = new Map();
  return (figures, row) => {
    const found = own.get(`${cases[row]} ${figures[row]}`);
    if (!found) return { why: "no baseline" };
    if (!ratios.has(found.table)) ratios.set(found.table, ratiosOf(found.table));
    return ratios.get(found.table)(found.figures, found.row);
  };
};

// Return table, figures and row of a case's figure, by the number of the case.
const ownRows = (name, cases) => {
  if (owned.has(name)) return owned.get(name);
  const found = new Map();
  for (const table of page.tables) {
    const column = table.shown.find((one) => FIGURES.includes(one.name) && "raw" in one);
    if (!column || !("behind" in table) || !("framework" in table.axes)) continue;
    const figures = valuesOf(column.raw, table.rows);
    valuesOf(table.behind[0].cases, table.rows).forEach((number, row) => {
      const key = cases.has(number) && `${number} ${figures[row]}`;
      if (key && !found.has(key)) found.set(key, { table, figures, row });
    });
  }
  owned.set(name, found);
  return found;
};

const owned = new Map();

const divided = (value, base) =>
  value === null || !(base > 0) ? { why: "no baseline" } : { ratio: value / base };

const inTimes = (ratio) => `${ratio < 0.1 ? ratio.toPrecision(2) : ratio.toFixed(2)}\u00d7`;
