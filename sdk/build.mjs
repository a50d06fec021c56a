// Bundles the three scripts. The same sources give the same bytes; tests/house/test_sdk_fresh.py compares them.
// node build.mjs [FOLDER]   FOLDER receives the scripts. Without it, they go into the service, the docs get the new hashes, and the
// committed pay.js stays as pay-<digest>.js.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
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

const digest = (script) => createHash("sha256").update(script).digest("hex").slice(0, 16);

/** The script that this build replaces: the committed one, or the one in the folder if this is no Git checkout. */
function replaced() {
  try {
    return execFileSync("git", ["show", "HEAD:./pay.js"], { cwd: service, stdio: ["ignore", "pipe", "ignore"] });
  } catch {
    return existsSync(join(service, "pay.js")) ? readFileSync(join(service, "pay.js")) : null;
  }
}

mkdirSync(out, { recursive: true });
const earlier = out === service ? replaced() : null;
for (const [name, format] of [["pay", "iife"], ["page", "iife"], ["inspect", "esm"]]) {
  await build({ ...shared, plugins: [styles], format, entryPoints: [`src/${name}.ts`], outfile: join(out, `${name}.js`) });
}
copyFileSync(join(here, "types/pay.d.ts"), join(out, "pay.d.ts"));

if (out === service) {
  const script = readFileSync(join(out, "pay.js"));
  // Pages pin a script by its hash, so an earlier script stays under its own address after an upgrade.
  if (earlier && !earlier.equals(script)) writeFileSync(join(out, `pay-${digest(earlier)}.js`), earlier);
  const docs = resolve(here, "../docs/sdk.md");
  const text = readFileSync(docs, "utf8")
    .replace(/pay-[0-9a-f]{16}\.js/g, `pay-${digest(script)}.js`)
    .replace(/sha384-[A-Za-z0-9+/=]{64}/g, `sha384-${createHash("sha384").update(script).digest("base64")}`);
  writeFileSync(docs, text);
}
