// Holds and calls the merchant's callbacks. There is one of each kind. Calls run one after the other and wait for promises.
import type { CheckoutResult, CloseReason } from "../types/pay";
import { trace } from "./trace.ts";
import { within } from "./waiting.ts";

export interface Arguments {
  onComplete: CheckoutResult;
  onClose: CloseReason;
  onError: string[];
}

export type Name = keyof Arguments;

/** The window is closed after this many milliseconds, even if a callback has not settled. */
const PATIENCE = 10_000;

export class Callbacks {
  private readonly given = new Map<Name, (argument: never) => unknown>();
  private tail: Promise<unknown> = Promise.resolve();

  /** Set a callback, and replace the previous one of its kind. */
  set<Each extends Name>(name: Each, callback: (argument: Arguments[Each]) => unknown): void {
    if (typeof callback !== "function") throw new TypeError(`${name} must be called with a function.`);
    this.given.set(name, callback);
  }

  /** Call a callback. The promise settles with the callback, even if that fails; its error is reported as an error of the page. */
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
