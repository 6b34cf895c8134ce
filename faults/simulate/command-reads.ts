/**
 * Reads of commands over HTTP, by REST and GraphQL, while faults last and after them. Judges that no read is older than
 * what was told before it began, that lists have what was told, and that each answer says what the record holds.
 */
import type { Command } from '../../src/core/commands/command.ts';
import { isRecord } from '../../src/core/json.ts';
import { between, pick } from '../lib/random.ts';
import { ADMIN_TOKEN, userToken } from './entry.ts';
import { toldIn } from './http-caller.ts';
import type { Target } from './http-messages.ts';
import type { HttpNetwork } from './http-network.ts';
import { ask, get, graphql, memberAt, refusalOf, type HttpAnswer } from './http-requests.ts';
import { LOST, outcomeOf, type Call } from './ledger.ts';
import { CLIENT } from './programs.ts';
import { onRecord, type OpenRelay, type Relays } from './relays.ts';
import { HEAL_MS } from './world.ts';

/** How many commands are compared with their records at each relay. */
const COMPARED = 12;
/** The most rows of a list. */
const ROWS = 100;

const STATE = `query State($userId: ID!, $clientId: ID!, $commandId: ID!) {
  command(userId: $userId, clientId: $clientId, commandId: $commandId) {
    outcome error { code message } delivery { stage outcome execution code message attempts lateResults }
    history(first: 100) { nodes { messageId kind } completeness { complete } }
  }
}`;
const OWN = `query Own($userId: ID!) {
  user(userId: $userId) {
    streams(first: 100) { nodes { key } completeness { complete } }
    connections(first: 10) { nodes { clientId status } completeness { complete } }
  }
}`;

/** How far a command is known to have come: it has a record, it was dispatched, it has ended. */
type Known = { readonly rank: number; readonly outcome: string | null };

const RANKS: Readonly<Record<string, number>> = { admitted: 1, queued: 1, dispatched: 1, acknowledged: 1, terminal: 2 };
const NOTHING: Known = { rank: 0, outcome: null };
const RESULT_GONE = { code: 'result_expired', message: 'The result is no longer retained.' } as const;

/** What an answer says of a command, in words of the record. */
type Shown = Readonly<Record<'stage' | 'outcome' | 'execution' | 'code' | 'message', unknown>>;

type Parts = {
  readonly relays: Relays;
  readonly network: HttpNetwork;
  readonly calls: () => readonly Call[];
  /** Receives what was wrong about a command. */
  readonly report: (call: Call, fault: string) => void;
};

export class CommandReads {
  readonly #parts: Parts;
  /** What reads were told of commands. */
  readonly #read = new Map<string, Known>();
  /** The rows of the histories of commands, as they were told last, by command. */
  readonly #rows = new Map<string, readonly string[]>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Begins one read. */
  act(): void {
    const calls = this.#parts.calls();
    if (calls.length === 0) return;
    // Mostly one of the newest, whose state changes.
    const near = this.#random() < 0.7 ? calls.slice(-20) : calls;
    const call = pick(this.#random, near);
    const kind = pick(this.#random, ['record', 'record', 'status', 'graphql', 'graphql', 'history', 'list', 'user']);
    this.#parts.relays.count(`read: ${kind}`);
    if (kind === 'list') this.#list(call.userId);
    else if (kind === 'user') this.#user(call.userId);
    else if (kind === 'history') this.#history(call);
    else this.#state(call, kind);
  }

  /** What is known of a command, by anyone who was told. */
  #known({ commandId, told }: Call): Known {
    const [first] = told;
    // What an owner had not recorded when it lost the partition is not known any more.
    if (told.some((one) => outcomeOf(one) === LOST)) return NOTHING;
    return first ? { rank: 2, outcome: outcomeOf(first) } : (this.#read.get(commandId) ?? NOTHING);
  }

  #state(call: Call, kind: string): void {
    const { userId, commandId } = call;
    const before = this.#known(call);
    void this.#ask(this.#stateTarget(call, kind)).then((answer) => {
      const shown = answer && shownBy(answer);
      if (shown) this.#note(call, { before, shown, where: kind });
      const told = answer && (toldIn(answer.body) ?? null);
      if (told && kind === 'record') call.told.push(told);
      const rows = answer && rowsIn(memberAt(answer.body, 'data', 'command', 'history'), 'nodes', 'messageId');
      if (rows) this.#noteRows(call, rows);
    });
    this.#parts.relays.trace(`reads ${userId} ${commandId}`);
  }

  #stateTarget({ userId, commandId }: Call, kind: string): Target {
    const token = this.#tokenOf(userId);
    if (kind === 'record') return get(`/commands/${userId}/${CLIENT}/${commandId}`, token);
    const query = `user_id=${userId}&client_id=${CLIENT}&command_id=${commandId}`;
    if (kind === 'status') return get(`/delivery/status?${query}`, ADMIN_TOKEN);
    const path = this.#random() < 0.7 ? 'fast' : 'yoga';
    return graphql(token, { query: STATE, variables: { userId, clientId: CLIENT, commandId }, path });
  }

  /** Judges what a read says of a command, and remembers it. `before`: what was known when the read began. */
  #note(call: Call, { before, shown, where }: { before: Known; shown: Shown; where: string }): void {
    const rank = RANKS[String(shown.stage)] ?? 0;
    const outcome = shown.code === LOST ? LOST : (shown.outcome as string | null);
    if (rank < before.rank)
      this.#parts.report(call, `${where} says ${String(shown.stage)}, after ${before.outcome ?? 'a record'} was told`);
    else if (before.outcome !== null && outcome !== before.outcome)
      this.#parts.report(call, `${where} says ${outcome}, after ${before.outcome} was told`);
    const known = this.#read.get(call.commandId) ?? NOTHING;
    if (rank > known.rank) this.#read.set(call.commandId, { rank, outcome: rank === 2 ? outcome : null });
  }

  #history(call: Call): void {
    const { userId, commandId } = call;
    const before = this.#rows.get(commandId) ?? [];
    const known = this.#known(call);
    void this.#ask(get(`/history/command/${userId}/${commandId}?limit=${ROWS}`, ADMIN_TOKEN)).then((answer) => {
      const rows = answer && rowsIn(answer.body, 'items', 'message_id');
      if (!rows) return;
      if (known.rank > 0 && rows.length === 0) this.#parts.report(call, 'has no history, after it was told');
      this.#noteRows(call, rows, before);
    });
  }

  /** Judges that rows which were told keep their order, and that none of them is missing. */
  #noteRows(call: Call, rows: readonly string[], before = this.#rows.get(call.commandId) ?? []): void {
    const kept = rows.filter((row) => before.includes(row));
    if (kept.join() !== before.join())
      this.#parts.report(call, `the history has ${rows.join()}, after ${before.join()} was told`);
    if (new Set(rows).size < rows.length) this.#parts.report(call, `the history has a row twice: ${rows.join()}`);
    if (rows.length > (this.#rows.get(call.commandId) ?? []).length) this.#rows.set(call.commandId, rows);
  }

  /** Lists the newest commands of a user, or of all users: those that were told of before must be in it. */
  #list(userId: string): void {
    const isAll = this.#random() < 0.3;
    const before = new Map(this.#parts.calls().map((call) => [call, this.#known(call)]));
    const own = isAll ? '' : `&user_id=${userId}`;
    void this.#ask(get(`/delivery/commands?order=newest&limit=${ROWS}${own}`, ADMIN_TOKEN)).then((answer) => {
      const items = answer?.body?.['items'];
      if (!Array.isArray(items)) return;
      const isComplete = memberAt(answer?.body, 'completeness', 'complete') === true;
      if (!isComplete) this.#parts.relays.count('read: an incomplete list');
      const listed = new Map(items.map((item) => [String(memberAt(item, 'command_id')), item]));
      for (const [call, known] of before) {
        const item = listed.get(call.commandId);
        if (item) this.#note(call, { before: known, shown: recordOf(item), where: 'a list' });
        else if (known.rank > 0 && isComplete && items.length < ROWS && (isAll || call.userId === userId))
          this.#parts.report(call, 'is not in a list, after it was told');
      }
    });
  }

  /** Reads the summary of a user, and the list of all users: whoever was told of a command has a stream. */
  #user(userId: string): void {
    const told = this.#parts.calls().find((call) => call.userId === userId && call.told.length > 0);
    const target = pick(this.#random, [
      get(`/users/${userId}`, ADMIN_TOKEN),
      get('/users', ADMIN_TOKEN),
      get(`/connections?user_id=${userId}`, ADMIN_TOKEN),
      graphql(this.#tokenOf(userId), { query: OWN, variables: { userId } }),
    ]);
    void this.#ask(target).then((answer) => {
      const users = memberAt(answer?.body, 'items');
      if (!answer || !told || !target.path.startsWith('/users')) return;
      const isComplete = memberAt(answer.body, 'completeness', 'complete') === true;
      if (target.path === `/users/${userId}`) {
        if (isComplete && memberAt(answer.body, 'stream_count') === 0)
          this.#parts.report(told, `its user has no stream`);
      } else if (isComplete && Array.isArray(users) && !users.some((user) => memberAt(user, 'user_id') === userId))
        this.#parts.report(told, `its user is not in the list of users`);
    });
  }

  /** Sends a read. Resolves with its answer; null if it was refused for a reason that passes, or got none. */
  async #ask(target: Target, relay?: string): Promise<HttpAnswer | null> {
    const answer = await ask(this.#parts.network, target, { relay });
    const refusal = answer && refusalOf(answer);
    if (refusal !== null) this.#parts.relays.count(`read refused: ${refusal}`);
    return refusal === null || refusal === 'not_found' ? answer : null;
  }

  #tokenOf(userId: string): string {
    return userToken(this.#parts.relays.simulation, userId, ['invoke'], between(this.#random, 30_000, 90_000));
  }

  get #random(): () => number {
    return this.#parts.relays.simulation.random;
  }

  /** Compares what each relay says of commands, in each form, with the record. Once everything is in order. */
  async judge(): Promise<void> {
    const { relays, calls } = this.#parts;
    let isDone = false;
    const compared = Array.from({ length: COMPARED }, () => pick(this.#random, calls()));
    const run = async (): Promise<void> => {
      for (const relay of relays.living) for (const call of compared) await this.#compare(relay, call);
      isDone = true;
    };
    if (calls().length === 0) return;
    void run();
    if (!(await relays.simulation.run(HEAL_MS, () => isDone)) && compared[0])
      this.#parts.report(compared[0], 'could not be compared with its record in time');
  }

  async #compare(relay: OpenRelay, call: Call): Promise<void> {
    const { userId, commandId } = call;
    const [record = null] = await relay.backend.commands.get([{ userId, clientId: CLIENT, commandId }]);
    await new Promise<void>((left) => onRecord(relay, left, { destroy: left }));
    for (const kind of ['record', 'status', 'graphql']) {
      const answer = await this.#again(this.#stateTarget(call, kind), relay.process.name);
      const shown = answer && shownBy(answer);
      const [said, held] = [JSON.stringify(shown), JSON.stringify(record && shownOf(record, kind))];
      if (said !== held) this.#parts.report(call, `${kind} at ${relay.process.name} says ${said}, the record ${held}`);
    }
    this.#parts.relays.count('compared with the record');
  }

  /** Asks until there is an answer. */
  async #again(target: Target, relay: string): Promise<HttpAnswer | null> {
    for (let tries = 0; tries < 20; tries++) {
      const answer = await this.#ask(target, relay);
      if (answer) return answer;
      await new Promise<void>((next) => this.#parts.network.outside.after(200, 'reads again', next));
    }
    return null;
  }
}

/** Reads what an answer of REST or GraphQL says of one command; null if it says that there is none. */
function shownBy({ status, body }: HttpAnswer): Shown | null {
  const command = memberAt(body, 'data', 'command');
  if (isRecord(command)) {
    const delivery = command['delivery'];
    const inWords = (name: string): unknown => {
      const value = memberAt(delivery, name);
      return typeof value === 'string' ? value.toLowerCase() : (value ?? null);
    };
    return {
      ...{ stage: inWords('stage'), outcome: inWords('outcome'), execution: inWords('execution') },
      ...{ code: memberAt(delivery, 'code') ?? null, message: memberAt(delivery, 'message') ?? null },
    };
  }
  return status >= 400 || command === null ? null : recordOf(body);
}

/** Reads the members of a delivery record, or of an invocation. */
function recordOf(item: unknown): Shown {
  const at = (name: string): unknown => memberAt(item, name) ?? null;
  const error = memberAt(item, 'error');
  return {
    ...{ stage: at('stage'), outcome: at('outcome'), execution: at('execution') },
    code: memberAt(error, 'code') ?? at('code'),
    message: memberAt(error, 'message') ?? at('message'),
  };
}

/** Returns what an answer of this kind must say: one of kind `record` has the result, and says so if that is gone. */
function shownOf({ stage, outcome, execution, error, resultExpired }: Command, kind: string): Shown {
  const { code = null, message = null } = kind === 'record' && resultExpired ? RESULT_GONE : (error ?? {});
  return { stage, outcome, execution, code, message };
}

/** Returns the ids of the rows of a list that is complete; null for any other answer. */
function rowsIn(list: unknown, items: string, id: string): readonly string[] | null {
  const rows = memberAt(list, items);
  const next = memberAt(list, 'next_cursor') ?? null;
  if (!Array.isArray(rows) || memberAt(list, 'completeness', 'complete') !== true || next !== null) return null;
  return rows.map((row) => String(memberAt(row, id)));
}
