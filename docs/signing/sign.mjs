// Signs the request of openCheckout: Node 18 or later, nothing to install.
// SIGNING_SECRET=signing_... node sign.mjs < request.json

import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

// Returns the arguments of openCheckout: the exact text and its signature.
export function sign(request, signingSecret) {
  const body = typeof request === "string" ? request : JSON.stringify(request);
  const signature = createHmac("sha256", signingSecret).update(body, "utf8").digest("base64");
  return { body, signature };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(JSON.stringify(sign(readFileSync(0, "utf8"), process.env.SIGNING_SECRET)));
}
