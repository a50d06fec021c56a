// @ts-check
// Asks the browser for a passkey: to sign in, instead of a fresh code, or to add one. The attribute `data-passkey` has the purpose.
// This script is a module, so it defines no global names. The service sends the options and checks the answer. Every page also works without this script, with mail and an authenticator app.

/** @typedef {"sign-in" | "step-up" | "add"} Purpose */
const OTHERWISE = {
  "sign-in": "Use the mailed link instead.",
  "step-up": "Enter the code of your authenticator app instead.",
  add: "Try another browser or device.",
};
const WORKING = "Answer your browser's prompt.";
const CANCELED = "No passkey was used: the prompt was closed, or took too long. Try again.";
const THERE = "This device already has a passkey of yours.";
const ADDRESS = "Passkeys work only at the dashboard's own address, with a host name and https.";
const BROKEN = "The passkey could not be used. Try again.";
const UNREACHABLE = "We cannot be reached right now. Check your connection, and try again.";
const ENDED = "Your session has ended. Reload this page, and sign in.";
const CONFIRMED = "Confirmed with your passkey. No code is needed for the next five minutes.";

/** An error answer of the service, instead of the options. */
class Told extends Error {
  /** @param {string} text @param {string} name The field to correct, or "". */
  constructor(text, name = "") {
    super(text);
    this.field = name;
  }
}

/** @param {string} text base64url @returns {ArrayBuffer} */
function bytesOf(text) {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (char) => char.charCodeAt(0)).buffer;
}

/** @param {ArrayBuffer} bytes @returns {string} base64url */
function textOf(bytes) {
  const plain = String.fromCharCode(...new Uint8Array(bytes));
  return btoa(plain).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** @param {{id: string}[] | undefined} listed */
function named(listed) {
  return (listed ?? []).map((each) => ({ type: /** @type {const} */ ("public-key"), id: bytesOf(each.id) }));
}

/** Sends fields of the form, and returns the answer. @param {string} address @param {Record<string, string>} fields @returns {Promise<any>} */
async function ask(address, fields) {
  const body = new URLSearchParams(fields);
  const answer = await fetch(address, { method: "POST", body, redirect: "manual" }).catch(() => null);
  if (!answer) throw new Told(UNREACHABLE);
  if (answer.type === "opaqueredirect") throw new Told(ENDED);
  const told = await answer.json().catch(() => ({})); // an error page is not JSON
  if (!answer.ok) throw new Told(told.error ?? BROKEN, told.name ?? "");
  return told;
}

/** Asks for a new passkey. @param {any} options @returns {Promise<string>} */
async function create(options) {
  const made = /** @type {PublicKeyCredential} */ (
    await navigator.credentials.create({
      publicKey: {
        ...options,
        challenge: bytesOf(options.challenge),
        user: { ...options.user, id: bytesOf(options.user.id) },
        excludeCredentials: named(options.excludeCredentials),
      },
    })
  );
  const response = /** @type {AuthenticatorAttestationResponse} */ (made.response);
  const told = {
    clientDataJSON: textOf(response.clientDataJSON),
    attestationObject: textOf(response.attestationObject),
  };
  return JSON.stringify({ id: made.id, rawId: textOf(made.rawId), type: made.type, response: told });
}

/** Asks for an existing passkey. @param {any} options @returns {Promise<string>} */
async function get(options) {
  const found = /** @type {PublicKeyCredential} */ (
    await navigator.credentials.get({
      publicKey: { ...options, challenge: bytesOf(options.challenge), allowCredentials: named(options.allowCredentials) },
    })
  );
  const response = /** @type {AuthenticatorAssertionResponse} */ (found.response);
  const told = {
    clientDataJSON: textOf(response.clientDataJSON),
    authenticatorData: textOf(response.authenticatorData),
    signature: textOf(response.signature),
    userHandle: response.userHandle ? textOf(response.userHandle) : null,
  };
  return JSON.stringify({ id: found.id, rawId: textOf(found.rawId), type: found.type, response: told });
}

/** What to do if no passkey is used. @param {HTMLElement} block @param {Purpose} purpose */
function otherwiseOf(block, purpose) {
  return block.dataset.otherwise ?? OTHERWISE[purpose];
}

/** What to tell the person. @param {unknown} thrown @param {string} otherwise */
function wordsFor(thrown, otherwise) {
  if (thrown instanceof Told) return thrown.message;
  const kind = thrown instanceof DOMException ? thrown.name : "";
  if (kind === "NotAllowedError" || kind === "AbortError") return `${CANCELED} ${otherwise}`;
  if (kind === "InvalidStateError") return THERE;
  if (kind === "SecurityError") return `${ADDRESS} ${otherwise}`;
  return `${BROKEN} ${otherwise}`;
}

/** Hides every field for a code: the passkey took its place. @param {HTMLElement} block */
function confirmed(block) {
  for (const each of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('[data-passkey="step-up"]'))) {
    each.closest("form")?.querySelector("[name=code]")?.closest(".field")?.setAttribute("hidden", "");
    each.querySelector("button")?.setAttribute("hidden", "");
    if (each !== block) each.hidden = true;
  }
  const status = block.querySelector("p");
  if (!status) return;
  status.textContent = CONFIRMED;
  status.tabIndex = -1;
  status.focus(); // the button that had the focus is hidden now
}

/** @param {HTMLElement} block @param {HTMLFormElement} form @param {Purpose} purpose */
async function run(block, form, purpose) {
  const address = block.dataset.address ?? "";
  /** @type {Record<string, string>} */
  const fields = {};
  for (const [name, value] of new FormData(form)) if (typeof value === "string") fields[name] = value;
  const sent = purpose === "add" ? fields : { csrf: fields.csrf };
  const options = await ask(`${address}/options`, sent);
  const passkey = await (purpose === "add" ? create(options) : get(options));
  if (purpose === "step-up") {
    await ask(address, { csrf: fields.csrf, passkey });
    return confirmed(block);
  }
  const hidden = form.elements.namedItem("passkey");
  if (hidden instanceof HTMLInputElement) hidden.value = passkey;
  form.submit();
}

/** @param {HTMLElement} block */
function prepare(block) {
  const form = block.closest("form");
  const button = block.querySelector("button");
  const status = block.querySelector("p");
  if (!form || !button || !status) return;
  const purpose = /** @type {Purpose} */ (block.dataset.passkey);
  block.hidden = false;
  if (!window.PublicKeyCredential || !navigator.credentials) {
    button.hidden = true;
    status.textContent = `This browser does not support passkeys here. ${otherwiseOf(block, purpose)}`;
    return;
  }
  const start = async () => {
    if (button.disabled) return;
    button.disabled = true;
    status.classList.remove("error");
    status.textContent = WORKING;
    try {
      await run(block, form, purpose);
    } catch (thrown) {
      button.disabled = false;
      status.classList.add("error");
      status.textContent = wordsFor(thrown, otherwiseOf(block, purpose));
      const field = thrown instanceof Told && thrown.field ? form.elements.namedItem(thrown.field) : null;
      (field instanceof HTMLElement ? field : button).focus();
    }
  };
  button.addEventListener("click", () => void start());
  if (purpose !== "add") return;
  form.addEventListener("submit", (event) => {
    event.preventDefault(); // the Enter key in a field works like the button
    void start();
  });
}

for (const block of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-passkey]"))) prepare(block);
// After Back, the buttons work again.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const button of /** @type {NodeListOf<HTMLButtonElement>} */ (document.querySelectorAll("[data-passkey] button"))) {
    button.disabled = false;
  }
});
