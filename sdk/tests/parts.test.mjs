import assert from "node:assert/strict";
import test from "node:test";
import { compiled } from "./compiled.mjs";

const { Callbacks } = await compiled("callbacks");
const { takeOver, whereIs } = await compiled("loading");
const { masked, printed } = await compiled("inspect");
const soon = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

test("callbacks are awaited one after the other", async () => {
  const order = [];
  const callbacks = new Callbacks();
  callbacks.set("onError", async () => {
    await soon(30);
    order.push("error");
  });
  callbacks.set("onClose", (message) => order.push(message));
  void callbacks.call("onError", ["x"]);
  await callbacks.call("onClose", "declined");
  assert.deepEqual(order, ["error", "declined"]);
});

test("a later callback replaces an earlier one, and a missing callback is no error", async () => {
  const seen = [];
  const callbacks = new Callbacks();
  await callbacks.call("onComplete", {});
  callbacks.set("onComplete", () => seen.push(1));
  callbacks.set("onComplete", () => seen.push(2));
  await callbacks.call("onComplete", {});
  assert.deepEqual(seen, [2]);
});

test("a callback that is not a function is refused when it is set", () => {
  assert.throws(() => new Callbacks().set("onClose", "closed()"), TypeError);
});

test("a callback that throws does not stop the next one, and its error reaches the page", async (all) => {
  const thrown = [];
  const { setTimeout: real } = globalThis;
  all.after(() => (globalThis.setTimeout = real));
  // In a page, an error that is thrown in a timer is reported to the page. Here it is recorded.
  globalThis.setTimeout = (act, milliseconds, ...values) => real(() => {
    try {
      act(...values);
    } catch (error) {
      thrown.push(error.message);
    }
  }, milliseconds);
  const callbacks = new Callbacks();
  callbacks.set("onClose", () => {
    throw new Error("of the shop");
  });
  await callbacks.call("onClose", "declined");
  await callbacks.call("onError", []);
  await soon(20);
  assert.deepEqual(thrown, ["of the shop"]);
});

test("the base address is read from the script's own address", () => {
  assert.deepEqual(whereIs("https://p.example/v1/pay.js"), { base: "https://p.example", inspect: false });
  assert.deepEqual(whereIs("http://localhost:8000/under/v1/pay-0123456789abcdef.js#x"), { base: "http://localhost:8000/under", inspect: false });
  assert.equal(whereIs("https://p.example/v1/pay.js?a=1&inspect")?.inspect, true);
  for (const src of ["", "https://p.example/v2/pay.js", "https://p.example/v1/pay.js.map", "https://p.example/?/v1/pay.js", "file:///v1/pay.js"]) {
    assert.equal(whereIs(src), null, src);
  }
});

test("the script keeps the stub's objects and its queued calls, including `arguments` objects", () => {
  const api = {};
  const run = () => 1;
  const call = (function () { return arguments; })("onClose", run);
  const stub = { q: [call, run], payApiCheckout: api };
  const early = takeOver({ pay: stub });
  assert.equal(early.pay, stub);
  assert.equal(early.api, api);
  assert.deepEqual(early.calls, [["onClose", run], run]);
  assert.deepEqual(takeOver({}), { pay: {}, api: {}, calls: [] });
});

test("loading the script a second time changes nothing", () => {
  assert.equal(takeOver({ pay: { version: "1" } }), null);
});

test("the inspector masks card numbers and security codes", () => {
  const text = printed({ card: { number: "4242424242424242", cvc: "737", brand: "visa" } });
  assert.ok(!text.includes("42424") && !text.includes("737") && text.includes("•4242") && text.includes("visa"), text);
  assert.equal(masked("number", 12), 12);
});
