// What is typed and not submitted is kept on the server, 1.5 s after the last key.
"use strict";

const DRAFT_WAIT_MS = 1500;
const waiting = new Map();
const saving = new WeakMap();

function draftOf(form) {
  const fields = new FormData();
  for (const field of form.elements) {
    const kept = field.name && !field.disabled && !["checkbox", "radio", "password", "submit", "file"].includes(field.type);
    if (kept) fields.append(field.name, field.value);
  }
  return fields;
}

async function post(text) {
  const answer = await fetch(one("#main").dataset.drafts, { method: "POST", body: text, keepalive: true });
  const told = answer.status === 422 ? `The draft is not kept: ${await answer.text()}` : "";
  if (told) say(told);
}

// One after the other: an earlier text that arrives later would replace the newer one.
function saveDraft(form) {
  forget(form);
  const text = new URLSearchParams(draftOf(form));
  const next = (saving.get(form) ?? Promise.resolve()).catch(() => {}).then(() => post(text));
  saving.set(form, next);
  return next;
}

function forget(form) {
  clearTimeout(waiting.get(form));
  waiting.delete(form);
}

addEventListener("input", (event) => {
  const form = event.target.form;
  if (!form?.elements.draft_of) return;
  clearTimeout(waiting.get(form));
  waiting.set(form, setTimeout(() => saveDraft(form).catch(() => say("The draft could not be kept just now.")), DRAFT_WAIT_MS));
});

// A form that is pressed is no draft; one that leaves the page with its text is.
addEventListener("submit", (event) => forget(event.target));
addEventListener("pagehide", () => { for (const form of waiting.keys()) post(new URLSearchParams(draftOf(form))).catch(() => {}); });

// The text of a press that was not taken is kept at once.
addEventListener("htmx:afterRequest", (event) => {
  const { elt, xhr } = event.detail;
  const form = elt.closest("form");
  if (form?.elements.draft_of && xhr.status >= 400) saveDraft(form).catch(() => {});
});

addEventListener("click", (event) => {
  const button = event.target.closest("[data-draft-keep], [data-draft-discard]");
  if (!button) return;
  const form = button.form;
  const field = [...form.elements].find((each) => each.matches("textarea, input:not([type=hidden]), select"));
  button.closest("[data-draft-note]").remove();
  if (button.matches("[data-draft-discard]")) {
    event.preventDefault();
    forget(form);
    for (const each of form.elements) if (each.matches("textarea, input:not([type=hidden], [type=checkbox], [type=radio])")) each.value = "";
    fetch(button.formAction, { method: "POST", body: new URLSearchParams(draftOf(form)), redirect: "manual" }).then(() => say("Draft discarded"));
  }
  field.focus();
});
