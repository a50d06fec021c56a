import assert from "node:assert/strict";
import test from "node:test";
import { compiled } from "./compiled.mjs";
import { serving as serve } from "./serving.mjs";

const { additionalHeader, authorize, displayOf, explain, Failure, leave, read, shownAs, sign } = await compiled("api");
const request = { merchantId: "m", merchantReference: "A-1", order: { amount: 10, currency: "USD" } };
const never = () => new AbortController().signal;
const messages = (run) => {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof Failure, String(error));
    return error.messages;
  }
  return assert.fail("nothing was refused");
};

/** A service that gives these answers in order, and then repeats the last one. */
const serving = (answers, run) => serve((_, count) => answers[Math.min(count, answers.length) - 1], run);
const good = (base) => ({ orderId: "o", token: "t", checkoutUrl: `${base}/checkout/m?token=t&display=popup`, orderStatus: "Created" });

test("a JSON text is sent unchanged, with its signature and without cookies", async () => {
  const body = '{ "merchantId":"m","merchantReference":"Ä-1",\n"order":{"amount":10.0,"currency":"USD"} , "x":"\\u00e9"}';
  await serving([[401, {}]], async (base, asked) => {
    await assert.rejects(authorize(base, sign(body, "c2ln"), never()));
    assert.equal(asked[0].url, "/sdk/v1/checkouts");
    assert.deepEqual(asked[0].body, Buffer.from(body, "utf8"));
    assert.equal(asked[0].headers["x-pay-signature"], "c2ln");
    assert.equal(asked[0].headers["content-type"], "application/json");
    assert.equal(asked[0].headers.cookie, undefined);
  });
});

test("a request object is sent as JSON.stringify prints it", () => {
  assert.equal(sign(request, "s").body, JSON.stringify(request));
});

test("the display comes from the signed body, and the default is a popup", () => {
  assert.equal(sign(request, "s").display, "popup");
  assert.equal(sign({ ...request, display: "iframe" }, "s").display, "iframe");
  assert.equal(sign(JSON.stringify({ ...request, display: "redirect" }), "s").display, "redirect");
  assert.deepEqual(messages(() => sign({ ...request, display: "tab" }, "s")), ["requestBody.display must be popup, iframe or redirect."]);
});

test("one error lists all missing parameters", () => {
  assert.deepEqual(messages(() => sign({}, "")), ["requestBody.merchantId is missing.", "requestBody.merchantReference is missing.",
    "requestBody.order is missing.", "signature is missing: sign the request body on your server."]);
});

test("a body that is neither an object nor JSON text is refused with a message", () => {
  const loop = {};
  loop.loop = loop;
  for (const body of [undefined, null, 1, "", "{", "[]", "1", [], loop, 1n, () => 1]) {
    assert.deepEqual(messages(() => sign(body, "s")), ["requestBody must be an object, or the JSON text that was signed."]);
  }
});

test("a problem document becomes messages about its fields, or else its message, or else its status", () => {
  assert.deepEqual(explain(400, { errors: [{ field: "order.amount", message: "is too large" }, { message: "b" }, 7], message: "m" }),
    ["order.amount: is too large", "b"]);
  assert.deepEqual(explain(401, { errors: [], message: "The signature does not verify." }), ["The signature does not verify."]);
  for (const odd of [null, "x", [], { errors: "x" }, { message: 1 }]) {
    assert.deepEqual(explain(502, odd), ["The checkout could not be opened (HTTP 502)."]);
  }
});

test("a checkout address that is not on the service is refused", () => {
  const base = "https://pay.example/base";
  for (const checkoutUrl of ["https://evil.test/checkout", "https://pay.example@evil.test/", "https://evil.test/\\@pay.example", "javascript:alert(1)",
    "/checkout", "https://pay.example.evil.test/", "http://pay.example/", "blob:https://pay.example/x", "https://pay.example:444/"]) {
    assert.equal(messages(() => read({ token: "t", checkoutUrl }, base)).length, 1, checkoutUrl);
  }
  assert.equal(read({ token: "t", checkoutUrl: "https://pay.example/checkout/m" }, base).url, "https://pay.example/checkout/m");
});

test("an answer with a final order contains the outcome", () => {
  const answer = { token: "t", checkoutUrl: "https://p.example/c" };
  const ended = (more) => read({ ...answer, ...more }, "https://p.example").ended;
  assert.equal(ended({ orderStatus: "Created" }), undefined);
  assert.deepEqual(ended({ orderStatus: "Approved", result: { orderId: "o" } }), { result: { orderId: "o" } });
  assert.deepEqual(ended({ orderStatus: "Declined" }), { message: "declined" });
  assert.deepEqual(ended({ orderStatus: "Abandoned" }), { message: "closed_by_customer" });
  assert.deepEqual(ended({ orderStatus: "Abandoned", expiryDateTime: "2020-01-01T00:00:00Z" }), { message: "session_expired" });
  assert.equal(ended({ orderStatus: "toString" }), undefined);
});

test("the reason of an ended checkout is the service's, whatever the customer's clock says", () => {
  const answer = { token: "t", checkoutUrl: "https://p.example/c", orderStatus: "Abandoned" };
  const ended = (more) => read({ ...answer, ...more }, "https://p.example").ended;
  const [past, future] = ["2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"];
  assert.deepEqual(ended({ expiryDateTime: past, closeReason: "closed_by_customer" }), { message: "closed_by_customer" });
  assert.deepEqual(ended({ expiryDateTime: future, closeReason: "session_expired" }), { message: "session_expired" });
  // An older service sends no reason. A reason that this script does not know is not reported to the shop.
  for (const closeReason of [undefined, null, "another", 1, {}]) {
    assert.deepEqual(ended({ expiryDateTime: past, closeReason }), { message: "session_expired" });
    assert.deepEqual(ended({ expiryDateTime: future, closeReason }), { message: "closed_by_customer" });
  }
  assert.equal(ended({ orderStatus: "Created", closeReason: "declined" }), undefined);
});

test("another display changes only the query of the checkout's address", () => {
  assert.equal(shownAs("https://p.example/c/m?token=t&display=popup", "iframe"), "https://p.example/c/m?token=t&display=iframe");
  assert.equal(shownAs("https://p.example/c/m?token=t", "redirect"), "https://p.example/c/m?token=t&display=redirect");
});

test("a failed call is retried once with the same bytes", async () => {
  for (const first of [[0], [503, {}], [200, "not JSON"]]) {
    await serving([first, [200, { token: "t", checkoutUrl: "http://127.0.0.1:1/c" }]], async (base, asked) => {
      await assert.rejects(authorize(base, sign(request, "s"), never()), /cannot be read/);
      assert.equal(asked.length, 2);
      assert.deepEqual(asked[0].body, asked[1].body);
    });
  }
});

test("a refused call is not retried", async () => {
  await serving([[401, { message: "No." }]], async (base, asked) => {
    await assert.rejects(authorize(base, sign(request, "s"), never()), (error) => !error.network && error.messages[0] === "No.");
    assert.equal(asked.length, 1);
  });
});

test("a valid answer is read, and an unreachable service is a network error", async () => {
  const answers = [];
  await serving(answers, async (base) => {
    answers.push([200, good(base)]);
    assert.equal((await authorize(base, sign(request, "s"), never())).token, "t");
  });
  await assert.rejects(authorize("http://127.0.0.1:1", sign(request, "s"), never(), 1), (error) => error.network);
});

test("an aborted call sends no request", async () => {
  const stop = new AbortController();
  stop.abort();
  await serving([[503, {}]], async (base, asked) => {
    await assert.rejects(authorize(base, sign(request, "s"), stop.signal));
    assert.equal(await leave(base, sign(request, "s"), stop.signal), undefined);
    assert.equal(asked.length, 0);
  });
});

test("the signed request must request a virtual card, also when a button sends it", () => {
  assert.equal(sign(request, "s").virtualCard, false);
  assert.equal(sign({ ...request, integrationType: "api" }, "s").virtualCard, false);
  assert.equal(sign({ ...request, integrationType: "virtual_card" }, "s").virtualCard, true);
  assert.equal(sign(JSON.stringify({ ...request, integrationType: "virtual_card" }), "s", true).virtualCard, true);
  assert.deepEqual(messages(() => sign({ ...request, integrationType: "card" }, "s")), ["requestBody.integrationType must be api or virtual_card."]);
  for (const integrationType of [undefined, "api", "VIRTUAL_CARD", true]) {
    const told = messages(() => sign({ ...request, integrationType }, "s", true));
    assert.equal(told.length, 1);
    assert.match(told[0], /^requestBody\.integrationType must be "virtual_card": /);
  }
});

test("the display is read only from a request that is not a promise, and is otherwise a popup", () => {
  assert.equal(displayOf({ display: "iframe" }), "iframe");
  assert.equal(displayOf('{"display":"redirect"}'), "redirect");
  for (const request of [undefined, null, 7, "{", Promise.resolve({ display: "iframe" }), { display: "tab" }]) assert.equal(displayOf(request), "popup");
});

test("additional data are sent as base64url of their JSON, and only with the call that opens the checkout", async () => {
  const data = { customerLoggedIn: true, merchantRiskAssessment: "größer ☕ ÿþ?>~" };
  const header = additionalHeader(data);
  assert.match(header, /^[A-Za-z0-9_-]+$/);
  assert.deepEqual(JSON.parse(Buffer.from(header, "base64url").toString()), data);
  await serving([[401, {}]], async (base, asked) => {
    await assert.rejects(authorize(base, { ...sign(request, "s"), additional: header }, never()));
    await leave(base, { ...sign(request, "s"), additional: header }, never());
    assert.deepEqual(asked.map((call) => call.headers["x-pay-additional"]), [header, undefined]);
  });
});

test("additional data that do not fit into a header are refused with a message", () => {
  assert.equal(additionalHeader({ a: "x".repeat(3064) }).length, 4096);
  assert.match(messages(() => additionalHeader({ a: "x".repeat(3065) }))[0], /^additionalData is too long: 4098 characters/);
  const loop = {};
  loop.loop = loop;
  for (const data of ["x", [], 1, loop, { a: 1n }]) assert.deepEqual(messages(() => additionalHeader(data)), ["additionalData must be an object."]);
});

test("leave is repeated while a card is being charged, and returns the outcome", async () => {
  const at = (base, orderStatus, more) => [200, { ...good(base), orderStatus, ...more }];
  const answers = [];
  await serving(answers, async (base, asked) => {
    answers.push(at(base, "Created"), [503, {}], at(base, "Approved", { result: { orderId: "o" } }));
    assert.deepEqual(await leave(base, sign(request, "s"), never()), { result: { orderId: "o" } });
    assert.deepEqual(asked.map((call) => call.url), Array(3).fill("/sdk/v1/checkouts/leave"));
    assert.equal(asked[2].body.toString(), JSON.stringify(request));
    assert.equal(asked[2].headers["x-pay-signature"], "s");
  });
});

test("leave returns at once if the order does not exist", async () => {
  await serving([[404, {}]], async (base, asked) => {
    assert.equal(await leave(base, sign(request, "s"), never()), undefined);
    assert.equal(asked.length, 1);
  });
});
