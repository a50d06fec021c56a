// Copies the API reference (the browser build of @scalar/api-reference) into the service, compressed, file by file.
// The same lock file gives the same files; tests/house/test_reference_fresh.py compares them.
// node build.mjs [FOLDER]   FOLDER receives the files. Without it, they go into the service.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const source = join(here, "node_modules/@scalar/api-reference");
const out = resolve(process.argv[2] ?? join(here, "../src/cuota/web/docs/reference"));
const entry = "standalone.esm.js";

/** What the page never asks for: the assistant, which is switched off, and pictures for tags, of which we name none. */
const unused = (file) => /AgentScalarDrawer/.test(file) || (/\.svg-/.test(file) && !/interface-content-folder/.test(file));

/** The entry and every chunk that it can come to ask for. */
function reachable() {
  const found = new Map();
  const waiting = [entry];
  while (waiting.length) {
    const file = waiting.pop();
    if (found.has(file) || unused(file)) continue;
    const text = readFileSync(join(source, "dist/browser", file), "utf8").replace(/\n\/\/# sourceMappingURL=\S+\s*$/, "\n");
    found.set(file, text);
    for (const [, named] of text.matchAll(/["'`](\.\/[\w./-]+\.js)["'`]/g)) {
      const next = join(dirname(file), named);
      if (existsSync(join(source, "dist/browser", next))) waiting.push(next);
    }
  }
  return found;
}

/** Name, version and license of the package and of all that is built into it. */
function credits() {
  const packages = JSON.parse(readFileSync(join(here, "package-lock.json"), "utf8")).packages;
  const lines = Object.entries(packages)
    .filter(([name, it]) => name && !it.optional && !it.peer)
    .map(([name, it]) => `${name.replace(/^.*node_modules\//, "")} ${it.version} (${it.license ?? "see its package"})`);
  return `The API reference is @scalar/api-reference, MIT License, Copyright (c) 2023-present Scalar.\nIt contains code of:\n\n${[...new Set(lines)].sort().join("\n")}\n`;
}

rmSync(out, { recursive: true, force: true });
mkdirSync(join(out, "chunks"), { recursive: true });
for (const [file, text] of reachable()) writeFileSync(join(out, `${file}.gz`), gzipSync(text, { level: 9 }));
writeFileSync(join(out, "CREDITS.txt"), credits());
