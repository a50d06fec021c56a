// @ts-check
// Makes buttons busy, and submits a card form. The card rail supplies the fields of the card: its script, which runs before this
// one, defines `window.cardFields`; docs/card-rails.md has the rules. No digit of a card passes through this script. Every page
// works without this script, except a card form whose fields are not part of the page. The sandbox's fields are part of the page.

const PATIENCE = 30_000;
const UNREACHABLE = "We cannot reach your card's processor. Nothing was charged; try again.";
const NOT_LOADED =
  "The fields for your card could not be loaded. Nothing was charged. Check your connection, and reload this page.";

/** Shows the errors next to their fields, as the server's page does, and focuses the first. @param {HTMLFormElement} form @param {Record<string, string>} wrong */
function tell(form, wrong) {
  document.querySelector(".summary")?.remove();
  /** @type {HTMLElement | undefined} */
  let first;
  for (const field of /** @type {NodeListOf<HTMLElement>} */ (form.querySelectorAll("input[id], #card_number"))) {
    const name = `${field.id}-error`;
    document.getElementById(name)?.remove();
    field.removeAttribute("aria-invalid");
    const ties = (field.getAttribute("aria-describedby") ?? "").split(" ").filter((id) => id && id !== name);
    const text = wrong[field.id];
    if (text) {
      const said = document.createElement("p");
      said.className = "error";
      said.id = name;
      const kind = document.createElement("span");
      kind.className = "vh";
      kind.textContent = "Error: ";
      said.append(kind, text);
      if (field instanceof HTMLInputElement) {
        (field.closest(".consent") ?? field).after(said);
        field.setAttribute("aria-invalid", "true");
      } else field.append(said);
      ties.unshift(name);
      first ??= field;
    }
    if (ties.length) field.setAttribute("aria-describedby", ties.join(" "));
    else field.removeAttribute("aria-describedby");
  }
  first?.focus();
  if (!first) notify(Object.values(wrong).join(" ")); // the errors belong to fields that the page does not have
}

/** Shows a text at the top of the page, and moves the focus to it. "" removes it. @param {string} text */
function notify(text) {
  const main = document.getElementById("main");
  main?.querySelector(":scope > .notice")?.remove();
  if (!text || !main) return;
  const said = document.createElement("p");
  said.className = "notice";
  said.setAttribute("role", "alert");
  said.tabIndex = -1;
  said.textContent = text;
  main.prepend(said);
  said.focus();
}

/** @type {Map<HTMLElement, string>} The text that each busy control had before. */
const busy = new Map();
let timer = 0;
/** Counts the submissions of a card form. An answer for an earlier one is ignored. */
let attempts = 0;

/** @param {string} text */
function say(text) {
  const status = document.getElementById("busy");
  if (status) status.textContent = text;
}

/** @param {Element | null} control */
function makeBusy(control) {
  if (!(control instanceof HTMLElement) || !control.dataset.busy) return;
  busy.set(control, control.textContent ?? "");
  control.textContent = control.dataset.busy;
  if (control instanceof HTMLButtonElement) control.disabled = true;
  say(control.dataset.busy);
}

/** Enables all controls again, because the page is shown again, no answer arrived, or the card is wrong. */
function makeReady() {
  clearTimeout(timer);
  attempts++;
  for (const [control, text] of busy) {
    control.textContent = text;
    if (control instanceof HTMLButtonElement) control.disabled = false;
  }
  busy.clear();
  say("");
}

/** Returns what the card rail answers, or fails after PATIENCE. @template T @param {T | Promise<T>} answer @returns {Promise<T>} */
function inTime(answer) {
  return new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error("no answer in time")), PATIENCE);
    Promise.resolve(answer).then(resolve, reject);
  });
}

/** Gets a token for the card. Throws what is wrong: errors by field, a text, or an Error. @param {HTMLFormElement} form @returns {Promise<string>} */
async function exchange(form) {
  if (!window.cardFields) throw NOT_LOADED;
  const wrong = { ...(await inTime(window.cardFields.check?.())) };
  const agree = form.elements.namedItem("agree");
  if (agree instanceof HTMLInputElement && !agree.checked) wrong.agree = agree.dataset.wrong ?? "";
  if (Object.keys(wrong).length) throw wrong;
  const token = await inTime(window.cardFields.token());
  if (typeof token !== "string" || !token) throw new Error("the card rail's script gave no token");
  return token;
}

/** Exchanges the card for a token, and submits the form with it, once. @param {HTMLFormElement} form @param {HTMLInputElement} hidden */
async function payWith(form, hidden) {
  const attempt = ++attempts;
  try {
    const token = await exchange(form);
    if (attempt !== attempts) return; // the person left the page and came back
    hidden.value = token;
    form.submit();
    timer = setTimeout(makeReady, PATIENCE);
  } catch (thrown) {
    if (attempt !== attempts) return;
    makeReady();
    notify("");
    const text = typeof thrown === "string" ? thrown : thrown instanceof Error || !thrown ? UNREACHABLE : "";
    tell(form, text ? { "": text } : /** @type {Record<string, string>} */ (thrown));
  }
}

/** The colors and letters of the page, so that the processor's fields can look like ours. */
function look() {
  const style = getComputedStyle(document.body);
  const button = document.querySelector("button.primary");
  return {
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    accent: button ? getComputedStyle(button).backgroundColor : "",
    ink: style.color,
    paper: style.backgroundColor,
    font: style.fontFamily,
  };
}

/** Lets the card rail's script show its fields. @param {HTMLElement} place */
async function showFields(place) {
  const form = place.closest("form");
  const hidden = form?.elements.namedItem("card_token");
  if (hidden instanceof HTMLInputElement) hidden.value = ""; // the browser may have restored an old token, and a token works only once
  if (!window.cardFields) {
    if (!place.querySelector("[name]")) notify(NOT_LOADED); // otherwise the form works without the rail's script
    return;
  }
  const given = JSON.parse(place.dataset.options ?? "{}");
  try {
    await window.cardFields.mount(place, { ...given, language: document.documentElement.lang, look: look() });
  } catch {
    notify(NOT_LOADED);
  }
}

document.addEventListener("submit", (event) => {
  if (busy.size) return event.preventDefault(); // a second click must not send a second request
  const form = /** @type {HTMLFormElement} */ (event.target);
  const hidden = form.elements.namedItem("card_token");
  const own = form.querySelector("#card_number[name]") && !window.cardFields;
  makeBusy(event.submitter ?? form.querySelector("button"));
  if (hidden instanceof HTMLInputElement && !own) {
    event.preventDefault();
    void payWith(form, hidden);
  } else timer = setTimeout(makeReady, PATIENCE);
});
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  makeReady();
  for (const hidden of document.getElementsByName("card_token")) /** @type {HTMLInputElement} */ (hidden).value = "";
});
// A refused form is answered at its own address. This makes the answer an ordinary entry of the history. Otherwise Back would ask
// whether to send the form again.
if ("posted" in document.documentElement.dataset) history.replaceState(history.state, "", location.href);
// The page goes to the card's bank automatically only the first time, not after Back or a reload.
const here = new URL(location.href);
if (here.searchParams.get("said") === "asked") {
  here.searchParams.delete("said");
  history.replaceState(null, "", here);
}
const place = document.getElementById("card-fields");
if (place) void showFields(place);
