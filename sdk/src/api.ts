// The calls to the service that open and leave a checkout. Each sends the signed body unchanged, and returns the answer or
// throws a Failure with messages for onError.
import type { CheckoutRequest, CheckoutResult, CloseReason, Display } from "../types/pay";
import { isReason } from "./messages.ts";
import { inspected, trace } from "./trace.ts";

export interface Signed {
  /** The JSON text that was signed. */
  body: string;
  signature: string;
  display: Display;
  virtualCard: boolean;
  /** The header for the click event's `additionalData`. The signature does not cover it. */
  additional?: string;
}

export interface Opened {
  token: string;
  url: string;
  /** The outcome of the checkout of this body, if it has already ended. */
  ended?: { result: CheckoutResult } | { message: CloseReason };
}

/** An error with messages for onError. `network`: the network or the service failed, so the customer may try again. */
export class Failure extends Error {
  constructor(
    readonly messages: string[],
    readonly network = false,
  ) {
    super(messages.join(" "));
  }
}

const ATTEMPTS = 2;
/** The timeout of a call, in milliseconds. */
const PATIENCE = 12_000;
/** `leave` is sent at most this many times. An order cannot be left while a card is being charged, so `leave` is repeated. */
const LEAVES = 4;
/** The pause between two attempts, in milliseconds. */
const PAUSE = 800;
const LONGEST_ADDITIONAL = 4096;
const NOT_SIGNED = "requestBody must be an object, or the JSON text that was signed.";
const NOT_VIRTUAL =
  'requestBody.integrationType must be "virtual_card": a pay-button without integrationType="api" starts a virtual-card checkout, and the signed request must say so.';
const ENDS = new Map<string, CloseReason>([
  ["Declined", "declined"],
  ["Abandoned", "closed_by_customer"],
]);

type Fields = Record<string, unknown>;
const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (value: unknown): value is string => typeof value === "string" && value !== "";

/** Make a signed request, after a few cheap checks. The service checks everything. Throws Failure. */
export function sign(requestBody: CheckoutRequest | string, signature: string, forCard = false): Signed {
  let fields: unknown;
  let body: string;
  try {
    body = typeof requestBody === "string" ? requestBody : JSON.stringify(requestBody);
    fields = JSON.parse(body);
  } catch {
    throw new Failure([NOT_SIGNED]);
  }
  if (!isObject(fields)) throw new Failure([NOT_SIGNED]);
  const { merchantId, merchantReference, order } = fields;
  // The flat layout has the reference inside the order. A reference may be a number.
  const reference = merchantReference ?? (isObject(order) ? order.merchantReference : undefined);
  const wrong = isText(merchantId) ? [] : ["merchantId"];
  if (!isText(reference) && typeof reference !== "number") wrong.push("merchantReference");
  const messages = wrong.map((name) => `requestBody.${name} is missing.`);
  if (!isObject(fields.order)) messages.push("requestBody.order is missing.");
  const display = fields.display ?? "popup";
  if (display !== "popup" && display !== "iframe" && display !== "redirect") {
    messages.push("requestBody.display must be popup, iframe or redirect.");
  }
  const kind = fields.integrationType ?? "api";
  const virtualCard = kind === "virtual_card";
  if (forCard && !virtualCard) messages.push(NOT_VIRTUAL);
  else if (!virtualCard && kind !== "api") messages.push("requestBody.integrationType must be api or virtual_card.");
  if (!isText(signature)) messages.push("signature is missing: sign the request body on your server.");
  if (messages.length) throw new Failure(messages);
  return { body, signature, display: display as Display, virtualCard };
}

/** The display in a request, or "popup" if the request is a promise, because the window must open before the promise settles. */
export function displayOf(request: unknown): Display {
  try {
    const { display } = (typeof request === "string" ? JSON.parse(request) : request) as Fields;
    if (display === "iframe" || display === "redirect") return display;
  } catch {
    // `sign` reports an invalid request later.
  }
  return "popup";
}

/** Encode `additionalData` for a header: base64url of its JSON in UTF-8. Throws Failure. */
export function additionalHeader(data: unknown): string {
  let text: string | undefined;
  try {
    if (isObject(data)) text = JSON.stringify(data);
  } catch {
    // The value cannot be written as JSON. The error is thrown below.
  }
  if (!text) throw new Failure(["additionalData must be an object."]);
  const bytes = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte));
  const header = btoa(bytes.join("")).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  if (header.length <= LONGEST_ADDITIONAL) return header;
  throw new Failure([`additionalData is too long: ${header.length} characters of base64url, at most ${LONGEST_ADDITIONAL}.`]);
}

/** The messages of an error answer (a problem document): one for each invalid field, or one for the whole request. */
export function explain(status: number, problem: unknown): string[] {
  if (isObject(problem)) {
    const errors = Array.isArray(problem.errors) ? problem.errors.filter(isObject) : [];
    const messages = errors.map((error) => [error.field, error.message].filter(isText).join(": ")).filter(isText);
    if (messages.length) return messages;
    if (isText(problem.message)) return [problem.message];
  }
  return [`The checkout could not be opened (HTTP ${status}).`];
}

/** Read the service's answer. The checkout's address must be on the service itself. Throws Failure. */
export function read(answer: unknown, base: string): Opened {
  if (!isObject(answer) || !isText(answer.token) || !isText(answer.checkoutUrl) || !isOwn(answer.checkoutUrl, base)) {
    throw new Failure(["The checkout could not be opened: the answer of the service cannot be read."], true);
  }
  const opened: Opened = { token: answer.token, url: answer.checkoutUrl };
  const reason = reasonOf(answer);
  if (answer.orderStatus === "Approved" && isObject(answer.result)) {
    opened.ended = { result: answer.result as unknown as CheckoutResult };
  } else if (reason) opened.ended = { message: reason };
  return opened;
}

/** Why the checkout ended without a payment, or undefined if it is open or paid. */
function reasonOf(answer: Fields): CloseReason | undefined {
  const reason = ENDS.get(String(answer.orderStatus));
  if (!reason) return undefined;
  if (isReason(answer.closeReason)) return answer.closeReason;
  // A service of an earlier release sends no reason. The customer's clock is then the best guess.
  const late = reason === "closed_by_customer" && Date.parse(String(answer.expiryDateTime)) <= Date.now();
  return late ? "session_expired" : reason;
}

function isOwn(url: string, base: string): boolean {
  try {
    const [there, here] = [new URL(url), new URL(base)];
    return there.protocol === here.protocol && there.host === here.host;
  } catch {
    return false;
  }
}

/** The checkout's address with another display. */
export function shownAs(url: string, display: Display): string {
  const address = new URL(url);
  address.searchParams.set("display", display);
  return address.href;
}

/** Open the checkout. A retry is safe, because the service opens only one order for each signed body. Throws Failure. */
export async function authorize(base: string, signed: Signed, stop: AbortSignal, attempts = ATTEMPTS): Promise<Opened> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await once(base, "", signed, stop);
    } catch (error) {
      const failure = error instanceof Failure ? error : new Failure([UNREACHABLE], true);
      if (!failure.network || attempt >= attempts || stop.aborted) throw failure;
      await pause();
    }
  }
}

/** End the session: the order is abandoned unless it is final. Returns the outcome, or undefined if it is unknown. */
export async function leave(base: string, signed: Signed, stop: AbortSignal): Promise<Opened["ended"]> {
  for (let attempt = 1; attempt <= LEAVES && !stop.aborted; attempt++) {
    if (attempt > 1) await pause();
    try {
      const { ended } = await once(base, "/leave", signed, stop);
      if (ended) return ended;
    } catch (error) {
      // The service refused, or this body never created an order.
      if (error instanceof Failure && !error.network) return undefined;
    }
  }
  return undefined;
}

const UNREACHABLE = "The payment service could not be reached. Check the connection and try again.";
const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE));

async function once(base: string, path: "" | "/leave", signed: Signed, stop: AbortSignal): Promise<Opened> {
  const patience = new AbortController();
  const abort = () => patience.abort();
  if (stop.aborted) abort();
  stop.addEventListener("abort", abort);
  const timer = setTimeout(abort, PATIENCE);
  try {
    const answer = await fetch(`${base}/sdk/v1/checkouts${path}`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        "X-Pay-Signature": signed.signature,
        ...(signed.additional && !path && { "X-Pay-Additional": signed.additional }),
      },
      body: signed.body,
      credentials: "omit",
      cache: "no-store",
      signal: patience.signal,
    });
    const content: unknown = await answer.json().catch(() => null);
    if (inspected()) note(signed, answer.status, content);
    if (!answer.ok) throw new Failure(explain(answer.status, content), answer.status >= 500 || answer.status === 429);
    return read(content, base);
  } finally {
    clearTimeout(timer);
    stop.removeEventListener("abort", abort);
  }
}

/** Show the sent text in the inspector, so that a developer can compare it with the signed text. */
function note(signed: Signed, status: number, content: unknown): void {
  const code = isObject(content) ? content.code : undefined;
  const verdict = status === 200 ? "accepted" : code === "invalid_signature" ? "refused" : `not decided (HTTP ${status})`;
  trace("signature", verdict, { signed: signed.body, signature: signed.signature, answer: content });
}
