// Wrong uses by a merchant. Each line below the import and `api` fails with the error that its comment names.
import type { CheckoutOutcome, CheckoutRequest } from "../../types/pay";
const api = window.pay.apiCheckout;
const none: CheckoutRequest = { merchantReference: "A-1", order: { amount: 1, currency: "USD" } }; // TS2741
const text: CheckoutRequest = { merchantId: "m", merchantReference: "A-1", order: { amount: true, currency: "USD" } }; // TS2322
const shown: CheckoutRequest = { ...text, display: "window" }; // TS2322
api.openCheckout(text); // TS2554
api.openCheckout(42, "c2lnbmF0dXJl"); // TS2345
api.openCheckout(text, null); // TS2345
api.onClose((message) => message === "gone"); // TS2367
api.onComplete((result: string) => result); // TS2345
api.onError((messages) => messages.toUpperCase()); // TS2339
api.focusCheckout("now"); // TS2554
window.pay.apiCheckout = api; // TS2540
window.pay.q.push(["openCheckout", text]); // TS2345
const early = (outcome: CheckoutOutcome) => outcome.result; // TS2339
document.createElement("pay-button").busy = "yes"; // TS2322
document.createElement("pay-button").additionalData = "logged in"; // TS2322
document.createElement("pay-button").additionalData = { customerLogedIn: true }; // TS2353
const kind: CheckoutRequest = { ...text, integrationType: "card" }; // TS2322
window.pay.open(); // TS2339
