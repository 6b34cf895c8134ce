/** Tests that every shipped document is written by its plan as graphql-js would write it. */
import { readFileSync, readdirSync } from 'node:fs';
import {
  Kind,
  concatAST,
  execute,
  parse,
  print,
  separateOperations,
  validate,
  type DocumentNode,
  type ExecutionResult,
} from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeJson } from '../../src/core/json.ts';
import { createContext } from '../../src/graphql/schema/context.ts';
import { createPlans } from '../../src/graphql/execute/executor.ts';
import { schema, restSchema } from '../../src/graphql/schema/schema.ts';
import { browserWindow, report, snapshot, worker } from '../contract/kit/contexts-model.ts';
import { settle } from '../kit/clock.ts';
import { admin, connect, user } from '../kit/core.ts';
import { openCore, type OpenedCore } from '../kit/topology-core.ts';

const OPERATIONS = new URL('../../src/rest/operations/', import.meta.url);
const whole = concatAST(readdirSync(OPERATIONS).map((name) => parse(readFileSync(new URL(name, OPERATIONS), 'utf8'))));

/** Nested queries as a console sends them. */
const CONSOLE = parse(`
  query Dashboard($users: Int! = 50, $each: Int = 20) {
    users(first: $users) {
      nodes {
        id connectionCount
        connections(first: $each) {
          nodes { clientId status heartbeat metadata actions { items { name schema } } pendingRpcs { nodes { rpcId } } }
          completeness { complete sources { source complete reason } }
        }
        streams { nodes { suffix messageCount } }
      }
      pageInfo { hasNextPage endCursor }
    }
  }
  query CaseFile($withHistory: Boolean!) {
    command(userId: "alice", clientId: "tab", commandId: "k1") {
      action outcome
      waiters { rpcId }
      history @include(if: $withHistory) { nodes { kind id } }
    }
  }
`);

const known: Record<string, unknown> = {
  user_id: 'alice',
  client_id: 'tab',
  command_id: 'k1',
  id_or_trace: 'k1',
  action: 'open',
  stream: 'alice/clients/tab',
  limit: 2,
  status: 'CONNECTED',
  kinds: ['COMMAND', 'RESULT'],
  include_payload: true,
  after_time: '2020-01-01T00:00:00Z',
  min_age_ms: 0,
  prefix: 'clients/',
  node_id: 'n1',
  withHistory: true,
  client_type: 'BROWSER',
  ownership: 'WORKER',
  window_id: 'w1',
  task_id: 't1',
  owner: 'alice',
  site_id: 'board',
  // Replaced by the id of the session that is opened, which says where the store keeps it.
  session_id: 's1',
};
/** The values of variables by type, for variable names that documents declare with different types. */
const knownOfType: Record<string, unknown> = { ContextStatus: 'IDLE', WindowStatus: 'OPEN' };

/** Returns sets of variables: only the required ones, all known ones, and one with a wrong value. */
function variableSets(document: DocumentNode): Record<string, unknown>[] {
  const all = operationOf(document)?.variableDefinitions ?? [];
  const pick = (some: typeof all) =>
    Object.fromEntries(
      some.flatMap(({ variable: { name }, type }) =>
        name.value in known ? [[name.value, knownOfType[print(type)] ?? known[name.value]]] : [],
      ),
    );
  const required = all.filter(({ type, defaultValue }) => type.kind === 'NonNullType' && !defaultValue);
  return [pick(required), pick(all), { ...pick(required), limit: 'x', status: 'GONE' }, {}];
}

const operationOf = ({ definitions }: DocumentNode) =>
  definitions.find((node) => node.kind === Kind.OPERATION_DEFINITION);
const nameOf = (document: DocumentNode): string => operationOf(document)?.name?.value ?? '';
const documents = [...Object.values(separateOperations(whole)), ...Object.values(separateOperations(CONSOLE))].filter(
  (document) => operationOf(document)?.operation === 'query',
);

/** Creates two users, one of them with an ended command and a pending one. */
async function populate({ core, backend }: OpenedCore): Promise<void> {
  const alice = user('alice');
  await core.sites.register(alice, { siteId: 'board', clientId: 'tab', actions: ['open'] });
  const all = { parentId: null, events: null, actions: ['open'], share: false, ttlMs: null };
  const grant = { grantId: 'g1', tokenHash: 'h1', ...all };
  known['session_id'] = `${backend.sessions.prefixOf('alice')}s1`;
  const session = { userId: 'alice', siteId: 'board', sessionId: known['session_id'] as string };
  await backend.sessions.open({ ...session, ttlMs: 60_000, grant });
  const tab = await connect(core, alice);
  const workers = snapshot(worker('free', { windowId: 'w1' }), worker('busy', { windowId: 'w1', taskId: 't1' }));
  await tab.session.report(report(workers, snapshot(browserWindow('w1', { ownership: 'worker' }))));
  await connect(core, user('bob'), { clientId: 'phone', clientType: 'mobile' });
  const invoke = (commandId: string) =>
    execute({
      schema,
      document: parse(
        `mutation { invokeAction(input: { userId: "alice", clientId: "tab", action: "open", commandId: "${commandId}", waitFor: ADMITTED }) { __typename } }`,
      ),
      contextValue: createContext({ core, requester: alice }),
    });
  await invoke('k1');
  await settle();
  await tab.result(tab.last);
  await invoke('k2');
  await settle();
}

/** The core that all tests query. It is populated once, because queries change nothing. */
let test: OpenedCore;
beforeAll(async () => {
  test = await openCore({ rawMessages: true });
  await populate(test);
});
afterAll(() => test[Symbol.asyncDispose]());

function shown({ data, errors }: ExecutionResult): unknown {
  return JSON.parse(JSON.stringify({ data, errors: errors?.map(({ message, path }) => ({ message, path })) }));
}

/** Returns the result with only the first error if the request is invalid, because the writer reports no more. */
function firstOfRequest(result: ExecutionResult): ExecutionResult {
  return 'data' in result ? result : { errors: result.errors?.slice(0, 1) ?? [] };
}

describe.each([
  ['the served schema', schema],
  ['the schema of wire words', restSchema],
])('over %s', (_name, of) => {
  const plans = createPlans(of);

  it.each(documents.map((document) => ({ name: nameOf(document), document })))(
    'the plan of $name answers as graphql-js does',
    async ({ document }) => {
      const plan = plans.of(document);
      const context = () => createContext({ core: test.core, requester: admin });
      for (const variableValues of variableSets(document)) {
        const options = { maxCoercionErrors: 1 };
        const args = { schema: of, document, variableValues, contextValue: context(), hideSuggestions: true, options };
        const expected = shown(firstOfRequest(await execute(args)));
        expect(shown((await plan?.bind(variableValues).run(context())) ?? {})).toEqual(expected);
        const { data, errors } = await execute({ ...args, contextValue: context() });
        for (let run = 0; run < 2; run++)
          expect([errors ? '' : writeJson(data), null]).toContain(await plan?.bind(variableValues).write(context()));
      }
    },
  );

  it('all of them are written as text', async () => {
    await using test = await openCore({ rawMessages: true });
    await populate(test);
    const context = () => createContext({ core: test.core, requester: admin });
    const slow: string[] = [];
    for (const document of documents) {
      const own = await plans.of(document)?.bind(variableSets(document)[1]).write(context());
      if (own === null) slow.push(nameOf(document));
    }
    expect(slow).toEqual([]);
  });
});

it('the documents of a console are valid', () => {
  expect(validate(schema, CONSOLE)).toEqual([]);
});

it('the corpus has answers that are worth comparing', async () => {
  const plans = createPlans(schema);
  const answers = await Promise.all(
    documents.map((document) =>
      plans
        .of(document)
        ?.bind(variableSets(document)[1])
        .run(createContext({ core: test.core, requester: admin })),
    ),
  );
  const failed = answers.flatMap((answer, i) =>
    answer?.errors ? [print(documents[i] ?? CONSOLE), answer.errors] : [],
  );
  expect(failed).toEqual([]);
  const text = JSON.stringify(answers);
  for (const word of [
    '"free"',
    '"busy"',
    '"w1"',
    '"alice"',
    '"bob"',
    '"k1"',
    '"tab"',
    '"open"',
    '"RESULT"',
    '"board"',
    `"${known['session_id'] as string}"`,
    '"g1"',
  ])
    expect(text).toContain(word);
});
