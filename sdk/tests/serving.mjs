// A service on a real socket: the test says what it answers, and reads what it was asked.
import { createServer } from "node:http";

/** `answer(asked)` gives [status, body], perhaps later; [0] cuts the line. `run(base, asked)` is the test. */
export async function serving(answer, run) {
  const asked = [];
  const server = createServer((incoming, outgoing) => {
    const chunks = [];
    incoming.on("data", (chunk) => chunks.push(chunk));
    incoming.on("end", async () => {
      const call = { url: incoming.url, headers: incoming.headers, body: Buffer.concat(chunks) };
      asked.push(call);
      const [status, body] = await answer(call, asked.length);
      if (status === 0) return outgoing.destroy();
      outgoing.writeHead(status, { "Content-Type": "application/json" }).end(typeof body === "string" ? body : JSON.stringify(body));
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const base = `http://127.0.0.1:${server.address().port}`;
  try {
    return await run(base, asked);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
