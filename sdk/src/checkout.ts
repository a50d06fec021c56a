// One checkout, from the click to its end. It ends once; what comes later is acknowledged and otherwise ignored.
import type { CheckoutOutcome, CloseReason, Display } from "../types/pay";
import { authorize, Failure, leave, type Opened, shownAs, type Signed } from "./api.ts";
import type { Callbacks } from "./callbacks.ts";
import { type FromPage, type FromSdk, judge, VERSION } from "./messages.ts";
import { openModal } from "./modal.ts";
import { openPopup, type Surface } from "./surface.ts";
import { trace } from "./trace.ts";
import { within } from "./waiting.ts";

/** Milliseconds. */
const WATCH = 250;
const SLOW = 4_000;
const FRAME = 8_000;
const POPUP = 15_000;
const LEAVE = 4_000;
const LAST_LOOK = 3_000;
const LAST_WORD = 8_000;
/** A window that is "closed" this soon was cut off by the page's Cross-Origin-Opener-Policy, not closed by a hand. */
const SEVERED = 2_500;

export class Checkout {
  readonly outcome: Promise<CheckoutOutcome>;
  over = false;
  /** Paid, and the shop's callback is at work. */
  private complete = false;
  private surface: Surface | null = null;
  private signed: Signed | null = null;
  private opened: Opened | null = null;
  private answered = false;
  private closing = false;
  private leaving = false;
  private asking: Promise<unknown> = Promise.resolve();
  private readonly stop = new AbortController();
  private readonly began = Date.now();
  private readonly origin: string;
  private settle: (outcome: CheckoutOutcome) => void = () => undefined;

  /** Call it inside the click: the window is opened here, before any wait. */
  constructor(
    private readonly base: string,
    display: Display,
    signing: Signed | Promise<Signed>,
    private readonly callbacks: Callbacks,
  ) {
    this.origin = new URL(base).origin;
    this.outcome = new Promise((settle) => (this.settle = settle));
    if (display === "popup") this.surface = openPopup(base);
    if (display === "popup" && !this.surface) trace("window", "popup blocked");
    if (display !== "redirect" && !this.surface) this.surface = this.modal();
    const watch = setInterval(() => (this.over ? clearInterval(watch) : this.watch()), WATCH);
    void this.run(signing);
  }

  /** A message on the merchant's page, from whomever. */
  hear(event: MessageEvent): void {
    if (!this.opened) return;
    const sender = { origin: this.origin, window: this.surface?.window(), checkout: this.opened.token };
    const verdict = judge(event, sender);
    if ("refused" in verdict) {
      if (typeof event.data === "object" && event.data && "pay" in event.data) trace("refused", verdict.refused, { origin: event.origin, data: event.data });
      return;
    }
    const message = verdict.message as FromPage;
    trace("message", `page → ${message.type}`, message);
    if (message.type === "ready") this.ready();
    if (message.type === "error" && !this.over) void this.callbacks.call("onError", message.messages);
    if (message.type === "complete") {
      this.say({ type: "ack", of: "complete" });
      void this.end({ status: "complete", result: message.result });
    }
    if (message.type === "closed") {
      this.say({ type: "ack", of: "closed" });
      void this.closed(message.message);
    }
  }

  focus(): void {
    this.surface?.focus();
  }

  /** End the customer's session; what was paid by then stays paid and is reported so. */
  close(): void {
    if (this.over) this.surface?.close();
    if (this.over || this.closing) return;
    this.closing = true;
    if (!this.answered) return void this.leave("closed_by_merchant");
    this.say({ type: "close" });
    setTimeout(() => void this.leave("closed_by_merchant"), LEAVE);
  }

  /** Whether this body is paid just now, so that a second click must not ask again. */
  completes(signed: Signed): boolean {
    return this.complete && this.signed?.body === signed.body;
  }

  /** Nothing of it stays on the page. */
  putAway(): void {
    this.surface?.close();
  }

  private async run(signing: Signed | Promise<Signed>): Promise<void> {
    const slow = setTimeout(() => this.surface?.say("slow"), SLOW);
    try {
      this.signed = await signing;
      // Closed while the signature was on its way: nothing is asked for.
      if (this.over || this.leaving) return;
      const asking = authorize(this.base, this.signed, this.stop.signal);
      this.asking = asking.catch(() => undefined);
      this.opened = await asking;
    } catch (error) {
      if (!this.over && !this.leaving) await this.fail(error);
      return;
    } finally {
      clearTimeout(slow);
    }
    if (this.over || this.leaving) return;
    const { ended } = this.opened;
    if (ended && !this.hasCardToShow()) await this.end(ending(ended));
    else this.show();
  }

  /** A card is given by the page only, to the browser that paid; an answer to this page never holds one. */
  private hasCardToShow(): boolean {
    const ended = this.opened?.ended;
    return !!ended && "result" in ended && !ended.result.card && !!this.signed?.virtualCard && !!this.surface;
  }

  private show(): void {
    if (!this.opened || this.over) return;
    const surface = this.surface;
    if (!surface) return this.redirect();
    surface.show(shownAs(this.opened.url, surface.kind));
    setTimeout(() => {
      if (this.answered || this.over || this.leaving || this.surface !== surface) return;
      if (surface.kind === "iframe") this.redirect();
      else void this.callbacks.call("onError", ["The checkout page has not loaded yet. The connection may be slow."]);
    }, surface.kind === "iframe" ? FRAME : POPUP);
  }

  /** The last way, that always works: the whole page goes to the checkout and comes back. */
  private redirect(): void {
    if (!this.opened || this.over || this.leaving || this.answered) return;
    this.surface?.close();
    this.surface = null;
    // Paid before: from a redirect it would only come back here, and be led away again.
    if (this.opened.ended) return void this.end(ending(this.opened.ended));
    trace("window", "redirect");
    location.assign(shownAs(this.opened.url, "redirect"));
  }

  private modal(): Surface {
    return openModal(this.origin, () => void this.leave("closed_by_customer"), () => this.redirect());
  }

  private ready(): void {
    this.answered = true;
    this.surface?.ready();
    if (this.closing) this.say({ type: "close" });
  }

  /** Looks whether the window is still there. */
  private watch(): void {
    if (this.leaving || !this.surface?.gone()) return;
    const early = Date.now() - this.began < SEVERED || !document.hasFocus();
    if (this.answered || this.closing || this.surface.kind !== "popup" || !early) return void this.leave("closed_by_customer");
    trace("window", "popup cut off from this page; modal instead");
    this.surface = this.modal();
    this.show();
  }

  private async closed(message: CloseReason): Promise<void> {
    if (this.closing && message === "closed_by_customer") await this.end({ status: "closed", message: "closed_by_merchant" });
    // By Escape in the frame, perhaps while a card was being charged; or by us, on a page without a way out.
    else if (this.closing || message === "closed_by_customer") await this.leave(message);
    else await this.end({ status: "closed", message });
  }

  /** The window goes. Perhaps the payment was made just before: the service is asked. If we close, it ends the session. */
  private async leave(reason: CloseReason): Promise<void> {
    if (this.over || this.leaving) return;
    this.leaving = true;
    this.surface?.close();
    if (this.signed && !this.opened) await within(this.closing ? LEAVE : LAST_LOOK, () => this.asking);
    this.stop.abort();
    const { signed, opened } = this;
    let ended = opened?.ended;
    if (signed && opened && !ended && !this.closing) {
      ended = await within(LAST_LOOK, async (stop) => (await authorize(this.base, signed, stop, 1)).ended);
    }
    const given = !ended || ("message" in ended && ended.message === "closed_by_customer");
    if (signed && given && this.closing) ended = await within(LAST_WORD, (stop) => leave(this.base, signed, stop));
    const left = { message: this.closing ? "closed_by_merchant" : reason } as const;
    await this.end(ending(!ended || ("message" in ended && ended.message === "closed_by_customer") ? left : ended));
  }

  private async fail(error: unknown): Promise<void> {
    const failure = error instanceof Failure ? error : new Failure([`The signed request could not be had: ${String(error)}`]);
    this.over = true;
    // What the shop has to mend is the shop's to say; a broken connection is said where the customer looks.
    if (failure.network) this.surface?.say("failed");
    else this.surface?.close();
    await this.callbacks.call("onError", failure.messages);
    this.settle({ status: "error", messages: failure.messages });
  }

  private async end(outcome: CheckoutOutcome): Promise<void> {
    if (this.over) return;
    this.over = true;
    this.complete = outcome.status === "complete";
    if (outcome.status === "complete") await this.callbacks.call("onComplete", outcome.result);
    else if (outcome.status === "closed") await this.callbacks.call("onClose", outcome.message);
    this.surface?.close();
    this.complete = false;
    this.settle(outcome);
  }

  private say(what: { type: "ack"; of: "complete" | "closed" } | { type: "close" }): void {
    if (!this.opened) return;
    const message: FromSdk = { pay: VERSION, checkout: this.opened.token, ...what };
    trace("message", `page ← ${message.type}`, message);
    this.surface?.window()?.postMessage(message, this.origin);
  }
}

const ending = (ended: NonNullable<Opened["ended"]>): CheckoutOutcome =>
  "result" in ended ? { status: "complete", result: ended.result } : { status: "closed", message: ended.message };
