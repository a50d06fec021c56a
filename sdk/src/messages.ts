// The messages between the merchant's page and the checkout page, and the one function that verifies their sender.
import type { CheckoutResult, CloseReason } from "../types/pay";

export const VERSION = 1;

const REASONS: readonly CloseReason[] = ["closed_by_customer", "session_expired", "closed_by_merchant", "declined"];

type Said<Type extends string, Rest = object> = { pay: typeof VERSION; checkout: string; type: Type } & Rest;

export type FromPage =
  | Said<"ready">
  | Said<"complete", { result: CheckoutResult }>
  | Said<"closed", { message: CloseReason }>
  | Said<"error", { messages: string[] }>;

export type FromSdk = Said<"ack", { of: "complete" | "closed" }> | Said<"close">;

export type Message = FromPage | FromSdk;

/** The expected sender of a message. */
export interface Sender {
  origin: string;
  window: unknown;
  checkout: string;
}

/** The parts of a MessageEvent that are checked. */
export interface Heard {
  origin: string;
  source: unknown;
  data: unknown;
}

export type Verdict = { message: Message } | { refused: Refusal };

export type Refusal = "origin" | "window" | "not ours" | "version" | "checkout" | "shape";

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const isReason = (value: unknown): value is CloseReason => REASONS.includes(value as CloseReason);

const SHAPES: Record<Message["type"], (data: Record<string, unknown>) => boolean> = {
  ready: () => true,
  complete: (data) => isObject(data.result),
  closed: (data) => isReason(data.message),
  error: (data) => Array.isArray(data.messages) && data.messages.every((text) => typeof text === "string"),
  ack: (data) => data.of === "complete" || data.of === "closed",
  close: () => true,
};

/** Whether a text is the origin of one site. Sandboxed frames, data: and file: pages all have the origin "null". */
export function isOrigin(text: string): boolean {
  return /^https?:\/\/[^/?#@\s]+$/.test(text);
}

/**
 * Return the message if it comes from exactly this origin, window and checkout, in this version; otherwise the reason for the refusal.
 * The data is not read before the sender is verified.
 */
export function judge(heard: Heard, sender: Sender): Verdict {
  if (!isOrigin(heard.origin) || heard.origin !== sender.origin) return { refused: "origin" };
  if (!sender.window || heard.source !== sender.window) return { refused: "window" };
  const data = heard.data;
  if (!isObject(data) || !("pay" in data)) return { refused: "not ours" };
  if (data.pay !== VERSION) return { refused: "version" };
  if (!sender.checkout || data.checkout !== sender.checkout) return { refused: "checkout" };
  const type = data.type;
  if (typeof type !== "string" || !Object.hasOwn(SHAPES, type) || !SHAPES[type as Message["type"]](data)) {
    return { refused: "shape" };
  }
  return { message: data as unknown as Message };
}
