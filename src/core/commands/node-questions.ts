/** Lets a node ask other nodes questions through their mailboxes. */
import type { Deps } from '../deps.ts';
import { isStoreUnavailable } from '../errors.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { MailboxRow } from './node-store.ts';

type QuestionRow = Extract<MailboxRow, { kind: 'question' | 'answer' }>;
/** What a question is about: each topic has one function that answers. */
type Topic = Extract<QuestionRow, { kind: 'question' }>['topic'];

/** A question for a node. `withinMs`: how long it may take to answer. */
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
   * Sets the function with which this node answers questions about a topic. What `answer` throws is logged, and the
   * question stays unanswered.
   */
  answerWith(topic: Topic, answer: (question: string) => MaybePromise<string>): void {
    this.#answerers.set(topic, answer);
  }

  /**
   * Asks a node once. Null: there is no such live node, it has not answered within this time, or the store is
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
   * Asks a node once. `gone`: there is no such live node. `silent`: it has not answered within this time. Throws
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

  /** Takes a row of this node's mailbox. */
  receive(row: QuestionRow): void {
    if (row.kind === 'answer') this.#open.get(row.questionId)?.(row.text);
    else void this.#answer(row);
  }

  async #answer({ questionId, from, topic, text }: Extract<QuestionRow, { kind: 'question' }>): Promise<void> {
    const { backend, log } = this.#deps;
    try {
      const answer = await this.#answerers.get(topic)?.(text);
      if (answer !== undefined) await backend.nodes.post(from, { kind: 'answer', questionId, text: answer });
    } catch (error) {
      log.warn({ err: error, topic, from }, 'a question of another node was not answered');
    }
  }
}
