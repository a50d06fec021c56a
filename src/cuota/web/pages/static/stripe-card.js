// @ts-check
// Shows Stripe's Payment Element, in which the consumer enters the card. Stripe's own script, `https://js.stripe.com/v3/`, must run
// before. This script follows Stripe's guide "Finalize payments on the server": the page collects the card, and the service creates and
// confirms the PaymentIntent. The token is the id of a PaymentMethod. docs/card-rails.md has the rules for such a script.
(() => {
  if (typeof window.Stripe !== "function") return; // Stripe's script was not loaded; checkout.js shows this error

  /** @type {any} */
  let stripe;
  /** @type {any} */
  let elements;

  /** Stripe's error as a text for the consumer. Stripe writes these texts for consumers, in the page's language. @param {any} error */
  const words = (error) => error.message || "Your card could not be checked. Nothing was charged; try again.";

  /** Returns the error for the card's field; a failure of the connection or of Stripe is none. @param {any} error */
  function problem(error) {
    return ["validation_error", "card_error"].includes(error.type) ? { card_number: words(error) } : new Error(error.type);
  }

  /** @param {any} look */
  function appearance(look) {
    const variables = { colorPrimary: look.accent, colorBackground: look.paper, colorText: look.ink, fontFamily: look.font };
    return { theme: look.dark ? "night" : "stripe", variables: { ...variables, borderRadius: "8px" } };
  }

  window.cardFields = {
    mount(place, { key, purpose, amount, currency, language, look }) {
      stripe = window.Stripe(key);
      const payment = purpose === "payment" ? { amount } : {};
      elements = stripe.elements({
        ...payment,
        mode: purpose,
        currency: currency.toLowerCase(),
        setupFutureUsage: "off_session",
        paymentMethodCreation: "manual",
        paymentMethodTypes: ["card"],
        locale: language,
        appearance: appearance(look),
      });
      const element = elements.create("payment", { wallets: { applePay: "never", googlePay: "never" } });
      const shown = new Promise((resolve, reject) => {
        element.on("ready", resolve);
        element.on("loaderror", reject);
      });
      element.mount(place);
      return shown;
    },
    // Stripe also shows the errors inside its own fields.
    async check() {
      const { error } = await elements.submit();
      const wrong = error ? problem(error) : {};
      if (wrong instanceof Error) throw wrong;
      return wrong;
    },
    async token() {
      const { error, paymentMethod } = await stripe.createPaymentMethod({ elements });
      if (error) throw problem(error);
      return paymentMethod.id;
    },
  };
})();
