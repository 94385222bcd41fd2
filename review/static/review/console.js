// Comfort only: every page reads and every form works without this file.
"use strict";

const POLL_SECONDS = { start: 5, back_off_max: 80 };
const IDLE_WARNING_SECONDS = 1800 - 120;

const one = (selector, within = document) => within.querySelector(selector);
const say = (text) => { one("#said").textContent = text; };
const keep = (name, value) => { document.cookie = `${name}=${value};path=/;max-age=31536000;samesite=lax`; };

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

// The heartbeat: lists every 20 s, an operation that is not ended every 5 s, none while hidden.
const pulse = { paused: document.cookie.includes("live=paused"), misses: 0, next_at: 0, polls: false };

function showLive() {
  const live = one("#live");
  if (!live) return;
  live.hidden = !pulse.polls;
  const state = pulse.misses >= 3 ? "stale" : pulse.paused ? "paused" : "live";
  live.dataset.state = state;
  one("#live-word").textContent = state === "stale" ? `Not live since ${pulse.stale_since}` : state === "paused" ? "Paused" : "Live";
  one("#live-pause").firstChild.textContent = pulse.paused ? "Go on" : "Pause";
}

function beat(now) {
  const polled = one("[data-poll]");
  if (pulse.polls !== Boolean(polled)) { pulse.polls = Boolean(polled); showLive(); }
  if (!polled || pulse.paused || document.hidden || now < pulse.next_at) return;
  const seconds = Number(polled.dataset.poll) * 2 ** Math.min(pulse.misses, 2);
  pulse.next_at = now + Math.min(seconds, POLL_SECONDS.back_off_max) * 1000;
  document.body.dispatchEvent(new CustomEvent("heartbeat"));
}

function heard(ok) {
  pulse.misses = ok ? 0 : pulse.misses + 1;
  if (pulse.misses === 3) {
    pulse.stale_since = new Date().toLocaleTimeString("en-GB");
    one("#alerted").textContent = `Not live since ${pulse.stale_since}. What you see may be out of date.`;
  }
  showLive();
}

// One tick a second moves the clock, the seconds that are left, and the heartbeat.
function start() {
  const clock = one("#clock");
  const began = performance.now();
  const shown = clock ? Number(clock.dataset.now) : 0;
  let touched = began;
  const touch = () => { touched = performance.now(); };
  addEventListener("pointerdown", touch);
  addEventListener("keydown", touch);
  pulse.next_at = began + POLL_SECONDS.start * 1000;
  setInterval(() => {
    const now = performance.now();
    if (clock) clock.textContent = `${new Date((shown * 1000) + now - began).toISOString().slice(11, 19)} UTC`;
    for (const left of document.querySelectorAll("[data-left]")) {
      left.dataset.until ??= String(now + Number(left.dataset.left) * 1000);
      left.textContent = String(Math.max(0, Math.ceil((Number(left.dataset.until) - now) / 1000)));
    }
    if (now - touched > IDLE_WARNING_SECONDS * 1000 && one("#idle-soon") && !one("#stay")) {
      one("#slot").replaceChildren(one("#idle-soon").content.cloneNode(true));
      one("#alerted").textContent = one("#slot").textContent;
    }
    beat(now);
  }, 1000);
  const theme = one("#theme");
  if (theme) theme.hidden = false;
  showLive();
  const first = one("[data-focus]");
  if (first) first.focus();
}

// The outcome of a press that got no answer is not known: say so, and never offer to press again.
function pressLost(form) {
  const part = one("#press-lost").content.cloneNode(true);
  const intent = form && form.elements.intent;
  const link = part.querySelector("[data-recorded]");
  link.href = intent ? link.dataset.recorded.replace(/[0-]{36}/, intent.value) : location.href;
  one("#slot").replaceChildren(part);
  one("#slot [data-focus]").focus();
  one("#alerted").textContent = one("#slot").textContent;
}

addEventListener("click", (event) => {
  const target = event.target.closest("button");
  if (!target) return;
  if (target.dataset.copy) copy(target);
  if (target.id === "theme") flipTheme();
  if (target.id === "live-pause") {
    pulse.paused = !pulse.paused;
    keep("live", pulse.paused ? "paused" : "on");
    showLive();
  }
  if (target.id === "stay") fetch(target.dataset.url).then(() => one("#slot").replaceChildren());
});

// Money buttons are pressed, never triggered by Enter in a field beside them.
addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches("form[data-money] input")) event.preventDefault();
});

// What a pressed button said before; it says so again when its form is still there afterwards.
const pressed = new Map();

addEventListener("submit", (event) => {
  const button = event.submitter;
  if (!button || !button.dataset.busy || pressed.has(button)) return;
  pressed.set(button, [...button.childNodes]);
  button.style.minWidth = `${button.offsetWidth}px`;
  button.textContent = button.dataset.busy;
});

function sayAgain() {
  for (const [button, words] of pressed) button.replaceChildren(...words);
  pressed.clear();
}

addEventListener("visibilitychange", () => { if (!document.hidden) pulse.next_at = 0; });

// A page that comes back from the browser's memory is old: draw it again before anything is pressed.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

addEventListener("htmx:afterSettle", () => {
  const token = one("[data-token]");
  if (token) for (const field of document.getElementsByName("csrfmiddlewaretoken")) field.value = token.dataset.token;
  const focus = one("[data-focus]:not([data-focused])");
  if (focus) { focus.dataset.focused = ""; focus.focus(); }
});

// A poll never replaces what holds the focus or a selection.
addEventListener("htmx:oobBeforeSwap", (event) => {
  const target = event.detail.target;
  if (target.contains(document.activeElement) && target.id !== "acts") event.detail.shouldSwap = false;
});

addEventListener("htmx:afterRequest", (event) => {
  const { elt, xhr } = event.detail;
  if (elt.dataset.poll || elt.id === "pulse") return heard(xhr.status > 0 && xhr.status < 500);
  sayAgain();
  if (xhr.status === 0 || xhr.status >= 500) pressLost(elt.closest("form"));
});

start();
