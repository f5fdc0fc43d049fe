// Rows of the page, the chosen filter, and the address that stores it.
const page = JSON.parse(document.getElementById("rows").textContent);
const AXES = page.axes;
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

// Chosen values by axis; an axis that is not there means all.
const chosen = new Map();

const readAddress = () => {
  const given = new URLSearchParams(location.search);
  chosen.clear();
  for (const axis of AXES) {
    const known = given.getAll(axis).filter((value) => choices.get(axis).includes(value));
    if (known.length) chosen.set(axis, new Set(known));
  }
};

const writeAddress = () => {
  const query = new URLSearchParams();
  for (const [axis, values] of chosen) for (const value of values) query.append(axis, value);
  history.replaceState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}${location.hash}`);
};

const isChosen = (axis, value) => chosen.get(axis)?.has(value) ?? true;

// Return a function that says whether the filter keeps a row.
const testOf = (table) => {
  const tests = [...chosen]
    .filter(([axis]) => axis in table.axes)
    .map(([axis, values]) => [valuesOf(table.axes[axis], table.rows), values]);
  return (row) => tests.every(([values, wanted]) => wanted.has(values[row]));
};
