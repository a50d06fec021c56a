// Correct uses by a merchant. This file must compile.
import type { CheckoutOutcome, CheckoutRequest, CheckoutResult, CloseReason, PayButtonElement } from "../../types/pay";

const request: CheckoutRequest = {
  merchantId: "018f2b5e-0000-7000-8000-000000000000",
  merchantReference: "A-1",
  order: { amount: 100.5, currency: "USD", customer: { firstName: "Jordan" }, lineItems: [{ name: "Kettle", price: 100.5 }] },
  callbackUrl: "https://shop.example/hook",
  checkoutFlow: "express",
  display: "iframe",
  email: "flat@layout.example",
};
const { apiCheckout, payApiCheckout } = window.pay;
apiCheckout.onComplete(async (result: CheckoutResult) => console.log(result.customer.email, result.card?.number));
payApiCheckout.onClose((message: CloseReason) => console.log(message));
apiCheckout.onError((messages) => console.log(messages.join(" ")));
const opened: Promise<CheckoutOutcome> = apiCheckout.openCheckout(request, "c2lnbmF0dXJl");
void apiCheckout.openCheckout(JSON.stringify(request), "c2lnbmF0dXJl");
void opened.then((outcome) => {
  if (outcome.status === "complete") console.log(outcome.result.orderId);
  else if (outcome.status === "closed") console.log(outcome.message === "declined");
  else console.log(outcome.messages.length);
});
window.pay.q.push(["onClose", (message: CloseReason) => message.length], ["focusCheckout"], (pay) => pay.apiCheckout.closeCheckout());
const button: PayButtonElement = document.createElement("pay-button");
button.busy = true;
button.request = Promise.resolve(request);
button.additionalData = { customerIsMember: "true" };
button.request = { ...request, integrationType: "virtual_card", additionalData: { sameDevice: true } };
button.addEventListener("pay-checkout", (event) => {
  event.detail.additionalData = Promise.resolve({ customerLoggedIn: true, customerTransactionCount: 7, lastTransactionDate: "2026-10-01" });
  event.detail.signature = Promise.resolve("c2lnbmF0dXJl");
});
