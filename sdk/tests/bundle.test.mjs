// Tests of the served scripts: they are small, and use nothing that content policies or Trusted Types forbid.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { gzipSync } from "node:zlib";
import ts from "typescript";
import { ROOT } from "./compiled.mjs";

const served = (name) => readFileSync(join(ROOT, "../src/cuota/web/pages/static", name));

test("pay.js is at most 12 KB gzipped, and page.js 3", () => {
  for (const [name, budget] of [["pay.js", 12], ["page.js", 3]]) {
    const size = gzipSync(served(name), { level: 9 }).length;
    assert.ok(size <= budget * 1024, `${name} has ${size} bytes`);
  }
});

test("the scripts use no cookies, storage, eval, HTML strings or inline styles, and post no message to every origin", () => {
  const banned = /\beval\b|new Function|innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|\.cookie|localStorage|sessionStorage|\.cssText|\.style\b|["'`]\*["'`]|createElement\("style"/;
  for (const name of ["pay.js", "page.js", "inspect.js"]) assert.equal(banned.exec(served(name).toString())?.[0], undefined, name);
});

function errorsOf(name) {
  const { config } = ts.readConfigFile(join(ROOT, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.convertCompilerOptionsFromJson({ ...config.compilerOptions, noUnusedLocals: false }, ROOT);
  const found = ts.getPreEmitDiagnostics(ts.createProgram([join(ROOT, "tests/types", name)], options));
  return found.map((each) => [each.file ? each.file.getLineAndCharacterOfPosition(each.start).line + 1 : 0, `TS${each.code}`].join(" "));
}

test("the examples of the docs compile with the published types", () => {
  assert.deepEqual(errorsOf("valid.ts"), []);
});

test("each wrong use fails with the expected type error, and there are no other errors", () => {
  const lines = readFileSync(join(ROOT, "tests/types/invalid.ts"), "utf8").split("\n");
  const expected = lines.flatMap((line, at) => (/\/\/ TS\d+$/.test(line) ? [`${at + 1} ${line.slice(line.lastIndexOf("TS"))}`] : []));
  assert.ok(expected.length > 12);
  assert.deepEqual(errorsOf("invalid.ts"), expected);
});
