// The states of a checkout, and the table of edges between them. An event that a state does not list has no effect.

export type State =
  /** Waiting for the signature or for the service's answer. */
  | "asking"
  /** The window loads the checkout page, which has not sent a message yet. */
  | "shown"
  /** The checkout page is running. */
  | "answered"
  /** The shop called closeCheckout, and the checkout page was asked to end. */
  | "closing"
  /** The customer left. Waiting for the service's answer whether they paid just before. */
  | "looking"
  /** The shop closed the checkout. Waiting for the service to end the session. */
  | "ending"
  /** The payment was made, and the shop's onComplete is running. */
  | "paid"
  /** The checkout has ended. */
  | "ended";

export type Happening =
  /** The service answered with the address of a checkout page. */
  | "opened"
  /** The service cannot be reached. */
  | "unreachable"
  /** The service refused the request, or there is no signature. */
  | "refused"
  /** A page of the checkout reports that it runs. Every page does. */
  | "ready"
  /** The checkout page has not sent a message in time. */
  | "silent"
  /** The merchant's page does not allow the frame. */
  | "blocked"
  /** The window is gone. */
  | "gone"
  /** The customer canceled on the checkout page. */
  | "left"
  /** The shop called closeCheckout. */
  | "close"
  /** The checkout page was asked to end, and did not end in time. */
  | "late"
  /** The checkout page or the service reports the payment. */
  | "complete"
  /** The checkout page or the service reports an end without payment that the customer did not cause. */
  | "closed"
  /** The service answered how the checkout ended, or did not answer in time. */
  | "found"
  /** The shop's onComplete has settled. */
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
    // The customer may have pressed Escape in the frame while a card was being charged.
    left: ["looking", "leave"],
    gone: ["looking", "leave"],
    close: ["closing", "askToEnd"],
  },
  closing: {
    ready: ["closing", "askAgainToEnd"],
    complete: ["paid", "report"],
    left: ["ended", "reportClosedByShop"],
    // Sent by a page that has no cancel form.
    closed: ["ending", "leave"],
    gone: ["ending", "leave"],
    late: ["ending", "leave"],
  },
  looking: {
    complete: ["paid", "report"],
    closed: ["ended", "report"],
    found: ["ended", "report"],
    // The action `leave` is already running. In the new state it ends the session.
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
