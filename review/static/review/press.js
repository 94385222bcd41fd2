// One press of one form: said while it lasts, never offered again while its outcome is not known.
"use strict";

const PRESS_MS_MAX = 40000;

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

// The focus goes to the answer of a press, once. A browser does not see to that itself where the
// page was swapped in, or where its address names a part of it.
function focusAnswer() {
  const answer = one("[data-focus]:not([data-focused])");
  if (answer) { answer.dataset.focused = ""; answer.focus(); }
}

// What a pressed button said before; it says so again when its form is still there afterwards.
const pressed = new Map();

function sayAgain() {
  for (const [button, words] of pressed) button.replaceChildren(...words);
  pressed.clear();
}

// A form without htmx is sent by the browser, which has only an error page of its own for a lost
// answer. Sent from here, a lost answer is said in our words, and a refusal keeps the page.
async function send(form, button) {
  const filled = new FormData(form, button);
  // A file goes as it is; everything else as plain fields.
  const fields = form.enctype === "multipart/form-data" ? filled : new URLSearchParams(filled);
  let answer;
  try {
    // A button without an address of its own names the page it stands on, not its form's.
    const to = button.hasAttribute("formaction") ? button.formAction : form.action;
    answer = await fetch(to, { method: "POST", body: fields, signal: AbortSignal.timeout(PRESS_MS_MAX) });
  } catch {
    sayAgain();
    return pressLost(form);
  }
  sayAgain();
  if (answer.status >= 500) return pressLost(form);
  if (answer.redirected) return answer.url === location.href ? location.reload() : location.assign(answer.url);
  // Confirming who one is has a page with a script of its own; nothing was done yet.
  if (answer.headers.has("Aftersend-Code")) return form.submit();
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!one("main", page)) return pressLost(form);
  document.title = page.title;
  one("#main").replaceChildren(...one("main", page).childNodes);
  htmx.process(one("#main"));
  for (const hidden of all("#main [data-scripted]")) hidden.hidden = false;
  focusAnswer();
}

addEventListener("submit", (event) => {
  const { target: form, submitter: button } = event;
  if (event.defaultPrevented && !form.hasAttribute("hx-post")) return;
  if (!button?.dataset.busy) return;
  if (pressed.has(button)) return event.preventDefault(); // the second click of a double click
  pressed.set(button, [...button.childNodes]);
  button.style.minWidth = `${button.offsetWidth}px`;
  button.textContent = button.dataset.busy;
  if (form.hasAttribute("hx-post") || !form.elements.intent) return;
  event.preventDefault();
  send(form, button);
});

// A page that comes back from the browser's memory is old: draw it again before anything is pressed.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

// Signing in changes the token; every form has the new one before anybody can press again.
addEventListener("htmx:afterSwap", () => {
  const token = one("[data-token]");
  if (token) for (const field of document.getElementsByName("csrfmiddlewaretoken")) field.value = token.dataset.token;
});

addEventListener("htmx:afterSettle", () => {
  const token = one("[data-token]");
  const again = token && asking?.isConnected ? one("[type=submit]", asking) : null;
  if (!again) return focusAnswer();
  asking = null;
  token.dataset.focused = "";
  say(token.textContent);
  again.scrollIntoView({ block: "center" });
  again.focus();
});

// Confirming who one is happens at the head of the page; afterwards the button that asked for it
// is before the reader again, with the focus.
let asking = null;

addEventListener("htmx:afterRequest", (event) => {
  const { elt, xhr } = event.detail;
  if (elt.matches("[data-poll]")) return;
  if (xhr.getResponseHeader("Aftersend-Code") === "step_up_needed") asking = elt.closest("form:not(.sign-in)") ?? asking;
  sayAgain();
  if (xhr.status === 0 || xhr.status >= 500) pressLost(elt.closest("form"));
});

focusAnswer();
