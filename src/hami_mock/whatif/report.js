"use strict";
const box = document.querySelector(".search");
if (box) {
  const rows = [...document.querySelectorAll("#refused tbody tr")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const count = document.querySelector("#found");
  const input = box.querySelector("input");
  const search = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    rows.forEach((row, i) => {
      row.hidden = !words.every((word) => texts[i].includes(word));
      found += !row.hidden;
    });
    count.textContent = found === rows.length ? "" : found + " of " + rows.length;
  };
  box.hidden = false;
  input.addEventListener("input", search);
  search();
}
