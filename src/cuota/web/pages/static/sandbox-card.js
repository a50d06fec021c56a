// @ts-check
// The script of the simulated card processor. It formats and checks the card while a person types, and exchanges the card for a
// token. The page's form sends only that token: this script removes the names of the fields. docs/card-rails.md has the rules.
(() => {
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

  /** The fields by the name of what they hold. @type {Record<"number" | "expiry" | "cvc", HTMLInputElement>} */
  let fields;
  /** @type {{ tokens: string }} */
  let options;

  /** Returns the errors by field, with the same texts as the server's. @returns {Record<string, string>} */
  function check() {
    /** @type {Record<string, string>} */
    const wrong = {};
    const { number, expiry, cvc } = fields;
    const digits = number.value.replace(/[\s-]/g, "");
    /** @type {[string, number[], string][]} */
    const rules = JSON.parse(number.dataset.rules ?? "[]");
    const rule = rules.find(([prefix, lengths]) => new RegExp(`^(?:${prefix})`).test(digits) && lengths.includes(digits.length));
    if (!digits) wrong[number.id] = number.dataset.empty ?? "";
    else if (/\D/.test(digits) || !rule || !passesLuhn(digits)) wrong[number.id] = number.dataset.wrong ?? "";
    const date = /^\s*(0?[1-9]|1[0-2])\s*[/ -]?\s*(?:20)?(\d\d)\s*$/.exec(expiry.value);
    if (!date) wrong[expiry.id] = expiry.dataset.wrong ?? "";
    else if (`20${date[2]}-${date[1].padStart(2, "0")}` < (expiry.dataset.month ?? "")) wrong[expiry.id] = expiry.dataset.expired ?? "";
    const code = rule?.[2] ?? cvc.dataset.wrong ?? "";
    if (!new RegExp(`^\\d{${/\d/.exec(code)}}$`).test(cvc.value.trim())) wrong[cvc.id] = code;
    return wrong;
  }

  /** Sends the card to the processor. @returns {Promise<string>} */
  async function token() {
    const card = { number: fields.number.value, expiry: fields.expiry.value, cvc: fields.cvc.value };
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch(options.tokens, { method: "POST", headers, body: JSON.stringify(card) });
    const said = await answer.json();
    if (answer.status === 400 && said.errors) throw said.errors;
    if (!answer.ok) throw new Error(`the processor answered ${answer.status}`);
    return said.token;
  }

  window.cardFields = {
    mount(place, given) {
      options = given;
      const [number, expiry, cvc] = ["number", "expiry", "cvc"].map((name) => place.querySelector(`#card_${name}`));
      fields = { number, expiry, cvc };
      for (const field of Object.values(fields)) field.removeAttribute("name");
      place.addEventListener("input", format);
      place.addEventListener("change", format);
    },
    check,
    token,
  };
})();
