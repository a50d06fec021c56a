// Compiles one module of sdk/src, as a browser would run it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

/** @param {string} name */
export async function compiled(name) {
  const folder = mkdtempSync(join(tmpdir(), "pay-sdk-"));
  const outfile = join(folder, `${name}.mjs`);
  await build({ absWorkingDir: ROOT, entryPoints: [`src/${name}.ts`], outfile, bundle: true, format: "esm", logLevel: "warning" });
  const module = await import(pathToFileURL(outfile).href);
  rmSync(folder, { recursive: true });
  return module;
}
