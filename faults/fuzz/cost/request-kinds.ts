/** Defines the HTTP requests of the cost mode: one kind for each route and sender. */
import {
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  typeFromAST,
  type GraphQLInputType,
} from 'graphql';
import { schema } from '../../../src/graphql/schema/schema.ts';
import { readRestDocuments, type RestDocument } from '../../../test/relay/kit/rest-documents.ts';
import type { Draw } from '../../lib/random.ts';
import { sendRequest } from '../send-request.ts';
import { answerOf } from '../judge.ts';
import type { CostInput, CostKind, Sender } from './cost.ts';
import { drawJson, growJson, type JsonGene, jsonOf, showJson } from '../json-text.ts';
import type { CostTarget } from './cost-target.ts';

/** A route: method, path with `{names}`, and parameters with their types. */
type Route = {
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly { readonly name: string; readonly type: GraphQLInputType }[];
  /** The parameter whose value is the whole body, such as a list of messages. */
  readonly bodyAs: string | null;
};

/** A request that can grow. `given`: the JSON texts of its parameters. `extra`: further text. */
type RequestGene = {
  readonly given: Readonly<Record<string, string>>;
  /** How often the first item of a list in the body is repeated. */
  readonly items: number;
  readonly json: JsonGene | null;
  readonly extra: { readonly where: 'query' | 'cookie' | 'path' | 'headers'; readonly bytes: number } | null;
};

const SENDERS: readonly Sender[] = ['user', 'admin'];
const PAGES = [1, 10, 100, 1_000];
/** Routes that no document defines. They have no parameters besides these. */
const BUILT_IN = ['/healthz', '/readyz', '/metrics', '/openapi.json', '/'];
const ITEMS_MAX = 100;
/** The maximum size of additional text in a request's head: Node.js refuses a head of more than 16 KiB. */
const EXTRA_MAX = 15_000;
const PLACES = ['query', 'cookie', 'path', 'headers'] as const;

export function requestKinds(target: CostTarget): readonly CostKind[] {
  const documents = readRestDocuments().map(routeOf);
  const builtIn = BUILT_IN.map((path): Route => ({ method: 'GET', path, parameters: [], bodyAs: null }));
  return [...builtIn, ...documents].flatMap((route) =>
    SENDERS.map((sender): CostKind => ({
      family: 'requests',
      name: `${route.method} ${route.path}`,
      sender,
      draw: (draw) => inputOf({ target, sender, route }, drawGene(draw, route, target)),
    })),
  );
}

function routeOf({ name, operation, bodyAs }: RestDocument): Route {
  const [method = '', path = ''] = name.split(' ');
  const parameters = (operation.variableDefinitions ?? []).flatMap(({ variable, type }) => {
    const found = typeFromAST(schema, type);
    return found && isInput(found) ? [{ name: variable.name.value, type: found }] : [];
  });
  return { method, path, parameters, bodyAs };
}

function isInput(type: unknown): type is GraphQLInputType {
  return type !== undefined;
}

function drawGene(draw: Draw, { path, parameters }: Route, target: CostTarget): RequestGene {
  const given: Record<string, string> = {};
  for (const { name, type } of parameters)
    if (isNonNullType(type) || path.includes(`{${name}}`) || draw.chance(0.3))
      given[name] = valueOf(draw, name, type, target);
  return { given, items: 1, json: null, extra: null };
}

/**
 * Draws the JSON text of a parameter's value, with the member names of REST. `$json` is a placeholder for opaque JSON.
 */
function valueOf(draw: Draw, name: string, type: GraphQLInputType, target: CostTarget): string {
  const inner = getNullableType(type);
  if (isListType(inner)) return `[${valueOf(draw, name, inner.ofType, target)}]`;
  if (isEnumType(inner)) return JSON.stringify(draw.pick(inner.getValues()).value);
  if (isInputObjectType(inner)) {
    const members = Object.values(inner.getFields()).filter(({ type }) => isNonNullType(type) || draw.chance(0.4));
    const texts = members.map((member) => {
      const word = member.name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      return `${JSON.stringify(word)}:${valueOf(draw, word, member.type, target)}`;
    });
    return `{${texts.join(',')}}`;
  }
  if (inner.name === 'JSON') return '$json';
  if (inner.name === 'Boolean') return String(draw.chance(0.5));
  if (inner.name === 'Int') return String(intOf(draw, name));
  if (inner.name === 'DateTime') return JSON.stringify(draw.pick(['2020-01-01T00:00:00Z', '2100-01-01T00:00:00Z']));
  if (name === 'command_id' && draw.chance(0.5)) return '"$new"';
  return JSON.stringify(target.known(name, draw) ?? 'x');
}

function intOf(draw: Draw, name: string): number {
  if (name === 'limit') return draw.pick(PAGES);
  // Waits are short, because waiting costs no CPU time.
  return name.endsWith('_ms') ? 1_000 : draw.pick([1, 300, 3_600]);
}

function growGene(draw: Draw, route: Route, gene: RequestGene, target: CostTarget): RequestGene {
  const kind = draw.int(0, 5);
  if (kind === 0 && route.method !== 'GET')
    return { ...gene, json: gene.json ? growJson(draw, gene.json) : drawJson(draw) };
  if (kind === 1 && route.bodyAs !== null)
    return { ...gene, items: Math.min(ITEMS_MAX, gene.items * draw.pick([2, 5, 10])) };
  if (kind === 2) {
    const { where, bytes } = gene.extra ?? { where: draw.pick(PLACES), bytes: 500 };
    return { ...gene, extra: { where, bytes: Math.min(EXTRA_MAX, bytes * 4) } };
  }
  if (kind === 3 && 'limit' in gene.given) return { ...gene, given: { ...gene.given, limit: '1000' } };
  if (route.parameters.length === 0) return gene;
  const { name, type } = draw.pick(route.parameters);
  return { ...gene, given: { ...gene.given, [name]: valueOf(draw, name, type, target) } };
}

type Where = { readonly target: CostTarget; readonly sender: Sender; readonly route: Route };

function inputOf(where: Where, gene: RequestGene): CostInput {
  const { target, route } = where;
  return {
    async prepare() {
      const text = requestText(where, gene);
      const input = { bytes: Buffer.from(text, 'utf8'), whole: true, method: route.method };
      return async () => {
        const { answers, hung } = await sendRequest(target.url, input);
        if (hung) return 'no answer';
        return answers[0] ? answerOf(answers[0]) : 'a large answer';
      };
    },
    finish: async () => {},
    mutate: (draw) => inputOf(where, growGene(draw, route, gene, target)),
    show: () => showOf(route, gene),
  };
}

function requestText({ target, sender, route }: Where, gene: RequestGene): string {
  const { bytes = 0, where = null } = gene.extra ?? {};
  const { path, body } = splitOf(route, gene, String(target.next()));
  const more = 'x'.repeat(bytes);
  const query = where === 'query' ? `${path.includes('?') ? '&' : '?'}x=${more}` : '';
  const head = [
    `${route.method} ${where === 'path' ? `${path.split('?')[0]}${more}` : path}${query} HTTP/1.1`,
    'Host: 127.0.0.1',
    `Authorization: Bearer ${target.token(sender)}`,
    ...(where === 'cookie' ? [`Cookie: ${'a=b; '.repeat(bytes / 5)}`] : []),
    ...(where === 'headers' ? Array.from({ length: bytes / 10 }, (_, i) => `X-${i}: 1`) : []),
    ...(body === null ? [] : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`]),
    'Connection: close',
  ];
  return `${head.join('\r\n')}\r\n\r\n${body ?? ''}`;
}

/** Returns the path with the query, and the body. Parameters outside the path go into the query or the body. */
function splitOf(
  { method, path, bodyAs }: Route,
  { given, items, json }: RequestGene,
  fresh: string,
): { readonly path: string; readonly body: string | null } {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(plain(given[name] ?? '"x"')));
  const rest = Object.entries(given).filter(([name]) => !path.includes(`{${name}}`));
  const write = (text: string): string =>
    text.replaceAll('$new', `n${fresh}`).replaceAll('$json', () => (json ? jsonOf(json) : '{}'));
  if (method === 'GET' || method === 'DELETE') {
    const pairs = rest.map(([name, value]) => `${name}=${encodeURIComponent(plain(value))}`);
    return { path: pairs.length > 0 ? `${filled}?${pairs.join('&')}` : filled, body: null };
  }
  if (bodyAs !== null) {
    const value = given[bodyAs] ?? '{}';
    const list = value.startsWith('[') ? `[${Array(items).fill(value.slice(1, -1)).join(',')}]` : value;
    return { path: filled, body: write(list) };
  }
  return { path: filled, body: write(`{${rest.map(([name, value]) => `"${name}":${value}`).join(',')}}`) };
}

/** Returns the form of a JSON text in a URL: a text without quotes, and a list as its items. */
function plain(json: string): string {
  const value: unknown = json.includes('$json') ? 'x' : JSON.parse(json);
  return Array.isArray(value) ? value.map(String).join(',') : String(value);
}

function showOf(route: Route, gene: RequestGene): string {
  const { path, body } = splitOf(route, { ...gene, json: null }, 'n');
  const parts = [
    `${route.method} ${path}`,
    ...(body === null ? [] : [body.slice(0, 200)]),
    ...(gene.items > 1 ? [`${gene.items} items`] : []),
    ...(gene.json ? [`JSON ${showJson(gene.json)}`] : []),
    ...(gene.extra ? [`${gene.extra.where} of ${gene.extra.bytes} bytes`] : []),
  ];
  return parts.join('; ');
}
