/** Starts a whole relay in the topology of the run, and sends it requests over each interface. */
import type { CallboardOptions, Settings } from '../../../src/callboard.ts';
import { signToken } from '../../../src/http/tokens.ts';
import { caller, client, type DownOf, type HelloOver, type Peer } from '../../gateway/kit/test-gateway.ts';
import { openRaw, type RawStream } from '../../graphql/kit/stream.ts';
import {
  ADMIN,
  postJson,
  startHttpRelay,
  SECRET,
  type Answer,
  type Ask,
  type HttpRelay,
} from '../../http/kit/http-relay.ts';
import { FakeClock, turns } from '../../kit/clock.ts';

/**
 * The name of a requester: `admin`, `nobody` (no token), a user with every scope, or `<user>:<scope>` with one scope.
 */
export type Requester = string;
export type Welcomed = Peer & { welcome: DownOf<'welcome'> };

export type GraphqlAnswer = Answer & {
  readonly data: Record<string, any> | null;
  readonly errors: readonly { readonly message: string; readonly extensions?: Record<string, unknown> }[];
  /** The code of the first error; undefined if there is none. */
  readonly code: unknown;
};

export type Query = {
  readonly requester?: Requester;
  readonly variables?: Readonly<Record<string, unknown>>;
};

/** A complete relay on a free port with a FakeClock, real links, and requesters by name. */
export type TestRelay = HttpRelay & {
  readonly clock: FakeClock;
  readonly port: number;
  readonly peers: Peer[];
  token(requester: Requester): Promise<string | null>;
  /** Sets the token that is sent for this requester from now on. */
  know(requester: Requester, token: string): void;
  /** Sends one REST request, as an administrator by default. */
  rest(path: string, options?: Omit<Ask, 'token'> & { readonly requester?: Requester }): Promise<Answer>;
  post(path: string, body?: unknown, requester?: Requester): Promise<Answer>;
  graphql(query: string, options?: Query): Promise<GraphqlAnswer>;
  /** Runs a query and returns its data. Throws if there is any error. */
  data(query: string, options?: Query): Promise<Record<string, any>>;
  subscribe(query: string, options?: Query & { readonly path?: string }): Promise<RawStream>;
  /** Connects a client and resolves when it is welcomed. By default it is a client of alice. */
  client(over?: HelloOver & { readonly user?: string }): Promise<Welcomed>;
  caller(requester: Requester): Promise<Welcomed>;
};

export async function startTestRelay(
  config: Partial<Settings> = {},
  { clock = new FakeClock(Date.now()), ...options }: Partial<CallboardOptions> & { readonly clock?: FakeClock } = {},
): Promise<TestRelay> {
  const relay = await startHttpRelay(config, { ...options, clock });
  const port = Number(new URL(relay.url).port);
  const linkPort = Number(new URL(relay.linkUrl).port);
  const peers: Peer[] = [];
  const known = new Map<Requester, Promise<string>>();
  const token = createTokens(clock, known);
  const headers = async (requester: Requester): Promise<Record<string, string>> => {
    const bearer = await token(requester);
    return bearer === null ? {} : { authorization: `Bearer ${bearer}` };
  };
  const stage: TestRelay = {
    ...relay,
    clock,
    port,
    peers,
    token,
    know: (requester, given) => void known.set(requester, Promise.resolve(given)),
    rest: (path, { requester = 'admin', ...requested } = {}) =>
      token(requester).then((shown) => relay.ask(path, { ...requested, token: shown })),
    post: (path, body = {}, requester = 'alice') =>
      token(requester).then((shown) => relay.ask(path, postJson(body, { token: shown }))),
    async graphql(query, { requester = 'admin', variables } = {}) {
      const accept = { accept: 'application/graphql-response+json' };
      return read(
        await relay.ask('/graphql', postJson({ query, variables }, { headers: accept, token: await token(requester) })),
      );
    },
    async data(query, requested) {
      const { data, errors, text } = await stage.graphql(query, requested);
      if (errors.length > 0 || !data) throw new Error(text);
      return data;
    },
    async subscribe(query, { requester = 'admin', variables, path = '/graphql' } = {}) {
      const base = { accept: 'text/event-stream', 'content-type': 'application/json' };
      const init = {
        method: 'POST',
        body: JSON.stringify({ query, variables }),
        headers: { ...base, ...(await headers(requester)) },
      };
      return openRaw(relay.url + path, init);
    },
    async client({ user = 'alice', ...hello } = {}) {
      return client({ port: linkPort, peers }, { token: (await token(user)) ?? '', ...hello });
    },
    caller: async (requester) => caller({ port, peers }, (await token(requester)) ?? ''),
    async [Symbol.asyncDispose]() {
      for (const peer of peers) peer.ws.terminate();
      await relay[Symbol.asyncDispose]();
    },
  };
  return stage;
}

function createTokens(
  clock: FakeClock,
  known: Map<Requester, Promise<string>>,
): (requester: Requester) => Promise<string | null> {
  const make = (requester: Requester): Promise<string> => {
    const [user = '', ...scopes] = requester.split(':');
    const held = scopes.length > 0 ? scopes : ['connect', 'invoke', 'host'];
    return signToken({ secret: SECRET, user, scopes: held, ttlSeconds: 86_400, now: clock.now() });
  };
  return async (requester) => {
    if (requester === 'nobody') return null;
    if (requester === 'admin') return ADMIN;
    const made = known.get(requester) ?? make(requester);
    known.set(requester, made);
    return made;
  };
}

function read(answer: Answer): GraphqlAnswer {
  const { data = null, errors = [] } = JSON.parse(answer.text);
  return { ...answer, data, errors, code: errors[0]?.extensions?.code };
}

/** Lets running work proceed until the condition holds. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await turns();
}

/** Returns the code of a REST answer: that of its problem document, or of the error inside it. */
export function codeOf({ json }: Answer): unknown {
  const inner = json?.['error'];
  const error = typeof inner === 'object' && inner !== null && 'code' in inner ? inner.code : undefined;
  return json?.['code'] ?? error;
}
