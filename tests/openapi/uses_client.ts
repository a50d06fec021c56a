// Code of a developer who uses the client of @hey-api/openapi-ts. This code must compile.
import { captureOrder, createOrder, issueToken } from "./hey/index.js";
import { client } from "./hey/client.gen.js";

export async function pay(id: string, secret: string): Promise<number | undefined> {
  client.setConfig({ baseUrl: "http://127.0.0.1:1" });
  const token = await issueToken({
    body: { client_id: id, client_secret: secret, audience: "merchant", grant_type: "client_credentials" },
  });
  client.setConfig({ auth: () => token.data?.access_token });
  const created = await createOrder({
    body: {
      amount: 100,
      merchantReference: "A-1",
      merchant: { redirectConfirmUrl: "https://shop.example/yes", redirectCancelUrl: "https://shop.example/no" },
    },
  });
  const answer = await captureOrder({
    path: { orderId: created.data?.orderId ?? "" },
    query: { dryRun: true },
    body: { amount: 100, merchantReference: "ship-1" },
  });
  return answer.data && "dryRun" in answer.data ? answer.data.after.balances.capturable : answer.data?.amount;
}
