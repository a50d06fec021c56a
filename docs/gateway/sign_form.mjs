// Signs a form of the gateway: Node 18 or later, nothing to install.
// SIGNING_SECRET=signing_... node sign_form.mjs < fields.json

import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

// encodeURIComponent does not encode !'()*, and writes a space as %20. URLSearchParams differs for ~ and *.
const hex = (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`;
const encoded = (text) => encodeURIComponent(text).replace(/[!'()*]/g, hex).replaceAll("%20", "+");

// Returns the fields with their signature. Each is a hidden input of the form, or a part of the query.
export function signForm(fields, signingSecret) {
  const names = Object.keys(fields).sort();
  const text = names.map((name) => `${encoded(name)}=${encoded(fields[name])}`).join("&");
  const signature = createHmac("sha256", signingSecret).update(text, "utf8").digest("base64");
  return { ...fields, signature };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const fields = JSON.parse(readFileSync(0, "utf8"));
  console.log(JSON.stringify(signForm(fields, process.env.SIGNING_SECRET)));
}
