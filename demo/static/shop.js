// Opens the checkout on this page. Without this script, or if the provider's script does not load, the form beside it works.
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
/** The order of this cart, signed by the shop's server: its number, the exact text, and the signature. */
let signed = null;
/** A result with a card that the shop has not charged yet. It is kept only in this page's memory. */
let due = null;

function say(text) {
  said.textContent = text;
}

/** Call the shop's server and return its answer. */
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
 * Get the signed order before the click, because the click must open the window at once. `closed` says how the last window
 * ended. The button is disabled meanwhile: with the text of an ended order, a window would open and close again.
 */
async function prepare(closed = "") {
  const focused = document.activeElement === button;
  button.disabled = true;
  const { amount, way, display } = here.dataset;
  const answer = await ask("/sign", { amount, way, display, closed, number: signed?.number ?? "" });
  if (answer.next) return location.assign(answer.next);
  if (answer.problem) say(answer.problem);
  else signed = answer;
  button.disabled = Boolean(answer.problem);
  // A disabled button loses the focus.
  if (focused && document.activeElement === document.body) button.focus();
}

/** Go to the shop's result page, which reads the order from the provider. A virtual card is sent to the shop before that. */
async function completed(result) {
  const { number } = signed;
  button.disabled = true;
  if (!result.card) return location.assign(`/confirm?${new URLSearchParams({ order: number, orderId: result.orderId })}`);
  say("Charging the card…");
  const { number: card, cvc, expirationMonth, expirationYear } = result.card;
  const answer = await ask("/card", { number, orderId: result.orderId, card, cvc, expirationMonth, expirationYear });
  if (answer.next) return location.assign(answer.next);
  due = answer.again ? result : null;
  if (due) button.disabled = false;
  else await prepare();
  say(answer.problem);
}

function begin({ apiCheckout }) {
  apiCheckout.onComplete(completed);
  apiCheckout.onClose((message) => {
    say(CLOSED[message]);
    void prepare(message);
  });
  apiCheckout.onError((messages) => say(`The payment could not be opened: ${messages.join(" ")} ${OTHERWISE}`));
  if (here.dataset.way === "card") {
    // The button itself opens a virtual-card checkout, with the request and the signature that are set here.
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
