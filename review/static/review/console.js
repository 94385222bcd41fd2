// Comfort only: every page reads and every form works without these files. This one is loaded
// first: the words that are said, the clock, the theme, copying, and the idle warning.
"use strict";

const IDLE_WARNING_SECONDS = 1800 - 120;

const one = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const say = (text) => { one("#said").textContent = text; };
const alertAll = (text) => { one("#alerted").textContent = text; };
const keep = (name, value) => { document.cookie = `${name}=${value};path=/;max-age=31536000;samesite=lax`; };
const seen = (element) => element.checkVisibility();

// Theme: a cookie, so that the server draws the next page in it at once.
function flipTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  keep("theme", root.dataset.theme);
}

async function copy(button) {
  const text = button.dataset.copy;
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
  } else { // pages on plain http have no clipboard
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
    button.focus();
  }
  say(`Copied ${button.dataset.what}`);
}

// A time that is marked and copied leaves as ISO in UTC, whatever the zone it is shown in.
addEventListener("copy", (event) => {
  const marked = getSelection();
  if (!marked.rangeCount) return;
  const within = marked.getRangeAt(0).commonAncestorContainer;
  const time = (within.nodeType === Node.TEXT_NODE ? within.parentElement : within).closest("time[data-utc]");
  if (!time) return;
  event.clipboardData.setData("text/plain", time.dataset.utc);
  event.preventDefault();
});

// All times of the page in UTC with their age, and back: what a pointer reads by hovering.
function flipTimes() {
  const exact = document.documentElement.toggleAttribute("data-exact-times");
  for (const time of all("time[data-utc]")) {
    time.dataset.local ??= time.textContent;
    time.textContent = exact ? time.title : time.dataset.local;
  }
  say(exact ? "Times are shown in UTC with their age" : "Times are shown in your zone");
}

// One tick a second moves the clock, the seconds that are left, and the heartbeat (live.js).
const ticks = [];

function startTicking() {
  const clock = one("#clock");
  const began = performance.now();
  const shown = clock ? Number(clock.dataset.now) : 0;
  let touched = began;
  const touch = () => { touched = performance.now(); };
  addEventListener("pointerdown", touch);
  addEventListener("keydown", touch);
  setInterval(() => {
    const now = performance.now();
    if (clock) clock.textContent = `${new Date((shown * 1000) + now - began).toISOString().slice(11, 19)} UTC`;
    for (const left of all("[data-left]")) {
      left.dataset.until ??= String(now + Number(left.dataset.left) * 1000);
      left.textContent = String(Math.max(0, Math.ceil((Number(left.dataset.until) - now) / 1000)));
    }
    if (now - touched > IDLE_WARNING_SECONDS * 1000 && one("#idle-soon") && !one("#stay")) {
      one("#slot").replaceChildren(one("#idle-soon").content.cloneNode(true));
      alertAll(one("#slot").textContent);
    }
    for (const tick of ticks) tick(now);
  }, 1000);
}

addEventListener("click", (event) => {
  const target = event.target.closest("button");
  if (!target) return;
  if (target.dataset.copy) copy(target);
  if (target.id === "theme") flipTheme();
  if (target.id === "exact-times") flipTimes();
  if (target.id === "stay") fetch(target.dataset.url).then(() => one("#slot").replaceChildren());
});

// What works only here is hidden until here.
for (const hidden of all("[data-scripted]")) hidden.hidden = false;
startTicking();
const first = one("[data-focus]");
if (first) first.focus();
