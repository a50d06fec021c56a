// The table of a checkout's states: where each leads, and what no state may lack.
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

test("every state is reached from the first, and the end from every state", () => {
  assert.deepEqual([...reachedFrom("asking")].sort(), [...STATES].sort());
  for (const state of STATES) assert.ok(reachedFrom(state).has("ended"), state);
});

test("a payment counts in every state until the end is known, and only once", () => {
  for (const state of STATES) {
    const over = state === "paid" || state === "ended";
    assert.deepEqual(EDGES[state].complete, over ? undefined : ["paid", "report"], state);
  }
  assert.deepEqual([...reachedFrom("paid")], ["paid", "ended"]);
  assert.deepEqual([...reachedFrom("ended")], ["ended"]);
});

test("the shop can close a checkout in every state but where that is under way", () => {
  const deaf = STATES.filter((state) => !EDGES[state].close);
  assert.deepEqual(deaf, ["closing", "ending"]);
});

test("the customer can leave wherever a page is shown, and the service is asked before the shop is told", () => {
  for (const state of ["asking", "shown", "answered"]) assert.deepEqual(EDGES[state].gone, ["looking", "leave"], state);
});
