// The merchant's own script: callbacks that record their arguments, and a button that opens the checkout.
const given = JSON.parse(document.getElementById("signed").textContent);
const merchant = location.pathname.split("/")[2];

window.heard = [];
window.cookiesOfThePage = () => document.cookie;

const said = document.getElementById("said");

const told = (name) => async (value) => {
  heard.push({name, value, at: Date.now()});
  said.textContent = `${name}: ${value.orderId || String(value)}`;
  // The merchant's server reads the order at this moment.
  if (name === "onComplete") heard.push({name: "status", value: await (await fetch(`/status/${merchant}?order=${value.orderId}`)).json()});
  if (window.hold) await window.hold;
  heard.push({name: `${name} done`, value: null});
};

window.pay = window.pay || {q: []};
for (const name of ["onComplete", "onClose", "onError"]) pay.q.push([name, told(name)]);

window.loadPay = () => {
  const script = document.createElement("script");
  script.src = given.script;
  document.head.append(script);
};

window.buy = () => {
  if (!pay.apiCheckout) return pay.q.push(["openCheckout", given.body, given.signature]);
  window.promise = pay.apiCheckout.openCheckout(given.body, given.signature);
};

const button = document.getElementById("buy");
if (button && button.localName === "pay-button" && !button.hasAttribute("integrationtype")) {
  // The request is signed at the click, as by a shop with a cart.
  button.addEventListener("pay-checkout", (event) => {
    event.detail.request = Promise.resolve(given.body);
    event.detail.signature = Promise.resolve(given.signature);
    event.detail.additionalData = {customerLoggedIn: true, customerTransactionCount: 7};
  });
} else button?.addEventListener("click", window.buy);

// A shop that opens the checkout without a click, before the script has loaded.
if (location.pathname.endsWith("/unasked")) {
  window.buy();
  window.loadPay();
}
