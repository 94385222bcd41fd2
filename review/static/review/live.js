// What is polled: says "Live", "Paused" or "Not live since", never moves what is under the pointer
// or focused, and switches the buttons off while what stands beside them may be out of date.
"use strict";

const POLL_SECONDS = { start: 5, back_off_max: 80 };
const MISSES_UNTIL_STALE = 3;
const pulse = { paused: document.cookie.includes("live=paused"), misses: 0, next_at: 0, polls: false, swapping: false, refocus: "" };

const isStale = () => pulse.misses >= MISSES_UNTIL_STALE;

function showLive() {
  const live = one("#live");
  if (!live) return;
  live.hidden = !pulse.polls;
  const state = isStale() ? "stale" : pulse.paused ? "paused" : "live";
  live.dataset.state = state;
  one("#live-word").textContent = state === "stale" ? `Not live since ${pulse.stale_since}` : state === "paused" ? "Paused" : "Live";
  one("#live-pause").firstChild.textContent = pulse.paused ? "Go on" : "Pause";
}

// Lists every 20 s, an operation that is not ended every 5 s; after errors 2, 4 and 4 times that.
function beat(now) {
  const polled = one("[data-poll]");
  if (pulse.polls !== Boolean(polled)) { pulse.polls = Boolean(polled); showLive(); }
  if (!polled || pulse.paused || document.hidden || now < pulse.next_at) return;
  // What was approved on this page a moment ago is followed as closely as one operation.
  const every = one("[data-follow]") ? POLL_SECONDS.start : Number(polled.dataset.poll);
  const seconds = every * 2 ** Math.min(pulse.misses, 2);
  pulse.next_at = now + Math.min(seconds, POLL_SECONDS.back_off_max) * 1000;
  document.body.dispatchEvent(new CustomEvent("heartbeat"));
}

function heard(ok) {
  const before = isStale();
  pulse.misses = ok ? 0 : pulse.misses + 1;
  if (isStale() && !before) {
    pulse.stale_since = new Date().toISOString().slice(11, 19) + " UTC";
    const words = `Not live since ${pulse.stale_since}. What you see may be out of date. Actions are off until we are connected again.`;
    const bar = document.createElement("p");
    bar.id = "not-live";
    bar.className = "note warn";
    bar.tabIndex = -1;
    bar.textContent = words;
    one("#slot").before(bar);
    alertAll(words);
  }
  if (before && !isStale()) {
    one("#not-live")?.remove();
    say("Live again");
  }
  for (const button of all("form[method=post] [type=submit]", one("#main"))) {
    if (isStale()) button.setAttribute("aria-disabled", "true");
    else button.removeAttribute("aria-disabled");
  }
  showLive();
}

// Before htmx and before the browser: nothing is pressed on a stale page.
addEventListener("submit", (event) => {
  const form = event.target;
  if (!isStale() || form.method !== "post" || !form.closest("#main") || form.closest("#slot")) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  one("#not-live").focus();
}, true);

addEventListener("click", (event) => {
  if (event.target.closest("#live-pause")) {
    pulse.paused = !pulse.paused;
    keep("live", pulse.paused ? "paused" : "on");
    showLive();
  }
});

addEventListener("visibilitychange", () => { if (!document.hidden) pulse.next_at = 0; });

// A poll never replaces what holds the focus, the pointer, a selection or a text that was typed.
// What says that the buttons are off (data-must-show) is shown all the same; a typed text stays.
const hasText = (target) => all("textarea, input:not([type=hidden])", target).some((field) => field.value !== field.defaultValue);

function inUse(target) {
  const marked = getSelection();
  return target.contains(document.activeElement)
    || target.matches(":hover")
    || (!marked.isCollapsed && marked.containsNode(target, true))
    || hasText(target);
}

addEventListener("htmx:beforeSwap", (event) => {
  const { requestConfig, target } = event.detail;
  pulse.swapping = requestConfig.elt.matches("[data-poll]");
  // Whoever signs in above a kept form is not made to begin again by a poll without a session.
  if (pulse.swapping && target.id === "slot" && one("form", target)) event.detail.shouldSwap = false;
});

// The page may be drawn anew while a poll is on its way; its answer has no place any more.
addEventListener("htmx:beforeRequest", (event) => {
  const { elt } = event.detail;
  if (!elt.matches("[data-poll]")) return;
  elt.addEventListener("htmx:beforeOnLoad", (answer) => { if (!elt.isConnected) answer.preventDefault(); }, { once: true });
});

addEventListener("htmx:oobBeforeSwap", (event) => {
  const { target, fragment } = event.detail;
  if (!pulse.swapping || target.matches("[role=status], [role=alert]")) return;
  // A form whose press is on its way stays where the answer looks for it, and is then replaced.
  if (target.matches(":has(form.htmx-request)")) {
    event.detail.shouldSwap = false;
    return;
  }
  const mustShow = target.matches("[data-must-show]") || one("[data-must-show]", fragment);
  if (!mustShow) {
    event.detail.shouldSwap = !inUse(target);
    if (!event.detail.shouldSwap) target.dataset.behind = ""; // it says "changed" and stays
  } else if (hasText(target)) {
    event.detail.shouldSwap = false;
    for (const button of all("[type=submit]", target)) button.disabled = true;
    one("#slot").replaceChildren(...all(".note", fragment).slice(0, 1));
  } else if (target.contains(document.activeElement)) {
    pulse.refocus = `#${target.id} a`; // its button is gone; the focus goes to what stands there now
  }
});

addEventListener("htmx:afterSettle", () => {
  if (pulse.refocus) one(pulse.refocus)?.focus();
  pulse.refocus = "";
});

addEventListener("htmx:afterRequest", (event) => {
  const { elt, xhr } = event.detail;
  if (elt.matches("[data-poll]")) heard(xhr.status > 0 && xhr.status < 500);
});

pulse.next_at = performance.now() + POLL_SECONDS.start * 1000;
ticks.push(beat);
showLive();
