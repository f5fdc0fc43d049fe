"use strict";
(() => {
  // A cell sorts by data-sort, else by its text; "" (no number) comes last in either direction.
  const keyOf = (row, column, numeric) => {
    const cell = row.cells[column];
    const text = cell.dataset.sort ?? cell.textContent.trim();
    return numeric ? (text === "" ? null : Number(text)) : text || null;
  };

  const sort = (table, column, direction, numeric) => {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row, place) => [keyOf(row, column, numeric), place, row]);
    const words = new Intl.Collator("en", { numeric: true });
    rows.sort(([a, first], [b, second]) => {
      if (a === null || b === null) return (a === null) - (b === null) || first - second;
      return direction * (numeric ? a - b : words.compare(a, b)) || first - second;
    });
    body.append(...rows.map(([, , row]) => row));
  };

  for (const table of document.querySelectorAll("table[data-sortable]")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      if ("fixed" in head.dataset) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of heads) if (other.ariaSort) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        sort(table, column, up ? 1 : -1, head.classList.contains("number"));
      });
    });

    const tools = table.closest(".table")?.querySelector(".tools");
    if (!tools) continue;
    tools.hidden = false;
    const rows = [...table.tBodies[0].rows];
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const count = tools.querySelector(".count");
    const all = count.textContent;
    const input = tools.querySelector("input");
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, place) => {
        row.hidden = !wanted.every((word) => texts[place].includes(word));
        shown += !row.hidden;
      });
      count.textContent = wanted.length ? `${shown} of ${all}` : all;
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
})();
