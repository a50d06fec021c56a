// The parts of a browser that pay.js touches, so that the whole script runs in Node against a real HTTP service.
// The behavior of real browsers (popups, focus, policies) is tested in tests/browser.
import vm from "node:vm";
import { build } from "esbuild";
import { ROOT } from "./compiled.mjs";

const built = await build({ absWorkingDir: ROOT, entryPoints: ["src/pay.ts"], bundle: true, format: "iife", write: false });
const SCRIPT = built.outputFiles[0].text;

class FakeElement extends EventTarget {
  #attributes = new Map();
  children = [];
  parent = null;
  get attributes() {
    return [...this.#attributes].map(([name, value]) => ({ name, value }));
  }
  get isConnected() {
    return this.parent === "page" || !!this.parent?.isConnected;
  }
  getAttribute(name) {
    return this.#attributes.get(name.toLowerCase()) ?? null;
  }
  hasAttribute(name) {
    return this.#attributes.has(name.toLowerCase());
  }
  setAttribute(name, value) {
    this.#attributes.set(name.toLowerCase(), String(value));
    this.#changed(name);
  }
  removeAttribute(name) {
    this.#attributes.delete(name.toLowerCase());
    this.#changed(name);
  }
  toggleAttribute(name, on) {
    if (on) this.setAttribute(name, "");
    else this.removeAttribute(name);
  }
  #changed(name) {
    if (this.constructor.observedAttributes?.includes(name)) this.attributeChangedCallback();
  }
  append(...children) {
    for (const child of children) if (child instanceof FakeElement) child.parent = this;
    this.children.push(...children);
  }
  attachShadow() {
    this.shadow = new FakeElement();
    this.shadow.parent = this;
    return this.shadow;
  }
  remove() {
    this.parent = null;
  }
  focus() {
    this.focused = true;
  }
  showModal() {
    this.open = true;
  }
  close() {
    this.open = false;
  }
}

export const fakeWindow = () => ({
  closed: false,
  shown: [],
  said: [],
  focused: 0,
  location: { replace: (url) => undefined },
  postMessage(message, origin) {
    this.said.push({ message, origin });
  },
  focus() {
    this.focused += 1;
  },
  close() {
    this.closed = true;
  },
});

/** A merchant's page with pay.js loaded from `base`. `popups: false` blocks them; `before` runs first, as the page's own script. */
export function openPage(base, { popups = true, before = "" } = {}) {
  const page = new EventTarget();
  const seen = { popups: [], frames: [], dialogs: [], went: [], thrown: [], defined: new Map(), timers: new Set() };
  const later = (set) => (act, milliseconds, ...values) => {
    const run = () => {
      try {
        act(...values);
      } catch (error) {
        seen.thrown.push(error);
      }
    };
    const timer = set(run, milliseconds);
    seen.timers.add(timer);
    return timer;
  };
  const make = (name) => {
    const element = new FakeElement();
    if (name === "iframe") seen.frames.push(Object.assign(element, { contentWindow: fakeWindow() }));
    if (name === "dialog") seen.dialogs.push(element);
    return element;
  };
  const body = Object.assign(new FakeElement(), { parent: "page" });
  const document = Object.assign(new EventTarget(), {
    currentScript: { src: `${base}/v1/pay.js` }, querySelectorAll: () => [], createElement: make, body, activeElement: body,
    adoptedStyleSheets: [], hasFocus: () => true, documentElement: { clientWidth: 800 },
  });
  const open = (url) => {
    if (!popups) return null;
    const popup = fakeWindow();
    popup.shown.push(url);
    popup.location.replace = (next) => popup.shown.push(next);
    seen.popups.push(popup);
    return popup;
  };
  const context = vm.createContext({
    document, open, fetch, URL, URLSearchParams, TextEncoder, AbortController, btoa, console, CustomEvent,
    addEventListener: page.addEventListener.bind(page),
    setTimeout: later(setTimeout), setInterval: later(setInterval), clearTimeout, clearInterval,
    location: { assign: (url) => seen.went.push(url) }, screenX: 0, screenY: 0, outerWidth: 800, outerHeight: 600, innerWidth: 800,
    HTMLElement: FakeElement, CSSStyleSheet: class { replaceSync() {} },
    customElements: { get: (name) => seen.defined.get(name), define: (name, made) => seen.defined.set(name, made) },
  });
  context.window = context;
  const load = () => vm.runInContext(SCRIPT, context);
  vm.runInContext(before, context);
  const names = new Set(Object.keys(context));
  load();
  const added = Object.keys(context).filter((name) => !names.has(name));
  const hear = (data, source, origin = base) => page.dispatchEvent(Object.assign(new Event("message"), { data, source, origin }));
  /** A click on the element. The page's listeners may stop it. */
  const click = (button) => {
    const event = Object.assign(new Event("click", { cancelable: true }), { composedPath: () => [button, page] });
    let stopped = false;
    event.stopImmediatePropagation = () => (stopped = true);
    page.dispatchEvent(event);
    if (!stopped) button.dispatchEvent(event);
  };
  /** The browser shows the page again: from its cache, after the Back button. */
  const comeBack = () => page.dispatchEvent(Object.assign(new Event("pageshow"), { persisted: true }));
  const leave = () => seen.timers.forEach((timer) => clearTimeout(timer));
  return { ...seen, pay: context.pay, context, added, load, hear, click, comeBack, leave, Button: seen.defined.get("pay-button"), body };
}
