// <pay-button> and the loading of the script.
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

/** A button on a page of a service that answers with `said`. */
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

test("the signed request must ask for a card: told before any call, and the window goes", () => pressed({}, async ({ page, button, told, asked }) => {
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

test("a card is handed over, and the button is busy until then", () => pressed({}, async ({ page, button, told, asked, say }) => {
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

test("with integrationType=api, however it is written, it only clicks", () => pressed({}, async ({ page, button, asked }) => {
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

test("a disabled or busy button is not clicked, not even behind the back of the window's guard", () => pressed({}, ({ page }) => {
  for (const state of ["disabled", "busy"]) {
    const button = new page.Button();
    button.addEventListener("click", () => assert.fail("clicked"), true);
    button[state] = true;
    page.click(button);
    button.dispatchEvent(Object.assign(new Event("click"), { composedPath: () => [button] }));
  }
}));

test("a signature that cannot be had is told, and the window goes", () => pressed({}, async ({ page, button, told, asked }) => {
  gives(button, { request, signature: soon(30).then(() => Promise.reject(new Error("offline"))) });
  page.click(button);
  await until(() => !button.busy);
  assert.deepEqual(told, [["onError", ["The signed request is not available: Error: offline"]]]);
  assert.ok(page.popups[0].closed);
  assert.equal(asked.length, 0);
}));

test("closed while the signature is on its way, nothing is asked for", () => pressed({}, async ({ page, button, told, asked }) => {
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

test("what the click event adds travels beside the signed bytes", () => pressed({}, async ({ page, button, asked }) => {
  const additionalData = { customerLoggedIn: true, customerAverageOrderValue: "80" };
  gives(button, { request, signature: "s", additionalData: soon(20).then(() => additionalData) });
  page.click(button);
  await until(() => asked.length);
  assert.deepEqual(JSON.parse(Buffer.from(asked[0].headers["x-pay-additional"], "base64url").toString()), additionalData);
  assert.equal(asked[0].body.toString(), JSON.stringify(request));
}));

test("additional data that cannot be sent are told, and cost no sale", () => pressed({}, async ({ page, told, asked }) => {
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

test("paid before, the page is shown all the same, for it alone gives the card", () => pressed({ orderStatus: "Approved", result: RESULT }, async ({ page, button, told, say }) => {
  gives(button, { request, signature: "s" });
  page.click(button);
  await until(() => page.popups[0].shown.length === 2);
  assert.deepEqual(told, []);
  say({ type: "complete", result: { ...RESULT, card: { number: "1" } } });
  await until(() => !button.busy);
  assert.deepEqual(told, [["onComplete", { ...RESULT, card: { number: "1" } }]]);
}));

test("paid before, a window closed in silence reports the result without a card", () => pressed({ orderStatus: "Approved", result: RESULT }, async ({ page, told, say }) => {
  const outcome = page.pay.apiCheckout.openCheckout(request, "s");
  await until(() => page.popups[0].shown.length === 2);
  say({ type: "ready" });
  page.popups[0].closed = true;
  assert.equal((await outcome).status, "complete");
  assert.deepEqual(told, [["onComplete", RESULT]]);
}));

test("calls made before the script was there run in order; a wrong one stops nothing", async () => {
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

test("loaded twice there is one, and window.pay is the only name that it leaves", () => {
  const page = openPage("https://p.example");
  assert.deepEqual(page.added, ["pay"]);
  page.load();
  assert.equal(page.context.pay, page.pay);
  assert.equal(page.pay.apiCheckout, page.pay.payApiCheckout);
  page.leave();
});

test("an element or a frame that is called pay is not taken for a stub", () => {
  const page = openPage("https://p.example", { before: "window.pay = new Map();" });
  assert.equal(page.pay.version, "1");
  assert.ok(!("size" in page.pay));
  page.leave();
});
