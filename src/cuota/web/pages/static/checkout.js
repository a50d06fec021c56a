// @ts-check
// Formats and checks forms while a person types. Every page works without this script. It never submits a form by itself.

/** @param {string} text @returns {string} */
const digitsOf = (text) => text.replace(/\D/g, "");

/** Formats a card number in groups of four digits; American Express in groups of 4, 6 and 5. @param {string} text @returns {string} */
function asCard(text) {
  const digits = digitsOf(text).slice(0, 19);
  const cuts = /^3[47]/.test(digits) ? [4, 10] : [4, 8, 12, 16];
  return [...digits].map((digit, at) => (cuts.includes(at) ? ` ${digit}` : digit)).join("");
}

/** Formats an expiration date as MM / YY. A person may type, or a browser fill in: 127, 1/27, 0127, 01/2027, 2027-01. @param {string} text @returns {string} */
function asExpiry(text) {
  let [month, year] = text.trim().split(/\D+/);
  if (!month) return "";
  if (month.length === 4 && year) [month, year] = [year, month];
  if (year === undefined) {
    const length = month > "1" && month[0] > "1" ? 1 : 2;
    year = month.slice(length) || undefined;
    month = month.slice(0, length);
  }
  if (year !== undefined || month > "1") month = month.slice(0, 2).padStart(2, "0");
  if (year === undefined) return month;
  if (/^20\d\d/.test(year)) year = year.slice(2, 4);
  return `${month} / ${/^20\d?$/.test(year) ? year : year.slice(0, 2)}`;
}

/** Formats the text of a field. The cursor stays after the same digit. @param {Event} event */
function format(event) {
  const field = event.target;
  if (!(field instanceof HTMLInputElement) || !field.dataset.format) return;
  const edit = event instanceof InputEvent ? event : null;
  if (edit?.isComposing) return;
  const cursor = field.selectionStart ?? field.value.length;
  const atEnd = cursor === field.value.length;
  const card = field.dataset.format === "card";
  // Do not format an expiration date while a person corrects it in the middle. It is formatted when the field loses the focus.
  if (!card && edit && (!atEnd || edit.inputType.startsWith("delete"))) return;
  const text = card ? asCard(field.value) : asExpiry(field.value);
  if (text === field.value) return;
  let left = digitsOf(field.value.slice(0, cursor)).length;
  field.value = text;
  if (document.activeElement !== field) return;
  let place = atEnd ? text.length : 0;
  while (!atEnd && left > 0 && place < text.length) if (/\d/.test(text[place++])) left--;
  if (edit?.inputType === "deleteContentForward" && text[place] === " ") place++; // a space cannot be deleted, so move past it
  field.setSelectionRange(place, place);
}

/** Whether a card number has the right check digit, which detects most typing errors. @param {string} digits */
function passesLuhn(digits) {
  const values = [...digits].reverse().map((digit, at) => Number(digit) * (at % 2 ? 2 : 1));
  return values.reduce((sum, value) => sum + (value > 9 ? value - 9 : value), 0) % 10 === 0;
}

/** Returns the errors of a card form by field, with the same texts as the server's. @param {HTMLFormElement} form @returns {Map<HTMLInputElement, string>} */
function mistakes(form) {
  const wrong = new Map();
  /** @param {string} name */
  const field = (name) => /** @type {HTMLInputElement | null} */ (form.elements.namedItem(name));
  const [number, expiry, cvc, agree] = ["card_number", "card_expiry", "card_cvc", "agree"].map(field);
  if (!number || !expiry || !cvc) return wrong;
  const digits = number.value.replace(/[\s-]/g, "");
  /** @type {[string, number[], string][]} */
  const rules = JSON.parse(number.dataset.rules ?? "[]");
  const rule = rules.find(([prefix, lengths]) => new RegExp(`^(?:${prefix})`).test(digits) && lengths.includes(digits.length));
  if (!digits) wrong.set(number, number.dataset.empty);
  else if (/\D/.test(digits) || !rule || !passesLuhn(digits)) wrong.set(number, number.dataset.wrong);
  const date = /^\s*(0?[1-9]|1[0-2])\s*[/ -]?\s*(?:20)?(\d\d)\s*$/.exec(expiry.value);
  if (!date) wrong.set(expiry, expiry.dataset.wrong);
  else if (`20${date[2]}-${date[1].padStart(2, "0")}` < (expiry.dataset.month ?? "")) wrong.set(expiry, expiry.dataset.expired);
  const code = rule?.[2] ?? cvc.dataset.wrong ?? "";
  if (!new RegExp(`^\\d{${/\d/.exec(code)}}$`).test(cvc.value.trim())) wrong.set(cvc, code);
  if (agree && !agree.checked) wrong.set(agree, agree.dataset.wrong);
  return wrong;
}

/** Shows the errors next to their fields, as the server's page does, and focuses the first. Returns true if there are none. @param {HTMLFormElement} form */
function tell(form) {
  const wrong = mistakes(form);
  document.querySelector(".summary")?.remove();
  for (const field of form.querySelectorAll("input")) {
    const name = `${field.name}-error`;
    document.getElementById(name)?.remove();
    field.removeAttribute("aria-invalid");
    const ties = (field.getAttribute("aria-describedby") ?? "").split(" ").filter((id) => id && id !== name);
    const text = wrong.get(field);
    if (text) {
      const said = document.createElement("p");
      said.className = "error";
      said.id = name;
      const kind = document.createElement("span");
      kind.className = "vh";
      kind.textContent = "Error: ";
      said.append(kind, text);
      (field.closest(".consent") ?? field).after(said);
      field.setAttribute("aria-invalid", "true");
      ties.unshift(name);
    }
    if (ties.length) field.setAttribute("aria-describedby", ties.join(" "));
    else field.removeAttribute("aria-describedby");
  }
  wrong.keys().next().value?.focus();
  return wrong.size === 0;
}

/** @type {Map<HTMLElement, string>} The text that each busy control had before. */
const busy = new Map();

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

/** Enables all controls again, because the page is shown again or no answer arrived. */
function makeReady() {
  for (const [control, text] of busy) {
    control.textContent = text;
    if (control instanceof HTMLButtonElement) control.disabled = false;
  }
  busy.clear();
  say("");
}

document.addEventListener("input", format);
document.addEventListener("change", format);
document.addEventListener("submit", (event) => {
  if (busy.size) return event.preventDefault(); // a second click must not send a second request
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (form.querySelector("[name=card_number]") && !tell(form)) return event.preventDefault(); // the form keeps its values
  makeBusy(event.submitter ?? form.querySelector("button"));
  setTimeout(makeReady, 30_000);
});
addEventListener("pageshow", (event) => event.persisted && makeReady());
