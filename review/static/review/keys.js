// Keys move, open, show and copy. No key approves, resolves, sends or signs: a key may press a
// link, open a fold or move the focus, and nothing else.
"use strict";

const GO_WAIT_MS = 1500;
const ROWS = "[data-row], .rows > tbody > tr:not(.slip)";
const TYPED_IN = "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]";
let goUntil = 0;

const rows = () => all(ROWS).filter(seen);
const rowHere = () => document.activeElement.closest(ROWS);
const wayIn = (row) => one("[data-open]", row) ?? one("a[href]", row) ?? one("summary, button[type=button]", row);

function step(by) {
  const found = rows();
  const here = found.indexOf(rowHere());
  const next = here < 0 ? (by > 0 ? 0 : found.length - 1) : here + by;
  const target = found[next] && wayIn(found[next]);
  if (!target) return;
  target.focus();
  found[next].scrollIntoView({ block: "nearest" });
}

// The only two ways in which a key touches the page.
function reach(element) {
  if (!element) return;
  if (element.matches("a[href]")) return element.click();
  if (element.matches("summary")) {
    element.parentElement.open = true;
    const field = one("textarea, input:not([type=hidden]), select", element.parentElement);
    return (field ?? element).focus();
  }
  if (!element.matches("a, button, input, textarea, select, summary, [tabindex]")) element.tabIndex = -1;
  element.focus();
  element.scrollIntoView({ block: "start" });
}

const marked = (key) => all(`[data-key="${CSS.escape(key)}"]`).find(seen);

function leave() {
  const fold = document.activeElement.closest("details[open]");
  const typed = fold && all("textarea, input:not([type=hidden])", fold).some((field) => field.value !== field.defaultValue);
  if (fold && !typed) {
    fold.open = false;
    one("summary", fold).focus();
  } else if (document.activeElement.matches(TYPED_IN)) {
    document.activeElement.blur();
  } else {
    reach(marked("Escape"));
  }
}

const KEYS = {
  "?": () => one("#keys").showModal(),
  "/": () => one("#q")?.focus(),
  g: () => { goUntil = performance.now() + GO_WAIT_MS; },
  j: () => step(1),
  k: () => step(-1),
  x: () => rowHere() && one("[data-tick]", rowHere())?.click(),
  y: () => (rowHere() && one("[data-copy]", rowHere()) || all("main [data-copy]").find(seen))?.click(),
  n: () => reach(one("[data-show-changed]")),
  e: () => reach(marked("e") ?? one("#evidence")),
  l: () => reach(marked("l") ?? one("#timeline")),
  t: () => flipTimes(),
};

addEventListener("keydown", (event) => {
  if (event.isComposing || event.altKey || one("dialog[open]")) return;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && one("#q")) {
    event.preventDefault();
    return one("#q").focus();
  }
  if (event.ctrlKey || event.metaKey || document.body.dataset.shortcuts === "off") return;
  if (event.key === "Escape") return leave();
  if (event.target.matches(TYPED_IN)) return;
  const going = performance.now() < goUntil;
  goUntil = 0;
  const act = going
    ? () => reach(one(`[data-go="${CSS.escape(event.key)}"]`))
    : KEYS[event.key] ?? (marked(event.key) && (() => reach(marked(event.key))));
  if (!act || event.key === "Enter" || event.key === " ") return;
  event.preventDefault();
  act();
});

addEventListener("click", (event) => {
  if (event.target.closest("[data-keys-help]")) one("#keys").showModal();
});
