// Defines window.pay. The script may be loaded early or late, or twice: there is only one window.pay, and no other global.
import type { CheckoutOutcome, CheckoutRequest, Pay, PayApi, PayCheckoutDetail, QueuedCall } from "../types/pay";
import { additionalHeader, displayOf, Failure, sign, type Signed } from "./api.ts";
import { define, type Start } from "./button.ts";
import { Callbacks } from "./callbacks.ts";
import { Checkout } from "./checkout.ts";
import { baseOf, takeOver } from "./loading.ts";
import { record, trace } from "./trace.ts";
import { within } from "./waiting.ts";

const callbacks = new Callbacks();
/** The script waits this many milliseconds for the page's additionalData. */
const PATIENCE = 5_000;

/** Get the header for additionalData. The data is optional, so an error goes to onError, and the checkout continues. */
async function additional(data: PayCheckoutDetail["additionalData"]): Promise<Pick<Signed, "additional">> {
  try {
    const failed = (error: unknown) => new Failure([`additionalData is not available: ${String(error)}`]);
    const had = async () => ({ data: await data });
    const given = await within(PATIENCE, () => had().catch((error: unknown) => ({ failure: failed(error) })));
    if (!given) throw new Failure(["additionalData was not available in time."]);
    if ("failure" in given) throw given.failure;
    return given.data == null ? {} : { additional: additionalHeader(given.data) };
  } catch (error) {
    if (error instanceof Failure) void callbacks.call("onError", error.messages);
    return {};
  }
}

function makeApi(base: string): { api: PayApi; start: Start } {
  let current: Checkout | null = null;

  const begin = (display: Signed["display"], signing: Signed | Promise<Signed>) => {
    current?.putAway();
    current = new Checkout(base, display, signing, callbacks);
    return current.outcome;
  };
  const running = (): Promise<CheckoutOutcome> | null => {
    if (!current || current.over) return null;
    current.focus();
    return current.outcome;
  };
  addEventListener("message", (event) => current?.hear(event));
  // A callback may navigate to another page, such as a thank-you page. The window of an ended checkout must not stay open.
  addEventListener("pagehide", () => current?.over && current.putAway());
  // After a redirect, the Back button shows this page with all its variables. The next click must open the checkout again.
  addEventListener("pageshow", (event) => event.persisted && current?.returned());

  const api: PayApi = {
    openCheckout(requestBody: CheckoutRequest | string, signature: string) {
      trace("call", "openCheckout");
      const open = running();
      if (open) return open;
      try {
        const signed = sign(requestBody, signature);
        if (current?.completes(signed)) return current.outcome;
        return begin(signed.display, signed);
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        const messages = error.messages;
        return callbacks.call("onError", messages).then(() => ({ status: "error", messages }));
      }
    },
    onComplete: (callback) => callbacks.set("onComplete", callback),
    onClose: (callback) => callbacks.set("onClose", callback),
    onError: (callback) => callbacks.set("onError", callback),
    focusCheckout() {
      trace("call", "focusCheckout");
      if (current && !current.over) current.focus();
    },
    closeCheckout() {
      trace("call", "closeCheckout");
      current?.close();
    },
  };
  // The signature may be a promise. The window is opened at once, during the click.
  const start: Start = ({ request, signature, additionalData }) => {
    trace("call", "pay-button");
    const given = Promise.all([request, signature, additional(additionalData)]);
    const signing = given.then(([body, signed, more]) => ({ ...sign(body ?? "", signed ?? "", true), ...more }));
    const open = running();
    if (!open) return begin(displayOf(request), signing);
    signing.catch(() => undefined);
    return open;
  };
  return { api, start };
}

function main(): void {
  const found = baseOf(document);
  if (!found) return console.error("pay.js: its script element was not found. Load the script from the service, as /v1/pay.js.");
  const early = takeOver(window as unknown as { pay?: unknown });
  if (!early) return;
  if (found.inspect) {
    const feed = record();
    import(`${found.base}/v1/inspect.js`).then(
      (inspector: { start(feed: unknown): void }) => inspector.start(feed),
      () => console.warn("pay.js: there is no inspector here. It exists in the sandbox only."),
    );
  }
  const { api, start } = makeApi(found.base);
  const one = Object.assign(early.api, api);
  const run = (call: QueuedCall) => {
    if (typeof call === "function") return void call(pay);
    const [name, ...values] = call;
    if (!Object.hasOwn(api, name)) throw new TypeError(`pay.q: there is no function ${String(name)}.`);
    (one[name] as (...values: readonly unknown[]) => unknown)(...values);
  };
  const q = {
    push(...calls: QueuedCall[]) {
      for (const call of calls) {
        try {
          run(call);
        } catch (error) {
          // Report the error as an error of the page, and continue with the next call.
          setTimeout(() => {
            throw error;
          });
        }
      }
      return 0;
    },
  };
  const pay: Pay = Object.assign(early.pay, { version: "1", apiCheckout: one, payApiCheckout: one, q });
  window.pay = pay;
  define(start);
  q.push(...early.calls);
}

main();
