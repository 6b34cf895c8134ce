/** Calls, and reads of commands, over HTTP: by REST, with its event streams, and by GraphQL on both of its paths. */
import { between, pick } from '../lib/random.ts';
import { isRecord } from '../../src/core/json.ts';
import { userToken } from './entry.ts';
import type { Target } from './http-messages.ts';
import type { HttpNetwork } from './http-network.ts';
import {
  ask,
  createEventReader,
  graphql,
  memberAt,
  refusalOf,
  sending,
  type GraphqlPath,
  type HttpAnswer,
} from './http-requests.ts';
import { progressWatch, type Call, type Told } from './ledger.ts';
import { noteAnswer, requestAt } from './linearize.ts';
import { ACTION, CLIENT, TIMES, type Answer } from './programs.ts';

/** How long a caller waits before it asks another relay, in milliseconds: longer than the call may take. */
const ASK_AGAIN_MS = TIMES.connectWithinMs + TIMES.respondWithinMs + 4_000;

const INVOKE = `mutation Invoke($input: InvokeActionInput!) {
  invokeAction(input: $input) {
    ... on Invocation { outcome execution stage result error { code message } }
    ... on Refusal { code message }
  }
}`;
const CANCEL = `mutation Cancel($input: CancelCommandInput!) {
  cancelCommand(input: $input) { ... on CancelReceipt { state } ... on Refusal { code } }
}`;

/** What a caller is told about a cancel. */
const RECEIPTS = ['cancelled', 'requested', 'too_late', 'not_found'] as const;
/** How a call enters. */
const WAYS = ['rest', 'rest', 'stream', 'fast', 'fast', 'yoga'] as const;

type Parts = {
  readonly network: HttpNetwork;
  /** Receives what was wrong. */
  readonly report: (fault: string) => void;
  readonly count: (what: string) => void;
};

type InvokeOptions = { readonly relay?: string; readonly withinMs?: number | undefined; readonly token?: string };

export class HttpCaller {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Invokes at a relay, or at any. Calls back with what the caller is told, once. `withinMs`: after how long the caller
   * hangs up. `token`: the one to use; absent: a new one.
   */
  invoke(
    call: Call,
    answer: (answer: Answer) => void,
    { relay, withinMs = ASK_AGAIN_MS, token }: InvokeOptions = {},
  ): void {
    const { network, count } = this.#parts;
    const way = pick(network.simulation.random, WAYS);
    count(`entry: ${way}`);
    const events = way === 'stream' ? this.#eventsOf(call) : null;
    const target = this.#invocation(call, way, token ?? this.#token(call.userId));
    void ask(network, target, { relay, withinMs, onText: events?.take }).then((got) => {
      if (!got) return answer({ failed: 'unreachable' });
      answer(toldBy(events?.isOpen ? events.last() : got));
    });
  }

  cancel({ userId, commandId, history }: Call): void {
    const { network, count } = this.#parts;
    const request = requestAt(network.simulation.now, { kind: 'cancel' });
    history.push(request);
    const token = this.#token(userId);
    const key = { userId, clientId: CLIENT, commandId };
    const target =
      network.simulation.random() < 0.5
        ? sending('POST', `/commands/${userId}/${CLIENT}/${commandId}/cancel`, { token, body: {} })
        : graphql(token, { query: CANCEL, variables: { input: key }, path: this.#path() });
    void ask(network, target).then((got) => {
      const state = got && (memberAt(got.body, 'state') ?? memberAt(got.body, 'data', 'cancelCommand', 'state'));
      const told = String(state ?? (got && refusalOf(got)) ?? 'unreachable').toLowerCase();
      count(`cancel: ${told}`);
      const receipt = RECEIPTS.find((name) => name === told);
      if (receipt) noteAnswer(request, network.simulation.now, { kind: 'receipt', state: receipt });
    });
  }

  #invocation(call: Call, way: (typeof WAYS)[number], token: string): Target {
    const { userId, commandId, contextId, work, times } = call;
    const { connectWithinMs, respondWithinMs } = times;
    if (way === 'fast' || way === 'yoga') {
      const input = { userId, clientId: CLIENT, action: ACTION, params: work, commandId, contextId, ...times };
      return graphql(token, { query: INVOKE, variables: { input }, path: way });
    }
    const body = {
      ...{ params: work, command_id: commandId, context_id: contextId },
      ...{ connect_within_ms: connectWithinMs, respond_within_ms: respondWithinMs },
    };
    const headers = way === 'stream' ? { accept: 'text/event-stream' } : {};
    return sending('POST', `/connections/${userId}/${CLIENT}/actions/${ACTION}`, { token, body, headers });
  }

  #token(userId: string): string {
    const { simulation } = this.#parts.network;
    return userToken(simulation, userId, ['invoke'], between(simulation.random, 30_000, 90_000));
  }

  #path(): GraphqlPath {
    return this.#parts.network.simulation.random() < 0.7 ? 'fast' : 'yoga';
  }

  /** Reads the event stream of a call. */
  #eventsOf(call: Call) {
    const { report } = this.#parts;
    const read = createEventReader();
    const watch = progressWatch(call, report);
    let isOpen = false;
    let answered: unknown = null;
    return {
      take: (part: string): void => {
        // A call that is refused, or that has ended already, is answered without a stream.
        isOpen ||= part.startsWith(':');
        for (const { event, id, data } of isOpen ? read(part) : []) {
          if (answered) report(`${call.commandId}: ${event} comes after the answer`);
          if (event === 'progress') watch(JSON.parse(data), id === null ? null : Number(id), null);
          else if (event === 'answer') answered = JSON.parse(data);
        }
      },
      get isOpen() {
        return isOpen;
      },
      last: (): Omit<HttpAnswer, 'relay'> | null => {
        const body = memberAt(answered, 'body');
        return answered ? { status: Number(memberAt(answered, 'status')), body: isRecord(body) ? body : null } : null;
      },
    };
  }
}

/** What a caller is told by an answer. */
function toldBy(answer: Omit<HttpAnswer, 'relay'> | null): Answer {
  // The stream ended before the answer.
  if (!answer) return { failed: 'unreachable' };
  const graphqlAnswer = memberAt(answer.body, 'data', 'invokeAction');
  const told = toldIn(graphqlAnswer ?? answer.body);
  if (told) return { told };
  const code = memberAt(graphqlAnswer, 'code');
  return { failed: typeof code === 'string' ? code.toLowerCase() : (refusalOf(answer) ?? 'pending') };
}

/** Reads the end of a command in the members of an invocation; null if it has none. */
export function toldIn(members: unknown): Told | null {
  const outcome = memberAt(members, 'outcome');
  if (typeof outcome !== 'string') return null;
  return {
    outcome: outcome.toLowerCase(),
    execution: String(memberAt(members, 'execution')).toLowerCase(),
    code: textOf(memberAt(members, 'error', 'code')),
    message: textOf(memberAt(members, 'error', 'message')),
    value: memberAt(members, 'result') ?? null,
  };
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
