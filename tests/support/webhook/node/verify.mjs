// Verifies webhooks as a merchant would, with the official library. Reads JSON lines {secret, headers, body (base64)};
// prints one line for each: {"event": <its id>} or {"refused": <why>}.
import { createInterface } from "node:readline";
import { Webhook } from "standardwebhooks";

for await (const line of createInterface({ input: process.stdin })) {
  const { secret, headers, body } = JSON.parse(line);
  try {
    const event = new Webhook(secret).verify(Buffer.from(body, "base64").toString("utf8"), headers);
    console.log(JSON.stringify({ event: event.id }));
  } catch (problem) {
    console.log(JSON.stringify({ refused: problem.message }));
  }
}
