// The sandbox's inspector. It shows the messages between the page and the checkout, and whether the signature was accepted.
import { make, sheet } from "./modal.ts";
import type { Entry, Feed } from "./trace.ts";

const STYLE = `
:host { all: initial; position: fixed; z-index: 2147483647; right: 12px; bottom: 12px }
details { width: min(440px, calc(100vw - 24px)); border: 1px solid #7f8d8a; border-radius: 12px; overflow: hidden;
  background: #131918; color: #eaf0ee; font: 13px/1.5 ui-monospace, monospace; box-shadow: 0 8px 32px rgb(0 0 0 / .3) }
summary { padding: 12px 16px; cursor: pointer; font-weight: 650 }
summary:focus-visible, button:focus-visible { outline: 3px solid #5cc8b8; outline-offset: -4px }
ol { margin: 0; padding: 0; max-height: 40vh; overflow: auto; list-style: none }
li { padding: 6px 16px; border-top: 1px solid #2b3634; overflow-wrap: anywhere }
time, small { color: #9daba8; font-size: 12px }
b { color: #5cc8b8; font-weight: 650 }
.refused b { color: #ffa198 }
pre { margin: 4px 0 0; max-height: 160px; overflow: auto; white-space: pre-wrap; font: inherit; color: #9daba8 }
button { width: 100%; height: 44px; border: 0; border-top: 1px solid #2b3634; background: none; color: inherit; font: inherit; cursor: pointer }
`;

/** Mask card numbers and security codes, which must not be shown on a screen. */
export function masked(name: string, value: unknown): unknown {
  if (name === "number" && typeof value === "string") return value.replace(/\d(?=\d{4})/g, "•");
  return name === "cvc" ? "•••" : value;
}

/** Format data for reading. */
export function printed(data: unknown): string {
  if (data === undefined) return "";
  return typeof data === "string" ? data : JSON.stringify(data, masked, 2);
}

interface Check {
  signed: string;
  signature: string;
  answer: unknown;
}

/** Describe the exact bytes that were sent, so that a developer can compare them with the bytes that the server signed. */
async function explained(check: Check): Promise<string> {
  const bytes = new TextEncoder().encode(check.signed);
  const head = `signature ${check.signature}\nbytes sent ${bytes.length}`;
  // Browsers offer crypto.subtle on secure pages only.
  const hash = crypto.subtle ? new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)) : null;
  const hex = hash ? `\nSHA-256 ${[...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("")}` : "";
  return `${head}${hex}\nbody ${check.signed}\nanswer ${printed(check.answer)}`;
}

async function line(entry: Entry, start: number): Promise<HTMLLIElement> {
  const time = make("time", {}, `${((entry.at - start) / 1000).toFixed(2)} s `);
  const text = entry.kind === "signature" ? await explained(entry.data as Check) : printed(entry.data);
  const bad = entry.kind === "refused" || entry.what === "refused";
  const item = make("li", bad ? { class: "refused" } : {}, time, make("b", {}, entry.kind), ` ${entry.what}`);
  if (text) item.append(make("pre", { tabindex: "0" }, text));
  return item;
}

/** Add the panel to the page, and show all entries from the beginning. */
export function start(feed: Feed): void {
  const list = make("ol", { "aria-label": "What happened" });
  const count = make("small", {}, "0");
  const clear = make("button", { type: "button" }, "Clear");
  const panel = make("details", {}, make("summary", {}, "Pay inspector ", count), list, clear);
  const host = make("aside", { "data-pay-inspector": "", "aria-label": "Pay inspector" });
  const root = host.attachShadow({ mode: "open" });
  root.adoptedStyleSheets = [sheet(STYLE)];
  root.append(panel);
  clear.addEventListener("click", () => {
    list.replaceChildren();
    count.textContent = "0";
  });
  const began = Date.now();
  let order: Promise<unknown> = Promise.resolve();
  feed((entry) => {
    order = order.then(async () => {
      list.append(await line(entry, began));
      count.textContent = String(list.children.length);
      list.scrollTop = list.scrollHeight;
    });
  });
  const show = () => document.body.append(host);
  if (document.body) show();
  else addEventListener("DOMContentLoaded", show);
}
