import { expect, test } from 'vitest';
import { startRelay } from './kit.ts';

/** What a linter of descriptions looks for, as far as a validator does not. Each rule answers what breaks it. */
const RULES: Readonly<Record<string, (of: Described) => readonly string[]>> = {
  'info has a title, a version, a description and a license': ({ document: { info } }) =>
    ['title', 'version', 'description', 'license'].filter((name) => !info[name]),
  'an operation has an id, which is unique and fit for a URL': ({ operations }) => {
    const ids = operations.map(({ operation }) => String(operation.operationId));
    return ids.filter((id, i) => !/^[A-Za-z][A-Za-z0-9]*$/.test(id) || ids.indexOf(id) !== i);
  },
  'an operation has a summary and a description, which are sentences': ({ operations }) =>
    broken(
      operations,
      ({ summary = '', description = '' }) => /\w.*\.$/s.test(summary) && /\w.*\.$/s.test(description),
    ),
  'an operation has one tag, which is defined and described': ({ operations, document }) => {
    const known = new Map(document.tags.map(({ name, description }: any) => [name, description]));
    return broken(operations, ({ tags }) => tags?.length === 1 && Boolean(known.get(tags[0])));
  },
  'a tag is used, and defined once': ({ operations, document }) => {
    const used = new Set(operations.flatMap(({ operation }) => operation.tags));
    const names: string[] = document.tags.map(({ name }: any) => name);
    return names.filter((name, i) => !used.has(name) || names.indexOf(name) !== i);
  },
  'each {parameter} of a path is defined and required, and no other is in the path': ({ operations }) =>
    broken(operations, ({ parameters }, path) => {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const defined = parameters.filter((one: any) => one.in === 'path');
      return (
        defined.every((one: any) => one.required === true) &&
        String(defined.map((one: any) => one.name).sort()) === String(named.sort())
      );
    }),
  'a parameter is defined once, has a schema and a description': ({ operations }) =>
    broken(operations, ({ parameters }) => {
      const names = parameters.map((one: any) => `${one.in} ${one.name}`);
      return new Set(names).size === names.length && parameters.every((one: any) => one.schema && one.description);
    }),
  'a list is bounded by a limit that says its range': ({ operations }) =>
    broken(operations, ({ parameters }) => {
      const limit = parameters.find((one: any) => one.name === 'limit')?.schema;
      return !limit || (limit.minimum === 1 && limit.maximum <= 1000 && limit.default <= limit.maximum);
    }),
  'a cursor and a limit come together': ({ operations }) =>
    broken(operations, ({ parameters }) => {
      const has = (name: string): boolean => parameters.some((one: any) => one.name === name);
      return !has('cursor') || has('limit');
    }),
  'an operation has a success and says what a failure is, each described': ({ operations }) =>
    broken(operations, ({ responses }) => {
      const statuses = Object.keys(responses);
      const described = Object.values<any>(responses).every((one) => one.$ref || one.description);
      return statuses.some((status) => status.startsWith('2')) && statuses.includes('default') && described;
    }),
  'a GET takes no body': ({ operations }) =>
    operations.filter(({ method, operation }) => method === 'get' && operation.requestBody).map(({ path }) => path),
  'an array says what its items are, and an enum’s values differ and are of its type': ({ schemas }) =>
    schemas
      .filter(({ type, items, enum: values }) => {
        if (type === 'array' && items === undefined) return true;
        return Array.isArray(values) && new Set(values).size !== values.length;
      })
      .map((schema) => JSON.stringify(schema).slice(0, 200)),
  'what a schema requires is among its properties': ({ schemas }) =>
    schemas
      .filter(({ required, properties }) => Array.isArray(required) && properties)
      .flatMap(({ required, properties }) => required.filter((name: string) => !Object.hasOwn(properties, name))),
  'every reference leads somewhere, and every component is referred to': ({ document }) => {
    const text = JSON.stringify(document);
    const refs = new Set([...text.matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref = '']) => ref));
    const found = (ref: string): unknown =>
      ref
        .split('/')
        .slice(1)
        .reduce((at: any, key) => at?.[key], document);
    const components = ['schemas', 'responses'].flatMap((kind) =>
      Object.keys(document.components[kind]).map((name) => `#/components/${kind}/${name}`),
    );
    return [...[...refs].filter((ref) => found(ref) === undefined), ...components.filter((ref) => !refs.has(ref))];
  },
  'a security requirement is of a scheme that is defined': ({ document }) =>
    document.security.flatMap(Object.keys).filter((name: string) => !document.components.securitySchemes[name]),
  'no path ends in a slash, has a query, or is the same as another but for names': ({ document }) => {
    const paths = Object.keys(document.paths);
    const shapes = paths.map((path) => path.replaceAll(/\{\w+\}/g, '{}'));
    return paths.filter((path, i) => /\/$|\?/.test(path) || shapes.indexOf(shapes[i] ?? '') !== i);
  },
};

type Operation = { readonly path: string; readonly method: string; readonly operation: any };
type Described = {
  readonly document: any;
  readonly operations: readonly Operation[];
  readonly schemas: readonly any[];
};

function broken(operations: readonly Operation[], holds: (operation: any, path: string) => boolean): readonly string[] {
  return operations
    .filter(({ operation, path }) => !holds(operation, path))
    .map(({ method, path }) => `${method} ${path}`);
}

function describedBy(document: any): Described {
  const operations = Object.entries<any>(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const schemas: any[] = [];
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, one] of Object.entries(value)) {
      if (key === 'schema' || key === 'items') schemas.push(one);
      if (key === 'properties' || key === 'schemas') schemas.push(...Object.values(one));
      if (key === 'anyOf' || key === 'allOf') schemas.push(...one);
      collect(one);
    }
  };
  collect(document);
  return { document, operations, schemas };
}

test.each(Object.entries(RULES))('%s', async (_, rule) => {
  await using relay = await startRelay();
  const described = describedBy(JSON.parse(JSON.stringify(relay.door.openapi)));
  expect(described.operations.length).toBeGreaterThan(30);
  expect(described.schemas.length).toBeGreaterThan(500);
  expect(rule(described)).toEqual([]);
});

test('each of these rules finds what breaks it', async () => {
  await using relay = await startRelay();
  const document = JSON.parse(JSON.stringify(relay.door.openapi));
  delete document.info.license;
  document.tags.push({ name: 'idle' });
  document.security.push({ cookie: [] });
  document.components.schemas.Idle = { type: 'array', required: ['a'], properties: {} };
  const one = document.paths['/connections'].get;
  const other = document.paths['/users/{user_id}'].get;
  Object.assign(one, { operationId: 'UserSummary', requestBody: {}, tags: ['none'], summary: 'mute' });
  one.parameters.push({ name: 'status', in: 'query' });
  one.parameters = one.parameters.filter(({ name }: any) => name !== 'limit');
  document.paths['/contexts'].get.parameters.find(({ name }: any) => name === 'limit').schema.maximum = 10_000;
  other.parameters = [];
  other.responses = { 404: {} };
  document.paths['/users/{id}/'] = { get: other };
  document.paths['/users/{name}'] = {};
  const described = describedBy(document);
  const silent = Object.entries(RULES).filter(([, rule]) => rule(described).length === 0);
  expect(silent.map(([name]) => name)).toEqual([]);
});
