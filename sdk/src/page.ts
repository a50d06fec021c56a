// The script of the checkout page in a popup or a frame. It exchanges messages with the merchant's page, in one
// window of one origin. Without such a page, this script does nothing.
import type { CheckoutResult, CloseReason } from "../types/pay";
import { type FromPage, isOrigin, judge, VERSION } from "./messages.ts";

/** The page reports the end every AGAIN milliseconds until it is acknowledged, for at most ENOUGH milliseconds. */
const AGAIN = 300;
const ENOUGH = 10_000;
/** A popup closes itself after this many milliseconds. Usually the merchant's page closes it earlier, after its callback. */
const LEFT_ALONE = 15_000;

type Told = FromPage extends infer Each ? (Each extends FromPage ? Omit<Each, "pay" | "checkout"> : never) : never;

interface Facts {
  checkout: string;
  origin: string;
  peer: Window;
  popup: boolean;
}

/** The values that the service wrote on <html>; null if no merchant's page listens. */
function facts(root: HTMLElement): Facts | null {
  const { payToken, payOrigin, payDisplay } = root.dataset;
  const peer: Window | null = payDisplay === "popup" ? opener : payDisplay === "iframe" ? parent : null;
  if (!payToken || !payOrigin || !isOrigin(payOrigin) || !peer || peer === window) return null;
  return { checkout: payToken, origin: payOrigin, peer, popup: payDisplay === "popup" };
}

function tell(to: Facts, what: Told): void {
  to.peer.postMessage({ pay: VERSION, checkout: to.checkout, ...what }, to.origin);
}

/** The message about the end of the checkout; null if it is still open. */
function ending(root: HTMLElement): Told | null {
  const { payOutcome, payMessage } = root.dataset;
  if (payOutcome === "closed") return { type: "closed", message: (payMessage || "closed_by_customer") as CloseReason };
  if (payOutcome !== "complete") return null;
  const result = document.getElementById("pay-result")?.textContent ?? "";
  return { type: "complete", result: JSON.parse(result) as CheckoutResult };
}

/** Send a message repeatedly until it is acknowledged. */
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

/** When the shop asks to close, submit the page's cancel form. A page without that form reports the end at once. */
function obey(to: Facts): void {
  addEventListener("message", (event) => {
    const verdict = judge(event, { origin: to.origin, window: to.peer, checkout: to.checkout });
    if ("refused" in verdict || verdict.message.type !== "close") return;
    const form = document.querySelector<HTMLFormElement>("form.leave");
    if (form) form.submit();
    else tell(to, { type: "closed", message: "closed_by_merchant" });
  });
}

/** Report Escape outside of fields to the merchant's page. The modal around the frame does not get the frame's key events. */
function escape(to: Facts): void {
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
    if (event.target instanceof Element && event.target.matches("input, select, textarea")) return;
    tell(to, { type: "closed", message: "closed_by_customer" });
  });
}

/** Do what `autofocus` does, which browsers do not allow in this frame: set the focus when the frame gets it. */
function focusIn(): void {
  const focus = () => document.querySelector<HTMLElement>("[data-autofocus]")?.focus();
  if (document.hasFocus()) focus();
  else addEventListener("focus", focus, { once: true });
}

function main(): void {
  const root = document.documentElement;
  // This is the blank page of a new popup. If a Cross-Origin-Opener-Policy cut it off from its opener, close it.
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
