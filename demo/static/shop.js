// Paying on this page. Without this script, or where the provider's does not load, the form beside it remains.
"use strict";

const CLOSED = {
  closed_by_customer: "You closed the payment before it was finished. Nothing was charged, and your cart is kept.",
  session_expired: "The payment was open for too long and has ended. Nothing was charged. Please begin again.",
  declined: "The payment was declined. You owe nothing for it. You may try again, perhaps with another card or a smaller cart.",
  closed_by_merchant: "The payment was ended by the shop. Nothing was charged. You may begin again.",
};
const UNREACHABLE = "The shop cannot be reached. Your cart is kept: please reload this page in a minute.";
const KEPT = "The shop cannot be reached. Nothing is lost: please press the button again in a minute.";
const OTHERWISE = "You can also continue on the payment page.";

const here = document.querySelector("#here");
const button = here?.querySelector("pay-button");
const said = document.querySelector("#said");
/** The order of this cart as the shop's server signed it: its number, the exact text, the signature. */
let signed = null;
/** A result whose card the shop has not charged yet. It stays in this page's memory only. */
let due = null;

function say(text) {
  said.textContent = text;
}

/** What the shop's server answers. */
async function ask(path, more) {
  try {
    const fields = new URLSearchParams({ csrf: here.dataset.csrf, ...more });
    const answer = await fetch(path, { method: "POST", body: fields });
    return await answer.json();
  } catch {
    return { problem: path === "/card" ? KEPT : UNREACHABLE, again: true };
  }
}

/**
 * Before the click, so that the click itself can open the window; `closed` says how the last one ended. Until then there
 * is nothing to click: with the text of the one that ended, a window would open and end at once.
 */
async function prepare(closed = "") {
  button.disabled = true;
  const { amount, way, display } = here.dataset;
  const told = await ask("/sign", { amount, way, display, closed, number: signed?.number ?? "" });
  if (told.next) return location.assign(told.next);
  if (told.problem) say(told.problem);
  else signed = told;
  button.disabled = Boolean(told.problem);
}

/** The shop's own page says how the order stands: what came here is advice. A card goes on to the shop first. */
async function completed(result) {
  const { number } = signed;
  button.disabled = true;
  if (!result.card) return location.assign(`/confirm?${new URLSearchParams({ order: number, orderId: result.orderId })}`);
  say("Charging the card…");
  const { number: card, cvc, expirationMonth, expirationYear } = result.card;
  const told = await ask("/card", { number, orderId: result.orderId, card, cvc, expirationMonth, expirationYear });
  if (told.next) return location.assign(told.next);
  due = told.again ? result : null;
  if (due) button.disabled = false;
  else await prepare();
  say(told.problem);
}

function begin({ apiCheckout }) {
  apiCheckout.onComplete(completed);
  apiCheckout.onClose((message) => {
    say(CLOSED[message]);
    void prepare(message);
  });
  apiCheckout.onError((messages) => say(`The payment could not be opened: ${messages.join(" ")} ${OTHERWISE}`));
  if (here.dataset.way === "card") {
    // A virtual-card checkout: the button opens it by itself, with what it is given here.
    button.addEventListener("pay-checkout", (event) => {
      say("");
      if (due) {
        event.preventDefault();
        return void completed(due);
      }
      event.detail.request = signed.body;
      event.detail.signature = signed.signature;
    });
  } else {
    button.addEventListener("click", () => {
      say("");
      apiCheckout.openCheckout(signed.body, signed.signature);
    });
  }
  here.hidden = false;
  void prepare();
}

if (here) {
  const script = document.createElement("script");
  script.src = here.dataset.sdk;
  script.addEventListener("load", () => begin(window.pay));
  script.addEventListener("error", () => here.classList.add("gone"));
  document.head.append(script);
}
