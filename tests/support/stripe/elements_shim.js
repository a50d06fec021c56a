// Runs after localstripe's script. Adds the parts of the Payment Element that docs.stripe.com/js documents and
// localstripe lacks: elements({mode, amount, currency, paymentMethodCreation}), create('payment'), the events ready and
// change, elements.submit() and createPaymentMethod({elements, params}).
(() => {
  const base = document.currentScript.src.replace(/\/js\.stripe\.com\/v3\/$/, '');
  const localstripe = window.Stripe;
  const labels = {
    number: ['Card number', 'cc-number'], exp_month: ['Expiration month', 'cc-exp-month'],
    exp_year: ['Expiration year', 'cc-exp-year'], cvc: ['Security code', 'cc-csc'], postal_code: ['ZIP code', 'postal-code'],
  };
  const integration = text => { const error = new Error(text); error.name = 'IntegrationError'; return error; };

  function card(element) {
    const typed = name => ((element._inputs || {})[name] || {value: ''}).value.replace(/\s/g, '');
    const year = typed('exp_year');
    return {number: typed('number'), exp_month: typed('exp_month'), exp_year: year.length === 2 ? '20' + year : year, cvc: typed('cvc')};
  }

  function lacking(element) {
    const entered = card(element);
    const failed = (code, message) => ({type: 'validation_error', code, message});
    if (!/^\d{13,19}$/.test(entered.number)) return failed('incomplete_number', 'Your card number is incomplete.');
    if (!/^\d{1,2}$/.test(entered.exp_month) || !/^\d{4}$/.test(entered.exp_year)) {
      return failed('incomplete_expiry', "Your card's expiration date is incomplete.");
    }
    return /^\d{3,4}$/.test(entered.cvc) ? null : failed('incomplete_cvc', "Your card's security code is incomplete.");
  }

  function made(element) {
    const mount = element.mount.bind(element), handlers = {};
    element.on = (name, handler) => { (handlers[name] = handlers[name] || []).push(handler); return element; };
    const tell = (name, event) => (handlers[name] || []).forEach(handler => handler(event));
    element.listeners.change = [() => tell('change', {
      elementType: 'payment', complete: lacking(element) === null, empty: card(element).number === '', value: {type: 'card'},
    })];
    element.mount = where => {
      mount(where);
      for (const [name, input] of Object.entries(element._inputs)) {
        const [label, autocomplete] = labels[name];
        input.setAttribute('aria-label', label);
        input.setAttribute('autocomplete', autocomplete);
        input.setAttribute('data-stand-in', name);
      }
      setTimeout(() => tell('ready', {elementType: 'payment'}));
    };
    return element;
  }

  window.Stripe = (key, ...rest) => {
    if (typeof key !== 'string' || !key.startsWith('pk_')) throw integration('Please call Stripe() with your publishable key.');
    const stripe = localstripe(key, ...rest), elementsOf = stripe.elements;
    stripe.elements = (options = {}) => {
      if (!options.clientSecret && !['payment', 'setup', 'subscription'].includes(options.mode)) {
        throw integration('elements() needs a clientSecret or a mode.');
      }
      if (options.mode === 'payment' && !(Number.isInteger(options.amount) && options.amount > 0)) {
        throw integration('elements() needs an amount in the mode payment.');
      }
      if (options.mode && !/^[a-z]{3}$/.test(options.currency || '')) throw integration('elements() needs a currency.');
      const elements = elementsOf(), create = elements.create;
      elements._options = options;
      elements.create = function (type, own) {
        if (type !== 'payment') throw integration(`The stand-in has no element ${type}.`);
        return made(create.call(this, 'card', own));
      };
      elements.update = changed => Object.assign(elements._options, changed);
      elements.submit = async () => {
        const error = elements._cardElement ? lacking(elements._cardElement) : null;
        elements._submitted = !error;
        return error ? {error} : {selectedPaymentMethod: 'card'};
      };
      return elements;
    };
    stripe.createPaymentMethod = async ({elements, params = {}}) => {
      if (elements._options.paymentMethodCreation !== 'manual') {
        throw integration("createPaymentMethod() needs elements with paymentMethodCreation: 'manual'.");
      }
      if (!elements._submitted) throw integration('elements.submit() must be called before createPaymentMethod().');
      const body = new URLSearchParams({key, type: 'card'});
      for (const [name, text] of Object.entries(card(elements._cardElement))) body.set(`card[${name}]`, text);
      const billing = params.billing_details || {};
      for (const name of ['name', 'email', 'phone']) if (billing[name]) body.set(`billing_details[${name}]`, billing[name]);
      try {
        const answer = await fetch(`${base}/v1/payment_methods`, {method: 'POST', body});
        const said = await answer.json();
        return said.error ? {error: said.error} : {paymentMethod: said};
      } catch (problem) {
        return {error: {type: 'api_connection_error', message: 'The stand-in cannot be reached.'}};
      }
    };
    return stripe;
  };
})();
