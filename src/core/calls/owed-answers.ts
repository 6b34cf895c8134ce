/**
 * Tracks which agent request must still get the answer of a call, whether that answer was written or lost, and cancels
 * such requests.
 */
import type { CommandKey } from '../ids.ts';
import { BoundedMap } from '../collections.ts';
import { OWED_BY_NOBODY, type Command } from '../commands/command.ts';
import type { OfAnswer } from '../commands/settlement.ts';
import type { CommandRecorder } from '../commands/command-recorder.ts';
import { nodesWithLinks, otherNodes } from '../commands/other-nodes.ts';
import type { NodeQuestions } from '../commands/node-questions.ts';
import type { Deps } from '../deps.ts';
import { isStoreUnavailable } from '../errors.ts';
import { isRecord, parsedJson, trustJson } from '../json.ts';
import { AGENT_UNARRIVED_MS, NODE_LEASE_MS } from '../limits.ts';
import type { AnswerEvidence } from './equal-calls.ts';

/**
 * The names by which an agent identifies a running request when it cancels the request. `session`: null if the agent
 * has no session.
 */
export type RequestName = { readonly subject: string; readonly session: string | null; readonly requestId: unknown };

/** A request that must still get an answer. Its methods may be called in any order and more than once. */
export type OwedAnswer = {
  /** The name of the request in the records of commands (`owedBy`). */
  readonly token: string;
  /**
   * Says that this command's end will be the answer of the request. Null: the request waits for no command any more.
   */
  owes(key: CommandKey | null): void;
  /**
   * Says that the whole answer was written. `tells`: whether the answer said how the command ended. A later `lost`
   * replaces this.
   */
  written(tells: boolean): void;
  /**
   * Says that the answer did not arrive: the request was cancelled, or its connection closed before the whole answer
   * was written.
   */
  lost(): void;
  /** Says that nothing more will be reported about the answer. */
  close(): void;
};

type State = 'owed' | 'written' | 'lost';
/** `recorded`: whether the command's record has the same state as `state`. */
type Request = {
  readonly token: string;
  readonly name: RequestName;
  readonly cancel: () => void;
  key: CommandKey | null;
  state: State;
  recorded: boolean;
  /** Whether the request still runs. Its agent may cancel it only while it does. */
  running: boolean;
  note: Promise<void>;
};

/**
 * The most requests that are remembered, and for how long: AGENT_UNARRIVED_MS after the end of the longest command (10
 * minutes), in milliseconds.
 */
const REQUESTS = 20_000;
const REMEMBERED_MS = AGENT_UNARRIVED_MS + 600_000;
/**
 * The timeout of one question to a node, and how long the question is repeated if the node does not answer, in
 * milliseconds.
 */
const ASK_MS = 1_000;
const ASKED_MS = 2 * NODE_LEASE_MS;
/** Separates the node's id from the rest of a token. No node id contains it. */
const BETWEEN = '/';

type OwedDeps = {
  readonly deps: Deps;
  readonly recorder: Pick<CommandRecorder, 'settle'>;
  readonly questions: NodeQuestions;
};

export class OwedAnswers {
  readonly #parts: OwedDeps;
  readonly #requests: BoundedMap<string, Request>;
  readonly #running = new Set<Request>();
  readonly #noting = new Set<Request>();
  /** The beginning of all tokens of this process. After a restart, the process has another one. */
  readonly #own: string;
  #count = 0;

  constructor(parts: OwedDeps) {
    const { deps, questions } = parts;
    this.#parts = parts;
    this.#requests = new BoundedMap({
      most: REQUESTS,
      order: 'set',
      ttl: { ms: REMEMBERED_MS, clock: deps.clock },
    });
    this.#own = `${deps.nodeId}${BETWEEN}${deps.crypto.randomToken().slice(0, 8)}.`;
    questions.answerWith('answers', (text) => this.#reply(text));
  }

  /** Registers a running request. `cancel` is called if the agent cancels the request. */
  begin(name: RequestName, cancel: () => void): OwedAnswer {
    const token = `${this.#own}${++this.#count}`;
    const request: Request = {
      token,
      name,
      cancel,
      key: null,
      state: 'owed',
      recorded: false,
      running: true,
      note: Promise.resolve(),
    };
    this.#running.add(request);
    return {
      token,
      owes: (key) => this.#owes(request, key),
      written: (tells) => this.#written(request, tells),
      lost: () => this.#lost(request),
      close: () => this.#close(request),
    };
  }

  #owes(request: Request, key: CommandKey | null): void {
    request.key = key;
    if (key === null) return void this.#requests.delete(request.token);
    this.#requests.set(request.token, request);
    if (request.state === 'lost') this.#note(request, { kind: 'lost', by: request.token });
  }

  #written(request: Request, tells: boolean): void {
    this.#running.delete(request);
    request.running = false;
    if (request.state !== 'owed') return;
    request.state = 'written';
    if (tells) this.#note(request, { kind: 'answered', by: request.token });
  }

  #lost(request: Request): void {
    const isKnown = request.key === null || this.#requests.get(request.token) === request;
    if (request.state === 'lost' || !isKnown) return;
    request.state = 'lost';
    request.recorded = false;
    if (request.key !== null) this.#note(request, { kind: 'lost', by: request.token });
  }

  #close(request: Request): void {
    this.#running.delete(request);
    request.running = false;
    if (request.key === null || (request.state === 'written' && request.recorded)) this.#requests.delete(request.token);
  }

  /**
   * Records in the command's record whether the answer arrived, once the earlier notes of this request are recorded. A
   * loss is recorded at once, because other nodes decide by the record, and whichever note comes first, the loss stays.
   */
  #note(request: Request, settlement: OfAnswer): void {
    const { key } = request;
    if (key === null) return;
    const { recorder, deps } = this.#parts;
    const { state } = request;
    this.#noting.add(request);
    const before = request.note;
    const settled =
      settlement.kind === 'lost'
        ? Promise.all([recorder.settle(key, settlement), before]).then(([result]) => result)
        : before.then(() => recorder.settle(key, settlement));
    const note = settled
      .then(
        ({ kind }) => {
          if (kind !== 'unknown' && request.state === state) request.recorded = true;
          if (request.recorded && state === 'lost') this.#requests.delete(request.token);
        },
        // A failure is only logged: equal calls on this node are decided by the state in memory.
        (error: unknown) => deps.log.debug({ err: error }, 'it was not recorded what became of an answer'),
      )
      .finally(() => {
        if (request.note === note) this.#noting.delete(request);
      });
    request.note = note;
  }

  /** Resolves when all notes are recorded that concern commands whose ids begin with `prefix`. */
  async noted(prefix: string): Promise<void> {
    if (this.#noting.size === 0) return;
    const notes = [...this.#noting].filter(({ key }) => key?.commandId.startsWith(prefix));
    await Promise.all(notes.map(({ note }) => note));
  }

  /**
   * Says whether the answer of a command is known to be lost. If this returns `none` because the answer was written, a
   * later `lost` can no longer change the decisions that were made by it.
   */
  async evidenceOf(command: Command): Promise<AnswerEvidence> {
    const { owedBy, answeredAt } = command;
    if (owedBy === undefined || answeredAt !== undefined) return 'none';
    if (owedBy === OWED_BY_NOBODY) return 'lost';
    const said = await this.#stateOf(owedBy);
    if (said !== null) return said === 'lost' ? 'lost' : 'none';
    // The process that had the request no longer knows it. The record says whether the answer arrived, and may have
    // changed since `command` was read, so it is read again.
    const [now = null] = await this.#parts.deps.backend.commands.get([command]);
    if (now === null || now.answeredAt !== undefined) return 'none';
    return now.owedBy === owedBy || now.owedBy === OWED_BY_NOBODY ? 'lost' : 'none';
  }

  /**
   * Returns the state of the answer that a request owes, from the process of the request; null if that process no
   * longer knows the request.
   */
  async #stateOf(token: string): Promise<State | null> {
    if (token.startsWith(this.#own)) return this.#ownState(token);
    const { deps } = this.#parts;
    if (!deps.backend.capabilities.shared) return null;
    const [nodeId = ''] = token.split(BETWEEN);
    if (nodeId === deps.nodeId) return null;
    const answer = await this.#ask(nodeId, { token });
    return answer === 'owed' || answer === 'written' || answer === 'lost' ? answer : null;
  }

  #ownState(token: string): State | null {
    const request = this.#requests.get(token);
    if (!request) return null;
    if (request.state === 'written' && request.recorded) this.#requests.delete(token);
    return request.state;
  }

  /**
   * Asks a node until it answers. Returns null if the node is gone, which is certain when its lease is over. If a node
   * keeps its lease but does not answer for two lease times, returns null too.
   */
  async #ask(nodeId: string, question: object): Promise<string | null> {
    const { questions, deps } = this.#parts;
    const text = JSON.stringify(question);
    const until = deps.clock.monotonic() + ASKED_MS;
    do {
      const answer = await questions.askOrGone(nodeId, { topic: 'answers', text, withinMs: ASK_MS });
      if (answer.kind === 'answer') return answer.text;
      if (answer.kind === 'gone') return null;
    } while (deps.clock.monotonic() < until);
    return null;
  }

  /**
   * Cancels the running request with this name, and returns whether it did. A name without a session may fit several
   * requests; then no request is cancelled.
   */
  async cancel(name: RequestName): Promise<boolean> {
    const own = this.#named(name);
    if (name.session !== null && own.length > 0) return cancelAll(own);
    const others = await this.#othersWith(name);
    const count = own.length + others.reduce((sum, [, number]) => sum + number, 0);
    if (count !== 1) return false;
    const [nodeId] = others.find(([, number]) => number === 1) ?? [];
    if (nodeId === undefined) return cancelAll(own);
    await this.#ask(nodeId, { ...name, cancel: true });
    return true;
  }

  /** Asks the other nodes how many running requests with this name they have. */
  async #othersWith(name: RequestName): Promise<readonly (readonly [nodeId: string, count: number])[]> {
    const { deps, questions } = this.#parts;
    if (!deps.backend.capabilities.shared) return [];
    // A node that has started and not reported yet may have requests, too.
    const { others, silent } = await nodesWithLinks(deps).catch((error: unknown) => {
      if (!isStoreUnavailable(error)) throw error;
      return otherNodes(deps);
    });
    const text = JSON.stringify({ ...name, cancel: false });
    const asked = others.filter((nodeId) => !silent.has(nodeId));
    return Promise.all(
      asked.map(async (nodeId) => {
        const answer = await questions.ask(nodeId, { topic: 'answers', text, withinMs: ASK_MS });
        return [nodeId, Number(answer ?? 0)] as const;
      }),
    );
  }

  #named({ subject, session, requestId }: RequestName): readonly Request[] {
    const id = JSON.stringify(requestId);
    return [...this.#running].filter(
      ({ name }) => name.subject === subject && name.session === session && JSON.stringify(name.requestId) === id,
    );
  }

  /**
   * Answers the question of another node: about the state of a request, or to count or cancel the requests with a name.
   */
  #reply(text: string): string {
    const question = parsedJson(trustJson(text));
    if (!isRecord(question)) throw new TypeError('The question is no object.');
    const { token, subject, session, requestId, cancel } = question;
    if (typeof token === 'string') return this.#ownState(token) ?? 'unknown';
    if (typeof subject !== 'string') throw new TypeError('The question names no requester.');
    const found = this.#named({ subject, session: typeof session === 'string' ? session : null, requestId });
    if (cancel === true) cancelAll(found);
    return String(found.length);
  }
}

function cancelAll(requests: readonly Request[]): boolean {
  for (const { cancel } of requests) cancel();
  return requests.length > 0;
}
