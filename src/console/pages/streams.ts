/**
 * Reads the latest messages of several streams, with one request for each stream, because the relay lists messages by
 * stream.
 */
import * as gql from '../../../generated/console.ts';
import { useAnswer, type Query } from '../api/query.ts';
import { errorOf, request } from '../api/request.ts';

type Row = gql.MessagesQuery['messages']['nodes'][number];
export type StreamRows = {
  readonly stream: string;
  readonly nodes: readonly Row[];
  readonly pageInfo: { readonly hasNextPage: boolean };
  readonly completeness: gql.CompletenessPartFragment;
};

type Asked = {
  readonly kinds?: readonly gql.MessageKind[];
  readonly afterTime?: string | null;
  readonly beforeTime?: string | null;
  readonly first: number;
  /** The delay before the streams are read again, in milliseconds. Absent: they are read once. */
  readonly everyMs?: number;
};

const NONE = { nodes: [], pageInfo: { hasNextPage: false }, completeness: { complete: true, sources: [] } };

/** Requests the newest messages of these streams. A stream that no longer exists counts as empty. */
export function useStreams(streams: readonly string[], { everyMs, ...asked }: Asked): Query<readonly StreamRows[]> {
  const { kinds = null, afterTime = null, beforeTime = null, first } = asked;
  const page = {
    kinds: kinds && [...kinds],
    afterTime,
    beforeTime,
    first,
    after: null,
    order: 'NEWEST_FIRST' as const,
  };
  return useAnswer(
    JSON.stringify([streams, asked]),
    (signal) =>
      Promise.all(
        streams.map(async (stream) => {
          const { messages } = await request(gql.MessagesDocument, { stream, ...page }, signal).catch(
            (error: unknown) => {
              if (errorOf(error).code === 'not_found') return { messages: NONE };
              throw error;
            },
          );
          return { stream, ...messages };
        }),
      ),
    { everyMs, skip: streams.length === 0 },
  );
}
