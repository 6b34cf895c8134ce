/** Lets nodes ask each other questions through their mailboxes. */
import type { Backend } from '../backend.ts';
import type { Deps } from '../deps.ts';
import { isStoreUnavailable } from '../errors.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { MailboxRow } from './node-store.ts';

type QuestionRow = Extract<MailboxRow, { kind: 'question' | 'answer' }>;
/** The subject of a question. Each topic has one function that answers its questions. */
type Topic = Extract<QuestionRow, { kind: 'question' }>['topic'];

/** A question to a node. `withinMs`: the timeout in milliseconds. */
type Question = { readonly topic: Topic; readonly text: string; readonly withinMs: number };
type NodeAnswer = { readonly kind: 'answer'; readonly text: string } | { readonly kind: 'gone' | 'silent' };

export class NodeQuestions {
  readonly #deps: Pick<Deps, 'nodeId' | 'backend' | 'clock' | 'crypto' | 'log'>;
  readonly #answerers = new Map<Topic, (question: string) => MaybePromise<string>>();
  readonly #open = new Map<string, (answer: string) => void>();

  constructor(deps: Pick<Deps, 'nodeId' | 'backend' | 'clock' | 'crypto' | 'log'>) {
    this.#deps = deps;
  }

  /**
   * Sets the function that answers questions about a topic on this node. If the function throws, the error is logged
   * and the question gets no answer.
   */
  answerWith(topic: Topic, answer: (question: string) => MaybePromise<string>): void {
    this.#answerers.set(topic, answer);
  }

  /**
   * Asks a node once. Null if there is no such live node, if the node does not answer in time, or if the store is
   * unavailable.
   */
  async ask(nodeId: string, question: Question): Promise<string | null> {
    try {
      const answer = await this.askOrGone(nodeId, question);
      return answer.kind === 'answer' ? answer.text : null;
    } catch (error) {
      if (!isStoreUnavailable(error)) throw error;
      return null;
    }
  }

  /**
   * Asks a node once. `gone`: there is no such live node. `silent`: the node did not answer in time. Throws
   * `store_unavailable`.
   */
  async askOrGone(nodeId: string, { topic, text, withinMs }: Question): Promise<NodeAnswer> {
    const { backend, clock, crypto, nodeId: from } = this.#deps;
    const questionId = crypto.randomId();
    const { promise, resolve } = Promise.withResolvers<NodeAnswer>();
    this.#open.set(questionId, (answer) => resolve({ kind: 'answer', text: answer }));
    const cancel = clock.after(withinMs, () => resolve({ kind: 'silent' }));
    try {
      const posted = await backend.nodes.post(nodeId, { kind: 'question', questionId, from, topic, text });
      return posted ? await promise : { kind: 'gone' };
    } finally {
      cancel();
      this.#open.delete(questionId);
    }
  }

  /** Handles a question or an answer from this node's mailbox. */
  receive(row: QuestionRow): void {
    if (row.kind === 'answer') this.#open.get(row.questionId)?.(row.text);
    else void this.#answer(row);
  }

  async #answer({ questionId, from, topic, text }: Extract<QuestionRow, { kind: 'question' }>): Promise<void> {
    const { backend, log } = this.#deps;
    try {
      const answer = await this.#answerers.get(topic)?.(text);
      // An answer may say what this node does no more. What its sockets hold back until it is recorded goes first.
      await outputReleased(backend);
      if (answer !== undefined) await backend.nodes.post(from, { kind: 'answer', questionId, text: answer });
    } catch (error) {
      log.warn({ err: error, topic, from }, 'a question of another node was not answered');
    }
  }
}

/** Resolves once all bytes that the process holds back now were written, or their sockets destroyed. */
function outputReleased(backend: Pick<Backend, 'onRecord'>): Promise<void> {
  return new Promise((resolve) => {
    if (backend.onRecord) backend.onRecord(resolve, { destroy: resolve });
    else resolve();
  });
}
