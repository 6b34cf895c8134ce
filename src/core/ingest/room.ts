import type { Principal } from '../auth/principal.ts';
import type { Code, Fault } from '../errors.ts';
import type { JsonText } from '../json.ts';
import type { ProjectionRefusal } from '../sites/projector.ts';

/** A message as its sender gives it. Its user is whoever authenticated. */
export type IngestMessage = {
  /** What makes it safe to send again. Omitted, the relay makes one. */
  readonly messageId?: string | null | undefined;
  /** Only `event`: nothing else can be ingested. */
  readonly kind: string;
  /** What follows the user in the stream's key: 1 to 8 ids joined by `/`, none of them `.` or `..`, not under `clients/`. */
  readonly streamSuffix: string;
  readonly clientId: string;
  readonly instanceId: string;
  readonly traceId?: string | null | undefined;
  readonly parentSpanId?: string | null | undefined;
  readonly payload: JsonText | null;
};

/** Why nothing of a message was retained. */
export type IngestError = { readonly code: Code; readonly message: string; readonly errors: readonly Fault[] };

/** What became of one message. Retained is not published: `refusedBy` says which rule of projection it did not meet. */
export type IngestVerdict = {
  /** The id that it is retained under; of a refused one the id that was given, if any. */
  readonly messageId: string | null;
  /** The full key of its stream; null where the suffix is none. */
  readonly stream: string | null;
  readonly retained: boolean;
  /** It was ingested before, within the deduplicator's time: counted, and neither retained nor published again. */
  readonly duplicate: boolean;
  readonly published: boolean;
  readonly refusedBy: ProjectionRefusal | null;
  readonly error: IngestError | null;
};

/** The one way in for events: authenticated, put under the sender's own user, deduplicated and retained in one act, then projected. */
export interface Ingest {
  /**
   * A user with scope `host`. One verdict a message, in the order sent; a refused one costs the others nothing. Throws only for who may not
   * ask, and for anything but 1 to 100 messages.
   */
  ingest(who: Principal | null, messages: readonly IngestMessage[]): Promise<readonly IngestVerdict[]>;
  /** As `ingest`, of one message: never rejects for what is wrong with the message, which the verdict says. */
  ingestCooperativeSiteMessage(who: Principal | null, message: IngestMessage): Promise<IngestVerdict>;
}
