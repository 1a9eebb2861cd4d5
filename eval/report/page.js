// Sorting, filtering, and everything open in print. The page is complete without it.
const valueOf = (row, column) => {
  const text = row.cells[column].textContent;
  const number = parseFloat(text);
  return Number.isNaN(number) ? text : number;
};
const compare = (a, b) => {
  if (a === "–") return 1;
  if (b === "–") return -1;
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === "number" ? -1 : 1;
};
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      const undefinedLast = (x, y) => {
        const [a, b] = [valueOf(x, column), valueOf(y, column)];
        return a === "–" || b === "–" ? compare(a, b) : (down ? -1 : 1) * compare(a, b);
      };
      table.tBodies[0].append(...rows.sort(undefinedLast));
    });
  });
}
const filter = document.getElementById("filter");
filter.parentElement.hidden = false;
filter.addEventListener("input", () => {
  const wanted = filter.value.toLowerCase();
  for (const row of document.querySelectorAll("main > section > .scroll tbody tr")) {
    row.hidden = !row.textContent.toLowerCase().includes(wanted);
  }
});
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details.pair")) details.open = true;
});
