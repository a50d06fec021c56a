// Reads NACHA files with @ach/ach: a JSON array of texts on standard input, a JSON array of what was read on standard output.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { Readable } from "node:stream";

const parsers = createRequire(`${process.cwd()}/`)("@ach/ach")();

function read(text) {
  return new Promise((done, failed) => {
    const found = [];
    const parser = parsers.getParser("ach");
    parser.on("data", (file) => found.push(file));
    parser.on("end", () => done(found[0]));
    parser.on("error", failed);
    Readable.from([text]).pipe(parser);
  });
}

const files = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(await Promise.all(files.map(read))));
