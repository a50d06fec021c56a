// The surface that shows a checkout: a popup, or a modal over the merchant's page.
import { trace } from "./trace.ts";

export type News = "slow" | "failed";

export interface Surface {
  readonly kind: "popup" | "iframe";
  /** The window whose messages count for this checkout. */
  window(): Window | null;
  show(url: string): void;
  /** Tell the customer that opening is slow or has failed. */
  say(news: News): void;
  /** Show the checkout page, because it is running. */
  ready(): void;
  focus(): void;
  close(): void;
  gone(): boolean;
}

const WIDTH = 460;
const HEIGHT = 780;
const LOOK = 50;

/** Open a popup with the service's blank page. Browsers allow this only during a click. Null if the popup was blocked. */
export function openPopup(base: string): Surface | null {
  const left = Math.max(0, Math.round(screenX + (outerWidth - WIDTH) / 2));
  const top = Math.max(0, Math.round(screenY + (outerHeight - HEIGHT) / 2));
  const blank = `${base}/sdk/v1/window`;
  let opened: Window | null = null;
  try {
    opened = open(blank, "_blank", `popup,width=${WIDTH},height=${HEIGHT},left=${left},top=${top}`);
  } catch {
    // A sandboxed page may not open windows.
  }
  if (!opened || opened.closed) return null;
  const popup = opened;
  trace("window", "popup opened");
  // While the popup loads its first page, browsers ignore a navigation by a script without a click. So wait for the first page.
  const loaded = () => {
    try {
      return popup.location.href !== "about:blank";
    } catch {
      return true; // The popup shows the service's page. Its address cannot be read from here.
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
    // The blank page shows its element with this id. Changing only the fragment does not reload the page.
    say: (news) => lead(`${blank}#${news}`),
    ready: () => undefined,
    focus: () => popup.focus(),
    close: () => popup.close(),
    gone: () => popup.closed,
  };
}
