"use strict";
// A table is sorted by the column whose heading is clicked, or chosen with Tab and Enter; once more turns it round.
// What is not there is always last.
for (const table of document.querySelectorAll("table:has(th button)")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    heading.setAttribute("aria-sort", "none");
    heading.querySelector("button").addEventListener("click", () => {
      const up = heading.getAttribute("aria-sort") !== "ascending";
      headings.forEach((other) => other.setAttribute("aria-sort", "none"));
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort((one, other) => compare(one.cells[column], other.cells[column], up)));
    });
  });
}

function compare(one, other, up) {
  const [first, second] = [one, other].map((cell) => cell.dataset.value);
  if (first !== undefined && second !== undefined) {
    return (first - second) * (up ? 1 : -1);
  }
  if (first !== undefined || second !== undefined) {
    return first === undefined ? 1 : -1;
  }
  return one.textContent.localeCompare(other.textContent, "en", { numeric: true }) * (up ? 1 : -1);
}
