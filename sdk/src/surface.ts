// Where a checkout is shown: a window, or a modal over the merchant's page.
import { trace } from "./trace.ts";

export type News = "slow" | "failed";

export interface Surface {
  readonly kind: "popup" | "iframe";
  /** The window that may speak for this checkout. */
  window(): Window | null;
  show(url: string): void;
  /** Tell the customer how the opening goes. */
  say(news: News): void;
  /** The checkout's page is there. */
  ready(): void;
  focus(): void;
  close(): void;
  gone(): boolean;
}

const WIDTH = 460;
const HEIGHT = 780;
const LOOK = 50;

/** Open the service's blank page; only inside a click do browsers let it through. Null when it was blocked. */
export function openPopup(base: string): Surface | null {
  const left = Math.max(0, Math.round(screenX + (outerWidth - WIDTH) / 2));
  const top = Math.max(0, Math.round(screenY + (outerHeight - HEIGHT) / 2));
  const blank = `${base}/sdk/v1/window`;
  let opened: Window | null = null;
  try {
    opened = open(blank, "_blank", `popup,width=${WIDTH},height=${HEIGHT},left=${left},top=${top}`);
  } catch {
    // A sandboxed page may not open windows at all.
  }
  if (!opened || opened.closed) return null;
  const popup = opened;
  trace("window", "popup opened");
  // While the window still loads what the click asked for, browsers ignore a script that leads it on without a click.
  const loaded = () => {
    try {
      return popup.location.href !== "about:blank";
    } catch {
      return true; // The service's page, which is not ours to look into.
    }
  };
  let waiting: ReturnType<typeof setInterval> | undefined;
  const lead = (url: string) => {
    clearInterval(waiting);
    const step = () => {
      if (!popup.closed && !loaded()) return;
      clearInterval(waiting);
      if (!popup.closed) popup.location.replace(url);
    };
    waiting = setInterval(step, LOOK);
    step();
  };
  return {
    kind: "popup",
    window: () => popup,
    show: lead,
    // The blank page shows its element of this name; a fragment loads nothing anew.
    say: (news) => lead(`${blank}#${news}`),
    ready: () => undefined,
    focus: () => popup.focus(),
    close: () => popup.close(),
    gone: () => popup.closed,
  };
}
