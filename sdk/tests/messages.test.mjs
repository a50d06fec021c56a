import assert from "node:assert/strict";
import test from "node:test";
import { compiled } from "./compiled.mjs";

const { judge, isOrigin } = await compiled("messages");
const popup = { name: "the window that was opened" };
const sender = { origin: "https://pay.example", window: popup, checkout: "t-1" };
const ready = { pay: 1, checkout: "t-1", type: "ready" };
const heard = (change = {}) => ({ origin: "https://pay.example", source: popup, data: ready, ...change });
const refused = (change, by = sender) => judge(heard(change), by).refused;

test("a message from the right origin, window and checkout is accepted unchanged", () => {
  assert.deepEqual(judge(heard(), sender), { message: ready });
});

test("an origin with another prefix, suffix, port, scheme or case is refused", () => {
  for (const origin of ["https://pay.example.evil.test", "https://evil.test/https://pay.example", "http://pay.example",
    "https://pay.example:444", "https://PAY.example", "https://pay.example/", "https://x.pay.example", "", "*"]) {
    assert.equal(refused({ origin }), "origin", origin);
  }
});

test("an opaque origin is refused, even if it is the expected origin", () => {
  assert.equal(refused({ origin: "null" }), "origin");
  assert.equal(refused({ origin: "null" }, { ...sender, origin: "null" }), "origin");
  assert.equal(refused({ origin: "file://" }, { ...sender, origin: "file://" }), "origin");
});

test("another window of the right origin, or no window, is refused", () => {
  assert.equal(refused({ source: { name: "another tab" } }), "window");
  assert.equal(refused({ source: null }), "window");
  assert.equal(refused({ source: null }, { ...sender, window: null }), "window");
  assert.equal(refused({ source: undefined }, { ...sender, window: undefined }), "window");
});

test("another checkout is refused, and a message without a checkout is always refused", () => {
  assert.equal(refused({ data: { ...ready, checkout: "t-2" } }), "checkout");
  assert.equal(refused({ data: { ...ready, checkout: ["t-1"] } }), "checkout");
  assert.equal(refused({ data: { ...ready, checkout: "" } }, { ...sender, checkout: "" }), "checkout");
  assert.equal(refused({ data: { pay: 1, type: "ready" } }, { ...sender, checkout: undefined }), "checkout");
});

test("a message of another version is refused", () => {
  for (const pay of [0, 2, "1", true, null, [1]]) assert.equal(refused({ data: { ...ready, pay } }), "version");
});

test("messages between other scripts are ignored", () => {
  for (const data of ["pay", null, 1, [], [ready], {}, { type: "ready" }]) assert.equal(refused({ data }), "not ours");
});

test("a message of an unknown type or a wrong shape is refused", () => {
  const shapes = [{ type: "paid" }, { type: 1 }, { type: "toString" }, { type: "__proto__" }, { type: "complete" },
    { type: "complete", result: [] }, { type: "complete", result: "x" }, { type: "closed" }, { type: "closed", message: "whatever" },
    { type: "error", messages: "x" }, { type: "error", messages: [1] }, { type: "ack" }, { type: "ack", of: "ready" }];
  for (const shape of shapes) assert.equal(refused({ data: { ...ready, ...shape } }), "shape", JSON.stringify(shape));
});

test("every message of the contract is accepted", () => {
  const said = [{ type: "complete", result: { orderId: "o" } }, { type: "closed", message: "declined" }, { type: "error", messages: ["x"] },
    { type: "error", messages: [] }, { type: "ack", of: "complete" }, { type: "ack", of: "closed" }, { type: "close" }];
  for (const what of said) assert.equal(refused({ data: { ...ready, ...what } }), undefined, JSON.stringify(what));
});

test("the data of an unknown sender is not read", () => {
  const trap = new Proxy({}, { get: () => assert.fail("read"), has: () => assert.fail("asked") });
  assert.equal(refused({ origin: "https://evil.test", data: trap }), "origin");
  assert.equal(refused({ source: {}, data: trap }), "window");
});

test("a text with more than a scheme, a host and a port is not an origin", () => {
  for (const text of ["https://shop.example", "http://localhost:8000", "http://[::1]:80"]) assert.ok(isOrigin(text), text);
  for (const text of ["*", "null", "", "https://", "https://a/b", "https://u@a", "javascript:1", "https://a?b", "//a"]) {
    assert.ok(!isOrigin(text), text);
  }
});
