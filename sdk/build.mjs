// Bundles the three scripts. The same sources give the same bytes; tests/house/test_sdk_fresh.py compares them.
// node build.mjs [FOLDER]   FOLDER receives the scripts. Without it, they go into the service, and the docs get the new hashes.
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const service = resolve(here, "../src/cuota/web/pages/static");
const out = process.argv[2] ? resolve(process.argv[2]) : service;
const shared = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  target: ["es2022"],
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
};

/** Style sheets have whitespace for readers; browsers do not need it. */
const styles = {
  name: "styles",
  setup(builder) {
    builder.onLoad({ filter: /src\/(modal|button|inspect)\.ts$/ }, ({ path }) => ({
      loader: "ts",
      contents: readFileSync(path, "utf8").replace(/(const STYLE = `)([^`]*)`/, (_, head, css) => {
        return `${head}${css.replace(/\s+/g, " ").replace(/ ?([{};]) ?/g, "$1").trim()}\``;
      }),
    }));
  },
};

mkdirSync(out, { recursive: true });
for (const [name, format] of [["pay", "iife"], ["page", "iife"], ["inspect", "esm"]]) {
  await build({ ...shared, plugins: [styles], format, entryPoints: [`src/${name}.ts`], outfile: join(out, `${name}.js`) });
}
copyFileSync(join(here, "types/pay.d.ts"), join(out, "pay.d.ts"));

if (out === service) {
  const script = readFileSync(join(out, "pay.js"));
  const docs = resolve(here, "../docs/sdk.md");
  const text = readFileSync(docs, "utf8")
    .replace(/pay-[0-9a-f]{16}\.js/g, `pay-${createHash("sha256").update(script).digest("hex").slice(0, 16)}.js`)
    .replace(/sha384-[A-Za-z0-9+/=]{64}/g, `sha384-${createHash("sha384").update(script).digest("base64")}`);
  writeFileSync(docs, text);
}
