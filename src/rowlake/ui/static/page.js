// The page works without this script. It copies commands, filters the list of tables, fills in
// tables that took long to look at, and follows operations that run.
"use strict";

function copyOnClick(event) {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = button.dataset.copy;
  const said = () => {
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  };
  if (navigator.clipboard) {
    navigator.clipboard.writeText(text).then(said, () => selectBeside(button));
  } else {
    selectBeside(button);
  }
}

function selectBeside(button) {
  const range = document.createRange();
  range.selectNodeContents(button.parentElement.querySelector("code"));
  const selection = getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
}

function filterRows(input) {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of document.querySelectorAll(`#${input.dataset.filter} tr`)) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
}

async function part(address) {
  const answer = await fetch(address, { credentials: "same-origin" });
  if (!answer.ok) return null;
  // A table row parses only inside of a table.
  const text = await answer.text();
  const holder = document.createElement("template");
  holder.innerHTML = text.startsWith("<tr") ? `<table><tbody>${text}</tbody></table>` : text;
  return holder.content.querySelector(text.startsWith("<tr") ? "tr" : "*");
}

async function fillRows() {
  for (const row of document.querySelectorAll("[data-fill]")) {
    const found = await part(row.dataset.fill);
    if (found) row.replaceWith(found);
  }
}

async function follow() {
  const shown = document.querySelector("[data-poll]");
  if (!shown) return;
  const found = await part(shown.dataset.poll).catch(() => null);
  if (found) shown.replaceWith(found);
  setTimeout(follow, 1000);
}

document.addEventListener("click", copyOnClick);
document.addEventListener("input", (event) => {
  if (event.target.dataset.filter) filterRows(event.target);
});
document.addEventListener("change", (event) => {
  if ("submit" in event.target.dataset) event.target.form.submit();
});
document.addEventListener("keydown", (event) => {
  const field = document.querySelector("[data-filter]");
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "/" && field && !typing) {
    event.preventDefault();
    field.focus();
  } else if (event.key === "Escape" && event.target === field) {
    field.value = "";
    filterRows(field);
  }
});
fillRows();
follow();
