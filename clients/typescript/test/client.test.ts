// Against a server that is started here, over an embedded Postgres in a folder that is removed afterwards.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createMemstore, MemstoreError, unwrap } from "memstore-client";

const program = process.env.MEMSTORE ?? "memstore";
let folder: string, env: NodeJS.ProcessEnv, server: ChildProcess, baseUrl: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "memstore-typescript-"));
  env = { ...process.env, MEMSTORE_DATABASE_URL: `embedded:${folder}/store`, MEMSTORE_EMBEDDER: "hashing:256" };
  server = spawn(program, ["serve", "--port", "0"], { env, stdio: ["ignore", "pipe", "inherit"] });
  baseUrl = await new Promise((resolve, reject) => {
    let output = "";
    server.stdout!.setEncoding("utf8").on("data", (text: string) => {
      const address = /http:\/\/127\.0\.0\.1:\d+/.exec((output += text));
      if (address) resolve(address[0]);
    });
    server.once("exit", (code) => reject(new Error(`memstore serve ended with ${code}`)));
  });
  process.env.MEMSTORE_URL = baseUrl; // the page's blocks, in how-to.ts, ask there
});

after(async () => {
  if (server.exitCode === null) {
    server.kill("SIGTERM");
    await once(server, "exit");
  }
  await rm(folder, { recursive: true, force: true });
});

test("the blocks of the how-to page store, recall and ask for a context", async () => {
  const page = await import("./how-to.js");
  assert.equal(page.stored?.seq, 1);
  assert.match(page.hits.map((hit) => hit.text).join("\n"), /allergic to peanuts/);
  assert.ok(page.context.tokens <= 500);
  assert.match(JSON.stringify(page.context.messages), /peanuts/);
  assert.ok(page.facts.some((fact) => fact.text === "The user is allergic to peanuts."));
  assert.ok((page.needed ?? 0) > 3);
  assert.equal(page.erasure.counts?.messages, 1);
  assert.deepEqual(page.verified.found, {});
});

test("a name is one part of the path, whatever is in it", async () => {
  const memstore = createMemstore({ baseUrl: `${baseUrl}/` });
  const path = { user: "a/b?c#ü %2F", conversation: "../x" };
  const messages = "/v1/users/{user}/conversations/{conversation}/messages";
  const body = { messages: [{ role: "user" as const, content: "Hello." }] };
  await unwrap(memstore.POST(messages, { params: { path }, body }));
  const { items } = await unwrap(memstore.GET(messages, { params: { path, query: { role: ["user"] } } }));
  assert.deepEqual(items.map((message) => message.text), ["Hello."]);
  assert.equal((await unwrap(memstore.GET("/v1/users/{user}", { params: { path } }))).name, path.user);
  for (const user of ["", ".", ".."]) {
    await assert.rejects(memstore.GET("/v1/users/{user}", { params: { path: { user } } }), TypeError);
  }
});

test("what is no answer of memstore's is an error all the same", async () => {
  const proxy = async () => new Response("<h1>Bad gateway</h1>", { status: 502, statusText: "Bad Gateway" });
  const call = createMemstore({ baseUrl, fetch: proxy }).GET("/healthz");
  await assert.rejects(unwrap(call), (error: MemstoreError) => error.problem.status === 502);
});

test("a token opens the memory of its user, and no other", async () => {
  const token = await run("token", "create", "--user", "bob");
  const bob = createMemstore({ baseUrl, token });
  assert.equal((await unwrap(bob.GET("/v1/users/{user}", { params: { path: { user: "bob" } } }))).name, "bob");
  const status = async (client: typeof bob, user: string) =>
    (await client.GET("/v1/users/{user}", { params: { path: { user } } })).error?.status;
  assert.equal(await status(bob, "alice"), 404);
  assert.equal(await status(createMemstore({ baseUrl }), "bob"), 401); // since there is a token
});

async function run(...line: string[]): Promise<string> {
  const child = spawn(program, line, { env, stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout!.setEncoding("utf8").on("data", (text: string) => (output += text));
  assert.deepEqual(await once(child, "close"), [0, null]);
  return output.trim();
}
