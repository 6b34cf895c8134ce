/** Checks a REST answer against the OpenAPI document. */
import formats from 'ajv-formats';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { SITE_EVENTS_DESCRIPTION } from '../../../src/http/site-events.ts';
import { BUILTIN_DESCRIPTIONS } from '../../../src/http/builtin-descriptions.ts';
import type { RestHandler } from '../../../src/rest/serve.ts';

type Response = { readonly content?: Record<string, { readonly schema: object }>; readonly $ref?: string };
type Described = {
  readonly paths: Record<string, Record<string, { readonly responses: Record<string, Response> }>>;
  readonly components: { readonly responses: Record<string, Response> };
};

/** One answer as it was received on the socket. */
export type Given = {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly type: string;
  readonly body: unknown;
};

/**
 * Checks answers. `check` returns the parts of an answer that its OpenAPI description does not allow. `seen` collects
 * the answered operations with their statuses: `GET /users 200`.
 */
type Conformance = { readonly seen: Set<string>; check(given: Given): readonly string[] };

/**
 * Creates the check. `free` lists paths whose problem documents may have statuses that the OpenAPI document does not
 * name.
 */
export async function conformanceOf(
  handler: Pick<RestHandler, 'openapi'>,
  free: readonly string[] = [],
): Promise<Conformance> {
  const described: Described = JSON.parse(JSON.stringify(await handler.openapi()));
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formats.default(ajv);
  ajv.addSchema({ $id: 'openapi', ...described });
  const validators = new Map<string, ValidateFunction>();
  const seen = new Set<string>();
  const validatorOf = (pointer: string): ValidateFunction => {
    const known = validators.get(pointer) ?? ajv.compile({ $ref: `openapi#${pointer}` });
    validators.set(pointer, known);
    return known;
  };
  return {
    seen,
    check({ method, path, status, type, body }) {
      const template = templateOf(Object.keys(described.paths), path);
      const operation = template && described.paths[template]?.[method.toLowerCase()];
      if (!template || !operation) return [];
      const key = free.includes(template) && status >= 400 ? 'default' : String(status);
      if (!Object.hasOwn(operation.responses, key)) return [`${method} ${template}: no description of ${status}`];
      seen.add(`${method} ${template} ${status}`);
      const response = operation.responses[key];
      const base = response?.$ref?.slice(1) ?? pointer('paths', template, method.toLowerCase(), 'responses', key);
      const media = type.split(';')[0] ?? '';
      const shared = response?.$ref?.split('/').at(-1) ?? '';
      const content = (response?.$ref ? described.components.responses[shared] : response)?.content;
      if (!content?.[media]) return [`${method} ${template} ${status}: ${media} is not described`];
      const validate = validatorOf(`${base}${pointer('content', media, 'schema')}`);
      return validate(body) ? [] : [`${method} ${template} ${status}: ${ajv.errorsText(validate.errors)}`];
    },
  };
}

function templateOf(templates: readonly string[], path: string): string | undefined {
  const matching = templates.filter((template) => {
    const pattern = template.replaceAll(/[.]/g, '\\$&').replaceAll(/\{\w+\}/g, '[^/]+');
    return new RegExp(`^${pattern}$`).test(path);
  });
  // A literal path takes precedence over one with parameters.
  return matching.sort((a, b) => a.split('{').length - b.split('{').length)[0];
}

function pointer(...parts: readonly string[]): string {
  return parts.map((part) => `/${encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))}`).join('');
}

// Lists the operations of the OpenAPI document that no REST document (src/rest/operations) serves.

/** The operations of the OpenAPI document that no REST document serves, such as `GET /healthz`. */
export const OTHER_OPERATIONS: readonly string[] = [SITE_EVENTS_DESCRIPTION, ...BUILTIN_DESCRIPTIONS].map(
  ({ method, path }) => `${method} ${path}`,
);
