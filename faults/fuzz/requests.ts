/** Generates hostile HTTP requests from a seed, byte by byte. */
import { readRestDocuments } from '../../test/relay/kit/rest-documents.ts';
import { bodyOf as documentBody, documentInput } from './documents.ts';
import { hostileText, KNOWN, likelyText, someUser } from './hostile.ts';
import { jsonText, objectText } from './json-text.ts';
import { mutate } from './mutate.ts';
import { Draw } from '../lib/random.ts';

/**
 * The bytes of one HTTP request. `whole`: whether the request is complete and has the header `Connection: close`, so
 * that the relay closes the connection after its answer. Otherwise the sender must close it.
 */
export type RequestInput = { readonly bytes: Buffer; readonly whole: boolean; readonly method: string };

const MIB = 1024 * 1024;
/** The maximum size of params in bytes, which leaves room for the rest of the body. */
const PARAMS_MAX = MIB - 150_000;
const OWN = [
  'GET /healthz',
  'GET /readyz',
  'GET /metrics',
  'GET /',
  'GET /openapi.json',
  'GET /graphql',
  'GET /connect',
];
const STREAMS = [
  'GET /graphql/stream',
  'PUT /graphql/stream',
  'DELETE /graphql/stream',
  'GET /site-sessions/{session_id}/events',
];
const ROUTES = [...readRestDocuments().map(({ name }) => name), ...OWN, ...STREAMS];
/**
 * The operations that have a body. Operations with opaque params occur several times, so that they are drawn more
 * often.
 */
const WRITING = ROUTES.flatMap((name) =>
  /^(POST|PUT)/.test(name) ? Array<string>(name.includes('/actions/') ? 3 : 1).fill(name) : [],
);
const METHODS = [
  'GET',
  'POST',
  'PUT',
  'DELETE',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'TRACE',
  'CONNECT',
  'PROPFIND',
  'get',
  'QUERY',
];
const PARAMETERS = [
  ...[
    'user_id',
    'client_id',
    'node_id',
    'status',
    'cursor',
    'limit',
    'stream',
    'kinds',
    'after_time',
    'before_time',
    'min_age_ms',
  ],
  ...[
    'within_ms',
    'wait_for',
    'include_payload',
    'prefix',
    'check_instance',
    'window_seconds',
    'ticket',
    'names',
    'query',
    'x',
  ],
];
const HEADERS: readonly ((draw: Draw) => string)[] = [
  (draw) => `Expect: ${draw.pick(['100-continue', 'zz', ''])}`,
  (draw) =>
    `Content-Type: ${draw.pick(['text/plain', 'application/json; charset=utf-16', 'application/x-www-form-urlencoded', 'multipart/form-data', ';'])}`,
  (draw) => `Content-Encoding: ${draw.pick(['gzip', 'identity', 'br', 'zz'])}`,
  (draw) =>
    `Accept: ${draw.pick(['text/event-stream', 'application/graphql-response+json', 'text/html', '*/*;q=0', 'zz', ','.repeat(300)])}`,
  (draw) => `Origin: ${draw.pick(['null', 'http://evil.example', 'http://127.0.0.1', 'zz'])}`,
  (draw) => `Upgrade: ${draw.pick(['websocket', 'h2c', 'zz'])}`,
  (draw) => `Connection: ${draw.pick(['upgrade', 'keep-alive', 'zz', 'close, close'])}`,
  (draw) => `Host: ${draw.pick(['', 'evil.example', '127.0.0.1:99999', '[::1', 'a b'])}`,
  (draw) => `Cookie: ${'a=b; '.repeat(draw.size(2_000))}`,
  (draw) => `X-${draw.int(0, 9)}: ${'y'.repeat(draw.size(20_000))}`,
  (draw) => Array.from({ length: draw.size(300) }, (_, i) => `X-H${i}: 1`).join('\r\n'),
  (draw) => `X-GraphQL-Event-Stream-Token: ${printable(hostileText(draw, 200))}`,
  (draw) => `Last-Event-ID: ${printable(hostileText(draw, 200))}`,
  (draw) => `Range: bytes=${draw.int(-9, 99)}-`,
  (draw) => `Transfer-Encoding: ${draw.pick(['chunked', 'gzip, chunked', 'identity', 'zz'])}`,
  (draw) => `Content-Length: ${draw.pick(['0', '-1', '5, 5', '99999999999', '0x10', ''])}`,
];

export type Tokens = (who: string) => string;

export function requestInput(seed: number, index: number, token: Tokens): RequestInput {
  const draw = new Draw(seed, 'requests', index);
  const [said = 'GET', template = '/'] = draw.pick(draw.chance(0.5) ? WRITING : ROUTES).split(' ');
  const method = draw.chance(0.9) ? said : draw.pick(METHODS);
  const isGraphql = template.startsWith('/graphql');
  const body = method === 'GET' || method === 'HEAD' ? '' : bodyOf(draw, isGraphql, seed, index);
  const odd = draw.chance(0.25) ? [draw.pick(HEADERS)(draw)] : [];
  const head = [
    `${method} ${targetOf(draw, template)} HTTP/1.1`,
    'Host: 127.0.0.1',
    // Each request has a different address, so that the limits on invalid tokens per address never apply because of an
    // earlier input.
    `X-Forwarded-For: 10.${draw.int(0, 255)}.${draw.int(0, 255)}.${draw.int(0, 255)}`,
    ...authorization(draw, token),
    ...(body === '' ? [] : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`]),
    ...odd,
    'Connection: close',
  ];
  const text = `${head.join('\r\n')}\r\n\r\n${body}`;
  const whole = odd.length === 0 && draw.chance(0.6);
  return { bytes: Buffer.from(whole ? text : mutate(draw, text), 'utf8'), whole, method };
}

function authorization(draw: Draw, token: Tokens): readonly string[] {
  const kind = draw.int(0, 19);
  if (kind === 0) return [];
  if (kind === 1) return [`Authorization: ${printable(hostileText(draw, 300))}`];
  if (kind === 2) return [`Authorization: Bearer ${printable(mutate(draw, token('user-0')))}`];
  return [`Authorization: Bearer ${token(kind < 10 ? 'admin' : someUser(draw))}`];
}

function targetOf(draw: Draw, template: string): string {
  const known: Readonly<Record<string, string>> = {
    client_id: KNOWN.client,
    action: KNOWN.action,
    command_id: KNOWN.command,
    site_id: KNOWN.site,
  };
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(
      likelyText(draw, name === 'user_id' ? someUser(draw) : (known[name] ?? 'x'))
        .toWellFormed()
        .slice(0, 3_000),
    ),
  );
  const pairs = Array.from({ length: draw.chance(0.5) ? draw.int(0, 4) : 0 }, () => parameter(draw));
  return pairs.length === 0 ? path : `${path}?${pairs.join('&')}`;
}

function parameter(draw: Draw): string {
  const name = draw.pick(PARAMETERS);
  if (name === 'within_ms') return `within_ms=${draw.int(-1, 2_000)}`;
  const value = draw.chance(0.5)
    ? draw.pick(['user-0', 'desk', '1', '1000', '0', 'true', 'connected', 'user-0/clients/desk'])
    : hostileText(draw, 3_000);
  return `${name}=${draw.chance(0.8) ? encodeURIComponent(value.toWellFormed()) : printable(value).replaceAll(' ', '+')}`;
}

function bodyOf(draw: Draw, isGraphql: boolean, seed: number, index: number): string {
  if (isGraphql && draw.chance(0.8)) return documentBody(documentInput(seed, index));
  if (draw.chance(0.2)) return jsonText(draw, draw.chance(0.1) ? MIB + 1_000 : PARAMS_MAX);
  const members = [
    `"params":${objectText(draw, PARAMS_MAX)}`,
    `"wait_for":"${draw.pick(['admitted', 'acknowledged', 'completed'])}"`,
    `"command_id":${JSON.stringify(likelyText(draw, `h-${draw.int(0, 1e6)}`))}`,
    `"connect_within_ms":${draw.int(0, 2_000)}`,
    `"respond_within_ms":${draw.int(900, 3_000)}`,
    `"reason":${JSON.stringify(hostileText(draw, 300))}`,
    `"messages":[{"client_id":"${KNOWN.client}","instance_id":"i","stream_suffix":"sites/board/events","message_id":"m${draw.int(0, 1e6)}","payload":${jsonText(draw, 100_000)}}]`,
    `"title":${JSON.stringify(hostileText(draw, 300))}`,
    `"event_names":["site_changed"]`,
    `${JSON.stringify(hostileText(draw, 200))}:${jsonText(draw, 20_000)}`,
  ];
  return `{${members.filter(() => draw.chance(0.4)).join(',')}}`;
}

function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '').trim();
}
