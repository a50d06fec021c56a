// The states of a checkout, and every way from one to the next. What a state does not list has no effect in it.

export type State =
  /** The signature or the answer of the service is awaited. */
  | "asking"
  /** The checkout's page was given to the window; it has not answered. */
  | "shown"
  /** The checkout's page runs. */
  | "answered"
  /** The shop called closeCheckout, and the page was asked to end. */
  | "closing"
  /** The customer left. The service is asked whether they had paid just before. */
  | "looking"
  /** The shop closed the checkout. The service is asked to end the session. */
  | "ending"
  /** The payment is made, and the shop's onComplete runs. */
  | "paid"
  /** The end is known. */
  | "ended";

export type Happening =
  /** The service has answered: there is a page to show. */
  | "opened"
  /** The service cannot be reached. */
  | "unreachable"
  /** The request was refused, or there is no signature. */
  | "refused"
  /** The page says that it runs; each page of the checkout says so. */
  | "ready"
  /** The page has said nothing for too long. */
  | "silent"
  /** The merchant's page may not show the frame. */
  | "blocked"
  /** The window is gone. */
  | "gone"
  /** The customer left by the page's own way out. */
  | "left"
  /** The shop calls closeCheckout. */
  | "close"
  /** The page was asked to end and did not. */
  | "late"
  /** The page says: paid. */
  | "complete"
  /** The page says: ended without payment, and not by the customer. */
  | "closed"
  /** The service has said how it ended, or could not say in time. */
  | "found"
  /** The shop's onComplete is done. */
  | "told";

export type Act =
  | "show"
  | "greet"
  | "answerSilence"
  | "redirect"
  | "askToEnd"
  | "askAgainToEnd"
  | "leave"
  | "report"
  | "reportClosedByShop"
  | "reportRefused"
  | "reportUnreachable"
  | "putAway";

type Ways = { readonly [on in Happening]?: readonly [to: State, act?: Act] };

export const EDGES: Readonly<Record<State, Ways>> = {
  asking: {
    opened: ["shown", "show"],
    // The order had ended before.
    complete: ["paid", "report"],
    closed: ["ended", "report"],
    refused: ["ended", "reportRefused"],
    unreachable: ["ended", "reportUnreachable"],
    gone: ["looking", "leave"],
    close: ["ending", "leave"],
  },
  shown: {
    ready: ["answered", "greet"],
    silent: ["shown", "answerSilence"],
    blocked: ["shown", "redirect"],
    complete: ["paid", "report"],
    closed: ["ended", "report"],
    left: ["looking", "leave"],
    gone: ["looking", "leave"],
    close: ["ending", "leave"],
  },
  answered: {
    ready: ["answered", "greet"],
    complete: ["paid", "report"],
    closed: ["ended", "report"],
    // By Escape in the frame, perhaps while a card was being charged.
    left: ["looking", "leave"],
    gone: ["looking", "leave"],
    close: ["closing", "askToEnd"],
  },
  closing: {
    ready: ["closing", "askAgainToEnd"],
    complete: ["paid", "report"],
    left: ["ended", "reportClosedByShop"],
    // By a page without a way out.
    closed: ["ending", "leave"],
    gone: ["ending", "leave"],
    late: ["ending", "leave"],
  },
  looking: {
    complete: ["paid", "report"],
    closed: ["ended", "report"],
    found: ["ended", "report"],
    // What `leave` does next depends on the state: from here on it ends the session.
    close: ["ending"],
  },
  ending: {
    complete: ["paid", "report"],
    left: ["ended", "reportClosedByShop"],
    found: ["ended", "report"],
  },
  paid: {
    told: ["ended"],
    close: ["paid", "putAway"],
  },
  ended: {
    close: ["ended", "putAway"],
  },
};
