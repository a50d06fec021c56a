// The element <pay-button>, which contains a real button. With integrationType="api" it only fires click events for the
// page's own code. Otherwise it starts a checkout with a virtual card.
import type { CheckoutOutcome, PayButtonElement, PayCheckoutDetail } from "../types/pay";
import { make, sheet } from "./modal.ts";

export type Start = (asked: PayCheckoutDetail) => Promise<CheckoutOutcome>;

const STYLE = `
:host { display: inline-block; min-width: 176px; vertical-align: middle }
:host([hidden]) { display: none }
button { box-sizing: border-box; display: flex; align-items: center; justify-content: center; gap: 10px; width: 100%;
  min-height: var(--pay-button-height, 48px); padding: 0 20px; border: var(--pay-button-border, 0);
  border-radius: var(--pay-button-radius, 12px); background: var(--pay-button-background, #0b6e63);
  color: var(--pay-button-color, #fff); font: var(--pay-button-font, 650 16px/1.25 system-ui, sans-serif);
  cursor: pointer; -webkit-tap-highlight-color: transparent }
button:hover { filter: brightness(1.08) }
button:focus-visible { outline: 3px solid var(--pay-button-focus, #0b6e63); outline-offset: 3px }
button:disabled, button[aria-disabled=true] { cursor: default; opacity: .55; filter: none }
span { display: grid; grid-template: 6px 6px / 6px 6px; gap: 3px }
i { border: 1.5px solid; border-radius: 50% }
i:first-child { background: currentcolor }
@media (prefers-color-scheme: dark) { button:focus-visible { outline-color: var(--pay-button-focus, #5cc8b8) } }
@media (forced-colors: active) { button { border: 1px solid } button:focus-visible { outline-color: Highlight }
  button:disabled, button[aria-disabled=true] { border-color: GrayText; color: GrayText; opacity: 1 }
  i:first-child { forced-color-adjust: none; background: ButtonText; border-color: ButtonText }
  button:is(:disabled, [aria-disabled=true]) i:first-child { background: GrayText; border-color: GrayText } }
`;

/** Whether the button has integrationType="api". Case is ignored, in the name and in the value. */
function isApi(button: Element): boolean {
  return [...button.attributes].some((each) => each.name.toLowerCase() === "integrationtype" && /^\s*api\s*$/i.test(each.value));
}

/** Define the element, unless it is defined already. Elements that are already on the page are upgraded. */
export function define(start: Start): void {
  if (customElements.get("pay-button")) return;

  class PayButton extends HTMLElement implements PayButtonElement {
    static readonly observedAttributes = ["disabled", "busy", "aria-label"];
    request: PayCheckoutDetail["request"];
    signature: PayCheckoutDetail["signature"];
    additionalData: PayCheckoutDetail["additionalData"];
    private readonly button: HTMLButtonElement;

    constructor() {
      super();
      const dots = make("span", { "aria-hidden": "true" }, ...[1, 2, 3, 4].map(() => make("i")));
      this.button = make("button", { type: "button", part: "button" }, dots, make("slot", {}, "Pay in four"));
      const root = this.attachShadow({ mode: "open", delegatesFocus: true });
      root.adoptedStyleSheets = [sheet(STYLE)];
      root.append(this.button);
      // The guard on the window cannot see a button inside a closed shadow tree of the page, so the button has its own guard.
      this.addEventListener("click", guard, true);
      this.addEventListener("click", (event) => this.pressed(event));
    }

    connectedCallback(): void {
      // A property that the page set before the element was defined hides the accessor. Delete it, and set it again.
      for (const name of ["disabled", "busy"] as const) {
        if (!Object.hasOwn(this, name)) continue;
        const early = this[name];
        Reflect.deleteProperty(this, name);
        this[name] = early;
      }
    }

    get disabled(): boolean {
      return this.hasAttribute("disabled");
    }
    set disabled(value: boolean) {
      this.toggleAttribute("disabled", value);
    }
    get busy(): boolean {
      return this.hasAttribute("busy");
    }
    set busy(value: boolean) {
      this.toggleAttribute("busy", value);
    }

    attributeChangedCallback(): void {
      this.button.disabled = this.disabled;
      // A busy button keeps the focus, and its label tells screen readers why it does not react.
      const label = this.busy ? "Payment is open" : this.getAttribute("aria-label");
      const attributes = { "aria-disabled": this.busy && "true", "aria-busy": this.busy && "true", "aria-label": label };
      for (const [name, value] of Object.entries(attributes)) {
        if (value) this.button.setAttribute(name, value);
        else this.button.removeAttribute(name);
      }
    }

    override click(): void {
      this.button.click();
    }

    private pressed(event: Event): void {
      if (isApi(this) || event.defaultPrevented) return;
      const detail: PayCheckoutDetail = { request: this.request, signature: this.signature, additionalData: this.additionalData };
      const asked = new CustomEvent("pay-checkout", { detail, bubbles: true, composed: true, cancelable: true });
      if (!this.dispatchEvent(asked)) return;
      this.busy = true;
      void start(detail).finally(() => (this.busy = false));
    }
  }

  // Suppresses every click on a disabled or busy button, including clicks by scripts.
  function guard(event: Event): void {
    const pressed = event.composedPath().find((each) => each instanceof PayButton);
    if (!pressed?.disabled && !pressed?.busy) return;
    event.stopImmediatePropagation();
    event.preventDefault();
  }

  customElements.define("pay-button", PayButton);
  // The guard listens in the capture phase on the window, so that it runs before the page's own listeners.
  addEventListener("click", guard, true);
}
