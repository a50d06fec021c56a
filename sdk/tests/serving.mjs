// A service on a real socket. A test defines its answers and reads the requests that it got.
import { createServer } from "node:http";

/** `answer(call, count)` returns [status, body] or a promise of it; [0] closes the connection. `run(base, asked)` is the test. */
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
