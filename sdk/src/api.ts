// The authorization call: one signed body, sent byte for byte; what comes back, or what went wrong in words.
import type { CheckoutRequest, CheckoutResult, CloseReason, Display } from "../types/pay";
import { inspected, trace } from "./trace.ts";

export interface Signed {
  /** The JSON text that was signed. */
  body: string;
  signature: string;
  display: Display;
  virtualCard: boolean;
  /** Header of the click event's `additionalData`, which no signature covers. */
  additional?: string;
}

export interface Opened {
  token: string;
  url: string;
  /** How it ended, if this very body was paid or ended before. */
  ended?: { result: CheckoutResult } | { message: CloseReason };
}

/** Strings for onError. `network` when nobody's mistake is known: the customer may try again. */
export class Failure extends Error {
  constructor(
    readonly messages: string[],
    readonly network = false,
  ) {
    super(messages.join(" "));
  }
}

const ATTEMPTS = 2;
const PATIENCE = 12_000;
/** While a card is being charged an order is not left: what became of it is asked again, this often, after this long. */
const LEAVES = 4;
const PAUSE = 800;
const LONGEST_ADDITIONAL = 4096;
const NOT_SIGNED = "requestBody must be an object, or the JSON text that was signed.";
const NOT_VIRTUAL =
  'requestBody.integrationType must be "virtual_card": a pay-button without integrationType="api" asks for a card, and the signed request must say so.';
const ENDS = new Map<string, CloseReason>([
  ["Declined", "declined"],
  ["Abandoned", "closed_by_customer"],
]);

type Fields = Record<string, unknown>;
const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (value: unknown): value is string => typeof value === "string" && value !== "";

/** Check what is cheap to check here; the service checks everything. Raises Failure. */
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
  // The flat layout has the reference in the order; a whole number is one, too.
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

/** The display that a request asks for, where it is at hand already: the window is opened before a promise settles. */
export function displayOf(request: unknown): Display {
  try {
    const { display } = (typeof request === "string" ? JSON.parse(request) : request) as Fields;
    if (display === "iframe" || display === "redirect") return display;
  } catch {
    // What is wrong with it is said when it is sent.
  }
  return "popup";
}

/** `additionalData` as a header: base64url of its JSON in UTF-8. Raises Failure. */
export function additionalHeader(data: unknown): string {
  let text: string | undefined;
  try {
    if (isObject(data)) text = JSON.stringify(data);
  } catch {
    // No JSON: told below.
  }
  if (!text) throw new Failure(["additionalData must be an object."]);
  const bytes = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte));
  const header = btoa(bytes.join("")).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  if (header.length <= LONGEST_ADDITIONAL) return header;
  throw new Failure([`additionalData is too long: ${header.length} characters of base64url, at most ${LONGEST_ADDITIONAL}.`]);
}

/** The strings of a problem document: what is wrong with each field, or what is wrong at all. */
export function explain(status: number, problem: unknown): string[] {
  if (isObject(problem)) {
    const errors = Array.isArray(problem.errors) ? problem.errors.filter(isObject) : [];
    const told = errors.map((error) => [error.field, error.message].filter(isText).join(": ")).filter(isText);
    if (told.length) return told;
    if (isText(problem.message)) return [problem.message];
  }
  return [`The checkout could not be opened (HTTP ${status}).`];
}

/** Read the service's answer; an address that is not the service's own is no answer. Raises Failure. */
export function read(answer: unknown, base: string): Opened {
  if (!isObject(answer) || !isText(answer.token) || !isText(answer.checkoutUrl) || !isOwn(answer.checkoutUrl, base)) {
    throw new Failure(["The checkout could not be opened: the answer of the service cannot be read."], true);
  }
  const opened: Opened = { token: answer.token, url: answer.checkoutUrl };
  let reason = ENDS.get(String(answer.orderStatus));
  if (answer.orderStatus === "Abandoned" && Date.parse(String(answer.expiryDateTime)) <= Date.now()) reason = "session_expired";
  if (answer.orderStatus === "Approved" && isObject(answer.result)) {
    opened.ended = { result: answer.result as unknown as CheckoutResult };
  } else if (reason) opened.ended = { message: reason };
  return opened;
}

function isOwn(url: string, base: string): boolean {
  try {
    const [there, here] = [new URL(url), new URL(base)];
    return there.protocol === here.protocol && there.host === here.host;
  } catch {
    return false;
  }
}

/** The checkout's address with another display; the signed body stays as it is. */
export function shownAs(url: string, display: Display): string {
  const address = new URL(url);
  address.searchParams.set("display", display);
  return address.href;
}

/** Ask the service. The same body again is the same order, so that asking twice is safe. Raises Failure. */
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

/** End the session: the order is given up unless it is final. How it ended; undefined where nobody can say. */
export async function leave(base: string, signed: Signed, stop: AbortSignal): Promise<Opened["ended"]> {
  for (let attempt = 1; attempt <= LEAVES && !stop.aborted; attempt++) {
    if (attempt > 1) await pause();
    try {
      const { ended } = await once(base, "/leave", signed, stop);
      if (ended) return ended;
    } catch (error) {
      // Refused, or this body never made an order.
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
    const said: unknown = await answer.json().catch(() => null);
    if (inspected()) note(signed, answer.status, said);
    if (!answer.ok) throw new Failure(explain(answer.status, said), answer.status >= 500 || answer.status === 429);
    return read(said, base);
  } finally {
    clearTimeout(timer);
    stop.removeEventListener("abort", abort);
  }
}

/** For the inspector: what was sent, so that it can be laid beside what was signed. */
function note(signed: Signed, status: number, said: unknown): void {
  const code = isObject(said) ? said.code : undefined;
  const verdict = status === 200 ? "accepted" : code === "invalid_signature" ? "refused" : `not decided (HTTP ${status})`;
  trace("signature", verdict, { signed: signed.body, signature: signed.signature, answer: said });
}
