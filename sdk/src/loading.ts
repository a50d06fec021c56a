// Finds the address from which the script was loaded, and the calls that the page queued before that.
import type { PayApi, QueuedCall } from "../types/pay";

export interface Where {
  /** The service's base address, without a slash at its end. */
  base: string;
  inspect: boolean;
}

/** The base address and options in a script's address; null if that is not an address of pay.js. */
export function whereIs(src: string): Where | null {
  const parts = /^(https?:\/\/[^?#]+)\/v1\/pay(?:-[0-9a-f]+)?\.js(\?[^#]*)?(?:#.*)?$/.exec(src);
  if (!parts?.[1]) return null;
  return { base: parts[1], inspect: new URLSearchParams(parts[2]).has("inspect") };
}

/** The base address and options of the running script. If a bundler runs the script, use an element with an address of pay.js. */
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

/** Take over the objects of the page's stub, because the page may hold references to them. Null if the script has run before. */
export function takeOver(holder: { pay?: unknown }): Early | null {
  const stub = holder.pay;
  // An element or a frame named "pay" is also called window.pay. Only a plain object is a stub.
  if (typeof stub !== "object" || stub === null || Object.getPrototypeOf(stub) !== Object.prototype) return { pay: {}, api: {}, calls: [] };
  const { version, q, apiCheckout, payApiCheckout } = stub as Record<string, unknown>;
  if (version !== undefined) return null;
  const api = (apiCheckout ?? payApiCheckout ?? {}) as Partial<PayApi>;
  // A stub may store the `arguments` object of a call, which is not an array.
  const calls = Array.isArray(q) ? q.map((call: unknown) => (typeof call === "function" ? call : Array.from(Object(call) as ArrayLike<unknown>))) : [];
  return { pay: stub, api, calls: calls as QueuedCall[] };
}
