// Tests of the whole script, from the call to the callback, with a service on a real socket.
import assert from "node:assert/strict";
import test from "node:test";
import { fakeWindow, openPage } from "./browser.mjs";
import { serving } from "./serving.mjs";

const request = { merchantId: "m", merchantReference: "A-1", order: { amount: 10, currency: "USD" } };
const RESULT = { customer: { firstName: "Jordan" }, orderId: "o" };
const OPEN = { orderId: "o", token: "t", orderStatus: "Created" };
const plain = (value) => JSON.parse(JSON.stringify(value));
const soon = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const until = async (found) => {
  for (let waited = 0; !found(); waited += 10) {
    assert.ok(waited < 15_000, `nothing came: ${found}`);
    await soon(10);
  }
};

/** Runs a test with a page and a service. `answer(call, count)` returns values to add to OPEN, or [status, body]. */
async function shop(answer, run, how = {}) {
  const told = [];
  await serving(async (call, count) => {
    const said = await answer(call, count);
    if (Array.isArray(said)) return said;
    return [200, { ...OPEN, checkoutUrl: `http://${call.headers.host}/checkout/m?token=t&display=popup`, ...said }];
  }, async (base, asked) => {
    const page = openPage(base, how);
    for (const name of ["onComplete", "onClose", "onError"]) page.pay.apiCheckout[name]((argument) => void told.push([name, plain(argument)]));
    const say = (what, source = page.popups[0] ?? page.frames[0].contentWindow, more) => page.hear({ pay: 1, checkout: "t", ...what }, source, more);
    try {
      await run({ page, api: page.pay.apiCheckout, asked, told, say, base });
    } finally {
      page.leave();
    }
  });
}
const paths = (asked) => asked.map((call) => call.url.replace("/sdk/v1/checkouts", "") || "/");
const leads = (page) => until(() => page.popups[0].shown.length === 2);

test("the window opens during the click, goes to the checkout, and its result is reported once", () => shop(() => ({}), async ({ page, api, told, say, base }) => {
  const outcome = api.openCheckout(request, "s");
  assert.deepEqual(page.popups[0].shown, [`${base}/sdk/v1/window`]);
  await leads(page);
  assert.equal(page.popups[0].shown[1], `${base}/checkout/m?token=t&display=popup`);
  say({ type: "ready" });
  for (const again of [1, 2, 3]) say({ type: "complete", result: { ...RESULT, again } });
  assert.deepEqual(plain(await outcome), { status: "complete", result: { ...RESULT, again: 1 } });
  assert.deepEqual(told, [["onComplete", { ...RESULT, again: 1 }]]);
  assert.equal(page.popups[0].said.length, 3);
  assert.deepEqual(plain(page.popups[0].said[2]), { message: { pay: 1, checkout: "t", type: "ack", of: "complete" }, origin: base });
  assert.ok(page.popups[0].closed);
}));

test("the window goes to the checkout only after its first page has loaded, because browsers ignore an earlier navigation", () => shop(() => ({}), async ({ page, api, asked, base }) => {
  void api.openCheckout(request, "s");
  page.popups[0].location.href = "about:blank";
  await until(() => asked.length);
  await soon(200);
  assert.equal(page.popups[0].shown.length, 1);
  Object.defineProperty(page.popups[0].location, "href", { get: () => assert.fail("another origin's") });
  await leads(page);
  await soon(200);
  assert.deepEqual(page.popups[0].shown, [`${base}/sdk/v1/window`, `${base}/checkout/m?token=t&display=popup`]);
}));

test("messages from another origin, window or checkout, or from a sandboxed page, are ignored", () => shop(() => ({}), async ({ page, api, told, say }) => {
  void api.openCheckout(request, "s");
  await leads(page);
  const complete = { type: "complete", result: RESULT };
  say(complete, page.popups[0], "https://evil.test");
  say(complete, page.popups[0], "null");
  say(complete, null);
  say(complete, fakeWindow());
  say({ ...complete, checkout: "u" });
  say({ type: "__proto__" });
  page.hear(JSON.parse('{"__proto__":{"pay":1,"checkout":"t","type":"complete","result":{}},"pay":1}'), page.popups[0]);
  await soon(50);
  assert.deepEqual(told, []);
  assert.deepEqual(page.popups[0].said, []);
}));

test("a second call during a checkout opens no second checkout, and brings the window to the front", () => shop(() => ({}), async ({ page, api, asked, say }) => {
  const both = [api.openCheckout(request, "s"), api.openCheckout({ ...request, merchantReference: "B" }, "s")];
  assert.equal(page.popups[0].focused, 1);
  api.focusCheckout();
  assert.equal(page.popups[0].focused, 2);
  await leads(page);
  say({ type: "complete", result: RESULT });
  assert.equal(await both[0], await both[1]);
  assert.equal(page.popups.length, 1);
  assert.equal(asked.length, 1);
}));

test("a repeated request is not reported again while the shop's callback runs", () => shop(() => ({}), async ({ page, api, say }) => {
  const done = [];
  api.onComplete(() => soon(300).then(() => done.push("shop")));
  const first = api.openCheckout(request, "s");
  await leads(page);
  say({ type: "complete", result: RESULT });
  const again = api.openCheckout(request, "s");
  assert.equal(await first, await again);
  assert.deepEqual(done, ["shop"]);
  assert.equal(page.popups.length, 1);
}));

test("a blocked popup becomes a modal, and a page that replaces its body closes the modal", () => shop(() => ({}), async ({ page, api, told, asked, say, base }) => {
  const outcome = api.openCheckout(request, "s");
  await until(() => page.frames[0].src);
  assert.equal(page.frames[0].src, `${base}/checkout/m?token=t&display=iframe`);
  say({ type: "ready" });
  page.frames[0].focused = false;
  api.focusCheckout();
  assert.ok(page.frames[0].focused);
  page.body.children.at(-1).remove();
  assert.deepEqual(plain(await outcome), { status: "closed", message: "closed_by_customer" });
  assert.deepEqual(paths(asked), ["/", "/"]);
  assert.deepEqual(told, [["onClose", "closed_by_customer"]]);
  assert.deepEqual([...page.context.document.adoptedStyleSheets], []);
}, { popups: false }));

test("after Escape in the frame, the service is asked whether the card was already charged", () => shop((_, count) => (count > 1 ? { orderStatus: "Approved", result: RESULT } : {}), async ({ page, api, told, say }) => {
  const outcome = api.openCheckout({ ...request, display: "iframe" }, "s");
  await until(() => page.frames[0].src);
  say({ type: "ready" });
  say({ type: "closed", message: "closed_by_customer" });
  assert.equal((await outcome).status, "complete");
  assert.deepEqual(told, [["onComplete", RESULT]]);
}));

test("an invalid call is reported with messages and opens no window", () => shop(() => ({}), async ({ page, api, told, asked }) => {
  assert.equal((await api.openCheckout({}, "")).status, "error");
  assert.equal(told[0][1].length, 4);
  assert.equal(page.popups.length + asked.length, 0);
}));

test("a shop whose callback throws still gets the next callback", () => shop(() => ({}), async ({ page, api, told, say }) => {
  api.onError(() => {
    throw new Error("of the shop");
  });
  await api.openCheckout({}, "");
  const outcome = api.openCheckout(request, "s");
  await leads(page);
  say({ type: "closed", message: "declined" });
  assert.deepEqual(plain(await outcome), { status: "closed", message: "declined" });
  assert.deepEqual(told, [["onClose", "declined"]]);
  await until(() => page.thrown.length === 1);
}));

test("a refused signature closes the window, and an unreachable service is reported in the window", () => shop((_, count) => (count === 1 ? [401, { message: "No." }] : [0]), async ({ page, api, told, base }) => {
  assert.deepEqual(plain(await api.openCheckout(request, "s")), { status: "error", messages: ["No."] });
  assert.ok(page.popups[0].closed);
  await api.openCheckout(request, "s");
  assert.equal(page.popups[1].closed, false);
  assert.equal(page.popups[1].shown.at(-1), `${base}/sdk/v1/window#failed`);
  assert.match(told[1][1][0], /could not be reached/);
}));

test("if the page is still here after a redirect, the next click goes to the checkout again", () => shop(() => ({}), async ({ page, api, asked, told }) => {
  const redirect = { ...request, display: "redirect" };
  for (const clicks of [1, 2]) {
    void api.openCheckout(redirect, "s");
    await until(() => page.went.length === clicks);
  }
  assert.equal(page.went[0], page.went[1]);
  assert.equal(asked.length, 1);
  assert.deepEqual(told, []);
}));

test("the Back button after a redirect ends the checkout, and the next click opens it again", () => shop(() => ({}), async ({ page, api, told }) => {
  const redirect = { ...request, display: "redirect" };
  const outcome = api.openCheckout(redirect, "s");
  page.comeBack();
  await until(() => page.went.length === 1);
  page.comeBack();
  assert.deepEqual(plain(await outcome), { status: "closed", message: "closed_by_customer" });
  void api.openCheckout(redirect, "s");
  await until(() => page.went.length === 2);
  assert.deepEqual(told, [["onClose", "closed_by_customer"]]);
}));

test("the Back button after a redirect reports a payment that was made", () => shop((_, count) => (count > 1 ? { orderStatus: "Approved", result: RESULT } : {}), async ({ page, api, told }) => {
  void api.openCheckout({ ...request, display: "redirect" }, "s");
  await until(() => page.went.length === 1);
  page.comeBack();
  await until(() => told.length);
  assert.deepEqual(told, [["onComplete", RESULT]]);
}));

test("a page that comes from the cache with an open window leaves the window alone", () => shop(() => ({}), async ({ page, api, asked, told }) => {
  void api.openCheckout(request, "s");
  await leads(page);
  page.comeBack();
  await soon(50);
  assert.ok(!page.popups[0].closed);
  assert.equal(asked.length, 1);
  assert.deepEqual(told, []);
}));

test("a redirect navigates the merchant's page, and the page reports the result when it is back", () => shop((_, count) => (count > 1 ? { orderStatus: "Approved", result: RESULT } : {}), async ({ page, api, base }) => {
  const redirect = { ...request, display: "redirect", integrationType: "virtual_card" };
  void api.openCheckout(redirect, "s");
  await until(() => page.went.length);
  assert.deepEqual(page.went, [`${base}/checkout/m?token=t&display=redirect`]);
  const back = openPage(base);
  assert.equal((await back.pay.apiCheckout.openCheckout(redirect, "s")).status, "complete");
  assert.deepEqual(back.went, []);
  back.leave();
}));

test("if the customer closes the window, the order stays open, and the service is asked for its state", () => shop(() => ({}), async ({ page, api, asked, say }) => {
  const outcome = api.openCheckout(request, "s");
  await leads(page);
  say({ type: "ready" });
  page.popups[0].closed = true;
  assert.deepEqual(plain(await outcome), { status: "closed", message: "closed_by_customer" });
  assert.deepEqual(paths(asked), ["/", "/"]);
}));

test("closeCheckout asks a running checkout page to end, and the page cancels the order", () => shop(() => ({}), async ({ page, api, asked, told, say, base }) => {
  void api.openCheckout(request, "s");
  await leads(page);
  say({ type: "ready" });
  api.closeCheckout();
  assert.deepEqual(plain(page.popups[0].said), [{ message: { pay: 1, checkout: "t", type: "close" }, origin: base }]);
  say({ type: "closed", message: "closed_by_customer" });
  await until(() => told.length);
  assert.deepEqual(told, [["onClose", "closed_by_merchant"]]);
  assert.deepEqual(paths(asked), ["/"]);
}));

test("closeCheckout does not wait for a page that is not running, but ends the session with the same signed bytes", () => shop((call) => (call.url.endsWith("leave") ? { orderStatus: "Abandoned" } : {}), async ({ page, api, asked }) => {
  const outcome = api.openCheckout(request, "sig");
  await leads(page);
  api.closeCheckout();
  assert.deepEqual(plain(await outcome), { status: "closed", message: "closed_by_merchant" });
  assert.deepEqual(paths(asked), ["/", "/leave"]);
  assert.deepEqual(asked[1].body, asked[0].body);
  assert.equal(asked[1].headers["x-pay-signature"], "sig");
  assert.ok(page.popups[0].closed);
}));

test("the service ends the session if the page does not answer for four seconds, or cannot cancel", () => shop((call) => (call.url.endsWith("leave") ? { orderStatus: "Abandoned" } : {}), async ({ page, api, asked, say }) => {
  for (const round of [1, 2]) {
    const outcome = api.openCheckout(request, "s");
    await until(() => page.popups[round - 1].shown.length === 2);
    say({ type: "ready" }, page.popups[round - 1]);
    api.closeCheckout();
    if (round === 2) say({ type: "closed", message: "closed_by_merchant" }, page.popups[1]);
    assert.deepEqual(plain(await outcome), { status: "closed", message: "closed_by_merchant" });
  }
  assert.deepEqual(paths(asked), ["/", "/leave", "/", "/leave"]);
}));

test("a checkout that was paid before closeCheckout is reported as complete", () => shop((call) => (call.url.endsWith("leave") ? { orderStatus: "Approved", result: RESULT } : {}), async ({ page, api, told }) => {
  void api.openCheckout(request, "s");
  await leads(page);
  api.closeCheckout();
  await until(() => told.length);
  assert.deepEqual(told, [["onComplete", RESULT]]);
}));

test("closeCheckout waits for a running call that creates the order, so that no order stays open", () => shop(async (call) => (call.url.endsWith("leave") ? { orderStatus: "Abandoned" } : soon(400).then(() => ({}))), async ({ page, api, asked }) => {
  const outcome = api.openCheckout(request, "s");
  await until(() => asked.length);
  api.closeCheckout();
  api.closeCheckout();
  assert.ok(page.popups[0].closed);
  assert.deepEqual(plain(await outcome), { status: "closed", message: "closed_by_merchant" });
  assert.deepEqual(paths(asked), ["/", "/leave"]);
  assert.equal(page.popups[0].shown.length, 1);
}));

test("closeCheckout stops waiting for a call without an answer, and accepts that no order exists", () => shop((call) => (call.url.endsWith("leave") ? [404, {}] : new Promise(() => undefined)), async ({ api, asked, told }) => {
  const outcome = api.openCheckout(request, "s");
  await until(() => asked.length);
  api.closeCheckout();
  assert.deepEqual(plain(await outcome), { status: "closed", message: "closed_by_merchant" });
  assert.deepEqual(paths(asked), ["/", "/leave"]);
  assert.deepEqual(told, [["onClose", "closed_by_merchant"]]);
}));

test("closeCheckout ends the session even if the customer has just closed the window", () => shop(async (call, count) => (call.url.endsWith("leave") ? { orderStatus: "Abandoned" } : soon(count > 1 ? 400 : 0).then(() => ({}))), async ({ page, api, asked, say }) => {
  const outcome = api.openCheckout(request, "s");
  await leads(page);
  say({ type: "ready" });
  page.popups[0].closed = true;
  await until(() => asked.length === 2);
  api.closeCheckout();
  assert.deepEqual(plain(await outcome), { status: "closed", message: "closed_by_merchant" });
  assert.deepEqual(paths(asked), ["/", "/", "/leave"]);
}));
