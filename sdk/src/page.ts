// The hosted page's side, in a popup or a frame. It speaks to one window at one origin; without them it is silent.
import type { CheckoutResult, CloseReason } from "../types/pay";
import { type FromPage, isOrigin, judge, VERSION } from "./messages.ts";

/** Milliseconds. */
const AGAIN = 300;
const ENOUGH = 10_000;
/** The merchant's page puts its window away, once its callback has ended; one that has gone does not. */
const LEFT_ALONE = 15_000;

type Told = FromPage extends infer Each ? (Each extends FromPage ? Omit<Each, "pay" | "checkout"> : never) : never;

interface Facts {
  checkout: string;
  origin: string;
  peer: Window;
  popup: boolean;
}

/** What the service wrote on <html>; null where nobody listens. */
function facts(root: HTMLElement): Facts | null {
  const { payToken, payOrigin, payDisplay } = root.dataset;
  const peer: Window | null = payDisplay === "popup" ? opener : payDisplay === "iframe" ? parent : null;
  if (!payToken || !payOrigin || !isOrigin(payOrigin) || !peer || peer === window) return null;
  return { checkout: payToken, origin: payOrigin, peer, popup: payDisplay === "popup" };
}

function tell(to: Facts, what: Told): void {
  to.peer.postMessage({ pay: VERSION, checkout: to.checkout, ...what }, to.origin);
}

/** How the checkout ended, if it has. */
function ending(root: HTMLElement): Told | null {
  const { payOutcome, payMessage } = root.dataset;
  if (payOutcome === "closed") return { type: "closed", message: (payMessage || "closed_by_customer") as CloseReason };
  if (payOutcome !== "complete") return null;
  const result = document.getElementById("pay-result")?.textContent ?? "";
  return { type: "complete", result: JSON.parse(result) as CheckoutResult };
}

/** Say it until it has been heard. */
function repeat(to: Facts, what: Told): void {
  const since = Date.now();
  const timer = setInterval(() => {
    if (Date.now() - since > ENOUGH) clearInterval(timer);
    else tell(to, what);
  }, AGAIN);
  addEventListener("message", (event) => {
    const verdict = judge(event, { origin: to.origin, window: to.peer, checkout: to.checkout });
    if ("refused" in verdict || verdict.message.type !== "ack" || verdict.message.of !== what.type) return;
    clearInterval(timer);
    if (to.popup) setTimeout(close, LEFT_ALONE);
  });
  tell(to, what);
}

/** The shop asks for the end: the session is left as if by the customer. A page without a way out ends at once. */
function obey(to: Facts): void {
  addEventListener("message", (event) => {
    const verdict = judge(event, { origin: to.origin, window: to.peer, checkout: to.checkout });
    if ("refused" in verdict || verdict.message.type !== "close") return;
    const form = document.querySelector<HTMLFormElement>("form.leave");
    if (form) form.submit();
    else tell(to, { type: "closed", message: "closed_by_merchant" });
  });
}

/** In a frame the modal around hears no key: Escape outside a field is passed on. */
function escape(to: Facts): void {
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
    if (event.target instanceof Element && event.target.matches("input, select, textarea")) return;
    tell(to, { type: "closed", message: "closed_by_customer" });
  });
}

/** What `autofocus` would do, were it let in a frame: as soon as the frame has the focus. */
function focusIn(): void {
  const focus = () => document.querySelector<HTMLElement>("[data-autofocus]")?.focus();
  if (document.hasFocus()) focus();
  else addEventListener("focus", focus, { once: true });
}

function main(): void {
  const root = document.documentElement;
  // The blank window of a page that cut it off (Cross-Origin-Opener-Policy): nobody will ever lead it on.
  if ("payWindow" in root.dataset) return void (opener || close());
  const to = facts(root);
  if (!to) return;
  tell(to, { type: "ready" });
  if (!to.popup) focusIn();
  let end: Told | null;
  try {
    end = ending(root);
  } catch {
    return tell(to, { type: "error", messages: ["The payment is complete, but its result cannot be read. See the webhook."] });
  }
  if (end) return repeat(to, end);
  obey(to);
  if (!to.popup) escape(to);
}

main();
