/** The types of pay.js, version 1. The service serves this file at /v1/pay.d.ts, and it needs no other file. */

/** The request body of openCheckout as an object. openCheckout also accepts the exact JSON text that your server signed. */
export interface CheckoutRequest {
  merchantId: string;
  /** May be inside `order` instead. */
  merchantReference?: string;
  order: CheckoutOrder;
  /** Receives the webhook. Required unless `capture` is false. */
  callbackUrl?: string;
  /** Default: true, which captures the order upon approval. */
  capture?: boolean;
  /** `express` asks the customer for a shipping address. */
  checkoutFlow?: "standard" | "express";
  /** Default: `popup`. */
  display?: Display;
  /** `virtual_card`: onComplete receives a card to charge. Default: `api`. */
  integrationType?: "api" | "virtual_card";
  /** The addresses that a redirect returns to. */
  redirectConfirmUrl?: string;
  redirectCancelUrl?: string;
  metadata?: Record<string, unknown>;
  additionalData?: AdditionalData;
  /** Other signed fields are sent unchanged. */
  [field: string]: unknown;
}

export type Display = "popup" | "iframe" | "redirect";

/** What the shop knows about its customer (Advanced Approvals). Every field is optional and may be sent as text. */
export interface AdditionalData {
  /** Whether the customer is logged in now. */
  customerLoggedIn?: boolean | string;
  /** Whether the customer has an account with the shop. */
  customerIsMember?: boolean | string;
  /** The shop's own score or assessment. */
  merchantRiskAssessment?: string | number;
  /** Whether the shop recognizes the customer's device. */
  sameDevice?: boolean | string;
  /** How the order is delivered: online only, or pickup in a store. */
  fulfillmentMethod?: string;
  /** The date when the account was created, as YYYY-MM-DD. */
  accountCreationDate?: string;
  /** The date of the last successful purchase, as YYYY-MM-DD. */
  lastTransactionDate?: string;
  customerTransactionCount?: string | number;
  customerAverageOrderValue?: string | number;
  customerFraudIncidents?: boolean | string;
}

/** A plain decimal as text, such as "59.98", or a number. */
export type Amount = string | number;

export interface CheckoutOrder {
  /** In units of the currency: "100.50" is one hundred dollars and fifty cents. Text is exact; a number may be printed inexactly. */
  amount: Amount;
  currency: string;
  shippingAmount?: Amount;
  taxAmount?: Amount;
  customer?: Customer;
  lineItems?: LineItem[];
  address?: Address;
  merchantFeeForPaymentPlan?: Amount;
  [field: string]: unknown;
}

export interface Customer {
  firstName?: string;
  lastName?: string;
  email?: string;
  phoneNumber?: string;
  address1?: string;
  address2?: string;
  city?: string;
  state?: string;
  postalCode?: string;
  country?: string;
}

export interface LineItem {
  name?: string;
  description?: string;
  quantity?: number;
  price?: Amount;
  sku?: string;
  isPreOrder?: boolean;
  releaseDate?: string;
}

export interface Address {
  line1: string;
  line2?: string;
  city: string;
  state: string;
  country: string;
  postalCode: string;
}

/** The argument of onComplete. It is only for the page: confirm the order with the webhook or `GET /order`. */
export interface CheckoutResult {
  customer: Customer;
  orderId?: string;
  merchantFeeForPaymentPlan?: number;
  /** Express flow only: the shipping address and the recipient. */
  shippingAddress?: Address & { name: string };
  /** Virtual-card checkout only. */
  card?: { number: string; cvc: string; expirationMonth: string; expirationYear: string; brand: string };
  /** Virtual-card checkout only. */
  cardholder?: {
    name: string;
    firstName: string;
    lastName: string;
    address1: string;
    address2: string;
    city: string;
    state: string;
    postalCode: string;
    country: string;
  };
}

export type CloseReason = "closed_by_customer" | "session_expired" | "closed_by_merchant" | "declined";

/** How a checkout ended. The promise of openCheckout resolves to this and never rejects. */
export type CheckoutOutcome =
  | { status: "complete"; result: CheckoutResult }
  | { status: "closed"; message: CloseReason }
  | { status: "error"; messages: string[] };

export interface PayApi {
  /** Opens a checkout. Call this in a click handler. If a checkout is open already, this brings its window to the front. */
  openCheckout(requestBody: CheckoutRequest | string, signature: string): Promise<CheckoutOutcome>;
  /** Sets a callback. A later call replaces it. */
  onComplete(callback: (result: CheckoutResult) => unknown): void;
  onClose(callback: (message: CloseReason) => unknown): void;
  onError(callback: (messages: string[]) => unknown): void;
  focusCheckout(): void;
  /** Ends the customer's session and closes the window: the order is Abandoned. If the customer has paid by then, the checkout is reported as complete. */
  closeCheckout(): void;
}

/** A call that was queued before the script loaded: a function, or the name of a method and its arguments. */
export type QueuedCall =
  | ((pay: Pay) => unknown)
  | readonly ["openCheckout", CheckoutRequest | string, string]
  | readonly ["onComplete", (result: CheckoutResult) => unknown]
  | readonly ["onClose", (message: CloseReason) => unknown]
  | readonly ["onError", (messages: string[]) => unknown]
  | readonly ["focusCheckout"]
  | readonly ["closeCheckout"];

export interface Pay {
  readonly version: string;
  readonly apiCheckout: PayApi;
  /** The same object as `apiCheckout`. */
  readonly payApiCheckout: PayApi;
  /** The queue of calls. Before the script has loaded, it is a plain array. Afterward, `push` runs a call at once. */
  readonly q: { push(...calls: QueuedCall[]): number };
}

/** The values that a `pay-checkout` listener sets for a virtual-card checkout. Each may be a promise. */
export interface PayCheckoutDetail {
  request: CheckoutRequest | string | Promise<CheckoutRequest | string> | undefined;
  signature: string | Promise<string> | undefined;
  /** Not signed. If the signed request has additionalData too, that is used instead. */
  additionalData: AdditionalData | Promise<AdditionalData | undefined> | undefined;
}

export interface PayButtonElement extends HTMLElement {
  disabled: boolean;
  busy: boolean;
  request: PayCheckoutDetail["request"];
  signature: PayCheckoutDetail["signature"];
  additionalData: PayCheckoutDetail["additionalData"];
}

declare global {
  var pay: Pay;
  interface Window {
    pay: Pay;
  }
  interface HTMLElementTagNameMap {
    "pay-button": PayButtonElement;
  }
  interface HTMLElementEventMap {
    "pay-checkout": CustomEvent<PayCheckoutDetail>;
  }
}
