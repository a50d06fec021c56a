// A real OpenID Connect provider on loopback, for the tests: npm's certified oidc-provider, with accounts that the tests make.
//
// Started with the settings as one JSON argument; prints its issuer as one line. Each further line of standard input is a command in
// JSON, and is answered by one line: {"account": {...}} adds or changes an account, {"keys": true} replaces the signing keys.
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import Provider from "oidc-provider";

const given = JSON.parse(process.argv[2]);
const accounts = new Map();
const server = createServer((request, response) => serve(request, response));
await new Promise((ready) => server.listen(given.port ?? 0, "127.0.0.1", ready));
const issuer = `http://127.0.0.1:${server.address().port}`;

function newKey() {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { ...privateKey.export({ format: "jwk" }), kid: randomUUID(), use: "sig", alg: "RS256" };
}

async function loadExistingGrant(ctx) {
  // Every account consents to everything: the dashboard is the company's own.
  const grant = new ctx.oidc.provider.Grant({
    clientId: ctx.oidc.client.clientId,
    accountId: ctx.oidc.session.accountId,
  });
  grant.addOIDCScope("openid email profile");
  await grant.save();
  return grant;
}

function newProvider() {
  const made = new Provider(issuer, {
    clients: given.clients.map((client) => ({ response_types: ["code"], grant_types: ["authorization_code"], ...client })),
    jwks: { keys: [newKey()] },
    cookies: { keys: ["only-for-tests"] },
    claims: { openid: ["sub", "amr"], email: ["email", "email_verified", "groups"], profile: ["name"] },
    conformIdTokenClaims: given.claimsAtUserinfo ?? false,
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    pkce: { required: () => true },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...accounts.get(id)?.claims }) }),
    loadExistingGrant,
  });
  made.on("server_error", (_, problem) => console.error(problem));
  return made;
}

let provider = newProvider();

async function form(request) {
  let body = "";
  for await (const chunk of request) body += chunk;
  return new URLSearchParams(body);
}

/** The page on which a person signs in: the name of the account is enough. */
async function interact(request, response) {
  const interaction = await provider.interactionDetails(request, response);
  if (request.method !== "POST") {
    response.setHeader("content-type", "text/html; charset=utf-8");
    return response.end(`<!doctype html><title>Sign in at the test provider</title><h1>Sign in at the test provider</h1>
      <form method="post" action="/interaction/${interaction.uid}">
      <label>Account <input name="account" autofocus></label><button>Sign in</button><button name="cancel" value="1">Cancel</button></form>`);
  }
  const sent = await form(request);
  if (sent.get("cancel")) return provider.interactionFinished(request, response, { error: "access_denied" });
  const account = accounts.get(sent.get("account"));
  if (!account) return response.writeHead(400).end("no such account");
  const login = { accountId: sent.get("account"), amr: account.amr ?? undefined, ts: account.signedInAt ?? undefined };
  return provider.interactionFinished(request, response, { login });
}

function serve(request, response) {
  if (!request.url.startsWith("/interaction/")) return provider.callback()(request, response);
  return interact(request, response).catch((problem) => response.writeHead(400).end(String(problem)));
}

const commands = createInterface({ input: process.stdin });
commands.on("line", (line) => {
  const { account, keys } = JSON.parse(line);
  if (account) accounts.set(account.id, account);
  if (keys) provider = newProvider();
  console.log("done");
});
// The test process has ended.
commands.on("close", () => process.exit(0));
console.log(issuer);
