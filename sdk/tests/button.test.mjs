// Tests of <pay-button> and of the loading of the script.
import assert from "node:assert/strict";
import test from "node:test";
import { openPage } from "./browser.mjs";
import { serving } from "./serving.mjs";

const request = { merchantId: "m", merchantReference: "A-1", order: { amount: 10, currency: "USD" }, integrationType: "virtual_card" };
const RESULT = { customer: {}, orderId: "o" };
const plain = (value) => JSON.parse(JSON.stringify(value));
const soon = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const until = async (found) => {
  for (let waited = 0; !found(); waited += 10) {
    assert.ok(waited < 15_000, `nothing came: ${found}`);
    await soon(10);
  }
};

/** Runs a test with a button on a page, and a service whose answers contain `said`. */
async function pressed(said, run) {
  const told = [];
  await serving(
    (call) => [200, { orderId: "o", token: "t", orderStatus: "Created", checkoutUrl: `http://${call.headers.host}/checkout/m`, ...said }],
    async (base, asked) => {
      const page = openPage(base);
      for (const name of ["onComplete", "onClose", "onError"]) page.pay.apiCheckout[name]((argument) => void told.push([name, plain(argument)]));
      const button = new page.Button();
      const say = (what) => page.hear({ pay: 1, checkout: "t", ...what }, page.popups[0]);
      try {
        await run({ page, button, told, asked, say });
      } finally {
        page.leave();
      }
    },
  );
}
const gives = (button, detail) => button.addEventListener("pay-checkout", (event) => Object.assign(event.detail, detail));

test("a signed request without a virtual card is an error before any call, and the window closes", () => pressed({}, async ({ page, button, told, asked }) => {
  const { integrationType, ...without } = request;
  gives(button, { request: soon(20).then(() => without), signature: "s" });
  page.click(button);
  assert.equal(page.popups.length, 1);
  await until(() => !button.busy);
  assert.equal(told[0][0], "onError");
  assert.match(told[0][1][0], /^requestBody\.integrationType must be "virtual_card": /);
  assert.equal(told[0][1].length, 1);
  assert.ok(page.popups[0].closed);
  assert.equal(asked.length, 0);
  assert.equal(integrationType, "virtual_card");
}));

test("onComplete gets the card, and the button is busy until then", () => pressed({}, async ({ page, button, told, asked, say }) => {
  gives(button, { request: Promise.resolve(JSON.stringify(request)), signature: Promise.resolve("s") });
  page.click(button);
  page.click(button);
  assert.ok(button.busy);
  await until(() => page.popups[0].shown.length === 2);
  say({ type: "complete", result: { ...RESULT, card: { number: "1" } } });
  await until(() => !button.busy);
  assert.deepEqual(told, [["onComplete", { ...RESULT, card: { number: "1" } }]]);
  assert.deepEqual([page.popups.length, asked.length], [1, 1]);
  assert.equal(asked[0].headers["x-pay-additional"], undefined);
}));

test("with integrationType=api in upper or lower case, the button starts no checkout", () => pressed({}, async ({ page, button, asked }) => {
  for (const [name, value] of [["integrationType", "api"], ["INTEGRATIONTYPE", "API"], ["integrationtype", " Api "]]) {
    const each = new page.Button();
    each.setAttribute(name, value);
    let clicks = 0;
    each.addEventListener("click", () => (clicks += 1));
    each.addEventListener("pay-checkout", () => assert.fail("it started a checkout"));
    page.click(each);
    assert.deepEqual([clicks, page.popups.length, asked.length], [1, 0, 0]);
  }
  assert.ok(!button.busy);
}));

test("a disabled or busy button fires no click, even if the event does not pass the window's guard", () => pressed({}, ({ page }) => {
  for (const state of ["disabled", "busy"]) {
    const button = new page.Button();
    button.addEventListener("click", () => assert.fail("clicked"), true);
    button[state] = true;
    page.click(button);
    button.dispatchEvent(Object.assign(new Event("click"), { composedPath: () => [button] }));
  }
}));

test("a signature that fails is reported to onError, and the window closes", () => pressed({}, async ({ page, button, told, asked }) => {
  gives(button, { request, signature: soon(30).then(() => Promise.reject(new Error("offline"))) });
  page.click(button);
  await until(() => !button.busy);
  assert.deepEqual(told, [["onError", ["The signed request is not available: Error: offline"]]]);
  assert.ok(page.popups[0].closed);
  assert.equal(asked.length, 0);
}));

test("a checkout that is closed before the signature arrives makes no call", () => pressed({}, async ({ page, button, told, asked }) => {
  let sign;
  gives(button, { request, signature: new Promise((resolve) => (sign = resolve)) });
  page.click(button);
  page.pay.apiCheckout.closeCheckout();
  await until(() => !button.busy);
  sign("s");
  await soon(100);
  assert.deepEqual(told, [["onClose", "closed_by_merchant"]]);
  assert.equal(asked.length, 0);
}));

test("additional data of the click event are sent in a header, and the signed bytes do not change", () => pressed({}, async ({ page, button, asked }) => {
  const additionalData = { customerLoggedIn: true, customerAverageOrderValue: "80" };
  gives(button, { request, signature: "s", additionalData: soon(20).then(() => additionalData) });
  page.click(button);
  await until(() => asked.length);
  assert.deepEqual(JSON.parse(Buffer.from(asked[0].headers["x-pay-additional"], "base64url").toString()), additionalData);
  assert.equal(asked[0].body.toString(), JSON.stringify(request));
}));

test("invalid additional data are reported to onError, and the checkout continues", () => pressed({}, async ({ page, told, asked }) => {
  for (const [at, additionalData, message] of [[1, () => ({ a: "x".repeat(4096) }), /too long/], [2, () => "text", /must be an object/],
    [3, () => soon(20).then(() => Promise.reject(new Error("offline"))), /is not available: Error: offline/]]) {
    const button = new page.Button();
    gives(button, { request, signature: "s", additionalData: additionalData() });
    page.click(button);
    await until(() => asked.length === at);
    assert.match(told.at(-1)[1][0], message);
    assert.equal(asked.at(-1).headers["x-pay-additional"], undefined);
    await until(() => page.popups[at - 1].shown.length === 2);
    page.hear({ pay: 1, checkout: "t", type: "closed", message: "declined" }, page.popups[at - 1]);
    await until(() => !button.busy);
  }
}));

test("the checkout page of a paid order is shown, because only this page provides the card", () => pressed({ orderStatus: "Approved", result: RESULT }, async ({ page, button, told, say }) => {
  gives(button, { request, signature: "s" });
  page.click(button);
  await until(() => page.popups[0].shown.length === 2);
  assert.deepEqual(told, []);
  say({ type: "complete", result: { ...RESULT, card: { number: "1" } } });
  await until(() => !button.busy);
  assert.deepEqual(told, [["onComplete", { ...RESULT, card: { number: "1" } }]]);
}));

test("if the window of a paid order closes without a message, the result has no card", () => pressed({ orderStatus: "Approved", result: RESULT }, async ({ page, told, say }) => {
  const outcome = page.pay.apiCheckout.openCheckout(request, "s");
  await until(() => page.popups[0].shown.length === 2);
  say({ type: "ready" });
  page.popups[0].closed = true;
  assert.equal((await outcome).status, "complete");
  assert.deepEqual(told, [["onComplete", RESULT]]);
}));

test("calls that were queued before the script loaded run in order, even after an invalid one", async () => {
  const page = openPage("https://p.example", { before: `
    window.ran = [];
    window.pay = { q: [["onClose", () => ran.push("close")], null, ["toString"], ["__proto__", 1], (pay) => ran.push(pay === window.pay)] };
    window.stub = pay;` });
  assert.deepEqual([...page.context.ran], [true]);
  assert.equal(page.pay, page.context.stub);
  page.pay.q.push(() => page.context.ran.push("at once"));
  assert.deepEqual([...page.context.ran], [true, "at once"]);
  await until(() => page.thrown.length === 3);
  assert.match(String(page.thrown[1]), /there is no function toString/);
  page.leave();
});

test("loading the script twice defines one window.pay and no other global", () => {
  const page = openPage("https://p.example");
  assert.deepEqual(page.added, ["pay"]);
  page.load();
  assert.equal(page.context.pay, page.pay);
  assert.equal(page.pay.apiCheckout, page.pay.payApiCheckout);
  page.leave();
});

test("an element or a frame with the name pay is not treated as a stub", () => {
  const page = openPage("https://p.example", { before: "window.pay = new Map();" });
  assert.equal(page.pay.version, "1");
  assert.ok(!("size" in page.pay));
  page.leave();
});
