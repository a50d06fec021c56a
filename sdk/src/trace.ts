// What the inspector shows. Without `?inspect` nothing is kept.

export type Kind = "call" | "callback" | "message" | "refused" | "signature" | "window";

export interface Entry {
  at: number;
  kind: Kind;
  what: string;
  data: unknown;
}

export type Feed = (hear: (entry: Entry) => void) => void;

const entries: Entry[] = [];
const listeners: ((entry: Entry) => void)[] = [];
let on = false;

/** Note something; called everywhere, costs nothing while nobody inspects. */
export function trace(kind: Kind, what: string, data?: unknown): void {
  if (!on) return;
  const entry = { at: Date.now(), kind, what, data };
  entries.push(entry);
  for (const hear of listeners) hear(entry);
}

/** Whether somebody inspects. */
export const inspected = (): boolean => on;

/** Start keeping; the feed tells all from the beginning. */
export function record(): Feed {
  on = true;
  return (hear) => {
    entries.forEach(hear);
    listeners.push(hear);
  };
}
