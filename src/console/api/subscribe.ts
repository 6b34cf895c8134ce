/** Runs one subscription over server-sent events. */
import type { TypedDocumentString } from '../../../generated/console.ts';
import { RELAY_PATH } from '../base.ts';
import { RequestError, parseObject, readData, refusalOf, requireToken } from './request.ts';

/** The library of event streams. It is loaded at the first subscription, so that it does not delay the first page. */
export type Streams = typeof import('../../clients/live/stream.ts');

type StreamOptions<Data> = {
  readonly signal: AbortSignal;
  /** Called when the relay has accepted the subscription. */
  readonly onOpen: () => void;
  readonly onData: (data: Data) => void;
};

const EVENT_HEAD = { status: 200, headers: new Headers() };

/**
 * Runs a subscription to its end. Resolves when the relay has completed it. Rejects with RequestError if the relay
 * refused it or the stream broke, and with AbortError if it was aborted.
 */
export async function subscribe<Data, Variables extends object>(
  { runStream, StreamFailure }: Streams,
  document: TypedDocumentString<Data, Variables>,
  { variables, signal, onOpen, onData }: StreamOptions<Data> & { readonly variables: Variables },
): Promise<void> {
  const bearer = requireToken();
  try {
    await runStream({
      url: `${RELAY_PATH}/graphql/stream`,
      query: document.toString(),
      variables,
      token: bearer,
      signal,
      onOpen,
      onResult: (result) => onData(readData<Data>(result, bearer, EVENT_HEAD)),
    });
  } catch (error) {
    if (!(error instanceof StreamFailure)) throw error;
    const { answer } = error;
    if (!answer) throw new RequestError('unreachable', 'The stream broke.');
    const refused = refusalOf(parseObject(answer.text), bearer, answer);
    throw refused ?? new RequestError('bad_answer', `HTTP ${answer.status} without a stream.`);
  }
}
