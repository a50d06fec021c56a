// The merchant's callbacks: one of each kind, called one after the other, promises awaited.
import type { CheckoutResult, CloseReason } from "../types/pay";
import { trace } from "./trace.ts";
import { within } from "./waiting.ts";

export interface Arguments {
  onComplete: CheckoutResult;
  onClose: CloseReason;
  onError: string[];
}

export type Name = keyof Arguments;

/** Longer than this nobody waits for a callback before the window is put away. */
const PATIENCE = 10_000;

export class Callbacks {
  private readonly given = new Map<Name, (argument: never) => unknown>();
  private tail: Promise<unknown> = Promise.resolve();

  /** Take the place of the one before. */
  set<Each extends Name>(name: Each, callback: (argument: Arguments[Each]) => unknown): void {
    if (typeof callback !== "function") throw new TypeError(`${name} takes a function.`);
    this.given.set(name, callback);
  }

  /** Settles when the callback has, also if it failed: its error is the page's, and goes where the page's errors go. */
  call<Each extends Name>(name: Each, argument: Arguments[Each]): Promise<unknown> {
    const run = async () => {
      const callback = this.given.get(name) as ((argument: Arguments[Each]) => unknown) | undefined;
      trace("callback", callback ? name : `${name} (none given)`, argument);
      try {
        await callback?.(argument);
      } catch (error) {
        trace("callback", `${name} failed`, String(error));
        setTimeout(() => {
          throw error;
        });
      }
    };
    this.tail = this.tail.then(() => within(PATIENCE, run));
    return this.tail;
  }
}
