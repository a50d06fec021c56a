// Tests of the table of a checkout's states: which states follow, and which events every state must handle.
import assert from "node:assert/strict";
import test from "node:test";
import { compiled } from "./compiled.mjs";

const { EDGES } = await compiled("states");
const STATES = Object.keys(EDGES);
const next = (state) => Object.values(EDGES[state]).map(([to]) => to);

function reachedFrom(start) {
  const found = new Set([start]);
  for (const state of found) for (const to of next(state)) found.add(to);
  return found;
}

test("every state is reachable from the first state, and the end is reachable from every state", () => {
  assert.deepEqual([...reachedFrom("asking")].sort(), [...STATES].sort());
  for (const state of STATES) assert.ok(reachedFrom(state).has("ended"), state);
});

test("every state handles a payment until the outcome is known, and reports it once", () => {
  for (const state of STATES) {
    const over = state === "paid" || state === "ended";
    assert.deepEqual(EDGES[state].complete, over ? undefined : ["paid", "report"], state);
  }
  assert.deepEqual([...reachedFrom("paid")], ["paid", "ended"]);
  assert.deepEqual([...reachedFrom("ended")], ["ended"]);
});

test("the shop can close a checkout in every state except while it is already closing", () => {
  const deaf = STATES.filter((state) => !EDGES[state].close);
  assert.deepEqual(deaf, ["closing", "ending"]);
});

test("the customer can leave in every state with a page, and the service is asked before the shop gets a callback", () => {
  for (const state of ["asking", "shown", "answered"]) assert.deepEqual(EDGES[state].gone, ["looking", "leave"], state);
});
