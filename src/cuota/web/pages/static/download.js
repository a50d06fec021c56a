// @ts-check
// Shows the progress of a long CSV file, cancels it, and says what to do if the connection is lost. A form or a link with
// `data-download` names the file. Without this script, the browser downloads the same file by itself.

const EACH = 8 * 1024 * 1024; // What has arrived goes into a Blob this often, which a browser may keep on disk.
const SAY_EVERY = 1000; // A screen reader is told at most once a second.
const NEWLINE = 10;
const ID = 36; // The characters of a UUID.

/**
 * What has arrived: `whole` is the number of bytes up to the end of the last whole row, `lastId` its first 36 characters, and
 * `head` those of the row that has just begun.
 * @typedef {{parts: (Blob | Uint8Array)[], small: number, rows: number, bytes: number, whole: number, lastId: string, head: string}} Got
 */

/** Milliseconds in a UUID of version 7, or NaN. @param {string | undefined} id */
function timeOf(id) {
  return id && /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(id) ? parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : NaN;
}

/** @returns {Got} */
const nothing = () => ({ parts: [], small: 0, rows: -1, bytes: 0, whole: 0, lastId: "", head: "" });

/** The first characters of a row. @param {Uint8Array} bytes @param {number} at */
const begins = (bytes, at) => String.fromCharCode(...bytes.subarray(at, at + ID));

/** @param {Got} got @param {Uint8Array} chunk */
function add(got, chunk) {
  for (const byte of chunk) if (byte === NEWLINE) got.rows += 1;
  const end = chunk.lastIndexOf(NEWLINE);
  if (end < 0) {
    got.head = (got.head + begins(chunk, 0)).slice(0, ID);
  } else {
    const before = end ? chunk.lastIndexOf(NEWLINE, end - 1) : -1;
    got.lastId = before < 0 ? (got.head + begins(chunk, 0)).slice(0, ID) : begins(chunk, before + 1);
    got.head = begins(chunk, end + 1);
    got.whole = got.bytes + end + 1;
  }
  got.parts.push(chunk);
  got.bytes += chunk.length;
  got.small += chunk.length;
  if (got.small < EACH) return;
  got.parts = [new Blob(/** @type {BlobPart[]} */ (got.parts))];
  got.small = 0;
}

/** Cuts what arrived behind its last whole row, so that the next part goes on there. @param {Got} got */
function cut(got) {
  got.parts = [new Blob(/** @type {BlobPart[]} */ (got.parts)).slice(0, got.whole)];
  got.bytes = got.whole;
  got.small = 0;
  got.head = "";
}

/** One download. */
class Download {
  /** @param {HTMLElement} starter A form or a link. */
  constructor(starter) {
    this.starter = starter;
    this.what = starter.dataset.download ?? "rows";
    this.total = Number(starter.dataset.rows ?? "0");
    this.got = nothing();
    /** @type {AbortController | null} */
    this.running = null;
    this.said = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.later = undefined;
    this.block = document.createElement("section");
    this.block.className = "effect";
    this.block.setAttribute("aria-label", "Download");
    this.bar = document.createElement("progress");
    this.bar.max = 1;
    this.bar.setAttribute("aria-label", "Download");
    this.text = document.createElement("p");
    this.text.setAttribute("role", "status");
    this.actions = document.createElement("div");
    this.actions.className = "actions";
    this.stop = this.button("Cancel", () => this.cancel());
    this.again = this.button("Continue the download", () => void this.start(this.canGoOn()));
    this.block.append(this.bar, this.text, this.actions);
  }

  /** @param {string} label @param {() => void} act */
  button(label, act) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "small second";
    button.textContent = label;
    button.addEventListener("click", act);
    this.actions.append(button);
    return button;
  }

  /** Whether a part can be appended: the list of orders goes on behind an order. */
  canGoOn() {
    return this.starter instanceof HTMLFormElement && timeOf(this.got.lastId) > 0;
  }

  /** @param {string} words @param {boolean} [now] */
  say(words, now = false) {
    clearTimeout(this.later);
    const rest = now ? 0 : this.said + SAY_EVERY - performance.now();
    if (rest > 0) {
      this.later = setTimeout(() => this.say(words, true), rest);
      return;
    }
    this.said = performance.now();
    this.text.textContent = words;
  }

  cancel() {
    this.running?.abort();
    this.running = null;
    this.got = nothing();
    this.finish("Canceled. Nothing was saved.");
  }

  /** @param {string} words @param {string} [label] of the button that tries again */
  finish(words, label) {
    this.bar.hidden = true;
    this.stop.hidden = true;
    this.again.hidden = !label;
    if (label) this.again.textContent = label;
    this.say(words, true);
    for (const button of this.starter.querySelectorAll("button")) button.disabled = false;
    delete this.starter.dataset.busy;
  }

  /** @param {boolean} goOn */
  async start(goOn) {
    if (this.running) return;
    if (!this.block.isConnected) this.starter.after(this.block);
    if (!goOn) this.got = nothing();
    this.running = new AbortController();
    this.bar.hidden = false;
    this.bar.removeAttribute("value");
    this.stop.hidden = false;
    this.again.hidden = true;
    this.say("The file is being prepared…", true);
    const answer = await this.ask(goOn, this.running.signal).catch(() => null);
    if (!this.running) return; // canceled meanwhile
    if (answer === null) return this.lost();
    if (!(answer.headers.get("content-type") ?? "").startsWith("text/csv")) return this.show(await answer.text());
    await this.read(answer, goOn);
  }

  /** @param {boolean} goOn @param {AbortSignal} signal */
  ask(goOn, signal) {
    const starter = this.starter;
    if (starter instanceof HTMLAnchorElement) return fetch(starter.href, { signal });
    const form = /** @type {HTMLFormElement} */ (starter);
    const address = new URL(form.action, location.href);
    if (goOn) address.searchParams.set("after", this.got.lastId);
    const fields = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (typeof value === "string") fields.append(name, value);
    return fetch(address, { method: "POST", body: fields, signal });
  }

  /** @param {Response} answer @param {boolean} goOn */
  async read(answer, goOn) {
    const name = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition") ?? "")?.[1] ?? "export.csv";
    const [first, last] = (answer.headers.get("x-export-ids") ?? "").split(",").map(timeOf);
    const reader = answer.body?.getReader();
    let header = goOn; // the second part repeats the names of the columns
    try {
      for (;;) {
        const { done, value } = reader ? await reader.read() : { done: true, value: undefined };
        if (!this.running) return;
        if (done) return this.save(name);
        let chunk = /** @type {Uint8Array} */ (value);
        if (header) {
          const end = chunk.indexOf(NEWLINE);
          if (end < 0) continue;
          chunk = chunk.subarray(end + 1);
          header = false;
        }
        add(this.got, chunk);
        this.progress(first, last);
      }
    } catch {
      if (this.running) this.lost(); // otherwise it was canceled
    }
  }

  /** @param {number | undefined} first @param {number | undefined} last */
  progress(first, last) {
    const at = timeOf(this.got.lastId);
    const share = this.total ? this.got.rows / this.total : ((first ?? NaN) - at) / ((first ?? NaN) - (last ?? NaN));
    if (Number.isFinite(share)) this.bar.value = Math.min(Math.max(share, 0), 1);
    const of = this.total ? ` of ${this.total.toLocaleString("en-US")}` : "";
    this.say(`${Math.max(this.got.rows, 0).toLocaleString("en-US")}${of} ${this.what} so far. Keep this page open.`);
  }

  lost() {
    this.running = null;
    if (this.canGoOn()) {
      cut(this.got);
      const count = this.got.rows.toLocaleString("en-US");
      return this.finish(`The connection was lost after ${count} ${this.what}. What has arrived is kept on this page, and nothing is saved yet.`, "Continue the download");
    }
    this.finish("The connection was lost. Nothing was saved. Check your connection, and try again.", "Try again");
  }

  /** Shows the page that came instead of a file, such as one that asks for a code. @param {string} html */
  show(html) {
    this.running = null;
    const page = new DOMParser().parseFromString(html, "text/html");
    const form = this.starter instanceof HTMLFormElement ? page.querySelector("form[data-download]") : null;
    const told = page.querySelector("main .notice, main .error");
    if (!form) return this.finish("Your session has ended, or the file is not there any more. Reload this page.");
    const again = this.canGoOn();
    this.starter.replaceWith(form);
    this.starter = /** @type {HTMLElement} */ (form);
    listen(this);
    this.finish((told?.textContent ?? "Please check the form.").trim(), again ? "Continue the download" : undefined);
    /** @type {HTMLElement | null} */ (form.querySelector('[aria-invalid="true"]'))?.focus();
  }

  /** @param {string} name */
  save(name) {
    this.running = null;
    const link = document.createElement("a");
    const address = URL.createObjectURL(new Blob(/** @type {BlobPart[]} */ (this.got.parts), { type: "text/csv" }));
    link.href = address;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
    const count = Math.max(this.got.rows, 0).toLocaleString("en-US");
    this.got = nothing();
    this.finish(`Done: ${count} ${this.what} are in the file ${name}.`);
  }
}

/** @param {Download} download */
function listen(download) {
  const event = download.starter instanceof HTMLFormElement ? "submit" : "click";
  download.starter.addEventListener(event, (happened) => {
    happened.preventDefault();
    void download.start(false);
  });
}

for (const each of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-download]"))) listen(new Download(each));
addEventListener("beforeunload", (event) => {
  if (document.querySelector("progress:not([hidden])")) event.preventDefault(); // a download is running
});
