// Records the entries that the inspector shows. Without `?inspect` nothing is recorded.

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

/** Record an entry, if the inspector is on. */
export function trace(kind: Kind, what: string, data?: unknown): void {
  if (!on) return;
  const entry = { at: Date.now(), kind, what, data };
  entries.push(entry);
  for (const hear of listeners) hear(entry);
}

/** Whether the inspector is on. */
export const inspected = (): boolean => on;

/** Start recording. The returned feed passes all entries to a listener, beginning with the first. */
export function record(): Feed {
  on = true;
  return (hear) => {
    entries.forEach(hear);
    listeners.push(hear);
  };
}
