"use strict";
/* Tables that sort by a click on a heading, and a field that filters their rows. The page is complete without. */
function cellValue(row, column) {
  const cell = row.cells[column];
  const number = cell.dataset.v;
  return number === undefined ? cell.textContent : Number(number);
}
function sortBy(table, column, descending) {
  const rows = Array.from(table.tBodies[0].rows);
  const sign = descending ? -1 : 1;
  rows.sort((a, b) => {
    const x = cellValue(a, column), y = cellValue(b, column);
    return sign * (typeof x === "number" ? x - y : x.localeCompare(y));
  });
  table.tBodies[0].append(...rows);
}
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    if (!head.textContent) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const numbers = head.classList.contains("figure");
      const descending = head.ariaSort ? head.ariaSort !== "descending" : numbers;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sortBy(table, column, descending);
    });
  });
}
const find = document.getElementById("find");
find.hidden = false;
find.addEventListener("input", () => {
  const wanted = find.value.toLowerCase();
  for (const row of document.querySelectorAll("table.sortable > tbody > tr"))
    row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
});
