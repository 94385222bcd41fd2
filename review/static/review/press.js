// One press of one form: said while it lasts, never offered again while its outcome is not known.
"use strict";

function pressLost(form) {
  const part = one("#press-lost").content.cloneNode(true);
  const intent = form && form.elements.intent;
  const link = one("[data-recorded]", part);
  link.href = intent ? link.dataset.recorded.replace(/[0-]{36}/, intent.value) : location.href;
  one("#slot").replaceChildren(part);
  one("#slot [data-focus]").focus();
  alertAll(one("#slot").textContent);
  // The same drawing of the form cannot be pressed again: what it did is looked up first.
  if (form) for (const button of all("[type=submit]", form)) button.disabled = true;
}

// Money buttons are pressed, never triggered by Enter in a field beside them.
addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches("form[data-money] input")) event.preventDefault();
});

// What a pressed button said before; it says so again when its form is still there afterwards.
const pressed = new Map();

addEventListener("submit", (event) => {
  const button = event.submitter;
  if (!button || !button.dataset.busy || pressed.has(button)) {
    if (button && pressed.has(button)) event.preventDefault(); // the second click of a double click
    return;
  }
  pressed.set(button, [...button.childNodes]);
  button.style.minWidth = `${button.offsetWidth}px`;
  button.textContent = button.dataset.busy;
});

function sayAgain() {
  for (const [button, words] of pressed) button.replaceChildren(...words);
  pressed.clear();
}

// A page that comes back from the browser's memory is old: draw it again before anything is pressed.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

addEventListener("htmx:afterSettle", () => {
  const token = one("[data-token]");
  if (token) for (const field of document.getElementsByName("csrfmiddlewaretoken")) field.value = token.dataset.token;
  const focus = one("[data-focus]:not([data-focused])");
  if (focus) { focus.dataset.focused = ""; focus.focus(); }
});

addEventListener("htmx:afterRequest", (event) => {
  const { elt, xhr } = event.detail;
  if (elt.matches("[data-poll]")) return;
  sayAgain();
  if (xhr.status === 0 || xhr.status >= 500) pressLost(elt.closest("form"));
});
