// Passkeys need the browser: a button asks it, and the answer goes into the form around the button.
"use strict";

async function answer(button) {
  const { create, get } = button.dataset;
  if (create) {
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(JSON.parse(create).publicKey);
    return navigator.credentials.create({ publicKey });
  }
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(JSON.parse(get).publicKey);
  return navigator.credentials.get({ publicKey });
}

addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-passkey]");
  if (!button) return;
  const said = button.form.querySelector("[data-passkey-said]");
  try {
    button.form.elements.credential.value = JSON.stringify((await answer(button)).toJSON());
  } catch (error) { // the person turned round, took too long, or has no passkey on this device
    said.textContent = error.name === "InvalidStateError"
      ? "This device is set up already."
      : "No passkey was used. Press again, or take another way.";
    return;
  }
  button.form.requestSubmit();
});

// Without a browser that can, the button is not there; nor is it without this file.
function show() {
  if (!window.PublicKeyCredential || !PublicKeyCredential.parseRequestOptionsFromJSON) return;
  for (const part of document.querySelectorAll("[data-passkey-part]")) part.hidden = false;
}

addEventListener("htmx:afterSettle", show);
show();
