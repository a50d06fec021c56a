// Receives Cuota's webhooks: Node 18 or later, nothing to install.
// WEBHOOK_SECRET=whsec_... SIGNING_SECRET=signing_... PORT=8400 INBOX=inbox node receiver.mjs
// While the signing secret is replaced, SIGNING_SECRET holds the old and the new one, separated by a space.

import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { link, mkdir, open, unlink } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";

const webhookKey = Buffer.from(process.env.WEBHOOK_SECRET.replace(/^whsec_/, ""), "base64");
const signingKeys = process.env.SIGNING_SECRET.split(" ").filter(Boolean);
const inbox = process.env.INBOX ?? "inbox";
const tolerance = 300; // seconds
const mostBytes = 1024 * 1024;
if (!webhookKey.length || !signingKeys.length) throw new Error("An empty secret proves nothing.");

// Returns whether both signatures match exactly these bytes, and the timestamp is less than five minutes off.
function genuine(headers, body) {
  const name = headers["webhook-id"] ?? "";
  const sentAt = headers["webhook-timestamp"] ?? "";
  if (!/^\w{1,100}$/.test(name) || !/^[0-9]{1,12}$/.test(sentAt)) return false;
  if (Math.abs(Date.now() / 1000 - Number(sentAt)) > tolerance) return false;
  const wanted = "v1," + sign(webhookKey, Buffer.concat([Buffer.from(`${name}.${sentAt}.`), body]));
  // During a rotation the header has two signatures, and one of them must match. Compare all, each in constant time.
  const fits = (headers["webhook-signature"] ?? "").split(" ").map((given) => same(given, wanted));
  const ours = signingKeys.map((key) => same(headers["x-pay-signature"] ?? "", sign(key, body)));
  return fits.includes(true) && ours.includes(true);
}

function sign(key, message) {
  return createHmac("sha256", key).update(message).digest("base64");
}

// timingSafeEqual needs equal lengths. The length of a signature is not secret.
function same(given, wanted) {
  const a = Buffer.from(given), b = Buffer.from(wanted);
  return a.length === b.length && timingSafeEqual(a, b);
}

// Stores the event in the inbox, on the disk, under its id. Returns false if it is already there.
async function keep(name, body) {
  const path = join(inbox, `.new-${randomUUID()}`);
  const file = await open(path, "wx");
  try {
    await file.writeFile(body);
    await file.sync();
    await link(path, join(inbox, `${name}.json`));
    return true;
  } catch (problem) {
    if (problem.code === "EEXIST") return false;
    throw problem;
  } finally {
    await file.close();
    await unlink(path);
  }
}

// Answers 204 for a webhook that is stored now or was stored before, and 401 for one whose signature is wrong. The work is
// done later, from the inbox.
async function receive(request) {
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > mostBytes) return 413;
    parts.push(part);
  }
  const body = Buffer.concat(parts);
  if (request.method !== "POST") return 405;
  if (!genuine(request.headers, body)) return 401;
  if (await keep(request.headers["webhook-id"], body)) {
    const event = JSON.parse(body);
    console.log(event.type, event.id);
  }
  return 204;
}

await mkdir(inbox, { recursive: true });
createServer(async (request, response) => {
  try {
    response.statusCode = await receive(request);
  } catch (problem) {
    console.error(problem);
    response.statusCode = 500; // not stored: Cuota sends it again
  }
  response.end();
}).listen(Number(process.env.PORT ?? 8400), "127.0.0.1");
