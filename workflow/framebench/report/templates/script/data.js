// The rows of the page, what the reader asks of them, and the address that says so.
const embedded = document.getElementById("rows");
const page = embedded ? JSON.parse(embedded.textContent) : { axes: [], tables: [], cases: {}, series: {}, lists: [] };
const AXES = page.axes;
// A model has figures of other units than another, a mode of another kind: no ratios of these.
const BASELINES = ["framework", "precision", "devices", "compiler"];
// Columns that have the figure of a case.
const FIGURES = ["throughput_median", "median"];
const DASH = "\u2013";

const decoded = new Map();
// The list of this number, of so many rows: as Python has written it (page_data.py).
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

// What there is to choose from, by axis.
const choices = new Map();
for (const axis of AXES) {
  // Rows that are of a framework alone may be of all of them together.
  const cases = page.tables.filter((table) => Object.keys(table.axes).length > 1);
  const sizes = new Map(cases.map((table) => [table.axes[axis], table.rows]));
  sizes.delete(undefined);
  const found = new Set([...sizes].flatMap(([number, rows]) => [...new Set(valuesOf(number, rows))]));
  found.delete("");
  choices.set(axis, [...found].sort(naturally));
}

// chosen: the values asked for, by axis; none is all. base: {axis, value} or null.
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

// Whether the choice leaves a row.
const testOf = (table) => {
  const tests = [...asked.chosen]
    .filter(([axis]) => axis in table.axes)
    .map(([axis, values]) => [valuesOf(table.axes[axis], table.rows), values]);
  return (row) => tests.every(([values, wanted]) => wanted.has(values[row]));
};

// ---- ratios to a baseline ------------------------------------------------------------------------

// What a row and its baseline have in common.
const likenessOf = (table, axis) => {
  const others = AXES.filter((other) => other !== axis && other in table.axes);
  // Compilers of two frameworks are two: what they share is that there is one.
  const kept = axis === "framework" ? others.filter((other) => other !== "compiler") : others;
  const columns = kept.map((other) => valuesOf(table.axes[other], table.rows));
  columns.push(valuesOf(table.rest, table.rows));
  const ways = valuesOf(table.ways, table.rows);
  if (axis === "framework") columns.push(ways.map((way) => (way === "compiled" ? way : "usual")));
  else if (!("compiler" in table.axes)) columns.push(ways);
  return (row) => columns.map((column) => column[row]).join("\t");
};

// For each row the number of its baseline, or why it has none. Null where the rows have no such
// axis. A table with frameworks across has the baseline of a framework in another column.
const baselinesOf = (table, base) => {
  if (!(base.axis in table.axes)) return null;
  // Tables of the same cases have the same baselines.
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

// Of one figure of a row: {ratio}, or {why} there is none. Null where figures stay as they are.
const ratiosOf = (table) => {
  const base = asked.base;
  if (!base || !("ways" in table)) return null;
  if (table.across === base.axis) {
    const column = table.shown.find((one) => one.name === base.value);
    if (!column) return null;
    return (figures, row) => divided(figures[row], valuesOf(column.raw, table.rows)[row]);
  }
  // Rows that are each of another framework have no baseline among themselves.
  if (!("framework" in table.axes) && "behind" in table) return ratiosOfCases(table);
  const found = baselinesOf(table, base);
  if (!found) return null;
  return (figures, row) =>
    typeof found[row] === "string" ? { why: found[row] } : divided(figures[row], figures[found[row]]);
};

// The same where a row shows the figure of a case: as where the case has a row of its own.
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

// By the number of a case, of those asked for, and its figure: its table, all figures, its row.
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
