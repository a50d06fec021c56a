// Waits for promises with a timeout.

/** Run `act`, and return its result; undefined if it fails or takes longer than this many milliseconds. `stop` then aborts. */
export async function within<Value>(milliseconds: number, act: (stop: AbortSignal) => Promise<Value>): Promise<Value | undefined> {
  const stop = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, milliseconds, undefined)));
  try {
    return await Promise.race([act(stop.signal).catch(() => undefined), late]);
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}
