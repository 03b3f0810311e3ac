/** memstore's REST API, typed by the server's own OpenAPI description: `schema.ts` is generated from it. */
import createClient, { type Client, type ClientOptions } from "openapi-fetch";
import type { components, paths } from "./schema.js";

export type Memstore = Client<paths>;
export type Schemas = components["schemas"]; // Schemas["Fact"], Schemas["Message"], Schemas["Hit"], …

export interface MemstoreOptions extends Pick<ClientOptions, "baseUrl" | "fetch"> {
  /** made by `memstore token create`; a server on this machine needs none until the first one is made */
  token?: string | undefined;
}

/** Return a client with `GET`, `POST`, `PATCH` and `DELETE`, which know every path, its parameters and its answer. */
export function createMemstore({ baseUrl = "http://127.0.0.1:8377", token, fetch }: MemstoreOptions = {}): Memstore {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  return createClient<paths>({ baseUrl, headers, pathSerializer, ...(fetch && { fetch }) });
}

/** An error of the server: `problem.type` is for programs, the message is the problem's `detail`. */
export class MemstoreError extends Error {
  constructor(readonly problem: Schemas["ProblemBody"]) {
    super(problem.detail);
    this.name = "MemstoreError";
  }
}

/** Return what a call answers with, and throw a `MemstoreError` for a problem. */
export async function unwrap<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await call;
  if (response.ok) return data as T;
  const { status, statusText: title } = response; // what a proxy answers with is no problem of memstore's
  const isProblem = typeof error === "object" && error !== null && "detail" in error;
  const problem = isProblem ? error : { type: "about:blank", title, status, detail: `${status} ${title}: ${error}` };
  throw new MemstoreError(problem as Schemas["ProblemBody"]);
}

/** Return a path with names in it, each encoded whole. */
function pathSerializer(path: string, names: Record<string, unknown>): string {
  return path.replace(/\{(\w+)\}/g, (_, key: string) => {
    const name = String(names[key]);
    if (/^\.{0,2}$/.test(name)) throw new TypeError(`${key} is ${JSON.stringify(name)}: no URL can hold it.`);
    return encodeURIComponent(name);
  });
}
