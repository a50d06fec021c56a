/** Types of pay.js, version 1. Served at /v1/pay.d.ts; nothing else is needed to use them. */

/** What openCheckout takes, as an object. As text it is the exact JSON that your server signed. */
export interface CheckoutRequest {
  merchantId: string;
  /** May stand in `order` instead. */
  merchantReference?: string;
  order: CheckoutOrder;
  /** Receives the webhook. Required unless `capture` is false. */
  callbackUrl?: string;
  /** Absent means true: captured at once. */
  capture?: boolean;
  /** `express` asks the customer for a shipping address. */
  checkoutFlow?: "standard" | "express";
  /** As it comes `popup`. */
  display?: Display;
  /** `virtual_card`: onComplete is given a card to charge. As it comes `api`. */
  integrationType?: "api" | "virtual_card";
  /** Where a redirect returns to. */
  redirectConfirmUrl?: string;
  redirectCancelUrl?: string;
  metadata?: Record<string, unknown>;
  additionalData?: AdditionalData;
  /** Further signed fields pass through untouched. */
  [field: string]: unknown;
}

export type Display = "popup" | "iframe" | "redirect";

/** What the shop knows of its customer (Advanced Approvals); every field may be missing, and may be sent as text. */
export interface AdditionalData {
  /** Logged in now. */
  customerLoggedIn?: boolean | string;
  /** Has an account with the shop. */
  customerIsMember?: boolean | string;
  /** The shop's own score or assessment. */
  merchantRiskAssessment?: string | number;
  /** The device is recognized. */
  sameDevice?: boolean | string;
  /** Online only, or pickup in a store. */
  fulfillmentMethod?: string;
  /** YYYY-MM-DD. */
  accountCreationDate?: string;
  /** Of the last successful purchase, YYYY-MM-DD. */
  lastTransactionDate?: string;
  customerTransactionCount?: string | number;
  customerAverageOrderValue?: string | number;
  customerFraudIncidents?: boolean | string;
}

/** A plain decimal as text, such as "59.98", or a number. */
export type Amount = string | number;

export interface CheckoutOrder {
  /** In units of the currency: "100.50" is one hundred dollars and fifty cents. Text is exact; a number prints as it likes. */
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

/** The argument of onComplete. Advice for the page: confirm the order from the webhook or `GET /order`. */
export interface CheckoutResult {
  customer: Customer;
  orderId?: string;
  merchantFeeForPaymentPlan?: number;
  /** Express flow only: where to send it, and to whom. */
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

/** How a checkout ended, for those who prefer the promise. It never rejects. */
export type CheckoutOutcome =
  | { status: "complete"; result: CheckoutResult }
  | { status: "closed"; message: CloseReason }
  | { status: "error"; messages: string[] };

export interface PayApi {
  /** Call it inside the click. While a checkout is open, it brings that one to the front. */
  openCheckout(requestBody: CheckoutRequest | string, signature: string): Promise<CheckoutOutcome>;
  /** The last function given is the one that is called. */
  onComplete(callback: (result: CheckoutResult) => unknown): void;
  onClose(callback: (message: CloseReason) => unknown): void;
  onError(callback: (messages: string[]) => unknown): void;
  focusCheckout(): void;
  /** Ends the customer's session and closes the window: the order is Abandoned. What was paid by then is reported complete. */
  closeCheckout(): void;
}

/** A call made before the script was there: a function, or a method's name and its arguments. */
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
  /** Runs a call now; before the script has loaded it is a plain array that collects them. */
  readonly q: { push(...calls: QueuedCall[]): number };
}

/** What a `pay-checkout` listener fills in, for a virtual-card checkout. Each may be a promise. */
export interface PayCheckoutDetail {
  request: CheckoutRequest | string | Promise<CheckoutRequest | string> | undefined;
  signature: string | Promise<string> | undefined;
  /** Not signed; what the signed request carries stands before it. */
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
