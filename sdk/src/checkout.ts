// One checkout, from the click to its end. A checkout ends only once. Later messages are acknowledged and ignored.
import type { CheckoutOutcome, Display } from "../types/pay";
import { authorize, Failure, leave, type Opened, shownAs, type Signed } from "./api.ts";
import type { Callbacks } from "./callbacks.ts";
import { type FromPage, type FromSdk, judge, VERSION } from "./messages.ts";
import { openModal } from "./modal.ts";
import { type Act, EDGES, type Happening, type State } from "./states.ts";
import { openPopup, type Surface } from "./surface.ts";
import { trace } from "./trace.ts";
import { within } from "./waiting.ts";

// All times are in milliseconds.
/** The pause between two checks whether the window is still open. */
const WATCH = 250;
/** After this time, the window tells the customer that opening is slow. */
const SLOW = 4_000;
/** How long a page in a frame or a popup may take to send its first message. */
const FRAME = 8_000;
const POPUP = 15_000;
/** How long to wait for the page after it was asked to end. */
const LEAVE = 4_000;
/** How long to wait for the service's answer about a payment. */
const LAST_LOOK = 3_000;
/** How long to wait for the service to end the session. */
const LAST_WORD = 8_000;
/** A popup that seems closed this soon was cut off by the page's Cross-Origin-Opener-Policy. The customer did not close it. */
const SEVERED = 2_500;

type Ended = NonNullable<Opened["ended"]>;
const BY_CUSTOMER: CheckoutOutcome = { status: "closed", message: "closed_by_customer" };
const BY_SHOP: CheckoutOutcome = { status: "closed", message: "closed_by_merchant" };

export class Checkout {
  readonly outcome: Promise<CheckoutOutcome>;
  private state: State = "asking";
  private surface: Surface | null = null;
  private signed: Signed | null = null;
  private opened: Opened | null = null;
  /** The outcome, as far as it is known. */
  private end: CheckoutOutcome = BY_CUSTOMER;
  private asking: Promise<unknown> = Promise.resolve();
  private readonly stop = new AbortController();
  private readonly began = Date.now();
  private readonly origin: string;
  private settle: (outcome: CheckoutOutcome) => void = () => undefined;
  private readonly acts: Record<Act, () => unknown> = {
    show: () => this.show(),
    greet: () => this.surface?.ready(),
    answerSilence: () => this.answerSilence(),
    redirect: () => this.redirect(),
    askToEnd: () => this.askToEnd(),
    askAgainToEnd: () => this.askAgainToEnd(),
    leave: () => this.leave(),
    report: () => this.report(),
    reportClosedByShop: () => this.reportClosedByShop(),
    reportRefused: () => this.reportRefused(),
    reportUnreachable: () => this.reportUnreachable(),
    putAway: () => this.putAway(),
  };

  /** Call this synchronously in a click handler: it opens the window, which browsers allow only during a click. */
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

  /** Handle a message to the merchant's page. Messages of other senders are ignored. */
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
    if (message.type === "ready") this.on("ready");
    if (message.type === "error" && !this.over) void this.callbacks.call("onError", message.messages);
    if (message.type === "complete") {
      this.say({ type: "ack", of: "complete" });
      this.on("complete", { status: "complete", result: message.result });
    }
    if (message.type === "closed") {
      this.say({ type: "ack", of: "closed" });
      if (message.message === "closed_by_customer") this.on("left");
      else this.on("closed", { status: "closed", message: message.message });
    }
  }

  focus(): void {
    if (this.surface) this.surface.focus();
    // The page goes to the checkout. It is still here, because the connection is slow or the customer stopped it: go again.
    else if (this.is("shown")) this.redirect();
  }

  /** The browser shows this page again from its cache. If the page had gone to the checkout, the customer came back. */
  returned(): void {
    if (this.is("shown") && !this.surface) this.on("gone");
  }

  /** End the customer's session. A payment that was already made stays valid and is reported as complete. */
  close(): void {
    this.on("close");
  }

  /** Whether the outcome is known. The shop's callback may still be running. */
  get over(): boolean {
    return this.is("paid", "ended");
  }

  /** Whether the payment of this body is being reported now. Then a second click must not open the checkout again. */
  completes(signed: Signed): boolean {
    return this.is("paid") && this.signed?.body === signed.body;
  }

  /** Remove the window or the modal. */
  putAway(): void {
    this.surface?.close();
  }

  private is(...states: State[]): boolean {
    return states.includes(this.state);
  }

  /** Handle an event: look it up in the table of edges, change the state, and run the action. */
  private on(happening: Happening, end?: CheckoutOutcome): void {
    const edge = EDGES[this.state][happening];
    if (!edge) return;
    const [to, act] = edge;
    this.state = to;
    if (end) this.end = end;
    if (act) void this.acts[act]();
  }

  private async run(signing: Signed | Promise<Signed>): Promise<void> {
    const slow = setTimeout(() => this.surface?.say("slow"), SLOW);
    try {
      this.signed = await signing;
      // The checkout was closed before the signature arrived, so do not call the service.
      if (!this.is("asking")) return;
      const asking = authorize(this.base, this.signed, this.stop.signal);
      this.asking = asking.catch(() => undefined);
      this.opened = await asking;
    } catch (error) {
      const failure = error instanceof Failure ? error : new Failure([`The signed request is not available: ${String(error)}`]);
      return this.on(failure.network ? "unreachable" : "refused", { status: "error", messages: failure.messages });
    } finally {
      clearTimeout(slow);
    }
    // The checkout was closed before the service answered. `leave` reads the answer.
    if (!this.is("asking")) return;
    const { ended } = this.opened;
    if (ended && !this.hasCardToShow()) this.endedBefore(ended);
    else this.on("opened");
  }

  private endedBefore(ended: Ended): void {
    this.on("result" in ended ? "complete" : "closed", outcomeOf(ended));
  }

  /** Whether the checkout page must still show a virtual card. Only that page provides the card; an answer of the service never does. */
  private hasCardToShow(): boolean {
    const ended = this.opened?.ended;
    return !!ended && "result" in ended && !ended.result.card && !!this.signed?.virtualCard && !!this.surface;
  }

  private show(): void {
    if (!this.opened) return;
    const surface = this.surface;
    if (!surface) return this.redirect();
    surface.show(shownAs(this.opened.url, surface.kind));
    setTimeout(() => this.surface === surface && this.on("silent"), surface.kind === "iframe" ? FRAME : POPUP);
  }

  private answerSilence(): void {
    if (this.surface?.kind === "iframe") this.redirect();
    else void this.callbacks.call("onError", ["The checkout page has not loaded yet. The connection may be slow."]);
  }

  /** The last fallback, which always works: the merchant's page redirects to the checkout, which later redirects back. */
  private redirect(): void {
    if (!this.opened) return;
    this.surface?.close();
    this.surface = null;
    // The checkout has already ended. A redirect would only return to this page, which would redirect again.
    if (this.opened.ended) return this.endedBefore(this.opened.ended);
    trace("window", "redirect");
    location.assign(shownAs(this.opened.url, "redirect"));
  }

  private modal(): Surface {
    return openModal(this.origin, () => this.on("gone"), () => this.on("blocked"));
  }

  private askToEnd(): void {
    this.say({ type: "close" });
    setTimeout(() => this.on("late"), LEAVE);
  }

  private askAgainToEnd(): void {
    this.surface?.ready();
    this.say({ type: "close" });
  }

  /** Check whether the window is still open. */
  private watch(): void {
    if (!this.surface?.gone()) return;
    const early = Date.now() - this.began < SEVERED || !document.hasFocus();
    if (!this.is("asking", "shown") || this.surface.kind !== "popup" || !early) return this.on("gone");
    trace("window", "popup cut off from this page; modal instead");
    this.surface = this.modal();
    this.show();
  }

  /** Close the window, and ask the service whether the customer paid. If the shop closed the checkout, end the session. */
  private async leave(): Promise<void> {
    this.surface?.close();
    if (this.signed && !this.opened) await within(this.is("ending") ? LEAVE : LAST_LOOK, () => this.asking);
    this.stop.abort();
    const { signed, opened } = this;
    let ended = opened?.ended;
    if (signed && opened && !ended && !this.is("ending")) {
      ended = await within(LAST_LOOK, async (stop) => (await authorize(this.base, signed, stop, 1)).ended);
    }
    if (signed && isGivenUp(ended) && this.is("ending")) ended = await within(LAST_WORD, (stop) => leave(this.base, signed, stop));
    if (ended && "result" in ended) this.on("complete", outcomeOf(ended));
    else this.on("found", isGivenUp(ended) ? (this.is("ending") ? BY_SHOP : BY_CUSTOMER) : outcomeOf(ended));
  }

  /** Call the shop's callback, then close the window. */
  private async report(): Promise<void> {
    const { end } = this;
    if (end.status === "complete") await this.callbacks.call("onComplete", end.result);
    else if (end.status === "closed") await this.callbacks.call("onClose", end.message);
    this.surface?.close();
    this.on("told");
    this.settle(end);
  }

  private reportClosedByShop(): Promise<void> {
    this.end = BY_SHOP;
    return this.report();
  }

  /** The shop must fix the request, so only the shop's onError shows the error. */
  private reportRefused(): Promise<void> {
    this.surface?.close();
    return this.reportError();
  }

  /** The connection failed, so the window tells the customer. */
  private reportUnreachable(): Promise<void> {
    this.surface?.say("failed");
    return this.reportError();
  }

  private async reportError(): Promise<void> {
    const { end } = this;
    if (end.status === "error") await this.callbacks.call("onError", end.messages);
    this.settle(end);
  }

  private say(what: { type: "ack"; of: "complete" | "closed" } | { type: "close" }): void {
    if (!this.opened) return;
    const message: FromSdk = { pay: VERSION, checkout: this.opened.token, ...what };
    trace("message", `page ← ${message.type}`, message);
    this.surface?.window()?.postMessage(message, this.origin);
  }
}

const outcomeOf = (ended: Ended): CheckoutOutcome =>
  "result" in ended ? { status: "complete", result: ended.result } : { status: "closed", message: ended.message };
/** Whether the checkout is neither paid nor declined, as far as is known: it is open, or the customer left. */
const isGivenUp = (ended: Ended | undefined): ended is undefined | { message: "closed_by_customer" } =>
  !ended || ("message" in ended && ended.message === "closed_by_customer");
