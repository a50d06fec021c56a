// Code of a developer who uses the types of openapi-typescript. This code must compile.
import type { components, paths } from "./schema.js";

type Captured = paths["/order/{orderId}/capture"]["post"]["responses"]["200"]["content"]["application/json"];
type Refused = paths["/order/{orderId}/capture"]["post"]["responses"]["422"]["content"]["application/problem+json"];

export const order: components["schemas"]["OrderRequest"] = {
  amount: "100.00",
  merchantReference: "A-1",
  merchant: { redirectConfirmUrl: "https://shop.example/yes", redirectCancelUrl: "https://shop.example/no" },
};

export function left(answer: Captured): number {
  return "dryRun" in answer ? answer.after.balances.capturable : answer.amount;
}

export function why(problem: Refused): string {
  return problem.code === "duplicate_reference" ? "applied before" : problem.message;
}
