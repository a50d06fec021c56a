// The modal: a <dialog> in a shadow root. It is built with DOM calls and a constructed style sheet, so that no content
// security policy and no Trusted Types rule of the merchant blocks it. The browser's modal dialog keeps the focus inside.
import type { News, Surface } from "./surface.ts";
import { trace } from "./trace.ts";

const STYLE = `
:host { all: initial !important }
dialog { box-sizing: border-box; width: min(460px, 100vw); height: min(780px, 100dvh); max-width: none; max-height: none;
  margin: auto; padding: 0; border: 0; border-radius: 16px; overflow: hidden; background: #fff; color: #14201e;
  font: 16px/1.5 system-ui, sans-serif; box-shadow: 0 16px 64px rgb(0 0 0 / .35) }
dialog[open] { display: grid; grid-template: 48px 1fr / 1fr }
dialog::backdrop { background: rgb(10 20 18 / .6) }
button { justify-self: end; width: 48px; height: 48px; border: 0; background: none; color: inherit; cursor: pointer;
  font: 24px/1 system-ui, sans-serif }
button:focus-visible { outline: 3px solid #0b6e63; outline-offset: -6px; border-radius: 12px }
p { grid-area: 2 / 1; margin: 0; padding: 24px; align-self: center; text-align: center }
iframe { grid-area: 2 / 1; width: 100%; height: 100%; border: 0; visibility: hidden }
iframe.ready { visibility: visible }
@media (max-width: 480px) { dialog { width: 100vw; height: 100dvh; border-radius: 0 } }
@media (forced-colors: active) { dialog { border: 1px solid } }
@media (prefers-color-scheme: dark) and (min-width: 481px) { dialog { border: 1px solid #2b3634 } }
@media (prefers-color-scheme: dark) { dialog { background: #131918; color: #eaf0ee }
  button:focus-visible { outline-color: #5cc8b8 } }
`;

const OPENING = "Opening your payment…";
const NEWS: Record<News, string> = {
  slow: "This takes longer than usual. Your connection may be slow: please wait a moment.",
  failed: "Your payment could not be opened. Nothing was charged. Close this and try again.",
};

/** Make a style sheet that the page's style-src policy does not apply to. */
export function sheet(text: string): CSSStyleSheet {
  const made = new CSSStyleSheet();
  made.replaceSync(text);
  return made;
}

/** Make an element with attributes (never `style`, which a policy may block) and children. */
export function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

/** Stop the page behind from scrolling while the modal is open. Padding replaces its scrollbar, so that it does not jump. */
function lockScroll(): () => void {
  const bar = innerWidth - document.documentElement.clientWidth;
  const room = bar > 0 ? `padding-right: ${bar}px !important` : "";
  const lock = sheet(`html { overflow: hidden !important; ${room} }`);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, lock];
  return () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== lock);
  };
}

/** Open the modal. `dismissed` is called if the customer closes it, `refused` if the page does not allow the frame. */
export function openModal(origin: string, dismissed: () => void, refused: () => void): Surface {
  const before = document.activeElement;
  const text = make("p", { role: "status" }, OPENING);
  const frame = make("iframe", { title: "Payment" });
  const button = make("button", { type: "button", "aria-label": "Close payment" }, "×");
  const dialog = make("dialog", { "aria-label": "Payment" }, button, text, frame);
  const host = make("div");
  const root = host.attachShadow({ mode: "open" });
  root.adoptedStyleSheets = [sheet(STYLE)];
  root.append(dialog);
  // A queued call may run before the page has a body.
  (document.body ?? document.documentElement).append(host);
  dialog.showModal();
  const unlock = lockScroll();
  let open = true;

  const blocked = (event: SecurityPolicyViolationEvent) => {
    if (event.disposition === "enforce" && `${event.blockedURI}/`.startsWith(`${origin}/`) && /^frame|^child/.test(event.effectiveDirective)) {
      refused();
    }
  };
  const close = () => {
    if (!open) return;
    open = false;
    document.removeEventListener("securitypolicyviolation", blocked);
    unlock();
    dialog.close();
    host.remove();
    if (before instanceof HTMLElement && before.isConnected) before.focus();
    trace("window", "modal closed");
  };
  const dismiss = () => {
    if (!open) return;
    close();
    dismissed();
  };
  document.addEventListener("securitypolicyviolation", blocked);
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    dismiss();
  });
  // After a second Escape, a browser may close the dialog without asking.
  dialog.addEventListener("close", dismiss);
  button.addEventListener("click", dismiss);
  trace("window", "modal opened");

  return {
    kind: "iframe",
    window: () => frame.contentWindow,
    show(url) {
      frame.addEventListener("error", refused);
      // The checkout page sends its first message before it has loaded. If there is none, the frame shows something else.
      frame.addEventListener("load", () => setTimeout(() => open && !frame.className && refused(), 1500));
      frame.src = url;
    },
    say: (news) => {
      text.textContent = NEWS[news];
    },
    ready() {
      frame.className = "ready";
      text.textContent = "";
      frame.focus();
    },
    focus: () => frame.focus(),
    close,
    // A page that replaces its whole body also removes the modal.
    gone: () => !open || !host.isConnected,
  };
}
