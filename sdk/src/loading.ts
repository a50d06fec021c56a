// How the script finds out where it came from, and what the page asked for before it was there.
import type { PayApi, QueuedCall } from "../types/pay";

export interface Where {
  /** The service's base address, without a slash at its end. */
  base: string;
  inspect: boolean;
}

/** The base address and wishes in the address of this script; null for an address that is not its. */
export function whereIs(src: string): Where | null {
  const parts = /^(https?:\/\/[^?#]+)\/v1\/pay(?:-[0-9a-f]+)?\.js(\?[^#]*)?(?:#.*)?$/.exec(src);
  if (!parts?.[1]) return null;
  return { base: parts[1], inspect: new URLSearchParams(parts[2]).has("inspect") };
}

/** From the running script's element, or, where a bundler runs it, from the one that names it. */
export function baseOf(page: Document): Where | null {
  const running = page.currentScript as HTMLScriptElement | null;
  const scripts = [running, ...page.querySelectorAll<HTMLScriptElement>("script[src*='/v1/pay']")];
  for (const script of scripts) {
    const where = script && whereIs(script.src);
    if (where) return where;
  }
  return null;
}

export interface Early {
  pay: object;
  api: Partial<PayApi>;
  calls: QueuedCall[];
}

/** The stub's objects are kept, because the page may hold them. Null when the script has run before. */
export function takeOver(holder: { pay?: unknown }): Early | null {
  const stub = holder.pay;
  // An element or a frame of this name is called window.pay, too: only a plain object is a stub.
  if (typeof stub !== "object" || stub === null || Object.getPrototypeOf(stub) !== Object.prototype) return { pay: {}, api: {}, calls: [] };
  const { version, q, apiCheckout, payApiCheckout } = stub as Record<string, unknown>;
  if (version !== undefined) return null;
  const api = (apiCheckout ?? payApiCheckout ?? {}) as Partial<PayApi>;
  // A stub may hold `arguments` of a call, which is no array.
  const calls = Array.isArray(q) ? q.map((call: unknown) => (typeof call === "function" ? call : Array.from(Object(call) as ArrayLike<unknown>))) : [];
  return { pay: stub, api, calls: calls as QueuedCall[] };
}
